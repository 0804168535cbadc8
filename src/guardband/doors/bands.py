"""Predictions from anywhere, calibrated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level
from guardband.bands.pav_promise import PavRule
from guardband.bands.predicted import Context, Predicted, PredictedInterval
from guardband.calibration.calibrated import Block, Calibrated, OnInsufficient
from guardband.calibration.pav import Average
from guardband.data.entities import entities_of_labels
from guardband.data.table import from_tensor
from guardband.data.target import read_target
from guardband.methods.method import Guarantee, Method, Request
from guardband.methods.registry import method_named
from guardband.words import rows_named

Array = NDArray[np.float64]

ROWS_AT_A_TIME = 2**15


class BandCalibrator:
    """Turns predictions of any model into intervals with a guarantee.

    ``fit`` takes held-out lower bounds, points and upper bounds, ``(n,)`` each, with their outcomes, and ``transform``
    new ones. For pav they are ``(K, n)`` with one row per entry of ``taus``; for high-q one row per candidate. neg-ll
    and bayes take a Gaussian, by ``fit_predicted``. Bounds that cross, lower > point or point > upper, are refused, or
    with ``crossing="sort"`` put in order, at ``fit`` and at ``transform`` alike.

    >>> rule = BandCalibrator("conf-nn", confidence_level=0.9)
    >>> rng = np.random.default_rng(0)
    >>> held_out = rng.standard_normal(999)
    >>> rule.fit(np.full(999, -1.0), np.zeros(999), np.ones(999), held_out).certificate.rank
    900
    >>> bands = rule.transform([-1.0], [0.0], [1.0])
    >>> bool(bands.lower[0] < -1.5), bool(bands.upper[0] > 1.5)
    (True, True)
    """

    def __init__(
        self,
        method: str | Method = "conf-nn",
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        guarantee: Guarantee = "marginal",
        delta: float | None = None,
        joint: bool = False,
        taus: Sequence[float] | None = None,
        rule: PavRule | None = None,
        average: Average | None = None,
        on_insufficient: OnInsufficient = "inf",
        crossing: Literal["raise", "sort"] = "raise",
    ) -> None:
        if crossing not in ("raise", "sort"):
            raise ValueError(f"crossing must be 'raise' or 'sort', found {crossing!r}.")
        self._request = Request.of(
            confidence_level,
            alpha,
            guarantee=guarantee,
            delta=delta,
            joint=joint,
            taus=taus,
            rule=rule,
            average=average,
            on_insufficient=on_insufficient,
        )
        self._method = method_named(method)
        self._method.check(self._request)
        self._rule = self._method.rule(self._request)
        self._crossing = crossing
        self._calibrated: Calibrated | None = None
        self._candidates = 0

    def fit(
        self,
        lower: ArrayLike,
        point: ArrayLike,
        upper: ArrayLike,
        y: ArrayLike,
        *,
        context: Context | None = None,
        entities: ArrayLike | None = None,
    ) -> BandCalibrator:
        """Calibrate on held-out predictions and outcomes that no training has seen.

        ``context`` is what else is known of the rows, for a guarantee of your own that uses it. ``entities``, ``(n,)``,
        labels rows that belong together, such as those of one patient: the promise is then for a new row of a new one.
        """
        return self.fit_predicted(_interval(lower, point, upper), y, context=context, entities=entities)

    def fit_predicted(
        self,
        predicted: Predicted,
        y: ArrayLike,
        *,
        context: Context | None = None,
        entities: ArrayLike | None = None,
    ) -> BandCalibrator:
        """Calibrate on predictions of any kind, such as a ``PredictedGaussian``: each part ``(n,)`` or ``(K, n)``."""
        predicted = _with_axes(predicted)
        response = read_target(y, len(predicted))
        context = context or Context()
        context.check(self._rule.uses, len(predicted), self._rule.method)
        on_insufficient = self._request.on_insufficient
        if entities is None:
            blocks = self._blocks(predicted, response, context)
            self._calibrated = Calibrated.from_blocks(self._rule, blocks, on_insufficient=on_insufficient)
        else:
            block, together = (self._ordered(predicted), response, context), entities_of_labels(entities, len(response))
            self._calibrated = Calibrated.from_entities(self._rule, block, together, on_insufficient=on_insufficient)
        self._candidates = predicted.candidates
        return self

    def transform(
        self,
        lower: ArrayLike,
        point: ArrayLike,
        upper: ArrayLike,
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        context: Context | None = None,
    ) -> Intervals:
        """Return the intervals of new predictions, at other levels if asked for."""
        predicted = _interval(lower, point, upper)
        return self.transform_predicted(predicted, confidence_level=confidence_level, alpha=alpha, context=context)

    def transform_predicted(
        self,
        predicted: Predicted,
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        context: Context | None = None,
    ) -> Intervals:
        """Return the intervals of new predictions of the kind that ``fit_predicted`` was given."""
        calibrated = self._fitted().at(confidence_level, alpha)
        predicted = _with_axes(predicted)
        if predicted.candidates != self._candidates:
            raise ValueError(f"Expected {self._candidates} band(s), as fit was given, found {predicted.candidates}.")
        return calibrated.intervals(calibrated.ends(self._ordered(predicted), context or Context()))

    @property
    def certificate(self) -> Certificate:
        """What is promised."""
        return self._fitted().certificate

    def _fitted(self) -> Calibrated:
        if self._calibrated is None:
            raise NotFittedError("This BandCalibrator is not calibrated yet: call fit first.")
        return self._calibrated

    def _blocks(self, predicted: Predicted, y: Array, context: Context) -> Iterator[Block]:
        """Give a part at a time, which stays in the cache: only the scores of all rows are in memory."""
        for start in range(0, len(y), ROWS_AT_A_TIME):
            rows = slice(start, start + ROWS_AT_A_TIME)
            yield self._ordered(predicted.rows(rows), start), y[rows], context.rows(rows)

    def _ordered(self, predicted: Predicted, first_row: int = 0) -> Predicted:
        """Return the candidates in the order that the rule expects."""
        order = self._method.order(self._request, predicted.candidates)
        if order != list(range(len(order))):
            predicted = predicted.map(lambda part: part[:, order])
        if self._crossing == "sort" and isinstance(predicted, PredictedInterval):
            bands = np.stack(predicted.parts)
            return PredictedInterval(*np.where(np.isnan(bands).any(0), bands, np.sort(bands, axis=0)))
        refuse_faults(predicted, first_row, 'Swap the arguments, or pass crossing="sort".')
        return predicted


def _interval(lower: ArrayLike, point: ArrayLike, upper: ArrayLike) -> PredictedInterval:
    return PredictedInterval(*(np.asarray(from_tensor(side), dtype=np.float64) for side in (lower, point, upper)))


def _with_axes(predicted: Predicted) -> Predicted:
    """Return a prediction with all of its axes, ``(n,) or (K, n) -> (1, K, n)`` each."""
    parts = [np.asarray(from_tensor(part), dtype=np.float64) for part in predicted.parts]
    shapes = [part.shape for part in parts]
    if len(set(shapes)) > 1 or parts[0].ndim not in (1, 2) or parts[0].size == 0:
        raise ValueError(f"{predicted.what} must have one shape (n,) or (K, n), n > 0, found {shapes}.")
    return type(predicted)(*(np.atleast_2d(part)[None] for part in parts))


def refuse_faults(predicted: Predicted, first_row: int = 0, hint: str | None = None) -> None:
    """Raise if rows hold what no prediction can be: bounds that cross, or a deviation that is not positive."""
    faults, rule = predicted.faults()
    rows = np.flatnonzero(faults) + first_row
    if len(rows):
        mend = hint if hint and isinstance(predicted, PredictedInterval) else predicted.hint
        raise ValueError(
            f"{rule} must hold in every row, found {len(rows)} where it does not ({rows_named(rows)}). {mend}"
        )
