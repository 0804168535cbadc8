"""Interventional Shapley values: what each column adds to functions of a row, compared with background rows.

The game of one row x and one background row b: v(S) is a function of the row that has the columns S from x and all
others from b. The value of a column is what it adds to v on average over the orders in which columns can join (Shapley
1953; Lundberg & Lee 2017), averaged over the background rows. The values of a row add up to f(x) less the average of f
over the background.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Masks = NDArray[np.bool_]
Ask = Callable[[Places, Masks, Places], Array]
"""From rows ``(m,)``, which of their columns are their own ``(m, d)``, and the background rows that the others come
from ``(m,)``, to the values of F functions ``(F, m)``."""

LARGEST_BLOCK, MOST_CELLS = 65_536, 4_000_000
"""How many mixed rows, and how many cells of them, are made at once."""
FEWEST_PAIRS = 2
"""Pairs of orders for each background row: the fewest from which their variance can be estimated."""


@dataclass(frozen=True)
class Values:
    """The values of n rows and d columns for F functions, ``(F, n, d)``, and their standard errors."""

    values: Array
    errors: Array
    exact: bool


@dataclass(frozen=True)
class Game:
    """n rows with d columns against background rows: the functions, and their values of rows that are not mixed.

    ``of_rows`` are ``(F, n)``, ``of_background`` ``(F, B)``.
    """

    ask: Ask
    of_rows: Array
    of_background: Array
    columns: int

    @property
    def block(self) -> int:
        """How many mixed rows are made at once."""
        return max(1, min(LARGEST_BLOCK, MOST_CELLS // max(1, self.columns)))

    def cost(self, pairs: int | None) -> int:
        """Return for how many mixed rows so many pairs of orders ask, or, for None, all subsets."""
        games = self.of_rows.shape[1] * self.of_background.shape[1]
        return int(games * (2**self.columns - 2 if pairs is None else 2 * pairs * (self.columns - 1)))


def shapley(game: Game, evaluations: int, orders: Callable[[int, int], Places], told: Callable[[int], None]) -> Values:
    """Return exact values if that needs no more than so many mixed rows, otherwise estimates that need about as many.

    ``orders(row, count)`` draws orders, ``(count, d)``; ``told`` hears how many rows are done.
    """
    least = game.cost(FEWEST_PAIRS)
    is_exact = game.columns <= 1 or game.cost(None) <= max(evaluations, least)
    pairs = 0 if is_exact else max(FEWEST_PAIRS, evaluations // game.cost(1))
    functions, n = game.of_rows.shape
    values, errors = np.zeros((2, functions, n, game.columns))
    each = game.cost(None if is_exact else pairs) // n
    step = max(1, game.block // max(1, each))
    for start in range(0, n, step):
        rows = np.arange(start, min(n, start + step))
        if is_exact:
            values[:, rows] = by_subsets(game, rows)
        else:
            values[:, rows], errors[:, rows] = by_orders(game, rows, orders, pairs)
        told(int(rows[-1]) + 1)
    return Values(values, errors, is_exact)


def by_subsets(game: Game, rows: Places) -> Array:
    """Return the values of some rows by the definition, ``(F, g, d)``.

    The value of column j is the sum over subsets S without j of |S|! (d - |S| - 1)! / d! times v(S and j) - v(S).
    """
    d, n_background, subsets = game.columns, game.of_background.shape[1], np.arange(2**game.columns)
    means = np.empty((len(game.of_rows), len(rows), len(subsets)))
    # No column and all columns need no mixed rows; averages of equal numbers are rounded like all other averages.
    means[:, :, 0] = game.of_background.mean(-1)[:, None]
    means[:, :, -1] = np.repeat(game.of_rows[:, rows, None], n_background, axis=-1).mean(-1)
    mixed, step = subsets[1:-1], max(1, game.block // (len(rows) * n_background))
    for start in range(0, len(mixed), step):
        some = mixed[start : start + step]
        shape = (len(rows), len(some), n_background)
        row, subset, other = (axis.ravel() for axis in np.meshgrid(rows, some, np.arange(n_background), indexing="ij"))
        own = (subset[:, None] >> np.arange(d)) & 1 == 1
        means[:, :, some] = game.ask(row, own, other).reshape(-1, *shape).mean(-1)
    size = np.array([int(subset).bit_count() for subset in subsets])
    weight = np.array([1 / (d * comb(d - 1, s)) for s in range(d)])
    values = np.empty((*means.shape[:2], d))
    for j in range(d):
        without = subsets[(subsets >> j) & 1 == 0]
        gains = means[:, :, without | 1 << j] - means[:, :, without]
        values[:, :, j] = (gains * weight[size[without]]).sum(-1)
    return values


def by_orders(game: Game, rows: Places, orders: Callable[[int, int], Places], pairs: int) -> tuple[Array, Array]:
    """Return estimates for some rows and their standard errors, ``(F, g, d)`` each.

    For each background row columns join in ``pairs`` random orders and in the reverse of each. What the columns of an
    order add is f(x) - f(b) in sum, and every background row has as many orders, so that the estimates add up exactly.
    Given the background rows, pairs are independent: the variance of the average follows from the variance of the
    pairs of each background row.
    """
    d, (functions, n_background) = game.columns, game.of_background.shape
    count = n_background * pairs
    rank = np.concatenate([orders(int(row), count) for row in rows])
    row, other = np.repeat(rows, count), np.tile(np.repeat(np.arange(n_background), pairs), len(rows))
    added = np.empty((functions, len(rank), d))
    step = max(1, game.block // (2 * (d - 1)))
    for start in range(0, len(rank), step):
        part = slice(start, start + step)
        added[:, part] = _added(game, row[part], other[part], rank[part])
    added = added.reshape(functions, len(rows), n_background, pairs, d)
    variance = added.var(axis=3, ddof=1).sum(2) / pairs / n_background**2
    return added.mean(axis=(2, 3)), np.sqrt(variance)


def _added(game: Game, row: Places, other: Places, rank: Places) -> Array:
    """Return what each column adds on average over an order and its reverse, ``(F, c, d)``; ``rank`` ``(c, d)``."""
    count, d = rank.shape
    joined = rank[:, None, :] < np.arange(1, d)[:, None]
    own = np.stack([joined, ~joined[:, ::-1]], axis=1).reshape(-1, d)
    each = 2 * (d - 1)
    values = game.ask(np.repeat(row, each), own, np.repeat(other, each)).reshape(-1, count, 2, d - 1)
    first, last = (np.repeat(f[:, :, None, None], 2, 2) for f in (game.of_background[:, other], game.of_rows[:, row]))
    steps = np.diff(np.concatenate([first, values, last], axis=3), axis=3)
    forward = np.take_along_axis(steps[:, :, 0], rank[None], axis=2)
    backward = np.take_along_axis(steps[:, :, 1], d - 1 - rank[None], axis=2)
    added: Array = (forward + backward) / 2
    return added
