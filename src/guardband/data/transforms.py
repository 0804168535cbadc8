"""Increasing transforms of the target: forward, and back with ends that are rounded outward.

``xp`` is the library that the numbers belong to, numpy or torch: one formula serves tables and the exported network.
``sign`` is -1 for lower ends, 1 for upper ends and 0 for points.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Name = Literal["log", "log1p", "asinh", "sqrt"]
Functions = tuple[Callable[[Any], Any], Callable[[Any], Any]]
Transform = Name | Functions
"""What a user gives: a name, or a function and its inverse."""

SLACK = 4 * float(np.finfo(np.float64).eps)
"""Functions are right to four units in the last place."""
LARGEST, MOST_STEPS = float(np.finfo(np.float64).max), 1000.0
"""Beyond so much in work units every transform that grows like exp overflows."""
TOLERANCE = 1e-6
"""A function and its inverse may miss each other by this share of a value and of a typical one."""


@dataclass(frozen=True)
class Named:
    """A transform of guardband's own.

    ``least`` is the edge of what can be transformed, ``needs`` says so in words, and ``possible`` finds it out. An
    error of one unit in the last place of a transformed value w is one of about |w| units in the value itself.
    """

    forward: Callable[[Any], Any]
    inverse: Callable[[Any, int, Any], Any]
    possible: Callable[[Array], NDArray[np.bool_]]
    needs: str
    least: float

    def back(self, work: Any, sign: int, xp: Any) -> Any:
        """Return values in the target's own units; what lies beyond the edge is at the edge."""
        with np.errstate(over="ignore", invalid="ignore") if xp is np else nullcontext():
            units = self.inverse(work, sign, xp)
        units = xp.where(work == -xp.inf, self.least, units)
        return units if self.least == -np.inf else xp.clip(units, self.least, None)


def _exp(work: Any, sign: int, xp: Any) -> Any:
    return xp.exp(work) * (1 + sign * SLACK * (1 + xp.abs(work))) if sign else xp.exp(work)


def _expm1(work: Any, sign: int, xp: Any) -> Any:
    return _moved(xp.expm1(work), work, sign, xp)


def _sinh(work: Any, sign: int, xp: Any) -> Any:
    # By expm1 and not by sinh, which not every program that runs ONNX has in double precision.
    size = xp.abs(work)
    grown = xp.expm1(size)
    twice = xp.where(size > 1, xp.exp(size) - xp.exp(-size), grown + grown / (grown + 1))
    return _moved(xp.sign(work) * twice / 2, work, sign, xp)


def _square(work: Any, sign: int, xp: Any) -> Any:
    return xp.clip(work, 0, None) ** 2 * (1 + sign * SLACK)


def _moved(units: Any, work: Any, sign: int, xp: Any) -> Any:
    if not sign:
        return units
    # Where values overflow, the slack stays finite: infinity less an infinite slack would be no number.
    size, steps = xp.clip(xp.abs(units), None, LARGEST), xp.clip(xp.abs(work), None, MOST_STEPS)
    return units + sign * (SLACK * size + SLACK * steps * (1 + size))


NAMED: dict[str, Named] = {
    "log": Named(np.log, _exp, lambda y: y > 0, "positive", 0.0),
    "log1p": Named(np.log1p, _expm1, lambda y: y > -1, "above -1", -1.0),
    "asinh": Named(np.arcsinh, _sinh, np.isfinite, "finite", -np.inf),
    "sqrt": Named(np.sqrt, _square, lambda y: y >= 0, "at least 0", 0.0),
}


def instead(y: Array) -> str:
    """Return the transform for a target that another one cannot take."""
    return "log1p" if y.min() > -1 else "asinh"


@dataclass(frozen=True)
class Own:
    """A function of the user's and its inverse, which misses a value y by at most ``slack[0] |y| + slack[1]``."""

    forward: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    slack: tuple[float, float]

    def back(self, work: Any, sign: int, xp: Any) -> Any:
        """Return values in the target's own units; an end that the inverse knows nothing of is infinite."""
        work = work + sign * SLACK * (1 + abs(work))
        if xp is np:
            with np.errstate(all="ignore"):
                units = np.asarray(self.inverse(work), dtype=np.float64)
        else:
            units = self._by_torch(work)
        if sign == 0:
            return units
        relative, absolute = self.slack
        units = units + sign * ((relative + SLACK) * abs(units) + absolute)
        return xp.where(xp.isnan(units), sign * xp.inf, units)

    def _by_torch(self, work: Any) -> Any:
        try:
            return self.inverse(work).to(work.dtype)
        except (TypeError, AttributeError, RuntimeError) as error:
            raise ValueError(
                f"torch cannot compute the inverse of your target_transform: {error}. Write it with operators alone, "
                "such as lambda w: w**3."
            ) from error


def learn_slack(functions: Functions, y: Array) -> tuple[float, float]:
    """Return by how much inverse and function may miss each other, relative and absolute.

    What is no increasing function with its inverse on the training targets is refused.
    """
    forward, inverse = functions
    values = np.unique(y)
    work = work_of(forward, values)
    if len(values) > 1 and not ((np.diff(work) >= 0).all() and work[-1] > work[0]):
        raise ValueError(
            "The first function of target_transform must be increasing, and on the training rows it is not. "
            "Use one that is, or None."
        )
    with np.errstate(all="ignore"):
        again = np.asarray(inverse(work), dtype=np.float64)
    if again.shape != values.shape or not np.isfinite(again).all():
        raise ValueError(
            "The second function of target_transform must return a finite number for each one that it gets. "
            "Bring the inverse of the first function."
        )
    typical = float(np.median(np.abs(values))) or float(np.abs(values).max()) or 1.0
    missed = np.abs(again / 2 - values / 2) / (np.abs(values) / 2 + typical / 2)
    worst = int(missed.argmax())
    if missed[worst] > TOLERANCE:
        raise ValueError(
            f"The second function of target_transform must undo the first, and it turns {values[worst]:g} into "
            f"{again[worst]:g}. Bring the inverse of the first function."
        )
    slack = 2 * float(missed[worst])
    return slack, slack * typical


def work_of(forward: Callable[[Any], Any], y: Array) -> Array:
    """Return what a function of the user's makes of values, ``(n,) -> (n,)``."""
    with np.errstate(all="ignore"):
        work = np.asarray(forward(y), dtype=np.float64)
    if work.shape != y.shape:
        raise ValueError(
            f"The first function of target_transform must return an array of the shape it gets, {y.shape}, found "
            f"{work.shape}. Write it for numpy arrays."
        )
    return work
