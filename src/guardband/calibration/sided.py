"""One bound with a promise, or two bounds with a promise for each: what lies below, and what lies above."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, Self, cast

import numpy as np

from guardband.bands.levels import Levels
from guardband.bands.parted_promise import PartedPromise
from guardband.bands.predicted import Context, Predicted
from guardband.bands.promise import Part, Promise, Side
from guardband.calibration.conformal import Conformal
from guardband.calibration.counted import CountedSummary, Joined
from guardband.calibration.cut import Cut
from guardband.calibration.rule import Calibration, Ends, Remark, Rule
from guardband.calibration.score import OneSide, Score
from guardband.calibration.summary import Array, Summary


@dataclass(frozen=True)
class Sided(Rule):
    """A conformal rule for each bound that has a promise; the other end of the interval is infinite.

    With one rule the interval is (-inf, upper] or [lower, inf). With two, the lower bound comes from the first and the
    upper from the second, each at a level of its own. Given the data, the two share ``delta``.

    Parameters
    ----------
    rules : tuple of Conformal
        The rule of the lower bound, of the upper, or both in this order. Their scores are ``OneSide``.
    """

    rules: tuple[Conformal, ...]

    @classmethod
    def of(
        cls,
        method: str,
        levels: Levels,
        score: Score,
        cut: Cut,
        side: Side = "both",
        tails: tuple[Fraction, Fraction] | None = None,
    ) -> Sided | Conformal:
        """Return the rule of one bound, of each tail, or of both bounds together.

        Parameters
        ----------
        method : str
            The name of the method.
        levels : Levels
            The confidence levels, as exact fractions; with tails the one that they leave.
        score : Score
            How far a true value lies from its prediction.
        cut : Cut
            Which score is far enough, and what that promises.
        side : {"both", "lower", "upper"}, default "both"
            Which bound there is.
        tails : tuple of two Fractions, default None
            The share of rows that may lie below, and the share that may lie above, in place of a side.
        """
        if tails is None and side == "both":
            return Conformal(method, levels, score, cut)
        if tails is None:
            return cls(method, levels, (Conformal(method, levels, OneSide(score, side), cut),))
        sides: tuple[Side, Side] = ("lower", "upper")
        own = _sharing(cut, len(sides))
        rules = (
            Conformal(method, Levels((1 - tail,), scalar=levels.scalar), OneSide(score, which), own)
            for which, tail in zip(sides, tails, strict=True)
        )
        return cls(method, levels, tuple(rules))

    @property
    def takes(self) -> type[Predicted]:  # type: ignore[override]
        """What kind of prediction the scores need."""
        return self.rules[0].takes

    @property
    def uses(self) -> frozenset[str]:
        """What the cuts must know of a row."""
        return self.rules[0].uses

    @property
    def candidates(self) -> int:
        """One: ranks of several would need a correction."""
        return 1

    @property
    def possible(self) -> Levels | None:
        """Every level for one side. Two tails have levels of their own, and a single level does not say which."""
        return None if len(self.rules) == 1 else self.levels

    @property
    def score(self) -> Score:
        """How far a true value lies from its prediction, on both sides."""
        return _score(self.rules[0]).score

    @property
    def sides(self) -> tuple[Side, ...]:
        """The bounds that have a promise."""
        return tuple(_score(rule).side for rule in self.rules)

    def scores(self, predicted: Any, y: Array, context: Context) -> Array:
        """Return how far each row lies beyond the bound, of two the larger, ``(n,)``."""
        return _largest(rule.scores(predicted, y, context) for rule in self.rules)

    def calibration_scores(self, summary: Summary) -> Array | None:
        """Return the same of the calibration rows, None if they were only counted."""
        own = [rule.calibration_scores(self._own(rule, summary)) for rule in self.rules]
        known = [scores for scores in own if scores is not None]
        return _largest(known) if known else None

    def summarise(self, predicted: Any, y: Array, context: Context) -> Summary:
        """Return the scores of each side, and what the cuts must know of the rows."""
        scores = {f"score_{_score(rule).side}": rule.scores(predicted, y, context) for rule in self.rules}
        return Summary(len(y), {}, (scores | context.given(),))

    def calibrate(self, summary: Summary) -> Calibration:
        """Return the thresholds of each side, under names that begin with it, and a promise for each."""
        found = [_calibrated(rule, self._own(rule, summary)) for rule in self.rules]
        pairs = list(zip(self.sides, found, strict=True))
        arrays = {f"{side}_{name}": array for side, own in pairs for name, array in own.arrays.items()}
        promise = self.together([own.promise for own in found])
        remarks = [_of_bounds(remark, side, len(found) > 1) for side, own in pairs for remark in own.remarks]
        return Calibration(arrays, promise, tuple(dict.fromkeys(remarks)))

    def ends(self, predicted: Any, context: Context, arrays: dict[str, Any], xp: Any = np) -> Ends:
        """Return the bounds; where there is none the end is infinite."""
        lower, point, upper = self.rules[0].ends(predicted, context, self.arrays_of(self.sides[0], arrays), xp)
        if len(self.rules) == 2:
            _, _, upper = self.rules[1].ends(predicted, context, self.arrays_of(self.sides[1], arrays), xp)
        return lower, point, upper

    def for_groups(self, names: tuple[str, ...], by: str = "", columns: int = 1) -> Self:
        """Return the same with a promise for each group, on each side."""
        return replace(self, rules=tuple(rule.for_groups(names, by, columns) for rule in self.rules))

    @property
    def group_columns(self) -> int:
        """How many columns make groups, none without groups."""
        return self.rules[0].group_columns

    @property
    def has_quick_levels(self) -> bool:
        """Whether no thresholds are solved for."""
        return self.rules[0].has_quick_levels

    def rows_for_a_group(self, groups: int) -> int:
        """Return how many calibration rows the side needs that needs more."""
        return max(rule.rows_for_a_group(groups) for rule in self.rules)

    def without_groups(self) -> Self:
        """Return the same with one promise for all rows, on each side."""
        return replace(self, rules=tuple(rule.without_groups() for rule in self.rules))

    def complete(self, calibration: Calibration, summary: Summary, context: Context) -> None:
        """Let the cut of each side add what new rows need."""
        for rule, side in zip(self.rules, self.sides, strict=True):
            own = replace(calibration, arrays=self.arrays_of(side, calibration.arrays))
            rule.complete(own, self._own(rule, summary), context)
            calibration.arrays.update({f"{side}_{name}": array for name, array in own.arrays.items()})

    def for_weights(self, max_weight: float | None = None) -> Self:
        """Raise: weights are for intervals with both bounds."""
        raise ValueError("weights cannot go with side= or tails= yet. Remove weights, or ask for intervals.")

    def for_entities(self) -> Self | None:
        """Return the same with the cuts for entities, if they have one."""
        rules = [own for rule in self.rules if (own := rule.for_entities()) is not None]
        return replace(self, rules=tuple(rules)) if len(rules) == len(self.rules) else None

    def at(self, levels: Levels) -> Self:
        """Return the rule of one side for other levels; for two tails that is refused."""
        if len(self.rules) == 1:
            return replace(self, levels=levels, rules=(self.rules[0].at(levels),))
        if levels.values != self.levels.values:
            low, high = (float(1 - rule.levels.values[0]) for rule in self.rules)
            raise ValueError(
                f"{self.method} was calibrated for tails=({low:g}, {high:g}), and a confidence level does not say how "
                "much of it lies on which side. Calibrate again with other tails."
            )
        return replace(self, levels=levels)

    def _own(self, rule: Conformal, summary: Summary) -> Summary:
        """Return what one side needs of a summary."""
        if isinstance(summary, CountedSummary):
            return replace(summary, counted={"score": summary.counted[f"score_{_score(rule).side}"]})
        rows = {name: summary.rows(name) for name in rule.uses}
        return Summary(summary.n, {}, ({"score": summary.rows(f"score_{_score(rule).side}")} | rows,))

    @staticmethod
    def arrays_of(side: Side, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arrays of one side, under the names that its cut gave them.

        Parameters
        ----------
        side : {"lower", "upper"}
            Which side.
        arrays : dict of arrays
            What calibration found, by name.
        """
        return {name.removeprefix(f"{side}_"): own for name, own in arrays.items() if name.startswith(f"{side}_")}

    def together(self, promises: Sequence[Promise]) -> PartedPromise:
        """Return the promises of each side as one, those of each group side by side.

        Parameters
        ----------
        promises : sequence of Promise
            The promise of each rule.
        """
        by_group = zip(*(promise.statements() for promise in promises), strict=True)
        parts: list[Part] = [
            replace(part, side=side) for own in by_group for side, part in zip(self.sides, own, strict=True)
        ]
        # halves of delta add up to it exactly
        deltas = [promise.delta for promise in promises if promise.delta is not None]
        return PartedPromise(
            confidence_level=self.levels.floats,
            n_calibration=promises[0].n_calibration,
            whole_line=tuple(all(own) for own in zip(*(part.promise.whole_line for part in parts), strict=True)),
            rank=parts[0].promise.rank if len(parts) == 1 else None,
            delta=sum(deltas) if deltas else None,
            parts=tuple(parts),
            by=getattr(promises[0], "by", ""),
        )

    def apart(self, promise: Promise) -> list[Promise]:
        """Return the promise of each rule, such that ``together`` gives the whole.

        Parameters
        ----------
        promise : Promise
            The promise of all sides, such as ``together`` returns.
        """
        out: list[Promise] = []
        promise = cast(PartedPromise, promise)
        for rule, side in zip(self.rules, self.sides, strict=True):
            parts = tuple(replace(part, side="both") for part in promise.parts if part.side == side)
            if not rule.group_columns:
                out += [part.promise for part in parts]
                continue
            whole = tuple(all(own) for own in zip(*(part.promise.whole_line for part in parts), strict=True))
            delta = None if promise.delta is None else promise.delta / len(self.rules)
            own = replace(promise, confidence_level=rule.levels.floats, whole_line=whole, rank=None, delta=delta)
            out.append(replace(own, parts=parts))
        return out


