"""conf-nn: one quantile triple, split conformal on the scaled score (paper, section 2.1)."""

from __future__ import annotations

from guardband.calibration.conformal import SplitConformal
from guardband.calibration.score import Scaled, Score
from guardband.methods.method import Method, NetworkSpec, Wish
from guardband.nn.heads import Triple


class ConfNN(Method):
    """One band at tau, calibrated by an order statistic of the calibration rows' scores."""

    name = "conf-nn"
    settings = frozenset({"tau", "power", "point"})
    score: Score = Scaled()

    def networks(self, wish: Wish) -> tuple[NetworkSpec, ...]:
        """Return one triple at tau as given, otherwise at alpha, the smallest of several."""
        tau = min(wish.levels.alphas) if wish.tau is None else wish.tau
        return (NetworkSpec(Triple(tau, wish.power, wish.point)),)

    def rule(self, wish: Wish) -> SplitConformal:
        """Return split conformal with the guarantee asked for."""
        return SplitConformal(
            self.name,
            wish.levels,
            wish.guarantee,
            wish.delta,
            wish.shares,
            wish.on_insufficient,
            score=self.score,
        )
