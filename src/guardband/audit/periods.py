"""Periods: rows by hour, day, week, month, quarter or year, whichever suits the span of their dates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guardband.audit.strata import MISSING, Bins

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_PERIODS = 31
"""So many bars fit on a page: the days of a month, or the months of two years and a half."""
ROWS_A_PERIOD = 10
"""Periods have at least so many rows on average: fewer tell nothing of coverage."""


@dataclass(frozen=True)
class Unit:
    """A unit of time: which period days since 1970 lie in, as a number that grows with time, and a period in words."""

    name: str
    number: Callable[[Array], Ints]
    words: Callable[[int], str]

    def periods(self, days: Array, column: str) -> tuple[str, Bins]:
        """Return a title, and the rows by period; periods without rows are left out, and missing dates come last."""
        known = np.flatnonzero(~np.isnan(days))
        every, place = np.unique(self.number(days[known]), return_inverse=True)
        labels = [self.words(int(period)) for period in every]
        stratum_of = np.full(len(days), len(labels), dtype=np.int8)
        stratum_of[known] = place
        if len(known) < len(days):
            labels.append(MISSING)
        return f"By {self.name} of {column}", Bins(tuple(labels), stratum_of)


def unit_for(days: Array) -> Unit | None:
    """Return the finest unit with few periods and many rows in each; None if no unit has more than one period."""
    known = days[~np.isnan(days)]
    most = min(MOST_PERIODS, len(known) // ROWS_A_PERIOD)
    counts = ((unit, len(np.unique(unit.number(known)))) for unit in UNITS)
    return next((unit for unit, count in counts if 1 < count <= most), None)


def _months(days: Array) -> Ints:
    moments = np.floor(days).astype(np.int64).astype("datetime64[D]")
    return moments.astype("datetime64[M]").astype(np.int64)


def _date(day: int) -> str:
    return str(np.datetime64(day, "D"))


def _hour(hours: int) -> str:
    return f"{_date(hours // 24)} {hours % 24:02d}:00"


def _month(months: int) -> str:
    return str(np.datetime64(months, "M"))


def _quarter(quarters: int) -> str:
    return f"{1970 + quarters // 4} Q{1 + quarters % 4}"


def _whole(numbers: Array) -> Ints:
    return np.floor(numbers + ROUNDING).astype(np.int64)


ROUNDING = 1e-9
"""In hours, days in floating point are off by less."""
UNITS = (
    Unit("hour", lambda days: _whole(24 * days), _hour),
    Unit("day", _whole, _date),
    Unit("week", lambda days: _whole((days + 3) / 7), lambda weeks: _date(7 * weeks - 3)),
    Unit("month", _months, _month),
    Unit("quarter", lambda days: _months(days) // 3, _quarter),
    Unit("year", lambda days: _months(days) // 12, lambda years: f"{1970 + years}"),
)
"""From the finest to the coarsest. Weeks are named by their Monday: the first day of 1970 was a Thursday."""