def _calibrated(rule: Conformal, summary: Summary) -> Calibration:
    """Return what one side finds; at the least score of all, more rows are covered than the rank says.

    The outcomes on the other side of the point all have that score.
    """
    found = rule.calibrate(summary)
    own = summary.counted["score"] if isinstance(summary, CountedSummary) else Joined(summary.rows("score"))
    least = own.least()
    thresholds = [array for name, array in found.arrays.items() if name.endswith("threshold")]
    clipped = any(((array <= least) & np.isfinite(array)).any() for array in thresholds)
    return replace(found, promise=found.promise.widened()) if clipped else found


def _sharing(cut: Cut, count: int) -> Cut:
    """Return the cut of one of several promises that hold at once: given the data they share delta."""
    if is_dataclass(cut) and any(own.name == "delta" for own in fields(cut)):
        return replace(cut, delta=cut.delta / count)
    return cut


def _score(rule: Conformal) -> OneSide:
    assert isinstance(rule.score, OneSide)
    return rule.score


def _largest(scores: Iterable[Array]) -> Array:
    largest: Array = np.maximum.reduce(list(scores))
    return largest


def _of_bounds(remark: Remark, side: Side, of_two: bool) -> Remark:
    """Return a remark on intervals as one on bounds."""
    return replace(remark, why=_InWords(remark, side, of_two)) if callable(remark.why) else remark


@dataclass(frozen=True)
class _InWords:
    remark: Remark
    side: Side
    of_two: bool

    def __call__(self) -> str:
        words = self.remark.in_words().replace("intervals", f"{self.side} bounds")
        return words.replace("a lower confidence level", "larger tails") if self.of_two else words
