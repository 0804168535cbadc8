"""Quantile tracking with an integrator: the threshold itself moves (Angelopoulos, Candès & Tibshirani 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from guardband.bands.levels import exact_share
from guardband.bands.ranks import marginal_rank
from guardband.calibration.online.past_scores import PastScores
from guardband.calibration.online.rule import OnlineRule, State, Tally

FEWEST = 100
"""The integrator allows an excess of sqrt(judged + this) misses: ten at the beginning."""


@dataclass(frozen=True)
class Tracking(OnlineRule):
    """Moves the threshold up after a miss and down after any other row, and further the more misses are in excess.

    Proportional part: q rises by step_size (1 - alpha) spread after a miss and falls by step_size alpha spread
    otherwise. Integral part: spread tan(pi/2 e/h) is added, where e = misses - alpha judged and h = sqrt(judged + 100).
    At e >= h it is infinite, and so are the intervals; at e <= -h they are the prediction alone. ``spread`` is the
    interquartile range of the past scores. Past scores have no other part in it.

    Parameters
    ----------
    step_size : float, default 0.1
        How far one row moves the threshold, in interquartile ranges of the past scores. A larger step follows changes
        sooner, and intervals vary more.
    """

    word = "tracking"
    step_size: float = 0.1

    def __post_init__(self) -> None:
        exact_share("step_size", self.step_size)

    def begin(self, alpha: Fraction, past: PastScores) -> State:
        """Return the threshold of split conformal, infinite for few scores."""
        return (past.smallest(marginal_rank(1 - alpha, len(past))),)

    def threshold(self, alpha: Fraction, tally: Tally, state: State, past: PastScores) -> float:
        """Return the threshold of both parts."""
        excess = float(tally.excess(alpha)) / _allowed(tally)
        if abs(excess) >= 1:
            return math.copysign(math.inf, excess)
        return state[0] + _spread(alpha, state[0], past) * math.tan(math.pi / 2 * excess)

    def judged(self, alpha: Fraction, tally: Tally, state: State, past: PastScores, is_miss: bool) -> State:
        """Return the proportional part after a step; it begins once there are enough scores."""
        if math.isinf(state[0]):
            return self.begin(alpha, past)
        return (state[0] + self.step_size * _spread(alpha, state[0], past) * (is_miss - float(alpha)),)

    def limits(self, alpha: Fraction, tally: Tally, state: State) -> tuple[float, float]:
        """Return at which excess the integrator is infinite, and what waiting rows can add to it."""
        short = float(alpha) * tally.most_waiting
        over = float(1 - alpha) * tally.most_waiting
        return _allowed(tally) + short, _allowed(tally) + over


def _allowed(tally: Tally) -> float:
    return math.sqrt(tally.judged + FEWEST)


def _spread(alpha: Fraction, center: float, past: PastScores) -> float:
    """Return the interquartile range; if scores are tied, how far the level's quantile lies from the smallest."""
    spread = _quantile(past, Fraction(3, 4)) - _quantile(past, Fraction(1, 4))
    if not 0 < spread < math.inf:
        spread = _quantile(past, 1 - alpha) - past.smallest(1)
    if not 0 < spread < math.inf:
        spread = abs(center)
    return spread if spread < math.inf else 0.0


def _quantile(past: PastScores, level: Fraction) -> float:
    """Return the score of the level's rank, the largest if there are too few."""
    return past.smallest(max(1, min(len(past), marginal_rank(level, len(past)))))
