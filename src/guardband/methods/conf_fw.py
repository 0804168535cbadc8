"""conf-fw: a point, split conformal on the absolute residual, so that all intervals have one length."""

from __future__ import annotations

from guardband.calibration.score import Residual
from guardband.methods.conf_nn import ConfNN
from guardband.methods.method import CUTS, SIDES, NetworkSpec, Request
from guardband.nn.heads import Median


class ConfFW(ConfNN):
    """The conditional median and a fixed width (Papadopoulos & Haralambous, 2011)."""

    name = "conf-fw"
    options = CUTS | SIDES | {"risk"}
    score = Residual()

    def networks(self, request: Request) -> tuple[NetworkSpec, ...]:
        """Return one network for the median."""
        return (NetworkSpec(Median()),)
