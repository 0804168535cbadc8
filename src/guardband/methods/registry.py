"""The methods by name: the paper's seven, then others, then those of installed packages.

A method is one file and one entry here. A package of its own adds one by an entry point of the group
``guardband.methods``: then every way in, the command line included, knows it by its name. Nothing is imported before
it is asked for, so that names cost nothing.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guardband.methods.method import Method

GROUP = "guardband.methods"
OURS = {
    "conf-nn": "guardband.methods.conf_nn:ConfNN",
    "pav": "guardband.methods.pav:Pav",
    "high-q": "guardband.methods.high_q:HighQ",
    "neg-ll": "guardband.methods.neg_ll:NegLL",
    "conf-fw": "guardband.methods.conf_fw:ConfFW",
    "qreg-un": "guardband.methods.qreg_un:QregUn",
    "bayes": "guardband.methods.bayes:Bayes",
    "cqr": "guardband.methods.cqr:Cqr",
    "cqr-r": "guardband.methods.cqr:CqrR",
}


def method_names() -> tuple[str, ...]:
    """Return the names of all methods."""
    return (*OURS, *sorted({entry.name for entry in entry_points(group=GROUP)} - OURS.keys()))


def method_named(method: str | Method) -> Method:
    """Return the method of that name, or the object itself."""
    if not isinstance(method, str):
        from guardband.methods.method import Method

        if not isinstance(method, Method):
            raise TypeError(f"method must be a name or a gb.Method, found {type(method).__name__}.")
        return method
    if method not in OURS and method not in method_names():  # every installed package is read for the latter
        raise ValueError(f"method must be one of {', '.join(method_names())}, or a Method, found {method!r}.")
    return _load(method)


@cache
def _load(name: str) -> Method:
    if name in OURS:
        module, found = OURS[name].split(":")
        made: Method = getattr(import_module(module), found)()
        return made
    entries = list(entry_points(group=GROUP, name=name))
    if len({entry.value for entry in entries}) > 1:
        raise ValueError(f"Several packages bring a method {name!r}: {', '.join(entry.value for entry in entries)}.")
    try:
        return method_named(entries[0].load()())
    except (ImportError, AttributeError, TypeError) as error:
        raise ValueError(f"The method {name!r} of {entries[0].value} cannot be used: {error}.") from error
