"""bayes: a Gaussian whose distribution is recalibrated on D2 (Kuleshov, Fenner & Ermon, 2018)."""

from __future__ import annotations

from guardband.calibration.recalibration import Recalibration
from guardband.methods.method import Method, NetworkSpec, Wish
from guardband.nn.heads import Gaussian


class Bayes(Method):
    """Mean and variance; interval and median are quantiles of the recalibrated distribution."""

    name = "bayes"
    settings = frozenset()
    promises = False

    def networks(self, wish: Wish) -> tuple[NetworkSpec, ...]:
        """Return one Gaussian."""
        return (NetworkSpec(Gaussian()),)

    def rule(self, wish: Wish) -> Recalibration:
        """Return the recalibration."""
        return Recalibration(self.name, wish.levels, wish.on_insufficient)
