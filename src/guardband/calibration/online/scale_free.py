"""The same without a step size: steps shrink as rows are judged (Orabona & Pál 2018, Bhatnagar et al. 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from guardband.bands.ranks import marginal_rank
from guardband.calibration.online.past_scores import PastScores
from guardband.calibration.online.rule import OnlineRule, State, Tally

REACH = 1 / math.sqrt(3)
"""What is sought lies between 0 and 1: the range, 1, divided by sqrt(3), as in Bhatnagar et al. (2023)."""
FEWEST = 100
"""Steps begin as if so many rows had been judged. Fewer would let the first rows throw the level about."""


@dataclass(frozen=True)
class ScaleFree(OnlineRule):
    """Takes the (1 - a)-quantile of past scores, where row t moves a by g_t / sqrt(3 (G_0 + g_1^2 + ... + g_t^2)).

    g_t is alpha for a row that is no miss and alpha - 1 for a miss. G_0 counts the calibration rows, 100 at least, as
    rows that were judged already. Because a lies between 0 and 1, no step size has to be chosen. If up to d rows waited
    at once, steps are shorter by sqrt(d): longer ones would overshoot before their effect is seen.
    """

    word = "scale-free"

    def begin(self, alpha: Fraction, past: PastScores) -> State:
        """Return the level, and how many rows the steps begin with."""
        return float(alpha), float(max(FEWEST, len(past)))

    def threshold(self, alpha: Fraction, tally: Tally, state: State, past: PastScores) -> float:
        """Return the quantile of the past scores at the present level."""
        present = alpha if tally.judged == 0 else Fraction(state[0])
        return past.smallest(marginal_rank(1 - present, len(past)))

    def judged(self, alpha: Fraction, tally: Tally, state: State, past: PastScores, is_miss: bool) -> State:
        """Return the level after a step."""
        return state[0] + step(alpha, tally, state[1]) * (float(alpha) - is_miss), state[1]

    def limits(self, alpha: Fraction, tally: Tally, state: State) -> tuple[float, float]:
        """Return how far the level can go, 1 + first step x most_waiting, divided by the last step.

        w rows that waited when the level left [0, 1] move it by at most w / sqrt(w) of the first step without waiting.
        Because steps shrink, the sum of g_t is a difference of two averages of levels, divided by the last step
        (Angelopoulos, Barber & Bates 2024).
        """
        reach = 1 + step(alpha, Tally(most_waiting=tally.most_waiting), state[1]) * tally.most_waiting
        most = reach / step(alpha, tally, state[1])
        return most, most


def step(alpha: Fraction, tally: Tally, begun_with: float) -> float:
    """Return the size of the last step.

    Parameters
    ----------
    alpha : Fraction
        The share of misses to aim at.
    tally : Tally
        What was judged so far.
    begun_with : float
        How many rows the steps began with.
    """
    share = float(alpha)
    squares = begun_with * share * (1 - share)
    squares += tally.misses * (1 - share) ** 2 + (tally.judged - tally.misses) * share**2
    return REACH / math.sqrt(squares * tally.most_waiting)
