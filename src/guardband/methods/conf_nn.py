"""conf-nn: one quantile triple, split conformal on the scaled score (paper, section 2.1)."""

from __future__ import annotations

from guardband.calibration.conformal import Conformal
from guardband.calibration.score import Scaled, Score
from guardband.methods.method import CUTS, LOSSES, Method, NetworkSpec, Request
from guardband.nn.heads import Triple


class ConfNN(Method):
    """One interval at tau, calibrated by an order statistic of the calibration rows' scores."""

    name = "conf-nn"
    options = CUTS | LOSSES | {"tau"}
    score: Score = Scaled()

    def networks(self, request: Request) -> tuple[NetworkSpec, ...]:
        """Return one triple at tau as given, otherwise at alpha, the smallest of several."""
        tau = min(request.levels.alphas) if request.tau is None else request.tau
        return (NetworkSpec(Triple(tau, request.power, request.point)),)

    def rule(self, request: Request) -> Conformal:
        """Return the score with the cut that was asked for."""
        return Conformal(self.name, request.levels, self.score, request.cut)
