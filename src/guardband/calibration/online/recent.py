"""Recent rows count more, and nothing else: split conformal with exponential forgetting (Barber et al. 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from guardband.bands.promise import Promise
from guardband.bands.recent_promise import RecentPromise
from guardband.calibration.online.past_scores import PastScores
from guardband.calibration.online.rule import OnlineRule, State, Tally

ROUNDING = 1e-9
"""Sums of weights are nearer than this share; it can only raise a threshold."""


@dataclass(frozen=True)
class Recent(OnlineRule):
    """Takes the weighted quantile of past scores; weights halve every ``half_life`` rows, and the next row has 1.

    Misses do not move it. It has no promise for rows that change.

    Parameters
    ----------
    half_life : float, default 300
        After how many judged rows a score counts half. A shorter one follows changes sooner, and intervals vary more.
    """

    word = "recent"
    half_life: float = 300

    def __post_init__(self) -> None:
        if not 1 <= self.half_life < math.inf:
            raise ValueError(f"half_life must be a number of rows, 1 or more, found {self.half_life}.")

    def begin(self, alpha: Fraction, past: PastScores) -> State:
        """Return nothing; refuse a half-life for which intervals would always be infinite."""
        shrink = 0.5 ** (1 / self.half_life)
        if shrink / (1 - shrink) * float(alpha) < float(1 - alpha):
            needed = math.ceil(-1 / math.log2(1 - float(alpha)))
            raise ValueError(
                f"half_life={self.half_life:g} forgets rows so soon that intervals would always be infinite at this "
                f"level. Use half_life={needed} or more."
            )
        return ()

    def threshold(self, alpha: Fraction, tally: Tally, state: State, past: PastScores) -> float:
        """Return the least score at which weights reach their share of all, the next row's among them."""
        scores = past.in_time()
        weights = 0.5 ** (np.arange(len(scores), 0, -1) / self.half_life)
        order = np.argsort(scores, kind="stable")
        needed = float(1 - alpha) * (weights.sum() + 1) * (1 + ROUNDING)
        at = int(np.searchsorted(np.cumsum(weights[order]), needed))
        return float(scores[order[at]]) if at < len(scores) else math.inf

    def limits(self, alpha: Fraction, tally: Tally, state: State) -> tuple[float, float]:
        """Return all rows: nothing limits the misses."""
        return float(alpha * tally.judged), float((1 - alpha) * tally.judged)

    def promise(self, alpha: Fraction, tally: Tally, state: State, numbers: dict[str, Any]) -> Promise:
        """Return what holds as long as rows do not change."""
        return RecentPromise(**numbers, judged=tally.judged, misses=tally.misses, half_life=float(self.half_life))
