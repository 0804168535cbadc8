"""Promises and certificates with given numbers, made without calibrating anything."""

from guardband.bands.certificate import Certificate
from guardband.bands.promise import Promise

PER_LEVEL = ("confidence_level", "rank", "whole_line", "tau", "covered")
DEFAULTS = {"pav": {"rule": "fixed-sequence", "aim": "selection", "candidates": 1}, "none": {"reason": "it is so"}}


def promise(kind, level, n, **numbers):
    """Return a promise; what depends on the level is given as one number, or a tuple for several levels."""
    whole = (False,) * len(level) if isinstance(level, tuple) else False
    every = DEFAULTS.get(kind, {}) | {"confidence_level": level, "n_calibration": n, "whole_line": whole} | numbers
    alone = {name for name in PER_LEVEL if every.get(name) is not None and not isinstance(every[name], tuple)}
    return Promise.kinds[kind](**{name: (value,) if name in alone else value for name, value in every.items()})


def certificate(kind, method, level, n, *, notes=(), **numbers):
    """Return the certificate of such a promise."""
    return Certificate(method, promise(kind, level, n, **numbers), not isinstance(level, tuple), notes)
