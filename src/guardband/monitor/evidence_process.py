"""Evidence against a promise that may be looked at after every row: bets on a higher chance of a miss, from any row on.

For each start r and each chance theta, an alternative says: misses follow the promise's law up to row r, and have the
chance theta from there on. Evidence is the likelihood of a mixture of them all, with weights that add up to 1, divided
by the largest that the promise allows. While the promise holds, P(evidence ever reaches 1 / a) <= a (Ville 1939). All
starts are added up by one recursion, so that memory and time for a row are constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from guardband.monitor.miss_law import MissLaw

Array = NDArray[np.float64]
Misses = NDArray[np.bool_]
Rows = NDArray[np.int64]

ODDS = (1.3, 1.65, 2.3, 3.8, 10.0)
"""Bets: how many times higher the odds of a miss become."""
SHARES = (0.12, 0.3, 0.28, 0.25, 0.05)
"""The weight of each bet; they add up to 1."""
AT_ONCE = 0.3
"""The weight of a change before the first row."""
SOON, LATE, LATER = 1_000.0, 200_000.0, 0.05
"""Starts are about equally likely up to SOON, then in proportion to 1 / row up to LATE; LATER is what is left after."""


@dataclass(frozen=True)
class Stream:
    """What is kept of one statement's rows.

    Parameters
    ----------
    rows, misses : int
        How many rows there were, and how many of them lay outside.
    bets : tuple of float
        For each chance, the logarithm of all starts together, relative to what was expected before a change.
    best : tuple of float
        The same for the best start alone.
    start, misses_before, place : tuple of int
        How many rows of this statement came before the best start, how many of them were misses, and how many rows of
        all came before it.
    log_evidence : float
        The logarithm of the evidence now.
    """

    rows: int = 0
    misses: int = 0
    bets: tuple[float, ...] = (-math.inf,) * len(ODDS)
    best: tuple[float, ...] = (-math.inf,) * len(ODDS)
    start: tuple[int, ...] = (0,) * len(ODDS)
    misses_before: tuple[int, ...] = (0,) * len(ODDS)
    place: tuple[int, ...] = (0,) * len(ODDS)
    log_evidence: float = 0.0

    @property
    def likeliest_start(self) -> tuple[int, int, int]:
        """How many rows, misses, and rows of all there were before the change that the rows speak for most."""
        at = int(np.argmax(self.best))
        return self.start[at], self.misses_before[at], self.place[at]


def advanced(
    stream: Stream, law: MissLaw, missed: Misses, places: Rows | None = None, *, seek_start: bool = True
) -> tuple[Stream, Array]:
    """Return the stream after further rows, and the logarithm of the evidence after each of them, ``(n,) -> (n,)``.

    ``places`` says how many rows of all came before each of them; without it these are all rows. ``seek_start`` says
    whether the best start may lie among these rows.
    """
    n = len(missed)
    if not n:
        return stream, np.empty(0)
    rows = stream.rows + np.arange(n + 1)
    misses = stream.misses + np.append(0, np.cumsum(missed))
    before = law.before(misses, rows)
    chances = chances_after(law)[:, None]
    gains = np.cumsum(np.where(missed, np.log(chances), np.log1p(-chances)), axis=1) - (before[1:] - before[0])
    weights = log_weights(rows[:-1])
    starts = weights - np.column_stack([np.zeros(len(chances)), gains[:, :-1]])
    begun = starts.copy()
    begun[:, 0] = np.logaddexp(begun[:, 0], stream.bets)
    bets = np.logaddexp.accumulate(begun, axis=1) + gains
    mean = np.logaddexp.reduce(bets + np.log(SHARES)[:, None], axis=0)
    every = np.logaddexp(mean, log_weight_after(rows[:-1]))
    evidence: Array = every + before[1:] - law.most(misses[1:], rows[1:])

    at = starts.argmax(axis=1)
    found = starts[np.arange(len(at)), at]
    newer = (found > np.array(stream.best)) & seek_start
    places = rows[:-1] if places is None else places
    moved = replace(
        stream,
        rows=int(rows[-1]),
        misses=int(misses[-1]),
        bets=_floats(bets[:, -1]),
        best=_floats(np.where(newer, found, stream.best) + gains[:, -1]),
        start=_whole(np.where(newer, rows[at], stream.start)),
        misses_before=_whole(np.where(newer, misses[at], stream.misses_before)),
        place=_whole(np.where(newer, places[at], stream.place)),
        log_evidence=float(evidence[-1]),
    )
    return moved, evidence


def chances_after(law: MissLaw) -> Array:
    """Return the chances of a miss that are bet on."""
    odds = np.array(ODDS) * law.chance / (1 - law.chance)
    return odds / (1 + odds)


def log_weights(row: Rows) -> Array:
    """Return the logarithm of the weight of a change right after so many rows; all weights add up to 1.

    >>> round(float(np.exp(log_weights(np.arange(10**6))).sum() + np.exp(log_weight_after(np.array([10**6]))[0])), 6)
    1.0
    """
    left = np.exp(log_weight_after(row))
    before = np.where(row > 0, np.exp(log_weight_after(np.maximum(row - 1, 0))), 1.0)
    out: Array = np.log(before - left)
    return out


def log_weight_after(row: Rows) -> Array:
    """Return the logarithm of the weight of all changes after more than so many rows.

    It falls from 1 - AT_ONCE with the logarithm of the row, to LATER at LATE rows, and from there on as
    1 / (1 + log(row / LATE)).
    """
    r = row.astype(np.float64)
    along = np.log1p(r / SOON) / math.log1p(LATE / SOON)
    early = 1 - (1 - LATER) * np.minimum(along, 1)
    late = LATER / (1 + np.log(np.maximum(r / LATE, 1)))
    out: Array = math.log1p(-AT_ONCE) + np.log(np.where(r <= LATE, early, late))
    return out


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(values.tolist())


def _whole(values: Rows) -> tuple[int, ...]:
    return tuple(int(own) for own in values)
