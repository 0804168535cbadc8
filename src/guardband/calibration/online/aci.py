"""Adaptive conformal inference: the level itself moves by a fixed step (Gibbs & Candès 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from guardband.bands.levels import exact_share
from guardband.bands.ranks import marginal_rank
from guardband.calibration.online.past_scores import PastScores
from guardband.calibration.online.rule import OnlineRule, State, Tally


@dataclass(frozen=True)
class AdaptiveLevel(OnlineRule):
    """Takes the (1 - a)-quantile of past scores, where a rises by ``step_size * alpha`` and falls by it for a miss.

    a = alpha + step_size (alpha judged - misses), in exact arithmetic. If a <= 0 intervals are infinite; if a >= 1 they
    are the prediction alone. Both keep a within the limits from which the promise follows.

    Parameters
    ----------
    step_size : float, default 0.005
        How far one row moves the level. A larger step follows changes sooner, and intervals vary more. The promise is
        then reached after fewer rows.
    """

    word = "aci"
    step_size: float = 0.005

    def __post_init__(self) -> None:
        exact_share("step_size", self.step_size)

    def threshold(self, alpha: Fraction, tally: Tally, state: State, past: PastScores) -> float:
        """Return the quantile of the past scores at the present level."""
        present = alpha - exact_share("step_size", self.step_size) * tally.excess(alpha)
        return past.smallest(marginal_rank(1 - present, len(past)))

    def limits(self, alpha: Fraction, tally: Tally, state: State) -> tuple[float, float]:
        """Return (1 - alpha) / step_size and alpha / step_size, and what waiting rows can add to them.

        Infinite intervals have no misses, and points alone have nothing else. Only rows that were waiting when a left
        [0, 1] can move it further: a stays above -step_size (1 - alpha) most_waiting.
        """
        step = exact_share("step_size", self.step_size)
        short = (1 - alpha) / step + alpha * tally.most_waiting
        over = alpha / step + (1 - alpha) * tally.most_waiting
        return float(short), float(over)
