"""Intervals that adapt as true values arrive."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guardband.audit.evidence import scores_of
from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level, Levels
from guardband.bands.predicted import Predicted
from guardband.bands.promise import Side
from guardband.calibration.online.keys import Key, plain_keys
from guardband.calibration.online.registry import rule_named
from guardband.calibration.online.rule import OnlineRule
from guardband.calibration.online.stream import Stream, as_scored
from guardband.data.table import as_array
from guardband.data.target import read_target
from guardband.doors.band_columns import brought, with_axes
from guardband.doors.bounds_in_order import SWAP, Crossing, check_crossing_word, in_order, refuse_faults
from guardband.doors.online_model import of_method, online_model
from guardband.methods.method import Method

Array = NDArray[np.float64]

WINDOW = 2000


class OnlineCalibrator:
    """Intervals that adapt as true values arrive: wider after misses, narrower after other rows.

    Use it if rows come in order of time and their source may change. ``transform`` gives new rows intervals, and
    ``update`` takes their true values when these arrive. On any sequence of rows, coverage approaches the confidence
    level in the long run. ``certificate`` says how near it must be by now. Nothing is promised of a single row.

    Parameters
    ----------
    rule : {"aci", "scale-free", "tracking", "recent"} or OnlineRule, default "aci"
        How intervals follow the misses. "aci" moves the level by a fixed step, "scale-free" by steps that shrink,
        "tracking" moves the width itself. "recent" counts recent rows more, and promises nothing if rows change.
    confidence_level : float, default None
        The share of rows that should fall inside their intervals. None means 0.9, or the level of ``model``.
    alpha : float, default None
        One minus ``confidence_level``, for code that counts misses. Give one of the two.
    method : str or Method, default None
        How an interval is widened, as for ``BandCalibrator``: "conf-nn", "conf-fw", "cqr" or "cqr-r". None means
        "conf-nn", or the method of ``model``.
    side : {"both", "lower", "upper"}, default None
        Which bound the promise is about. None means "both", or the side of ``model``.
    model : object, default None
        A calibrated model: an ``IntervalRegressor``, what ``gb.calibrate`` returned, or a ``BandCalibrator``. Its
        calibration rows give the first intervals. A calibrated network does not keep them: call ``fit_rows``.
    window : int or None, default 2000
        How many of the latest rows to learn from. None keeps all rows. Make it smaller if old rows say little of new
        ones.
    crossing : {"raise", "sort"}, default "raise"
        What to do if lower > point or point > upper: refuse, or put them in order.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.concatenate([rng.normal(0, 1, 500), rng.normal(0, 3, 500)])  # harder to predict from row 500 on
    >>> online = OnlineCalibrator("aci", confidence_level=0.9).fit([-1] * 100, [0] * 100, [1] * 100, y[:100])
    >>> for true_value in y[100:]:
    ...     bands = online.transform([-1], [0], [1])
    ...     _ = online.update([true_value])
    >>> online.certificate.promise.judged, bool(bands.width[0] > 5)
    (900, True)
    """

    def __init__(
        self,
        rule: str | OnlineRule = "aci",
        *,
        confidence_level: Level | None = None,
        alpha: Level | None = None,
        method: str | Method | None = None,
        side: Side | None = None,
        model: Any = None,
        window: int | None = WINDOW,
        crossing: Crossing = "raise",
    ) -> None:
        check_crossing_word(crossing)
        self.rule, self._crossing = rule_named(rule), crossing
        self._model = of_method(method, side) if model is None else online_model(model)
        self.has_model = model is not None
        if model is not None and (method is not None or side is not None):
            raise ValueError("method and side are those of the model. Remove them.")
        given = confidence_level is not None or alpha is not None
        levels = Levels.of(confidence_level, alpha) if given else self._model.levels
        if len(levels) > 1:
            raise ValueError(
                f"An OnlineCalibrator takes one confidence level, found {levels.confidence_level}. Make one for each."
            )
        self._levels = Levels(levels.values, scalar=True)
        share = 1 - levels.values[0]
        needed = math.ceil((1 - share) / share)
        if window is not None and (not isinstance(window, numbers.Integral) or window < needed):
            raise ValueError(f"window must be a number of rows, {needed} or more at this level, found {window!r}.")
        self.arguments: dict[str, Any] = {
            "method": method or "conf-nn",
            "side": side or "both",
            "window": None if window is None else int(window),
            "crossing": crossing,
        }
        self.stream = Stream(self.rule, self._model.score, share, self.arguments["window"])
        if len(self._model.scores):
            self.stream.start(self._model.scores)

    def fit(
        self, lower: ArrayLike | None, point: ArrayLike | None, upper: ArrayLike | None, y: ArrayLike
    ) -> OnlineCalibrator:
        """Start from predictions whose true values are known already, so the first intervals are finite.

        Without it, the first intervals are infinite until enough rows were updated.

        Parameters
        ----------
        lower : array of shape (n,), or None
            The lower bounds of past rows that did not train the model, oldest first. None for a prediction alone.
        point : array of shape (n,), or None
            Their predictions. None means halfway between the bounds.
        upper : array of shape (n,), or None
            Their upper bounds. None for a prediction alone.
        y : array of shape (n,)
            Their true values.
        """
        return self._start(self._brought(lower, point, upper), y)

    def fit_rows(self, X: Any, y: ArrayLike) -> OnlineCalibrator:
        """Start from rows of the model whose true values are known already.

        Parameters
        ----------
        X : table, array or tensors
            Past rows that did not train the model, oldest first, as the model takes them.
        y : array of shape (n,)
            Their true values.
        """
        return self._start(self._predicted(X)[0], y)

    def transform(
        self,
        lower: ArrayLike | None,
        point: ArrayLike | None,
        upper: ArrayLike | None,
        *,
        keys: Iterable[Key] | None = None,
    ) -> Intervals:
        """Return the intervals of new predictions, which then wait for their true values.

        All rows of one call get their intervals from the same state. Give rows one at a time if true values arrive in
        between.

        Parameters
        ----------
        lower : array of shape (n,), or None
            The lower bounds of new rows. None for a prediction alone.
        point : array of shape (n,), or None
            Their predictions. None means halfway between the bounds.
        upper : array of shape (n,), or None
            Their upper bounds. None for a prediction alone.
        keys : sequence of int or str, default None
            What each row is called when its true value arrives. None numbers the rows of all calls from 0. The
            ``index`` of the result holds the keys.
        """
        return self._given(self._brought(lower, point, upper), keys)

    def predict_interval(self, X: Any, *, keys: Iterable[Key] | None = None) -> Intervals:
        """Return the intervals of new rows of the model, which then wait for their true values.

        Parameters
        ----------
        X : table, array or tensors
            New rows, as the model takes them.
        keys : sequence of int or str, default None
            What each row is called when its true value arrives. None numbers the rows of all calls from 0. The
            ``index`` of the result holds the keys.
        """
        predicted, names = self._predicted(X)
        return self._given(predicted, keys, names)

    def update(self, y: ArrayLike, *, keys: Iterable[Key] | None = None) -> OnlineCalibrator:
        """Take true values, of some or all of the waiting rows; each row counts once.

        If one of them cannot be used, none is, and an error says which.

        Parameters
        ----------
        y : array of shape (n,)
            True values.
        keys : sequence of int or str, default None
            Which rows they belong to, in any order. None means the rows that have waited longest, in their order.
        """
        values = np.atleast_1d(as_array(y))
        if keys is None:
            own = self.stream.oldest(len(values))
        else:
            own = plain_keys(keys)
            if len(own) != len(values):
                raise ValueError(f"y must have one true value for each of {len(own)} keys, found {len(values)}.")
        self.stream.need(own)
        truth = read_target(values, len(values))
        self._model.target.to_work(truth)  # which refuses what the model was told cannot be
        self.stream.judge(own, lambda predicted: self._scores(predicted, truth))
        return self

    def discard(self, keys: Iterable[Key]) -> OnlineCalibrator:
        """Wait no longer for the true values of some rows, which then count for nothing.

        Parameters
        ----------
        keys : sequence of int or str
            The rows whose true values will never arrive.
        """
        self.stream.discard(plain_keys(keys))
        return self

    @property
    def waiting(self) -> list[Key]:
        """The keys of the rows that wait for their true values, in the order in which they got their intervals."""
        return list(self.stream.waiting)

    @property
    def certificate(self) -> Certificate:
        """What is promised of the rows judged so far, on any sequence."""
        return Certificate(self._model.method, self.stream.promise(), True)

    @property
    def meaning(self) -> str:
        """What scores and predictions are measured in, in words that two calibrators share if their states fit."""
        return re.sub(r" at 0x[0-9a-f]+", "", f"{self._model.score} of {self._model.target.transform or 'y'}")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state to one file, which appears whole or not at all. The model is not in it.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        from guardband.doors.online_file import save_online

        save_online(self, path)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        model: Any = None,
        rule: OnlineRule | None = None,
        method: Method | None = None,
    ) -> OnlineCalibrator:
        """Return a saved state, which goes on as if nothing had happened.

        Parameters
        ----------
        path : str or path
            The file to read.
        model : object, default None
            The model, if the state was saved with one. A newer model of the same kind will do as well: the promise
            holds for any sequence.
        rule : OnlineRule, default None
            The rule, if it is your own.
        method : Method, default None
            The method, if it is your own.

        Raises
        ------
        ModelFileError
            If the file cannot be loaded, with the reason.
        """
        from guardband.doors.online_file import load_online

        return load_online(path, model=model, rule=rule, method=method)

    def __repr__(self) -> str:
        tally, waiting = self.stream.tally, len(self.stream.waiting)
        return (
            f"OnlineCalibrator({self.rule.word!r}, confidence_level={self._levels.confidence_level}): "
            f"{tally.judged:,} rows judged, {tally.misses:,} misses, {waiting:,} waiting"
        )

    def _repr_html_(self) -> str:
        from guardband.bands.certificate_card import model_card

        tally = self.stream.tally
        rows = f"{tally.judged:,} judged, {len(self.stream.waiting):,} waiting"
        return model_card("OnlineCalibrator", [("Rule", self.rule.word), ("Rows", rows)], self.certificate)

    def _start(self, predicted: Predicted, y: Any) -> OnlineCalibrator:
        if self.stream.given:
            raise ValueError("Rows were given intervals already. Start from past rows before the first new row.")
        values = read_target(y, len(predicted))
        self._model.target.to_work(values)
        self.stream.start(self._scores(predicted, values))
        return self

    def _given(self, predicted: Predicted, keys: Iterable[Key] | None, input_names: tuple[str, ...] = ()) -> Intervals:
        certificate = self.certificate
        own, lower, upper = self.stream.expect(predicted, None if keys is None else plain_keys(keys))
        ends = self._model.target.to_units(lower, predicted.point[0, 0], upper)
        index = np.array(own, dtype=np.int64 if all(isinstance(key, int) for key in own) else object)
        return Intervals(*ends, self._levels.floats[0], certificate, index, input_names)

    def _scores(self, predicted: Predicted, y: Array) -> Array:
        found = scores_of(self._model.target, y, lambda rows, own: self._score_at(predicted.rows(rows), own))
        assert found is not None
        return found

    def _score_at(self, predicted: Predicted, y: Array) -> Array:
        scores: Array = self._model.score.of(predicted, y)[0, 0]
        return scores

    def _brought(self, lower: Any, point: Any, upper: Any) -> Predicted:
        """Return predictions that were brought, in order and as the score needs them."""
        if self._model.predict is not None:
            raise ValueError("This calibrator asks its model. Use predict_interval(X), and fit_rows(X, y) to start.")
        predicted = with_axes(brought(lower, point, upper, self.stream.side)[1])
        if predicted.candidates != 1:
            raise ValueError(f"An online rule takes one interval for each row, found {predicted.candidates}.")
        return as_scored(self._model.score, in_order(predicted, self._crossing, 0, SWAP))

    def _predicted(self, X: Any) -> tuple[Predicted, tuple[str, ...]]:
        if self._model.predict is None:
            raise ValueError(
                "This calibrator has no model to ask. Pass model=..., or use transform(lower, point, upper)."
            )
        predicted, names = self._model.predict(X)
        refuse_faults(predicted)
        return as_scored(self._model.score, predicted), names
