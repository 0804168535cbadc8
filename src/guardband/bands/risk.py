"""A risk: how much loss new rows may have on average, in the unit of the target, in place of a confidence level."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Loss = Callable[[Array, Array, Array], Any]

DISTANCE = "distance"
OWN = "own"
"""What a file and a certificate call a loss of the user's own."""


@dataclass(frozen=True)
class Risk:
    """The mean loss that new rows may have, as ``risk=`` takes it in place of a confidence level.

    The loss of a row is how far its true value lies outside its interval, in the unit of the target, and at most
    ``cap``. guardband makes intervals just wide enough to keep the mean loss of new rows at or below ``limit``.

    Parameters
    ----------
    limit : float
        The largest mean loss that is acceptable. Lower it if a value far outside is expensive; intervals become wider.
    cap : float
        The largest loss of a single row: a distance beyond it counts as ``cap``. A promise needs one, because a single
        row could otherwise cost any amount. A smaller cap needs fewer calibration rows.
    loss : "distance" or function, default "distance"
        A function ``loss(y, lower, upper)`` of three arrays of shape (n,) returns a loss for each row in its place. It
        must lie between 0 and ``cap``, never grow when an interval grows, and be 0 for infinite intervals.

    Examples
    --------
    >>> risk = Risk(limit=5, cap=100)
    >>> risk.losses(np.array([1.0, 3.0, 900.0]), np.zeros(3), np.full(3, 2.0)).tolist()
    [0.0, 1.0, 100.0]
    """

    limit: float
    cap: float
    loss: str | Loss = DISTANCE

    def __post_init__(self) -> None:
        for name in ("limit", "cap"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value) or value <= 0:
                raise ValueError(f"{name} of a Risk must be a positive number, found {value!r}.")
            object.__setattr__(self, name, float(value))
        if not self.limit < self.cap:
            raise ValueError(
                f"limit must be below cap, found limit={self.limit:g} and cap={self.cap:g}. A cap is the most that a "
                "single row can count. Raise it, or lower the limit."
            )
        if not callable(self.loss) and self.loss != DISTANCE:
            raise ValueError(f'loss must be "distance" or a function of y, lower and upper, found {self.loss!r}.')
        if callable(self.loss) and not _takes_three(self.loss):
            raise TypeError("Your loss must take three arrays, and yours does not. Write it as loss(y, lower, upper).")

    @property
    def name(self) -> str:
        """Which loss it is: ``"distance"``, or ``"own"`` for a function."""
        return OWN if callable(self.loss) else DISTANCE

    def losses(self, y: Array, lower: Array, upper: Array) -> Array:
        """Return the loss of each row, ``(n,)``; what a function returns is checked.

        Parameters
        ----------
        y : array of shape (n,)
            The true values.
        lower : array of shape (n,)
            The lower bounds.
        upper : array of shape (n,)
            The upper bounds.
        """
        if not callable(self.loss):
            outside: Array = np.minimum(np.maximum(np.maximum(lower - y, y - upper), 0), self.cap)
            return outside
        found = np.asarray(self.loss(y, lower, upper), dtype=np.float64)
        if found.shape != y.shape:
            raise ValueError(f"Your loss must return one number for each of {len(y)} rows, found shape {found.shape}.")
        wrong = np.flatnonzero(~((found >= 0) & (found <= self.cap)))
        if len(wrong):
            i = wrong[0]
            raise ValueError(
                f"Your loss must lie between 0 and cap={self.cap:g}, found {found[i]:g} for y={y[i]:g} with the "
                f"interval {lower[i]:g} to {upper[i]:g}. Limit it inside your function, or raise the cap."
            )
        return found


def _takes_three(loss: Loss) -> bool:
    try:
        inspect.signature(loss).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:  # nothing is known of its arguments
        pass
    return True


def risk_of(risk: Any) -> Risk | None:
    """Return what was given as ``risk=``; anything but a ``Risk`` or None is refused.

    Parameters
    ----------
    risk : Risk or None
        What was given.
    """
    if risk is None or isinstance(risk, Risk):
        return risk
    raise TypeError(f"risk must be a gb.Risk, such as gb.Risk(limit=5, cap=100), found {risk!r}.")
