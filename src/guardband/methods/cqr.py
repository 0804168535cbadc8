"""cqr and cqr-r: the network of conf-nn with the additive scores of others, beside the paper's own."""

from __future__ import annotations

from guardband.calibration.score import Additive
from guardband.methods.conf_nn import ConfNN


class Cqr(ConfNN):
    """Conformalised quantile regression (Romano, Patterson & Candès, 2019)."""

    name = "cqr"
    score = Additive()


class CqrR(ConfNN):
    """The same, relative to the width of the interval (Sesia & Candès, 2020)."""

    name = "cqr-r"
    score = Additive(relative=True)
