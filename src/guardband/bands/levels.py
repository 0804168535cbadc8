"""Confidence levels as exact fractions, so that no rank is ever off by one."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar, cast

import numpy as np

T = TypeVar("T")
Level = float | Fraction


@dataclass(frozen=True)
class Levels:
    """One confidence level or several, exactly as they were written in decimal.

    ``Fraction(str(0.9))`` is 9/10, whereas the float 0.9 is a little more, which is enough to move
    ``ceil(level * (n + 1))`` by one.

    Parameters
    ----------
    values : tuple of Fraction
        The levels, exactly as they were written.
    scalar : bool
        Whether one level was given, not a sequence.
    """

    values: tuple[Fraction, ...]
    scalar: bool

    @classmethod
    def of(
        cls,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
    ) -> Levels:
        """Return the levels that were asked for: 0.9 when neither argument is given.

        Parameters
        ----------
        confidence_level : float or sequence of float, default None
            The share of new rows that should fall inside their intervals, or several such shares. None means 0.9,
            or the model's own level. Raise it if a miss is expensive; intervals become wider.
        alpha : float or sequence of float, default None
            One minus ``confidence_level``, for code that counts misses. Give one of the two.

        Examples
        --------
        >>> Levels.of(alpha=0.1) == Levels.of(0.9) == Levels.of()
        True
        """
        if confidence_level is not None and alpha is not None:
            raise ValueError(
                "Give confidence_level or alpha, not both: "
                f"found confidence_level={confidence_level!r} and alpha={alpha!r}."
            )
        if alpha is not None:
            name, given = "alpha", alpha
        else:
            name, given = "confidence_level", 0.9 if confidence_level is None else confidence_level
        given = given[()] if isinstance(given, np.ndarray) and given.ndim == 0 else given
        scalar = isinstance(given, numbers.Real | str) or not isinstance(given, Iterable)
        entries = [given] if scalar else list(cast(Iterable[Level], given))
        if not entries:
            raise ValueError(f"{name} must hold at least one level, found an empty sequence.")
        exact = tuple(exact_share(name, entry) for entry in entries)
        if len(set(exact)) < len(exact):
            raise ValueError(f"{name} must not name a level twice, found {given!r}.")
        return cls(exact if name == "confidence_level" else tuple(1 - a for a in exact), scalar)

    @property
    def confidence_level(self) -> float | tuple[float, ...]:
        """The levels as the user sees them: a float, or a tuple of floats."""
        return self.unpack(self.floats)

    @property
    def floats(self) -> tuple[float, ...]:
        """Each level as a float, less than 1."""
        return tuple(min(float(level), math.nextafter(1, 0)) for level in self.values)

    @property
    def alphas(self) -> tuple[float, ...]:
        """One minus each level, rounded once."""
        return tuple(float(1 - level) for level in self.values)

    def unpack(self, per_level: tuple[T, ...]) -> T | tuple[T, ...]:
        """Return the only entry where one level was asked for, otherwise all of them.

        Parameters
        ----------
        per_level : tuple
            One entry for each level.
        """
        return per_level[0] if self.scalar else per_level

    def include(self, others: Levels) -> bool:
        """Return whether all the others are among these.

        Parameters
        ----------
        others : Levels
            The levels to look for.
        """
        return set(others.values) <= set(self.values)

    def __len__(self) -> int:
        return len(self.values)


def exact_share(name: str, entry: object) -> Fraction:
    """Return a number exactly as it is written in decimal; what does not lie between 0 and 1 is refused.

    Parameters
    ----------
    name : str
        What it is called, for the message.
    entry : float or Fraction
        The number.
    """
    if isinstance(entry, bool) or not isinstance(entry, numbers.Real):
        raise TypeError(f"{name} must be a number between 0 and 1, found {entry!r}.")
    try:
        exact = entry if isinstance(entry, Fraction) else Fraction(str(entry))
    except ValueError:
        raise ValueError(f"{name} must lie strictly between 0 and 1, found {entry}.") from None
    if not 0 < exact < 1:
        hint = f" Write {float(exact) / 100:g} for {float(exact):g}%." if 1 < exact < 100 else ""
        raise ValueError(f"{name} must lie strictly between 0 and 1, found {entry}.{hint}")
    return exact
