"""conf-nn: one quantile triple, split conformal on the scaled score (paper, section 2.1)."""

from __future__ import annotations

from guardband.calibration.conformal import Conformal
from guardband.calibration.risk_control import RiskControl
from guardband.calibration.score import Scaled, Score
from guardband.calibration.sided import Sided
from guardband.methods.method import CUTS, LOSSES, SIDES, Method, NetworkSpec, Request
from guardband.nn.heads import Triple


class ConfNN(Method):
    """One interval at tau, calibrated by an order statistic of the calibration rows' scores."""

    name = "conf-nn"
    options = CUTS | SIDES | LOSSES | {"tau", "risk"}
    score: Score = Scaled()

    def networks(self, request: Request) -> tuple[NetworkSpec, ...]:
        """Return one triple at tau as given, otherwise at alpha, the smallest of several.

        A bound that has a promise of its own learns the quantile of that promise.
        """
        if request.tau is not None or not request.is_sided:
            tau = min(request.levels.alphas) if request.tau is None else request.tau
            return (NetworkSpec(Triple(tau, request.power, request.point)),)
        below, above = request.shares_outside
        own = None if below == above else below
        return (NetworkSpec(Triple(below + above, request.power, request.point, own)),)

    def rule(self, request: Request) -> Conformal | Sided | RiskControl:
        """Return the score with the cut that was asked for, on the sides that were asked for, or with a risk."""
        if request.risk is not None:
            delta = request.delta_or_default if request.guarantee == "pac" else None
            return RiskControl(self.name, request.levels, self.score, request.risk, delta)
        return Sided.of(self.name, request.levels, self.score, request.cut, request.side, request.tails)
