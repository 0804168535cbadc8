"""qreg-un: the quantile triple as it is, without calibration (paper, section 3)."""

from __future__ import annotations

from guardband.calibration.unadjusted import Unadjusted
from guardband.methods.method import LOSSES, Method, NetworkSpec, Request
from guardband.nn.heads import Triple


class QregUn(Method):
    """The network's own quantiles for each level, without calibration."""

    name = "qreg-un"
    options = LOSSES

    def networks(self, request: Request) -> tuple[NetworkSpec, ...]:
        """Return a triple for each level."""
        return tuple(NetworkSpec(Triple(alpha, request.power, request.point)) for alpha in request.levels.alphas)

    def rule(self, request: Request) -> Unadjusted:
        """Return the rule that changes nothing."""
        return Unadjusted(self.name, request.levels, request.levels)
