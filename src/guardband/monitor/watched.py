"""What a monitor watches: each statement of a promise at each level, and the law of its misses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guardband.bands.promise import DELTA, OTHER_METHODS, Part, Promise, Side
from guardband.monitor.miss_law import MissLaw

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Statement:
    """One statement: of which rows, of which ends of their intervals, at which level, and the law of its misses."""

    law: MissLaw
    level: float
    i: int
    group: int | None = None
    name: str = ""
    side: Side = "both"

    @property
    def family(self) -> tuple[int, Side] | None:
        """With which others its evidence may be averaged.

        Bets against a share lose money whatever else is known of earlier rows. Bets against the law of a rank do so
        given the statement's own misses, and given those of other groups, which have calibration rows of their own.
        Misses at other levels, or of the other bound, come from the same calibration rows and tell more.
        """
        return None if self.law.rank is None else (self.i, self.side)


@dataclass(frozen=True)
class Watched:
    """All statements of a promise, and the evidence at which they raise the alarm.

    Parameters
    ----------
    statements : tuple of Statement
        What is watched. Evidence is averaged within a family, and each family has an equal part of the significance.
    log_limit : float
        The logarithm of the evidence that raises the alarm.
    false_alarm : float
        How often a promise that holds raises it, however often you look.
    """

    statements: tuple[Statement, ...]
    log_limit: float
    false_alarm: float

    def together(self, log_evidence: Array) -> Array:
        """Return the logarithm of the evidence of all statements together: of the worst family, ``(J, n) -> (n,)``."""
        families: dict[tuple[int, Side] | None, list[int]] = {}
        for j, own in enumerate(self.statements):
            families.setdefault(own.family, []).append(j)
        means = [np.logaddexp.reduce(log_evidence[own], axis=0) - math.log(len(own)) for own in families.values()]
        out: Array = np.max(means, axis=0)
        return out


def watched(promise: Promise, significance: float) -> Watched:
    """Return what to watch of a promise; refuse one that has no law.

    On average the law of a rank is exact. What is promised given the data fails for a share delta of calibration sets,
    which adds to false alarms, at each level anew unless all hold at once. Where only a bound is known, half of the
    significance pays for it.
    """
    if not promise.binding:
        raise ValueError(f"Nothing is promised here, and there is nothing to monitor. {OTHER_METHODS}")
    pairs = [(part, i) for part in promise.statements() for i in range(len(part.promise.confidence_level))]
    usable = [(part, i) for part, i in pairs if not part.promise.whole_line[i]]
    if not usable:
        raise ValueError(
            "All intervals are infinite, and there is nothing to monitor. Calibrate on more rows, or choose a lower "
            "confidence level."
        )
    for part, _ in usable:
        _need_law(part.promise)
    by_bound = [_only_bounded(part.promise, i) for part, i in usable]
    half = significance / 2
    found = tuple(
        _statement(part, i, half / len(usable) if bounded else None)
        for (part, i), bounded in zip(usable, by_bound, strict=True)
    )
    families = len({own.family for own in found})
    # each level may fail for a share delta of calibration sets, unless all hold at once; parts share one delta
    failing = {
        i: part.promise
        for (part, i), own, bounded in zip(usable, found, by_bound, strict=True)
        if own.law.rank is None and not bounded
    }
    at_once = all(getattr(own, "joint", False) for own in failing.values())
    delta = DELTA if promise.delta is None else promise.delta
    allowance = delta * (min(1, len(failing)) if at_once else len(failing))
    limit = math.log(families) - math.log(half if any(by_bound) else significance)
    return Watched(found, limit, min(1.0, significance + allowance))


def _need_law(promise: Promise) -> None:
    if not promise.is_testable:
        raise ValueError(f"This promise cannot be monitored. {promise.why_untestable()}")
    if not promise.is_bound_known:
        raise ValueError(
            'This promise cannot be monitored: no law is known for groups that overlap on average. Use guarantee="pac".'
        )


def _only_bounded(promise: Promise, i: int) -> bool:
    """Return whether no law of misses is known at a level, only a bound given the data."""
    own = promise.expectations()[i]
    if getattr(promise, "chosen_after", False) and not getattr(promise, "joint", False):
        return True
    return own.share is None and (own.expected.rank is None or own.expected.candidates > 1)


def _statement(part: Part, i: int, delta: float | None) -> Statement:
    promise = part.promise
    own = promise.expectations()[i]
    if delta is not None:
        law = MissLaw(share=promise.coverage_bound(delta)[i])
    elif own.share is not None:
        law = MissLaw(share=own.share)
    else:
        law = MissLaw(rank=own.expected.rank)
    return Statement(law, own.level, i, part.group, part.name, part.side)
