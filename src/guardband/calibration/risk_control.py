"""Conformal risk control: intervals just wide enough to keep the mean loss of new rows at or below a limit.

The loss of a row never grows with its interval, and intervals grow with the threshold. The least threshold that keeps
the total loss of the calibration rows within a budget keeps the risk of new rows, on average (Angelopoulos et al.
2022), or with probability 1 - delta given the data (Bates et al. 2021). ``bands/risk_bounds.py`` has both budgets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Self

import numpy as np

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, Predicted, PredictedPoint
from guardband.bands.risk import Risk
from guardband.bands.risk_bounds import risk_budget, risk_rows
from guardband.bands.risk_promise import RiskPromise
from guardband.calibration.conformal import Conformal
from guardband.calibration.cut import MarginalCut
from guardband.calibration.group_widths import Units, same_units
from guardband.calibration.rule import Calibration, Ends, Remark, Rule
from guardband.calibration.score import Score
from guardband.calibration.summary import Array, Summary
from guardband.exceptions import DegenerateBandWarning
from guardband.words import number

THRESHOLDS_TRIED = 64
"""Thresholds at which a loss of the user's own is compared with itself."""
ROUNDING = 1e-12
"""A loss of the user's own may grow by so much of its cap: formulas round."""
INSTEAD = "Remove risk, or give a confidence level in its place."


