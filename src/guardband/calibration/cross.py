"""Cross-validation in place of held-out rows: cv+ and cv-minmax (Barber et al. 2021; Gupta et al. 2022 for any score).

Every row is a calibration row of the model that did not train on its fold. A new row is predicted by the model of each
fold, and the interval is made of what each of these would give it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from guardband.bands.cross_promise import USE_SPLIT, CrossPromise, CvMinmaxPromise, CvPlusPromise
from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, Predicted
from guardband.calibration.conformal import Conformal
from guardband.calibration.cut import MarginalCut
from guardband.calibration.rule import Calibration, Ends, Remark, Rule, picked_ends
from guardband.calibration.score import Score
from guardband.calibration.sorted_lists import Places, kth_smallest
from guardband.calibration.summary import Array, Summary
from guardband.words import level_name

CalibrationKind = Literal["split", "cv+", "cv-minmax"]
"""How rows calibrate: some that are held out, or all by cross-validation."""
PROMISES: dict[str, type[CrossPromise]] = {own.kind: own for own in (CvPlusPromise, CvMinmaxPromise)}
FEWEST_FOLDS = 2
FOLDS = 8
BROUGHT = (
    "You brought the folds. The promise assumes that they were drawn at random, and that one procedure trained the "
    "models of all folds, each without its own."
)
"""What to say of folds and models that a user brings: guardband cannot see how they were made."""
ENTRIES_AT_A_TIME = 2**16
"""So many predictions, of some rows by all models, stay in the cache."""


@dataclass(frozen=True)
class CrossConformal(Rule):
    """A score, and intervals from the scores of all rows, each by the model that did not train on its fold.

    With s_i the score of row i, of which the model k(i) was trained without its fold, and [l_k(x; s), u_k(x; s)] the
    interval that model k and score s give a new row, there are n of each end. With r = ceil(level (n + 1)), cv+ takes
    the r-th largest lower end and the r-th smallest upper end. cv-minmax takes the r-th smallest score s, and the least
    lower end and the largest upper end that any model has for it.

    The point is the average of the models. Calibration rows have one prediction, their own fold's, and their fold in
    the context; new rows have one candidate for each fold, in order.

    Parameters
    ----------
    score : Score
        How far a true value lies from its prediction.
    kind : {"cv+", "cv-minmax"}
        How the interval is made.
    folds : int
        The number of folds, K.
    asked : Levels, default None
        The levels that were asked for before calibration.
    left_over : int, default 0
        How many rows of the table calibrate nothing, to make folds of equal size.
    """

    score: Score
    kind: str
    folds: int
    asked: Levels | None = None
    left_over: int = 0

    uses = frozenset({"fold"})
    uses_of_new = frozenset()
    possible = None  # every level has its rank

    @property
    def takes(self) -> type[Predicted]:  # type: ignore[override]
        """What kind of prediction the score needs."""
        return self.score.takes

    def scores(self, predicted: Any, y: Array, context: Context) -> Array:
        """Return the score of each row, ``(n,)``."""
        scores: Array = self.score.of(predicted, y)[0, 0]
        return scores

    def calibration_scores(self, summary: Summary) -> Array:
        """Return the same of the calibration rows."""
        return summary.rows("score")

    def summarise(self, predicted: Any, y: Array, context: Context) -> Summary:
        """Return the score and the fold of each row."""
        fold = np.asarray(context.fold, dtype=np.int64)
        return Summary(len(y), {}, ({"score": self.scores(predicted, y, context), "fold": fold},))

    def calibrate(self, summary: Summary) -> Calibration:
        """Return all scores, fold by fold and in order, the size of each fold, and rank and score of each level."""
        scores, fold = summary.rows("score"), summary.rows("fold")
        if ((fold < 0) | (fold >= self.folds)).any():
            raise ValueError(f"The folds of calibration rows must be numbers from 0 to {self.folds - 1}.")
        sizes = np.bincount(fold, minlength=self.folds)
        if not sizes.all():
            raise ValueError(f"Each of {self.folds} folds needs at least one row, found {sizes.tolist()}.")
        found = MarginalCut().calibrate(scores, Context(), self.levels, chosen_after=False)
        own = found.promise
        assert own.rank is not None
        promise = PROMISES[self.kind](
            confidence_level=own.confidence_level,
            n_calibration=own.n_calibration,
            rank=own.rank,
            whole_line=own.whole_line,
            fold_sizes=tuple(sizes.tolist()),
            chosen_after=self.asked is not None and not self.asked.include(self.levels),
            left_over=self.left_over,
        )
        arrays = {
            "threshold": found.arrays["threshold"],
            "rank": np.array(own.rank, dtype=np.int64),
            "scores": scores[np.lexsort((scores, fold))],
            "sizes": sizes.astype(np.int64),
        }
        useless = () if self.asked is not None else tuple(map(self._useless, promise.unproved()))
        return Calibration(arrays, promise, (*found.remarks, *useless))

    def _useless(self, level: float) -> Remark:
        words = f'calibration="{self.kind}" proves nothing useful at {level_name(level)}'
        return Remark(f"{words}. Ask for a higher level, or use {USE_SPLIT}.", infinite=False)

    def ends(self, predicted: Any, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        """Return the intervals, a block of rows at a time."""
        if xp is not np:
            raise ValueError("Intervals by cross-validation cannot be one network. Predict with the model itself.")
        n = len(predicted)
        lower, upper = np.empty((2, len(self.levels), n))
        block = max(1, ENTRIES_AT_A_TIME // self.folds)
        own = self._plus if self.kind == CvPlusPromise.kind else self._minmax
        for first in range(0, n, block):
            rows = slice(first, first + block)
            for i in range(len(self.levels)):
                lower[i, rows], upper[i, rows] = own(predicted.rows(rows), arrays, i)
        point = predicted.point[0].mean(0)
        usable = predicted.finite()[0].all(0)
        return picked_ends(lower, np.broadcast_to(point, lower.shape), upper, usable, np)

    def _minmax(self, predicted: Any, arrays: dict[str, Any], i: int) -> tuple[Array, Array]:
        low, high = self.score.interval(predicted, float(arrays["threshold"][i]))
        return low[0].min(0), high[0].max(0)

    def _plus(self, predicted: Any, arrays: dict[str, Any], i: int) -> tuple[Array, Array]:
        n = len(predicted)
        if np.isinf(arrays["threshold"][i]):  # too few rows, or too many infinite scores
            return np.full(n, -np.inf), np.full(n, np.inf)
        starts = np.cumsum(arrays["sizes"]) - arrays["sizes"]
        by_row = predicted.map(lambda part: np.ascontiguousarray(part[0]).reshape(1, 1, -1))

        def outward(end: int, place: Places) -> Array:
            """Return ends at these places of each fold's scores, ``(K, n)``, larger the further out they are."""
            at = np.minimum(place, arrays["sizes"][:, None] - 1) + starts[:, None]
            ends: Array = self.score.interval(by_row, arrays["scores"][at].ravel())[end].reshape(place.shape)
            return ends if end else -ends

        rank = int(arrays["rank"][i])
        low, high = (kth_smallest(partial(outward, end), arrays["sizes"], rank, n) for end in range(2))
        return -low, high

    def at(self, levels: Levels) -> CrossConformal:
        """Return the rule for other levels, marked as chosen after calibration unless they were asked for before."""
        return replace(self, levels=levels, asked=self.asked or self.levels)

    def check(self, predicted: Predicted, context: Context, is_new: bool = False) -> None:
        """Raise unless calibration rows have one prediction and a fold, and new rows one prediction for each fold."""
        super().check(predicted, context, is_new)
        wanted = self.folds if is_new else 1
        if predicted.candidates != wanted:
            what = "a prediction of each fold's model" if is_new else "the prediction of their own fold's model"
            raise ValueError(
                f"{'New' if is_new else 'Calibration'} rows need {what}, {wanted} in all, found {predicted.candidates}."
            )

    def for_groups(self, names: tuple[str, ...], by: str = "", columns: int = 1) -> Rule:
        """Raise: there is no promise for each group."""
        raise ValueError(refusal(self.kind, "groups"))

    def for_weights(self, max_weight: float | None = None) -> Rule:
        """Raise: rows do not count by weights."""
        raise ValueError(refusal(self.kind, "weights"))


