"""The methods by name: the paper's seven, then others."""

from __future__ import annotations

from guardband.methods.bayes import Bayes
from guardband.methods.conf_fw import ConfFW
from guardband.methods.conf_nn import ConfNN
from guardband.methods.cqr import Cqr, CqrR
from guardband.methods.high_q import HighQ
from guardband.methods.method import Method
from guardband.methods.neg_ll import NegLL
from guardband.methods.pav import Pav
from guardband.methods.qreg_un import QregUn

PAPER = (ConfNN(), Pav(), HighQ(), NegLL(), ConfFW(), QregUn(), Bayes())
METHODS: dict[str, Method] = {method.name: method for method in (*PAPER, Cqr(), CqrR())}


def method_named(method: str | Method) -> Method:
    """Return the method of that name, or the object itself."""
    if isinstance(method, Method):
        return method
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, or a Method, found {method!r}.")
    return METHODS[method]