@dataclass(frozen=True)
class RiskControl(Rule):
    """A score whose threshold is the least that keeps a risk, for one candidate.

    Parameters
    ----------
    score : Score
        How far a true value lies from its prediction.
    risk : Risk
        The loss, its cap, and the largest mean that is acceptable.
    delta : float, default None
        How often the promise may fail over possible calibration sets. None promises the limit on average.
    to_units : function, default identity
        Brings ends to the unit of the target, in which losses are counted.
    """

    score: Score
    risk: Risk
    delta: float | None = None
    to_units: Units = field(default=same_units, repr=False, compare=False)

    @property
    def takes(self) -> type[Predicted]:  # type: ignore[override]
        """What kind of prediction the score needs."""
        return self.score.takes

    @property
    def candidates(self) -> int:
        """One: a choice among several would need a correction."""
        return 1

    @property
    def promised_risk(self) -> Risk:
        """The risk, in place of a confidence level."""
        return self.risk

    def in_units(self, to_units: Units) -> Self:
        """Return the rule for losses in the unit of the target."""
        return replace(self, to_units=to_units)

    def summarise(self, predicted: Any, y: Array, context: Context) -> Summary:
        """Return the scores, the true values in their unit, and what was predicted, infinite where it is unusable.

        A transform and its way back may move a true value by a few units in its last place.
        """
        return self._kept(predicted, self.to_units(y, y, y)[1], self.scores(predicted, y, context))

    def with_rows(self, summary: Summary, predicted: Any, y: Array, scores: Array) -> Summary:
        """Return a summary with further rows, whose true values are in the unit of the target.

        Parameters
        ----------
        summary : Summary
            Rows that were summarised.
        predicted : Predicted
            The predictions of the further rows.
        y : array of shape (n,)
            Their true values.
        scores : array of shape (n,)
            Their scores.
        """
        return (summary + self._kept(predicted, y, scores)).joined()

    def _kept(self, predicted: Any, y: Array, scores: Array) -> Summary:
        usable = predicted.finite()[0, 0]
        parts = {name: np.where(usable, getattr(predicted, name)[0, 0], np.inf) for name in self._parts}
        return Summary(len(y), {}, ({"score": scores, "y": y} | parts,))

    def scores(self, predicted: Any, y: Array, context: Context) -> Array:
        """Return the score of each row, ``(n,)``."""
        scores: Array = self.score.of(predicted, y)[0, 0]
        return scores

    def calibration_scores(self, summary: Summary) -> Array:
        """Return the scores of the calibration rows."""
        return summary.rows("score")

    def calibrate(self, summary: Summary) -> Calibration:
        """Return the least threshold whose total loss is within the budget, and the promise."""
        n, risk = summary.n, self.risk
        budget = risk_budget(risk.limit, risk.cap, n, self.delta)
        if callable(risk.loss):
            self._refuse_growing(summary)
        threshold = math.inf if budget < 0 else self._least(summary, budget)
        infinite = math.isinf(threshold)
        lower, upper = self._ends_at(summary, threshold)
        y = summary.rows("y")
        promise = RiskPromise(
            confidence_level=self.levels.floats,
            n_calibration=n,
            whole_line=(infinite,),
            delta=self.delta,
            limit=risk.limit,
            cap=risk.cap,
            loss=risk.name,
            covered=(int(((lower <= y) & (y <= upper)).sum()),),
        )
        remarks = [Remark(partial(self._too_few, n))] if budget < 0 else []
        if infinite and budget >= 0:
            remarks.append(Remark(f"In this calibration, {promise.why_infinite(0)}", DegenerateBandWarning))
        return Calibration({"threshold": np.array([threshold])}, promise, tuple(remarks))

    def ends(self, predicted: Any, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        """Return the intervals, as a conformal rule with this threshold does."""
        return Conformal(self.method, self.levels, self.score, MarginalCut()).ends(predicted, context, arrays, xp)

    def at(self, levels: Levels) -> Self:
        """Raise: a risk has no other levels."""
        raise ValueError(
            f"This model limits a mean loss to {number(self.risk.limit)}, and has no confidence level. Remove "
            "confidence_level and alpha, or calibrate with a confidence level in place of risk."
        )

    def for_groups(self, names: tuple[str, ...], by: str = "", columns: int = 1) -> Rule:
        """Raise: there is one promise for all rows."""
        raise ValueError(f"A risk has one promise for all rows, and none for each group. Remove groups. {INSTEAD}")

    def for_weights(self, max_weight: float | None = None) -> Rule:
        """Raise: rows count alike."""
        raise ValueError(f"A risk cannot use weights, and cannot be moved to another population. {INSTEAD}")

    @property
    def _parts(self) -> tuple[str, ...]:
        """The parts of a prediction that the score needs, by name."""
        return ("point",) if self.takes is Predicted else tuple(own.name for own in fields(self.takes))  # type: ignore[arg-type]

    def _ends_at(self, summary: Summary, threshold: float) -> tuple[Array, Array]:
        """Return the ends of the calibration rows at a threshold, in the unit of the target."""
        kind: Any = PredictedPoint if self.takes is Predicted else self.takes
        predicted = kind(*(summary.rows(name)[None, None] for name in self._parts))
        lower, upper = (ends[0, 0] for ends in self.score.interval(predicted, threshold))
        lower, _, upper = self.to_units(lower, predicted.point[0, 0], upper)
        return lower, upper

    def losses(self, summary: Summary, threshold: float) -> Array:
        """Return the loss of each row of a summary at a threshold, ``(n,)``.

        Parameters
        ----------
        summary : Summary
            Rows that were summarised.
        threshold : float
            The largest score that is inside.
        """
        return self.risk.losses(summary.rows("y"), *self._ends_at(summary, threshold))

    def _least(self, summary: Summary, budget: float) -> float:
        """Return the least threshold within the budget: the least score, or the least float above it that is.

        A sum that is rounded once, as ``fsum`` does, does not grow if no loss grows: the totals are in order too.
        """

        def fits(threshold: float) -> bool:
            return math.fsum(self.losses(summary, threshold)) <= budget

        scores = summary.rows("score")
        finite = scores[np.isfinite(scores)]
        if not len(finite):
            return math.inf
        low, high = float(finite.min()), float(finite.max())
        if fits(low):
            return low
        if not fits(high):
            low, high = high, float(np.finfo(np.float64).max)
            if not fits(high):
                return math.inf
        return _first_float(fits, low, high)

    def _refuse_growing(self, summary: Summary) -> None:
        """Raise if a loss of the user's own grows with the interval of a calibration row, or is not 0 in the end."""
        scores = np.unique(summary.rows("score"))
        finite = scores[np.isfinite(scores)]
        some = finite[np.unique(np.linspace(0, len(finite) - 1, THRESHOLDS_TRIED).astype(int))] if len(finite) else []
        before = np.full(summary.n, np.inf)
        for threshold in [*some, math.inf]:
            now = self.losses(summary, float(threshold))
            rows = np.flatnonzero(now > before + ROUNDING * self.risk.cap)
            if len(rows):
                i, (lower, upper) = rows[0], self._ends_at(summary, float(threshold))
                raise ValueError(
                    f"Your loss must not grow when an interval grows, but for y={summary.rows('y')[i]:g} it grows from "
                    f"{before[i]:g} to {now[i]:g} at the interval {lower[i]:g} to {upper[i]:g}. Change your function."
                )
            before = now
        if before.any():
            raise ValueError(
                f"Your loss must be 0 for infinite intervals, found {before.max():g}. Subtract what every row has."
            )

    def _too_few(self, n: int) -> str:
        needed = risk_rows(self.risk.limit, self.risk.cap, self.delta)
        return (
            f"A mean loss of at most {number(self.risk.limit)} with a cap of {number(self.risk.cap)} needs at least "
            f"{needed:,} calibration rows, but there {'is' if n == 1 else 'are'} {n:,}. Add calibration rows, raise "
            "the limit or lower the cap."
        )


def _first_float(fits: Any, low: float, high: float) -> float:
    """Return the least float that fits, if ``low`` does not, ``high`` does, and so do all above one that does."""
    below, above = _place(low), _place(high)
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if fits(_float_at(middle)) else (middle, above)
    return _float_at(above)


def _place(value: float) -> int:
    """Return the place of a float among all, in order: neighbours differ by one."""
    bits = int(np.float64(value).view(np.int64))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF)


def _float_at(place: int) -> float:
    bits = place if place >= 0 else -place | -0x8000000000000000
    return float(np.int64(bits).view(np.float64))