def crossed(rule: Rule, kind: str, folds: int, left_over: int = 0) -> CrossConformal:
    """Return the rule by cross-validation with the score of a conformal rule; raise if it has none, or another cut.

    Parameters
    ----------
    rule : Rule
        The rule for held-out rows.
    kind : {"cv+", "cv-minmax"}
        How the interval is made.
    folds : int
        The number of folds.
    left_over : int, default 0
        How many rows of the table calibrate nothing.
    """
    if not isinstance(rule, Conformal):
        raise ValueError(
            f'calibration="{kind}" needs method="conf-nn", "conf-fw", "cqr" or "cqr-r", and intervals with two bounds. '
            f"Use one of these without side and tails, or {USE_SPLIT}."
        )
    if type(rule.cut) is not MarginalCut:
        raise ValueError(refusal(kind, f"guarantee={rule.cut.word!r}"))
    if folds < FEWEST_FOLDS:
        raise ValueError(f"folds must be at least {FEWEST_FOLDS}, found {folds}.")
    return CrossConformal(rule.method, rule.levels, rule.score, kind, folds, left_over=left_over)


def refusal(kind: str, what: str) -> str:
    """Return that something does not go with cross-validation, and what to do.

    Parameters
    ----------
    kind : {"cv+", "cv-minmax"}
        How the interval is made.
    what : str
        What does not go with it.
    """
    return f'calibration="{kind}" cannot be combined with {what}. Remove it, or use {USE_SPLIT}.'


def check_kind(kind: Any) -> None:
    """Raise unless it is a way to calibrate.

    Parameters
    ----------
    kind : object
        What the user gave.
    """
    if kind not in get_args(CalibrationKind):
        words = ", ".join(f'"{word}"' for word in get_args(CalibrationKind))
        raise ValueError(f"calibration must be one of {words}, found {kind!r}.")


def need_held_out(rule: Rule, what: str) -> None:
    """Raise if a model that is calibrated by cross-validation is asked for what needs held-out rows.

    Parameters
    ----------
    rule : Rule
        The rule of the model.
    what : str
        What it is asked to do.
    """
    if isinstance(rule, CrossConformal):
        raise ValueError(f"This model is calibrated by cross-validation. Use {USE_SPLIT} to {what}.")
