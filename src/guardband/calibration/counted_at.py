"""Scores of rows that do not count one each: by their weights, or as rows of an entity that share one weight."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np

from guardband.bands.levels import Levels
from guardband.calibration.counted import ONLY_ASKED, PREFIX, Counted, CountedSummary, Counts, Known
from guardband.calibration.summary import Array, Arrays, Summary

NO_RANKS = "Rows that do not count one each have no ranks. Calibrate again."


class Found(ABC):
    """What was found of scores for the levels that were asked for, and what a file says of it."""

    @abstractmethod
    def to_arrays(self) -> dict[str, Array]:
        """Return it as named arrays, for a file."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return what ``to_arrays`` named.

        Parameters
        ----------
        arrays : dict of arrays
            What ``to_arrays`` returned.
        """


@dataclass(frozen=True, eq=False)
class Weighed(Found):
    """What weights make of scores: the thresholds, and what else a promise says.

    Parameters
    ----------
    scores : array of shape (m,)
        Scores that can be thresholds, in order.
    most_weight : array of shape (L, m)
        The largest weight of a new row that each is for, at each level; negative for none.
    n_effective : float
        As many rows of equal weight would say as much.
    largest_share : float
        The largest weight of a row, as a share of all.
    infinite_share : array of shape (L,)
        At each level, which share of all weights rows have that are heavier than the last finite score is for.
    infinite : int
        How many scores are infinite.
    """

    scores: Array
    most_weight: Array
    n_effective: float
    largest_share: float
    infinite_share: Array
    infinite: int

    @property
    def limits(self) -> Array:
        """At each level, the largest weight of a row with a finite interval, ``(L,)``; negative if there is none."""
        finite = self.most_weight[:, np.isfinite(self.scores)]
        return finite[:, -1] if finite.shape[1] else np.full(len(finite), -1.0)

    def to_arrays(self) -> dict[str, Array]:
        """Return it as named arrays, for a file."""
        return {
            "scores": self.scores,
            "most_weight": self.most_weight,
            "shares": np.array([self.n_effective, self.largest_share, *self.infinite_share]),
            "infinite": np.array([self.infinite]),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Weighed:
        """Return what ``to_arrays`` named."""
        effective, largest, *infinite = arrays["shares"].tolist()
        shares = np.array(infinite, dtype=np.float64)
        (count,) = arrays["infinite"].tolist()
        return cls(arrays["scores"], arrays["most_weight"], effective, largest, shares, int(count))


@dataclass(frozen=True, eq=False)
class SharedFound(Found):
    """What is found of scores if the rows of each entity share one weight.

    Parameters
    ----------
    thresholds : array of shape (L,)
        The threshold of each level.
    entities : int
        How many entities there are.
    are_alike : bool
        Whether the rows of each entity score alike: those of one row each are then all that counts.
    infinite : int
        How many scores are infinite; of rows that score alike, how many entities.
    least : float
        The least score.
    """

    thresholds: Array
    entities: int
    are_alike: bool
    infinite: int
    least: float

    def to_arrays(self) -> dict[str, Array]:
        """Return it as named arrays, for a file."""
        counts = np.array([self.entities, self.are_alike, self.infinite])
        return {"thresholds": self.thresholds, "entities": counts, "least": np.array([self.least])}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> SharedFound:
        """Return what ``to_arrays`` named."""
        entities, alike, infinite = arrays["entities"].tolist()
        (least,) = arrays["least"].tolist()
        return cls(arrays["thresholds"], int(entities), bool(alike), int(infinite), float(least))


F = TypeVar("F", bound=Found)


class CountedAt(Counted, Generic[F]):
    """Scores of rows that do not count one each, by their weights or as one of an entity."""

    @abstractmethod
    def at(self, levels: Levels) -> F:
        """Return what is found at each level.

        Parameters
        ----------
        levels : Levels
            The confidence levels, as exact fractions.
        """

    def infinite(self) -> Counts:
        """Raise: such rows have no ranks."""
        raise ValueError(NO_RANKS)

    def smallest(self, ranks: Counts) -> Array:
        """Raise: such rows have no ranks."""
        raise ValueError(NO_RANKS)


class KnownAt(CountedAt[F]):
    """What is left of such scores when they are gone: what was found for the levels that were asked for.

    Parameters
    ----------
    n : int
        The number of rows.
    asked : str
        The levels, as fractions.
    own : Found
        What was found.
    """

    def __init__(self, n: int, asked: str, own: F) -> None:
        self.n, self.number, self.asked, self.own = n, np.array([n]), asked, own

    def at(self, levels: Levels) -> F:
        """Return what was found for these levels; others are refused."""
        if in_words(levels) != self.asked:
            raise ValueError(ONLY_ASKED.format(self.n))
        return self.own

    def least(self) -> float:
        """Return the least score of entities."""
        return self.own.least if isinstance(self.own, SharedFound) else super().least()

    def to_arrays(self) -> dict[str, Array]:
        """Return what is known as named arrays, for a file."""
        return {"asked": np.frombuffer(self.asked.encode(), np.uint8), **self.own.to_arrays()}

    @classmethod
    def from_arrays(cls, n: int, arrays: Arrays) -> KnownAt[Any]:
        """Return what ``to_arrays`` named, of so many rows."""
        kind: type[Found] = Weighed if "most_weight" in arrays else SharedFound
        return KnownAt(n, bytes(arrays["asked"]).decode(), kind.from_arrays(arrays))


class RememberedAt(CountedAt[F]):
    """Such scores, whose last answer is remembered.

    Parameters
    ----------
    own : CountedAt
        The scores.
    """

    def __init__(self, own: CountedAt[F]) -> None:
        self._own, self.n, self.number = own, own.n, own.number
        self._known: KnownAt[F] | None = None

    def at(self, levels: Levels) -> F:
        """Return what is found at each level."""
        found = self._own.at(levels)
        self._known = KnownAt(self.n, in_words(levels), found)
        return found

    def known(self) -> KnownAt[F]:
        """Return what was found last."""
        assert self._known is not None
        return self._known

    def least(self) -> float:
        """Return the least score of entities, once something was found."""
        return self.known().least()


def in_words(levels: Levels) -> str:
    """Return levels as fractions."""
    return " ".join(map(str, levels.values))


def summary_from(arrays: Arrays) -> Summary:
    """Return the summary that ``to_arrays`` named, whichever kind it is.

    Parameters
    ----------
    arrays : dict of arrays
        What ``to_arrays`` returned.
    """
    plain = Summary.from_arrays({name: own for name, own in arrays.items() if not name.startswith(PREFIX)})
    named: dict[str, dict[str, Array]] = {}
    for name, own in arrays.items():
        if name.startswith(PREFIX):
            score, key = name.removeprefix(PREFIX).split(".", 1)
            named.setdefault(score, {})[key] = own
    if not named:
        return plain
    counted = {
        name: (KnownAt if "asked" in own else Known).from_arrays(plain.n, own) for name, own in sorted(named.items())
    }
    return CountedSummary(plain.n, plain.totals, (), counted)
