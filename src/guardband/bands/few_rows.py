"""The first and the last rows of intervals, in words: what people see of many."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guardband.words import level_name, number, visible

if TYPE_CHECKING:
    from guardband.bands.intervals import Intervals

Array = NDArray[np.float64]

EACH_END = 5
"""So many rows at the beginning and at the end."""
MOST_LEVELS = 3
LONGEST = 60
"""Names of rows with more characters are cut."""


@dataclass(frozen=True)
class FewRows:
    """Some rows of intervals with their names; ``lower`` and ``upper`` are ``(n, L)``, the widest level first.

    ``names`` are the titles of the columns, from the least lower bound to the largest upper bound.
    """

    title: str
    names: list[str]
    labels: list[str]
    lower: Array
    point: Array
    upper: Array
    written: Callable[[float], str]
    rows_left_out: int
    levels_left_out: int

    @classmethod
    def of(cls, bands: Intervals) -> FewRows:
        """Return the first and the last rows, or all if they are few; no other row is looked at."""
        count = len(bands)
        shown = np.arange(count) if count <= 2 * EACH_END + 1 else np.r_[0:EACH_END, count - EACH_END : count]
        part = bands[shown]
        every = part.levels
        order = sorted(range(len(every)), key=lambda i: -every[i])[:MOST_LEVELS]
        lower, upper = (side[:, order] for side in part.per_level())
        bound = "interval" if bands.side == "both" else f"{bands.side} bound"
        what = f"{bound}{'s' * (count != 1)}"
        if part.confidence_level is not None:
            what += f", confidence level{'s' * (len(every) > 1)} {', '.join(map(level_name, every))}"
        return cls(
            title=f"{count:,} {what}",
            names=_names([every[i] for i in order]),
            labels=[_label(label) for label in (shown if bands.index is None else bands.index[shown])],
            lower=lower,
            point=part.point,
            upper=upper,
            written=_writer(lower, part.point, upper),
            rows_left_out=count - len(shown),
            levels_left_out=len(every) - len(order),
        )

    def cells(self) -> list[list[str]]:
        """Return the numbers of each row in the order of ``names``."""
        numbers = np.column_stack([self.lower, self.point, self.upper[:, ::-1]])
        return [[self.written(value) for value in row] for row in numbers]


def interval_text(bands: Intervals) -> str:
    """Return intervals as a few lines of text."""
    few = FewRows.of(bands)
    lines = [["", *few.names], *([label, *cells] for label, cells in zip(few.labels, few.cells(), strict=True))]
    if few.rows_left_out:
        lines.insert(EACH_END + 1, ["…"] * len(lines[0]))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = [
        "  ".join([name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))])
        for name, *cells in lines
    ]
    return "\n".join([few.title, *table])


def _label(label: object) -> str:
    """Return the name of a row on one line, cut if it is long."""
    text = " ".join(visible(str(label)).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _names(levels: list[float]) -> list[str]:
    """Return the titles of the columns: from the least lower bound to the largest upper bound."""
    if len(levels) == 1:
        return ["lower", "prediction", "upper"]
    names = [level_name(level) for level in levels]
    return [f"lower {name}" for name in names] + ["prediction"] + [f"upper {name}" for name in reversed(names)]


def _writer(lower: Array, point: Array, upper: Array) -> Callable[[float], str]:
    """Return how numbers are written: all with the decimals that tell the ends of an interval apart."""
    values = np.concatenate([lower.ravel(), point, upper.ravel()])
    largest = np.abs(values[np.isfinite(values)]).max(initial=0)
    if not 1e-4 <= largest < 1e12:
        return number
    is_finite = np.isfinite(lower) & np.isfinite(upper) & (lower < upper)
    if not is_finite.any():
        return number
    decimals = 2 - round(math.log10(np.median(upper[is_finite] - lower[is_finite])))
    if decimals > 9:
        return number

    def written(value: float) -> str:
        if not math.isfinite(value):
            return number(value)
        return f"{value:,.{max(decimals, 0)}f}".replace("-", "\N{MINUS SIGN}")

    return written
