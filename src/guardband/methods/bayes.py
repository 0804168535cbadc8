"""bayes: a Gaussian whose distribution is recalibrated on the calibration rows (Kuleshov, Fenner & Ermon, 2018)."""

from __future__ import annotations

from guardband.calibration.recalibration import Recalibration
from guardband.methods.method import Method, NetworkSpec, Request
from guardband.nn.heads import Gaussian


class Bayes(Method):
    """A Gaussian; interval and median are quantiles of its distribution, recalibrated on the calibration rows."""

    name = "bayes"
    options = frozenset[str]()

    def networks(self, request: Request) -> tuple[NetworkSpec, ...]:
        """Return one Gaussian."""
        return (NetworkSpec(Gaussian()),)

    def rule(self, request: Request) -> Recalibration:
        """Return the recalibration."""
        return Recalibration(self.name, request.levels)
