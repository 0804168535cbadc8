"""Scores of calibration rows of which nobody needs more than counts and order statistics: so they need never meet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from guardband.bands.ranks import order_statistic
from guardband.calibration.summary import Array, Arrays, Summary

Counts = NDArray[np.int64]
PREFIX = "counted."
ONLY_ASKED = (
    "This model was calibrated on {:,} rows in many files, and keeps the thresholds of the levels that were asked for "
    "then. Calibrate it again and name all levels."
)


class Counted(ABC):
    """Scores of n rows, each in none of G groups or in some; without groups all rows are one group."""

    n: int
    """The number of rows."""
    number: Counts
    """The number of rows of each group, ``(G,)``."""

    @property
    def drawn_from(self) -> int:
        """The number of rows before some were kept by chance; all of them, unless weights say so."""
        return self.n

    def known(self) -> Counted:
        """Return what was asked for, which stays when the scores are gone."""
        return self

    @abstractmethod
    def infinite(self) -> Counts:
        """Return how many scores of each group are infinite, ``(G,)``."""

    @abstractmethod
    def smallest(self, ranks: Counts) -> Array:
        """Return the k-th smallest scores of each group, infinite where there are fewer, ``(G, L) -> (G, L)``.

        Parameters
        ----------
        ranks : array of shape (G, L)
            The ranks k of each group, from 1.
        """

    def to_arrays(self) -> dict[str, Array]:
        """Return what is known as named arrays, for a file; of scores that are not gone yet nothing is."""
        raise NotImplementedError

    def least(self) -> float:
        """Return the least score of all groups."""
        return float(self.smallest(np.ones((len(self.number), 1), dtype=np.int64)).min())


class Joined(Counted):
    """Scores that lie in one array."""

    def __init__(self, scores: Array) -> None:
        self.scores, self.n = scores, len(scores)
        self.number = np.array([len(scores)])

    def infinite(self) -> Counts:
        """Return how many scores are infinite, ``(1,)``."""
        return np.array([np.isinf(self.scores).sum()])

    def smallest(self, ranks: Counts) -> Array:
        """Return the k-th smallest scores, ``(1, L) -> (1, L)``."""
        return np.array([[order_statistic(self.scores, int(k)) for k in ranks[0]]])


@dataclass(frozen=True, eq=False)
class Known(Counted):
    """What is left of scores that are gone: the order statistics that were asked for.

    Parameters
    ----------
    n : int
        The number of rows.
    number : array of shape (G,)
        The number of rows of each group.
    beyond : array of shape (G,)
        How many scores of each group are infinite.
    ranks : array of shape (G, L)
        The ranks that were asked for.
    scores : array of shape (G, L)
        The scores of these ranks.
    before : int, default None
        The number of rows before some were kept by chance, None if all were.
    """

    n: int
    number: Counts
    beyond: Counts
    ranks: Counts
    scores: Array
    before: int | None = None

    @property
    def drawn_from(self) -> int:
        """The number of rows before some were kept by chance."""
        return self.n if self.before is None else self.before

    def infinite(self) -> Counts:
        """Return how many scores of each group are infinite, ``(G,)``."""
        return self.beyond

    def smallest(self, ranks: Counts) -> Array:
        """Return scores of ranks that were asked for before; others are refused."""
        out = np.full(ranks.shape, np.inf)
        for group, own in enumerate(ranks):
            for i, rank in enumerate(own):
                if rank > self.number[group]:
                    continue
                at = np.flatnonzero(self.ranks[group] == rank)
                if not len(at):
                    raise ValueError(ONLY_ASKED.format(self.n))
                out[group, i] = self.scores[group, at[0]]
        return out

    def to_arrays(self) -> dict[str, Array]:
        """Return what is known as named arrays, for a file."""
        own = {"number": self.number, "beyond": self.beyond, "ranks": self.ranks, "scores": self.scores}
        return own if self.before is None else own | {"kept": np.array([self.n])}

    @classmethod
    def from_arrays(cls, n: int, arrays: Arrays) -> Known:
        """Return what ``to_arrays`` named, of so many rows."""
        number, beyond, ranks, scores = (arrays[name] for name in ("number", "beyond", "ranks", "scores"))
        if "kept" in arrays:
            return cls(int(arrays["kept"][0]), number, beyond, ranks, scores, n)
        return cls(n, number, beyond, ranks, scores)


class Remembered(Counted):
    """Counted scores whose answers are remembered, so that ``known`` may stand for them when they are gone.

    Parameters
    ----------
    own : Counted
        The scores.
    before : int, default None
        The number of rows before some were kept by chance, None if all were.
    """

    def __init__(self, own: Counted, before: int | None = None) -> None:
        self._own, self._before, self.n, self.number = own, before, own.n, own.number
        self._beyond: Counts | None = None
        self._answers: dict[tuple[int, int], float] = {}

    def infinite(self) -> Counts:
        """Return how many scores of each group are infinite, ``(G,)``."""
        if self._beyond is None:
            self._beyond = self._own.infinite()
        return self._beyond

    def smallest(self, ranks: Counts) -> Array:
        """Return the k-th smallest scores of each group."""
        found = self._own.smallest(ranks)
        for group, own in enumerate(ranks):
            self._answers |= {
                (group, int(k)): float(score)
                for k, score in zip(own, found[group], strict=True)
                if k <= self.number[group]
            }
        return found

    def known(self) -> Known:
        """Return what was asked for: of groups with fewer answers than others, the last is there more than once."""
        each = [sorted(k for group, k in self._answers if group == g) for g in range(len(self.number))]
        most = max(1, *map(len, each))
        ranks = np.array([(own + [own[-1] if own else 0] * most)[:most] for own in each], dtype=np.int64)
        scores = [[self._answers.get((g, int(k)), np.inf) for k in own] for g, own in enumerate(ranks)]
        return Known(self.n, np.asarray(self.number, np.int64), self.infinite(), ranks, np.array(scores), self._before)

    @property
    def drawn_from(self) -> int:
        """The number of rows before some were kept by chance."""
        return self.n if self._before is None else self._before


@dataclass(frozen=True, eq=False)
class CountedSummary(Summary):
    """A summary of rows whose scores are only counted, by the name under which a summary keeps scores.

    Parameters
    ----------
    counted : dict of Counted
        The scores.
    """

    counted: Mapping[str, Counted] = ()  # type: ignore[assignment]

    def joined(self) -> CountedSummary:
        """Return the summary itself: there is nothing to join."""
        return self

    def rows(self, name: str) -> NoReturn:
        """Raise: no row is kept."""
        raise ValueError(
            f"This needs the scores of all {self.n:,} calibration rows, and they were only counted. Calibrate on fewer "
            "rows, or keep the scores of more (keep_scores, on the command line --keep-scores)."
        )

    def settled(self) -> CountedSummary:
        """Return a summary that needs nothing but itself, and knows what was asked for."""
        known = {name: own.known() for name, own in self.counted.items()}
        return CountedSummary(self.n, self.totals, (), known)

    def to_arrays(self) -> dict[str, Array]:
        """Return the summary as named arrays, for a file."""
        out = super().to_arrays()
        for name, own in self.settled().counted.items():
            out |= {f"{PREFIX}{name}.{key}": np.asarray(array) for key, array in own.to_arrays().items()}
        return out
