"""What networks or models put out for rows, by its kind, and what else is known of the rows.

Every part of a ``Predicted`` has the axes copies, candidates and rows, ``(C, K, n)``, of numpy or of torch. Copies are
networks that were trained alike; candidates differ, in their level for example, and stand in the order that a rule
expects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from guardband.bands.numbered_groups import NumberedGroups

P = TypeVar("P", bound="Predicted")


class Predicted:
    """What was predicted of n rows; a subclass, a frozen dataclass, names the parts, ``(C, K, n)`` each."""

    point: Any
    """The point prediction."""

    what: ClassVar[str]
    """The parts in words, for messages."""
    hint: ClassVar[str]
    """How to bring such a prediction."""

    @property
    def parts(self) -> tuple[Any, ...]:
        """The arrays, in the order of their names."""
        return tuple(getattr(self, own.name) for own in fields(self))  # type: ignore[arg-type]

    @property
    def copies(self) -> int:
        """The number of copies, C."""
        return int(self.parts[0].shape[0])

    @property
    def candidates(self) -> int:
        """The number of candidates, K."""
        return int(self.parts[0].shape[1])

    def __len__(self) -> int:
        return int(self.parts[0].shape[-1])

    def map(self: P, change: Callable[[Any], Any]) -> P:
        """Return the same with every part changed.

        Parameters
        ----------
        change : function
            What to do with each part.
        """
        return type(self)(*map(change, self.parts))

    def rows(self: P, index: Any) -> P:
        """Return some of the rows.

        Parameters
        ----------
        index : array, slice or None
            Which rows, as positions or a mask.
        """
        return self.map(lambda part: part[..., index])

    def of_copy(self: P, which: Any) -> P:
        """Return for each row the prediction of one copy, ``(n,)``, as one copy.

        Parameters
        ----------
        which : array of shape (n,)
            For each row, the number of the copy.
        """
        rows = np.arange(len(self))
        return self.map(lambda part: part[which, :, rows].T[None])

    def moved(self: P, center: float, scale: float) -> P:
        """Return the prediction of center + scale y, scale > 0, for one of y.

        Parameters
        ----------
        center : float
            What to add.
        scale : float
            What to multiply with, positive.
        """
        return self.map(lambda part: center + scale * part)

    def finite(self, xp: Any = np) -> Any:
        """Return which predictions are finite numbers in every part, ``(C, K, n)``.

        Parameters
        ----------
        xp : module, default numpy
            numpy or torch, whichever the arrays belong to.
        """
        out = xp.isfinite(self.parts[0])
        for part in self.parts[1:]:
            out = out & xp.isfinite(part)
        return out

    def faults(self) -> tuple[Any, str]:
        """Return which of n rows hold what no prediction can be, ``(n,)``, and what must hold instead."""
        return np.zeros(len(self), dtype=bool), ""

    @staticmethod
    def side_by_side(several: Sequence[P], xp: Any = np) -> P:
        """Return the candidates of several predictions together, in their order.

        Parameters
        ----------
        several : sequence of Predicted
            Predictions of one kind, for the same rows.
        xp : module, default numpy
            numpy or torch, whichever the arrays belong to.
        """
        if len(several) == 1:
            return several[0]
        every = zip(*(one.parts for one in several), strict=True)
        return type(several[0])(*(xp.concatenate(same, 1) for same in every))


@dataclass(frozen=True, eq=False)
class PredictedInterval(Predicted):
    """Lower bound, point and upper bound, in order.

    Parameters
    ----------
    lower : array of shape (C, K, n)
        The lower bounds.
    point : array of shape (C, K, n)
        The predictions.
    upper : array of shape (C, K, n)
        The upper bounds.
    """

    what = "lower, point and upper"
    hint = "End the network with gb.nn.TripleHead, or bring intervals."
    lower: Any
    point: Any
    upper: Any

    def faults(self) -> tuple[Any, str]:
        """Return which rows have bounds that cross; where one is NaN, a rule takes care of it."""
        crosses = (self.point < self.lower) | (self.upper < self.point)
        if crosses.any():
            crosses &= ~(np.isnan(self.lower) | np.isnan(self.point) | np.isnan(self.upper))
        return crosses.any(axis=(0, 1)), "lower <= point <= upper"


class OneDeviation(PredictedInterval):
    """A mean and one standard deviation on each side of it: a Gaussian for rules that take intervals."""

    what = "mean and standard deviation"
    hint = "End the network with gb.nn.GaussianHead."

    def faults(self) -> tuple[Any, str]:
        """Return which rows have a deviation that is not positive."""
        return (self.upper <= self.lower).any(axis=(0, 1)), "deviation > 0"


@dataclass(frozen=True, eq=False)
class PredictedPoint(Predicted):
    """A point alone.

    Parameters
    ----------
    point : array of shape (C, K, n)
        The predictions.
    """

    what = "a point"
    hint = "Bring a point for each row."
    point: Any


@dataclass(frozen=True, eq=False)
class PredictedGaussian(Predicted):
    """The mean and the standard deviation of a Gaussian.

    Parameters
    ----------
    mean : array of shape (C, K, n)
        The means.
    deviation : array of shape (C, K, n)
        The standard deviations.
    """

    what = "mean and standard deviation"
    hint = 'End the network with gb.nn.GaussianHead and declare outputs="gaussian", or bring a PredictedGaussian.'
    mean: Any
    deviation: Any

    @property
    def point(self) -> Any:
        """The mean."""
        return self.mean

    def finite(self, xp: Any = np) -> Any:
        """Return which predictions are finite, with a positive deviation."""
        return super().finite(xp) & (self.deviation > 0)

    def faults(self) -> tuple[Any, str]:
        """Return which rows have a deviation that is not positive."""
        return (self.deviation <= 0).any(axis=(0, 1)), "deviation > 0"

    def moved(self, center: float, scale: float) -> PredictedGaussian:
        """Return the prediction of center + scale y, scale > 0, for one of y."""
        return PredictedGaussian(center + scale * self.mean, scale * self.deviation)


@dataclass(frozen=True, eq=False)
class Context:
    """What is known of each row besides its prediction: arrays with an entry for each, None where nobody brought one.

    Rows of one ``entity``, a storm or a customer, have equal numbers there: they may depend on each other.

    Parameters
    ----------
    entity : array of shape (n,), default None
        A number for each row, equal for rows that belong together.
    group : array of shape (n,) or (n, J), default None
        The group of each row by its number, or one for each of J columns that make groups.
    weight : array of shape (n,), default None
        The weight of each row.
    fold : array of shape (n,), default None
        The fold of each row.
    time : array of shape (n,), default None
        The time of each row.
    """

    entity: Any = None
    group: Any = None
    weight: Any = None
    fold: Any = None
    time: Any = None

    def __post_init__(self) -> None:
        for name, array in self.given().items():
            if not (hasattr(array, "detach") or isinstance(array, NumberedGroups)):  # of torch, or many rows
                object.__setattr__(self, name, np.asarray(array))

    def rows(self, index: Any) -> Context:
        """Return the context of some of the rows.

        Parameters
        ----------
        index : array, slice or None
            Which rows, as positions or a mask.
        """
        return replace(self, **{name: array[index] for name, array in self.given().items()})

    def given(self) -> dict[str, Any]:
        """Return what was brought, by name."""
        every = {own.name: getattr(self, own.name) for own in fields(self)}
        return {name: array for name, array in every.items() if array is not None}

    def check(self, uses: frozenset[str], n: int, whose: str) -> None:
        """Raise unless it holds, for n rows, just what is used.

        Parameters
        ----------
        uses : set of str
            The names that must be given, and no others.
        n : int
            The number of rows.
        whose : str
            Who asks, for the message.
        """
        given = self.given()
        missing, idle = sorted(uses - given.keys()), sorted(given.keys() - uses)
        if missing:
            raise ValueError(f"{whose} needs the {missing[0]} of every row. Bring context=Context({missing[0]}=...).")
        if idle:
            raise ValueError(f"{whose} does not use the {idle[0]} of rows. Remove {idle[0]} from the context.")
        for name, array in given.items():
            if tuple(array.shape) != (n,) and not (name == "group" and array.ndim == 2 and len(array) == n):
                raise ValueError(f"{name} must have one entry for each of {n} rows, found shape {tuple(array.shape)}.")
