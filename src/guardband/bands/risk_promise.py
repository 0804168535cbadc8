"""What follows from a risk: the mean loss of new rows is at most a limit, in the unit of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from guardband.bands.law import Expectation, Law
from guardband.bands.promise import DELTA, DISTINCT_ROW, EXCHANGEABLE, IDENTICAL, Promise
from guardband.bands.rank_promise import ON_AVERAGE, SAME_SOURCE
from guardband.bands.risk import DISTANCE
from guardband.bands.risk_bounds import excess_p_value, largest_mean, risk_budget, risk_rows
from guardband.words import at_most, confidence_name, level_name, percent

NO_COVERAGE = (
    "This promise limits the mean loss of new rows, and promises no coverage. Read certificate.risk, or calibrate with "
    "a confidence level in place of risk."
)


@dataclass(frozen=True, kw_only=True)
class RiskPromise(Promise):
    """The mean loss of new rows is at most ``limit``: on average, or with probability 1 - ``delta`` given the data.

    The confidence level is the one that networks learn by. Nothing is promised of it.

    Parameters
    ----------
    limit : float
        The largest mean loss that new rows may have.
    cap : float
        The largest loss of a single row.
    loss : {"distance", "own"}, default "distance"
        Which loss it is: how far a value lies outside its interval, or a function of the user's own.
    covered : tuple of int
        How many calibration rows lie inside their intervals. Nothing is promised of it.
    """

    kind = "risk"
    is_of_coverage = False
    is_bound_known = False
    is_testable = False
    limit: float
    cap: float
    covered: tuple[int, ...]
    loss: str = DISTANCE

    @property
    def assumption(self) -> str:  # type: ignore[override]
        """What must hold of the rows, and of a loss of the user's own."""
        rows = EXCHANGEABLE if self.delta is None else IDENTICAL
        return rows if self.loss == DISTANCE else f"{rows}, and your loss never grows when an interval grows"

    @property
    def budget(self) -> float:
        """How much loss the calibration rows may have in all."""
        return risk_budget(self.limit, self.cap, self.n_calibration, self.delta)

    def risk_bound(self, delta: float) -> float:
        """Return what the mean loss of new rows given the data is at most, with probability at least 1 - delta.

        Parameters
        ----------
        delta : float
            How often the bound may fail over possible calibration sets.
        """
        if self.whole_line[0]:
            return 0.0
        if delta == self.delta:
            return self.limit
        return self.cap * largest_mean(self.n_calibration, max(0.0, self.budget) / self.cap, delta)

    def risk_entries(self) -> dict[str, Any]:
        """Return limit, cap and loss, and what the mean is at most for the calibration rows at hand."""
        bound = self.risk_bound(DELTA if self.delta is None else self.delta)
        return {"limit": self.limit, "cap": self.cap, "loss": self.loss, "bound": bound}

    def least_rows(self) -> int:
        """Return the fewest calibration rows that can keep the risk, if none of them has any loss."""
        return risk_rows(self.limit, self.cap, self.delta)

    def risk_figures(self) -> list[tuple[str, str]]:
        """Return limit, cap, the bound for these calibration rows, and how many of them are inside."""
        delta, mean = DELTA if self.delta is None else self.delta, f"Mean {self._loss}"
        return [
            (mean, f"at most {at_most(self.limit)}"),
            ("A single row counts", f"at most {at_most(self.cap)}"),
            (f"{mean}, with {confidence_name(delta)} confidence", f"at most {at_most(self.risk_bound(delta))}"),
            ("Calibration rows inside", f"{self.covered[0]:,} of {self.n_calibration:,}"),
        ]

    def p_value(self, total: float, m: int) -> float:
        """Return what bounds the chance that m new rows have at least this total loss, over both samples.

        Parameters
        ----------
        total : float
            The total loss of the rows.
        m : int
            The number of rows.
        """
        return excess_p_value(self.n_calibration, self.budget / self.cap, m, total / self.cap)

    def chosen_among(self, candidates: int, delta: float) -> Promise:
        """Raise: candidates are compared at a confidence level."""
        raise ValueError(
            "gb.choose compares candidates at a confidence level, and cannot use a risk. Remove risk, or choose a "
            "candidate on other rows before you calibrate it."
        )

    def expected_coverage(self) -> tuple[float, ...]:
        """Raise: no coverage is promised."""
        raise ValueError(NO_COVERAGE)

    def coverage_bound(self, delta: float) -> tuple[float, ...]:
        """Raise: no coverage is promised."""
        raise ValueError(NO_COVERAGE)

    def expectations(self) -> tuple[Expectation, ...]:
        """Return the share of calibration rows inside as a yardstick; no count contradicts the promise."""
        (covered,), n = self.covered, self.n_calibration
        law = Law(open=True) if self.whole_line[0] else Law((max(1, min(covered, n)), n), open=True)
        return (Expectation(max(covered, 0.5) / (n + 1), law, (Law(share=0.0, open=True),), None),)

    def why_untestable(self) -> str:
        """Return why a monitor cannot follow the promise, and what to do."""
        return "It limits a mean loss, and a monitor counts misses. Audit new rows from time to time instead."

    def why_infinite(self, i: int) -> str:
        """Return that rows are too few, or that predictions are unusable, and what to do."""
        if self.budget < 0:
            return (
                f"{self.counted}, and this risk needs {self.least_rows():,}. Calibrate on more rows, or lower the cap."
            )
        return "too many predictions are not finite, or have no width. Check the model's predictions."

    def lines(self, method: str) -> list[str]:
        """Return promise, how, risk, assumption, and what is not promised."""
        delta = DELTA if self.delta is None else self.delta
        on_average = f"at most {at_most(self.limit)} is expected. " if self.delta is None else ""
        independent = " The figure for these calibration rows also needs independent rows." if on_average else ""
        begin = ON_AVERAGE if self.delta is None else f"with {confidence_name(delta)} confidence"
        inside = percent(self.covered[0] / self.n_calibration)
        return [
            f"Promise: {begin}, {self._sentence()}",
            f"How: {method} made the intervals just wide enough to keep the total loss of the {self.counted} at or "
            f"below {at_most(max(0.0, self.budget))}. They contain {inside} of these rows."
            f"{self._drawn()}{' The intervals are infinite.' if self.whole_line[0] else ''}",
            f"Mean {self._loss}: {on_average}{'For' if on_average else 'for'} these calibration rows it is at most "
            f"{at_most(self.risk_bound(delta))}, with {confidence_name(delta)} confidence.",
            f"Assumes: {self.assumption}.{independent}",
            "Not promised: any coverage, a limit for a single row or for a group, or anything for rows from another "
            "source or a later time if the data have changed.",
        ]

    def headline(self, method: str) -> str:
        """Return the promise in two sentences."""
        begin = f"O{ON_AVERAGE[1:]}" if self.delta is None else f"With {confidence_name(self.delta)} confidence"
        return f"{begin}, {self._sentence(SAME_SOURCE)}"

    def not_promised(self) -> list[str]:
        """Return what a reader might take for promised, and is not."""
        out = [
            "Any coverage. The promise is about how far values lie outside, not about how many do."
            if self.loss == DISTANCE
            else "Any coverage. The promise is about your loss, not about how many values lie outside.",
            f"A limit for a single row. One row can count up to {at_most(self.cap)}, and lie further outside.",
            "A limit within a group. Some groups may have a larger mean, and others a smaller one.",
            "Anything for rows from another source, or from a later time if the data have changed.",
            "Narrow intervals or accurate predictions.",
        ]
        if self.delta is None:
            bound = at_most(self.risk_bound(DELTA))
            return [
                *out,
                f"The limit for every calibration set. For the set used here, the mean is at most {bound} with 90% "
                "confidence, if the rows are independent.",
            ]
        return [*out, f"Certainty. Up to {level_name(self.delta)} of possible calibration sets give a larger mean."]

    @property
    def _loss(self) -> str:
        return "distance" if self.loss == DISTANCE else "loss"

    def _sentence(self, source: str = "") -> str:
        limit, cap, rows = at_most(self.limit), at_most(self.cap), self._rows(source)
        if self.loss == DISTANCE:
            return (
                f"the mean distance of {rows} from their intervals is at most {limit}. A value inside counts 0, and a "
                f"single distance counts at most {cap}."
            )
        return f"the mean of your loss over {rows} is at most {limit}. A single row counts at most {cap}."

    def _rows(self, source: str) -> str:
        """Return which new values or rows a mean is of: entities count alike, however many rows they have."""
        what = "values" if self.loss == DISTANCE else "rows"
        if self.entity is None:
            return f"new {what}{source}"
        if self.entity == DISTINCT_ROW:
            return f"new {what}{source} that repeat no row of the table"
        return f"{what} drawn at random, one from each new {self.entity}{source},"

    def _drawn(self) -> str:
        """Return how many calibration rows there were if only one of each entity counts."""
        if self.entity is None:
            return ""
        if self.entity == DISTINCT_ROW:
            return f" Repeated rows count once ({self.n_rows:,} rows in all)."
        return f" guardband drew one row from each {self.entity} ({self.n_rows:,} rows in all)."
