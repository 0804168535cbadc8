"""The methods by name."""

from __future__ import annotations

from guardband.methods.conf_nn import ConfNN
from guardband.methods.method import Method
from guardband.methods.pav import Pav

METHODS: dict[str, Method] = {method.name: method for method in (ConfNN(), Pav())}


def method_named(method: str | Method) -> Method:
    """Return the method of that name, or the object itself."""
    if isinstance(method, Method):
        return method
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, or a Method, found {method!r}.")
    return METHODS[method]
