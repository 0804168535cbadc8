"""Groups that one promise for all rows would treat unequally: looked for on the training rows, by a tree.

The tree divides rows where large scores are more frequent, or less, than elsewhere. It sees predictions of copies that
did not train on these rows, where there are such. How far it may divide is decided by cross-validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.table import Column, Table, categories_from, numbers_from
from guardband.data.tree_groups import LARGEST, MISSING, Branch, TreeGroups

Array = NDArray[np.float64]

FOLDS = 5
MOST_GROUPS = 16
FEWEST_EXPECTED = 150
"""Calibration rows to expect in each group: with fewer, coverage of a group varies more than groups differ."""
MOST_ROWS = 50_000
SMOOTHING = 20.0
"""So many rows of average size are added to each category before categories are put in order."""


def found_groups(
    table: Table, scores: Array, level: float, calibration_share: float, needed: int, unused: Sequence[str] = ()
) -> TreeGroups | None:
    """Return groups of a table's rows that differ in how often scores are large, or None if no two groups do.

    ``calibration_share`` is how many calibration rows there are for each of these rows, ``needed`` how many of them a
    group must have. Columns that are ``unused`` make no groups.
    """
    rows = np.sort(np.random.default_rng(0).permutation(table.n_rows)[:MOST_ROWS])
    large = _largeness(scores[rows], level)
    least = int(np.ceil(max(needed, FEWEST_EXPECTED) / calibration_share * len(rows) / table.n_rows))
    columns = [column.take(rows) for column in table.columns if column.name not in unused]
    codes = [_Coded.of(column, large) for column in columns]
    if 2 * least > len(rows) or not codes:
        return None
    x = np.stack([own.numbers for own in codes], axis=1)
    tree = _grown(x, large, least)
    root = None if tree is None else _branch(tree.tree_, 0, codes, iter(range(MOST_GROUPS)))
    return TreeGroups(root) if isinstance(root, Branch) else None


def _largeness(scores: Array, level: float) -> Array:
    """Return how large scores are near the level: 0 for most, rising to 1 over twice the share that may be missed."""
    order = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    beyond = 2 * (1 - level)
    return np.clip(((order + 0.5) / len(scores) - (1 - beyond)) / beyond, 0, 1)


@dataclass(frozen=True)
class _Coded:
    """A column as numbers for a tree: categories in the order of how large their scores are."""

    column: Column
    numbers: Array
    order: tuple[str, ...]

    @classmethod
    def of(cls, column: Column, large: Array) -> _Coded:
        if column.kind != "category":
            return cls(column, numbers_from(column, column.kind), ())
        cells = np.array([MISSING if cell is None else cell for cell in categories_from(column)], dtype=object)
        known, place = np.unique(cells.astype(str), return_inverse=True)
        sums, counts = np.bincount(place, large), np.bincount(place)
        means = (sums + SMOOTHING * large.mean()) / (counts + SMOOTHING)
        rank = np.argsort(np.argsort(means, kind="stable"), kind="stable").astype(float)
        return cls(column, rank[place], tuple(known[np.argsort(means, kind="stable")].tolist()))


def _grown(x: Array, large: Array, least: int) -> Any:
    """Return a tree as large as cross-validation says: the smallest whose loss is within one error of the least.

    None if even the best gains no more than its error.
    """
    from sklearn.tree import DecisionTreeRegressor

    def tree(leaves: int, share: float = 1.0) -> Any:
        fewest = max(2, int(least * share))
        return DecisionTreeRegressor(max_leaf_nodes=leaves, min_samples_leaf=fewest, random_state=0)

    fold = np.random.default_rng(0).permutation(len(large)) % FOLDS
    sizes = range(2, MOST_GROUPS + 1)
    gains = np.zeros((len(sizes), len(large)))
    for i in range(FOLDS):
        kept, judged = fold != i, fold == i
        average = large[kept].mean()
        grown = tree(MOST_GROUPS, (FOLDS - 1) / FOLDS).fit(x[kept], large[kept])
        predicted = _by_size(grown, x[judged], len(sizes))
        gains[:, judged] = (large[judged] - average) ** 2 - (large[judged] - predicted) ** 2
    means, errors = gains.mean(axis=1), gains.std(axis=1) / np.sqrt(len(large))
    best = int(means.argmax())
    if means[best] <= errors[best]:
        return None
    enough = np.flatnonzero(means >= means[best] - (gains[best] - gains).std(axis=1) / np.sqrt(len(large)))
    return tree(sizes[int(enough[0])]).fit(x, large)


def _by_size(grown: Any, x: Array, sizes: int) -> Array:
    """Return what a tree predicts if it stops at 2, 3, ... leaves, ``(sizes, n)``.

    A tree with a limit on its leaves divides the node that gains most first. The smaller tree is therefore a part of
    the larger one, and one fit does for all sizes. A tree that is smaller than a size predicts as it is.
    """
    tree, leaf = grown.tree_, grown.apply(x)
    total = tree.impurity * tree.weighted_n_node_samples

    def gain(node: int) -> float:
        return float(total[node] - total[tree.children_left[node]] - total[tree.children_right[node]])

    at, waiting = np.zeros(len(x), dtype=np.intp), [0] if tree.node_count > 1 else []
    below = _leaves_below(tree)
    out = np.empty((sizes, len(x)))
    for j in range(sizes):
        if waiting:
            node = max(waiting, key=gain)
            children = (int(tree.children_left[node]), int(tree.children_right[node]))
            for child in children:
                at[np.isin(leaf, below[child])] = child
            waiting = [own for own in (*waiting, *children) if own != node and tree.children_left[own] >= 0]
        out[j] = tree.value[at, 0, 0]
    return out


def _leaves_below(tree: Any) -> list[list[int]]:
    """Return the leaves that each node leads to, itself if it is one."""
    found: list[list[int]] = [[] for _ in range(tree.node_count)]

    def visit(node: int) -> list[int]:
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        found[node] = [node] if left < 0 else visit(left) + visit(right)
        return found[node]

    visit(0)
    return found


def _branch(tree: Any, node: int, codes: Sequence[_Coded], groups: Any) -> Branch | int:
    if tree.children_left[node] < 0:
        return int(next(groups))
    own, cut = codes[tree.feature[node]], float(tree.threshold[node])
    below = int(np.floor(cut)) + 1 if own.order else 0
    left = _branch(tree, tree.children_left[node], codes, groups)
    right = _branch(tree, tree.children_right[node], codes, groups)
    return Branch(
        column=own.column.name,
        kind=own.column.kind,
        cut=None if own.order else min(float(np.nextafter(cut, np.inf)), LARGEST),
        values=own.order[:below] if own.order else (),
        known=own.order,
        missing_left=not own.order and bool(tree.missing_go_to_left[node]),
        may_miss=not own.order and bool(np.isnan(own.numbers).any()),
        left=left,
        right=right,
    )
