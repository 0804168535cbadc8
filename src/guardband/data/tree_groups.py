"""Groups that a tree makes of a table's columns: each of its leaves is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.kinds import Kind
from guardband.data.table import Column, Table, categories_from, numbers_from
from guardband.words import as_moment, as_written, listed

Codes = NDArray[np.int64]

AUTO = "auto"
"""What ``groups=`` calls groups that are looked for."""
MISSING = ""
"""How a missing category is kept: no cell is empty text."""
LARGEST = float(np.finfo(np.float64).max)
"""A cut that only tells numbers from what is missing."""
MOST_NAMED = 4
"""So many values of a column are named in words."""


@dataclass(frozen=True)
class Branch:
    """Rows go left if a number is below ``cut``, or if a category is one of ``values``; else right.

    ``left`` and ``right`` are further branches, or the numbers of groups. A missing number goes left if
    ``missing_left``, and ``may_miss`` says that some were missing. A missing category is one of the others; one that is
    not ``known`` goes right.
    """

    column: str
    kind: Kind
    cut: float | None
    values: tuple[str, ...]
    known: tuple[str, ...]
    missing_left: bool
    may_miss: bool
    left: Branch | int
    right: Branch | int

    def goes_left(self, column: Column) -> NDArray[np.bool_]:
        """Return which rows go left."""
        if self.cut is not None:
            numbers = numbers_from(column, self.kind)
            return np.where(np.isnan(numbers), self.missing_left, numbers < self.cut)
        ways = set(self.values)
        return np.array([(MISSING if cell is None else cell) in ways for cell in categories_from(column)], dtype=bool)


@dataclass(frozen=True, eq=False)
class TreeGroups:
    """The groups of a tree: its first branch, and what each group is in words."""

    root: Branch
    by: str = AUTO

    @property
    def names(self) -> tuple[str, ...]:
        """The groups, in words, by their numbers."""
        found: dict[int, str] = {}
        _name(self.root, [], found)
        return tuple(found[group] for group in range(len(found)))

    @property
    def width(self) -> int:
        """How many columns of groups there are: one."""
        return 1

    @property
    def in_words(self) -> str:
        """What makes the groups."""
        return "found on the training rows"

    @property
    def column_names(self) -> list[str]:
        """The columns of a table that must be there to find the groups of its rows."""
        return sorted(_columns(self.root))

    def of_rows(self, table: Table, X: Any = None) -> Codes:
        """Return the group of each row of a table, ``(n, 1)``."""
        out = np.empty(table.n_rows, dtype=np.int64)
        _sort(self.root, {column.name: column for column in table.columns}, np.arange(table.n_rows), out)
        return out[:, None]

    def to_dict(self) -> dict[str, Any]:
        """Return the tree for JSON: the branches, those of which others are part behind them."""
        branches: list[dict[str, Any]] = []
        _write(self.root, branches)
        return {"branches": branches}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> TreeGroups:
        """Return the tree that ``to_dict`` described; what is no tree is refused."""
        branches: list[Branch] = []
        groups: list[int] = []
        for own in entries["branches"]:
            sides = [_side(own[side], branches, groups) for side in ("left", "right")]
            words = {name: tuple(own[name]) for name in ("values", "known")}
            branches.append(Branch(**(dict(own) | words | {"left": sides[0], "right": sides[1]})))
        if not branches or sorted(groups) != list(range(len(branches) + 1)):
            raise ValueError("its groups are no tree")
        tree = cls(branches[-1])
        if len(tree.names) != len(groups):
            raise ValueError("its groups are no tree")
        return tree


def _side(reference: Mapping[str, int], branches: Sequence[Branch], groups: list[int]) -> Branch | int:
    if reference.get("group") is not None:
        groups.append(reference["group"])
        return reference["group"]
    return branches[reference["branch"]]


def _write(branch: Branch, out: list[dict[str, Any]]) -> dict[str, int | None]:
    """Append a branch behind those that it leads to, and return how to refer to it."""
    sides = [
        {"group": own, "branch": None} if isinstance(own, int) else _write(own, out)
        for own in (branch.left, branch.right)
    ]
    out.append(
        {
            "column": branch.column,
            "kind": branch.kind,
            "cut": branch.cut,
            "values": list(branch.values),
            "known": list(branch.known),
            "missing_left": branch.missing_left,
            "may_miss": branch.may_miss,
            "left": sides[0],
            "right": sides[1],
        }
    )
    return {"group": None, "branch": len(out) - 1}


def _sort(branch: Branch | int, columns: Mapping[str, Column], rows: NDArray[np.intp], out: Codes) -> None:
    if isinstance(branch, int):
        out[rows] = branch
        return
    left = branch.goes_left(columns[branch.column].take(rows))
    _sort(branch.left, columns, rows[left], out)
    _sort(branch.right, columns, rows[~left], out)


def _columns(branch: Branch | int) -> set[str]:
    return set() if isinstance(branch, int) else {branch.column} | _columns(branch.left) | _columns(branch.right)


def _name(branch: Branch | int, path: list[tuple[Branch, bool]], found: dict[int, str]) -> None:
    if isinstance(branch, int):
        found[branch] = _in_words(path)
        return
    _name(branch.left, [*path, (branch, True)], found)
    _name(branch.right, [*path, (branch, False)], found)


def _in_words(path: Sequence[tuple[Branch, bool]]) -> str:
    """Return which rows follow a path, one condition for each column."""
    names = list(dict.fromkeys(branch.column for branch, _ in path))
    return " and ".join(_condition([step for step in path if step[0].column == name]) for name in names)


def _condition(steps: Sequence[tuple[Branch, bool]]) -> str:
    column = steps[0][0].column
    if steps[0][0].cut is None:
        kept = [value for value in steps[0][0].known if all((value in own.values) == left for own, left in steps)]
        kept = sorted(value for value in kept if value != MISSING) + ["missing"] * (MISSING in kept)
        other = " or another value" if not any(left for _, left in steps) else ""
        if len(kept) <= MOST_NAMED:
            return f"{column} = {' or '.join(kept)}{other}"
        return f"{column} one of {len(kept):,} values ({listed(kept, 2)}){other}"
    word = as_moment if steps[0][0].kind == "date" else as_written
    missing = steps[0][0].may_miss and all(own.missing_left == left for own, left in steps)
    low = max((own.cut for own, left in steps if not left and own.cut is not None), default=None)
    high = min((own.cut for own, left in steps if left and own.cut is not None), default=None)
    if low == LARGEST:
        return f"{column} missing"
    high = None if high == LARGEST else high
    or_missing = f" or {column} missing" if missing else ""
    if low is None and high is None:
        return f"{column} known{or_missing}"
    if low is None or high is None:
        one = f"below {word(high)}" if high is not None else f"from {word(low or 0.0)}"
        return f"{column} {one}{or_missing}"
    return f"{column} from {word(low)} to below {word(high)}{or_missing}"
