"""Each of several targets for itself: an ordinary rule and a promise for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from guardband.bands.each_promise import EachPromise
from guardband.calibration.conformal import Conformal
from guardband.calibration.counted import CountedSummary
from guardband.calibration.rule import Calibration, Remark
from guardband.calibration.several import EACH, SeveralRule
from guardband.calibration.summary import Array, Arrays, Summary


@dataclass(frozen=True)
class EachConformal(SeveralRule):
    """A threshold for each target, from the rows in which it is known."""

    def of_target(self, j: int) -> Conformal:
        """Return the rule of one target."""
        return Conformal(self.method, self.levels, self.score, self.cut, self.asked)

    def target_summary(self, j: int, summary: Summary) -> Summary:
        """Return the scores of one target, of the rows in which it is known."""
        if isinstance(summary, CountedSummary):
            own = summary.counted[f"score_{j}"]
            return CountedSummary(int(own.number[0]), {}, (), {"score": own})
        scores: Array = summary.rows(EACH)[:, j]
        known = ~np.isnan(scores)
        return Summary(int(known.sum()), {}, ({"score": scores[known]} | self._kept(summary, known),))

    def countable(self, block: Arrays) -> Arrays:
        """Return the scores of each target, of the rows in which it is known."""
        return {f"score_{j}": own[~np.isnan(own)] for j, own in enumerate(block[EACH].T)}

    def target_found(self, j: int, summary: Summary) -> Calibration:
        """Return the thresholds and the promise of one target."""
        return self.of_target(j).calibrate(self.target_summary(j, summary))

    def target_arrays(self, j: int, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return the thresholds of one target."""
        return {"threshold": arrays["threshold"][j]}

    def calibrate(self, summary: Summary) -> Calibration:
        """Return thresholds ``(q, L)``, and a promise for each target."""
        every = [self.target_found(j, summary) for j in range(len(self.targets))]
        promises = tuple(own.promise for own in every)
        remarks = [
            replace(remark, why=partial(_of_target, name, remark))
            for name, own in zip(self.targets, every, strict=True)
            for remark in own.remarks
        ]
        return Calibration(
            {"threshold": np.stack([own.arrays["threshold"] for own in every])},
            EachPromise(
                confidence_level=self.levels.floats,
                n_calibration=len(np.unique(summary.rows("entity"))) if "entity" in self.uses else summary.n,
                whole_line=tuple(all(own) for own in zip(*(one.whole_line for one in promises), strict=True)),
                delta=promises[0].delta,
                names=self.targets,
                of_each=promises,
            ),
            tuple(remarks),
        )


def _of_target(name: str, remark: Remark) -> str:
    return f"Target {name!r}: {remark.in_words()}"
