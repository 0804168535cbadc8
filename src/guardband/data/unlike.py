"""Rows unlike all training rows: a category never seen, a number far outside, a missing value where none ever was.

What the training rows held is kept in few numbers for each column, so that new rows are compared batch by batch.
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from guardband.data.asking import Asking, answered
from guardband.data.kinds import Kind
from guardband.data.questions import AskCategories, AskRanks, AskSpread
from guardband.data.table import ROWS_AT_A_TIME, Column, Table, categories_from, numbers_from
from guardband.words import number

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Reason = Literal["category", "number", "missing"]

MOST_KEPT = 10_000
"""A column with more categories than this cannot tell which are new."""
MOST_ALONE = 0.1
"""Nor can one in which more training rows than this share have a category of their own: new ones are usual there."""
FEWEST_TO_TRIM, TRIMMED = 20, 1000
ABSURD = 10
"""At either end one value of a thousand is left out if it lies more than ten ranges of the others away from them."""
ROUNDING = 1e-9
MOST_EXAMPLES, MOST_COLUMNS, LONGEST = 3, 5, 30
LIKE_THESE = "Check these rows: the promise is about rows like the training rows."


@dataclass(frozen=True)
class SeenNumbers:
    """The range of a column's numbers in the training rows, None if there were none, and whether none was missing."""

    least: float | None
    most: float | None
    never_missing: bool
    kind: Kind = "number"

    @classmethod
    def asks(cls, kind: Kind) -> Asking[SeenNumbers]:
        """Learn what was seen of a column."""
        spread = yield AskSpread()
        n, least, most = spread.values, spread.least, spread.most
        if not n:
            return cls(None, None, never_missing=False, kind=kind)
        if n >= FEWEST_TO_TRIM:
            out = max(1, n // TRIMMED)
            low, high = (float(v) for v in (yield AskRanks((out, n - 1 - out), spread)))
            if low < high:
                least = least if low - least <= ABSURD * (high - low) else low
                most = most if most - high <= ABSURD * (high - low) else high
        return cls(least, most, not spread.some_missing, kind)

    def compare(self, column: Column) -> Iterator[tuple[Reason, Mask]]:
        """Yield in which rows a number is missing that never was, or lies beyond the range by more than its length."""
        values = numbers_from(column, self.kind)
        if self.never_missing:
            yield "missing", np.isnan(values)
        if self.least is not None and self.most is not None:
            span = max(self.most - self.least, ROUNDING * max(abs(self.least), abs(self.most)))
            yield "number", (values < self.least - span) | (values > self.most + span)

    def example(self, column: Column, row: int) -> str:
        """Return a cell in words."""
        return self._word(float(numbers_from(column.take_row(row), self.kind)[0]))

    @property
    def in_words(self) -> str:
        """What is unusual about a number that lies beyond the range."""
        assert self.least is not None
        assert self.most is not None
        if self.least == self.most:
            return f"other than {self._word(self.least)}, the only value in training"
        return f"far outside {self._word(self.least)} to {self._word(self.most)}, the range in training"

    def _word(self, value: float) -> str:
        return _moment(value) if self.kind == "date" else number(value)


@dataclass(frozen=True)
class SeenCategories:
    """Hashes of a column's categories in the training rows, None if it cannot tell, and whether none was missing."""

    prints: frozenset[int] | None
    never_missing: bool
    kind: ClassVar[Kind] = "category"
    in_words = "with a category that training did not have"

    @classmethod
    def asks(cls) -> Asking[SeenCategories]:
        """Learn what was seen of a column."""
        counts = yield AskCategories()
        present = {cell: n for cell, n in counts.items() if cell is not None}
        alone = sum(n == 1 for n in present.values())
        tells = 0 < len(present) <= MOST_KEPT and alone <= MOST_ALONE * counts.total()
        return cls(frozenset(map(_print, present)) if tells else None, not counts[None])

    def compare(self, column: Column) -> Iterator[tuple[Reason, Mask]]:
        """Yield in which rows a category is missing that never was, or is one that was not seen."""
        if self.prints is None and not self.never_missing:
            return
        cells = categories_from(column)
        every = set(cells)
        if self.never_missing and None in every:
            yield "missing", np.array([cell is None for cell in cells])
        if self.prints is not None:
            new = {cell for cell in every if cell is not None and _print(cell) not in self.prints}
            if new:
                yield "category", np.array([cell in new for cell in cells])

    def example(self, column: Column, row: int) -> str:
        """Return a cell in words."""
        (cell,) = categories_from(column.take_row(row))
        assert cell is not None
        return cell if len(cell) <= LONGEST else f"{cell[: LONGEST - 1]}…"


@dataclass(frozen=True)
class UnlikeCells:
    """Cells of one column that are unlike those in training: how many, for which reason, and the first few.

    ``examples`` are cells in words with their rows; ``unusual`` says in words what is unusual about them.
    """

    column: str
    reason: Reason
    unusual: str
    count: int
    examples: tuple[tuple[str, int], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the same for JSON."""
        examples = [{"value": value, "row": row} for value, row in self.examples]
        return {"column": self.column, "reason": self.reason, "rows": self.count, "examples": examples}


@dataclass(frozen=True)
class Unlike:
    """How many of ``n`` rows are unlike all training rows, and in which columns; that of batches adds up."""

    n: int = 0
    count: int = 0
    cells: tuple[UnlikeCells, ...] = ()

    def __add__(self, other: Unlike) -> Unlike:
        """Return the count of both batches; examples are of the first rows."""
        cells = {(own.column, own.reason): own for own in self.cells}
        for own in other.cells:
            key = own.column, own.reason
            before = cells.get(key)
            if before is not None:
                more = [e for e in own.examples if e[0] not in {value for value, _ in before.examples}]
                examples = (*before.examples, *more)[:MOST_EXAMPLES]
                own = replace(before, count=before.count + own.count, examples=examples)
            cells[key] = own
        return Unlike(self.n + other.n, self.count + other.count, tuple(cells.values()))

    def in_words(self, place: Callable[[int], str]) -> str:
        """Return one line on the rows, the columns and what to do; ``place`` says where a row lies."""
        verb = "is" if self.count == 1 else "are"
        parts = [f"{self.count:,} of {self.n:,} rows {verb} unlike all training rows."]
        for own in self.cells[:MOST_COLUMNS]:
            rows = "1 row" if own.count == 1 else f"{own.count:,} rows"
            value, row = own.examples[0]
            value = repr(value) if own.reason == "category" else value
            if own.reason == "missing":
                where = "in every row" if own.count == self.n > 1 else f"in {rows}, such as {place(row)}"
                parts.append(f"{own.column!r} is missing {where}, and never was in training.")
            else:
                parts.append(f"{own.column!r}: {rows} {own.unusual}, such as {value} in {place(row)}.")
        more = len(self.cells) - MOST_COLUMNS
        if more > 0:
            parts.append(f"{more:,} more {'column is' if more == 1 else 'columns are'} concerned.")
        return " ".join([*parts, LIKE_THESE])

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {"rows": self.count, "of": self.n, "columns": [own.to_dict() for own in self.cells]}


@dataclass(frozen=True)
class Seen:
    """What the training rows held, column by column."""

    columns: tuple[SeenNumbers | SeenCategories, ...]

    @classmethod
    def learn(cls, table: Table, keys: Collection[str] = ()) -> Seen:
        """Return what the training rows held; ``keys`` name entities, which are new in new rows, and tell nothing."""
        return cls(tuple(answered(asks_seen(c.kind, c.name in keys), c) for c in table.columns))

    def compare(self, table: Table, first_row: int = 0) -> tuple[Unlike, NDArray[np.object_]]:
        """Return how rows are unlike those, and for each row the names of the columns that are, ``(n,)``.

        Rows are counted from ``first_row``.
        """
        table = table.read_as([seen.kind for seen in self.columns])
        hits: dict[tuple[int, Reason], list[NDArray[np.intp]]] = {}
        for start in range(0, table.n_rows, ROWS_AT_A_TIME):
            part = table.part(slice(start, start + ROWS_AT_A_TIME))
            for j, (seen, column) in enumerate(zip(self.columns, part.columns, strict=True)):
                for reason, mask in seen.compare(column):
                    if mask.any():
                        hits.setdefault((j, reason), []).append(np.flatnonzero(mask) + start)
        names: dict[int, list[str]] = {}
        found = []
        for j, reason in sorted(hits, key=lambda hit: (hit[0], hit[1] != "missing")):
            seen, column, rows = self.columns[j], table.columns[j], np.concatenate(hits[j, reason]).tolist()
            for row in rows:
                names.setdefault(row, []).append(column.name)
            is_missing = reason == "missing"
            first = (("missing", rows[0] + first_row),)
            examples = first if is_missing else _examples(seen, column, rows, first_row)
            found.append(UnlikeCells(column.name, reason, "" if is_missing else seen.in_words, len(rows), examples))
        labels = np.full(table.n_rows, "", dtype=object)
        for row, own in names.items():
            labels[row] = ", ".join(own)
        return Unlike(table.n_rows, len(names), tuple(found)), labels

    def to_dict(self) -> dict[str, Any]:
        """Return the same for JSON."""
        return {"columns": [_to_dict(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Seen:
        """Return what ``to_dict`` described."""
        return cls(tuple(_from_dict(column) for column in entries["columns"]))


def asks_seen(kind: Kind, is_key: bool = False) -> Asking[SeenNumbers | SeenCategories]:
    """Learn what was seen of a column of a kind: of one that names entities, nothing."""
    if is_key:
        return SeenCategories(None, never_missing=False)
    return (yield from SeenCategories.asks() if kind == "category" else SeenNumbers.asks(kind))


def _examples(
    seen: SeenNumbers | SeenCategories, column: Column, rows: Iterable[int], first_row: int
) -> tuple[tuple[str, int], ...]:
    """Return the first different cells among some rows, with the row of each."""
    examples: dict[str, int] = {}
    for looked, row in enumerate(rows):
        examples.setdefault(seen.example(column, row), row + first_row)
        if len(examples) == MOST_EXAMPLES or looked == 10 * MOST_EXAMPLES:
            break
    return tuple(examples.items())


@lru_cache(MOST_KEPT)
def _print(category: str) -> int:
    return int.from_bytes(blake2b(category.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _moment(days: float) -> str:
    """Return days since 1970 as a date, with the hour if there is one."""
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(days=round(days * 1440) / 1440)
    except OverflowError:
        return f"day {number(days)}"
    return f"{moment:%Y-%m-%d %H:%M}".removesuffix(" 00:00")


def _to_dict(column: SeenNumbers | SeenCategories) -> dict[str, Any]:
    if isinstance(column, SeenNumbers):
        return {"kind": column.kind, "range": [column.least, column.most], "never_missing": column.never_missing}
    packed = None
    if column.prints is not None:
        packed = base64.b64encode(np.sort(np.array(list(column.prints), dtype=">u8")).tobytes()).decode()
    return {"kind": "category", "prints": packed, "never_missing": column.never_missing}


def _from_dict(entries: Mapping[str, Any]) -> SeenNumbers | SeenCategories:
    never_missing = bool(entries["never_missing"])
    if entries["kind"] != "category":
        least, most = entries["range"]
        return SeenNumbers(least, most, never_missing, entries["kind"])
    packed = entries["prints"]
    if packed is None:
        return SeenCategories(None, never_missing)
    return SeenCategories(frozenset(np.frombuffer(base64.b64decode(packed), dtype=">u8").tolist()), never_missing)
