"""The scale that outcomes are placed on, and the way back to their own units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Units:
    """Outcomes as they are. A subclass has another scale, bounds or whole numbers."""

    def to_work(self, y: Array, strictly: bool = False) -> Array:
        """Return values on the scale of places; if no or all outcomes lie at or below a value, it is infinite.

        Parameters
        ----------
        y : array
            Values in units of outcomes.
        strictly : bool, default False
            Whether outcomes are to lie below a value, not at it.
        """
        return y

    @property
    def has_density(self) -> bool:
        """Whether places grow smoothly with outcomes in their own units."""
        return True

    def of_outcomes(self, y: Array) -> Array:
        """Return true values on the scale of places.

        Parameters
        ----------
        y : array of shape (n,)
            The true values.
        """
        return y

    def back(self, work: Array, up: bool = False) -> Array:
        """Return outcomes in their own units, not rounded to what there can be.

        Parameters
        ----------
        work : array
            Outcomes on the scale of places.
        up : bool, default False
            Whether errors of the arithmetic are to be on the upper side.
        """
        return work

    def rounded(self, values: Array) -> Array:
        """Return values of outcomes that there can be: whole numbers, if outcomes are.

        Parameters
        ----------
        values : array
            Outcomes in their own units.
        """
        return values
