"""What a monitor watches: each statement of a promise at each level, and the law of its misses."""

from __future__ import annotations

import math
from dataclasses import dataclass

from guardband.bands.promise import OTHER_METHODS, Part, Promise, Side
from guardband.monitor.miss_law import MissLaw


@dataclass(frozen=True)
class Statement:
    """One statement: of which rows, of which ends of their intervals, at which level, and the law of its misses."""

    law: MissLaw
    level: float
    i: int
    group: int | None = None
    name: str = ""
    side: Side = "both"


@dataclass(frozen=True)
class Watched:
    """All statements of a promise, and the evidence at which they raise the alarm.

    Parameters
    ----------
    statements : tuple of Statement
        What is watched. Their evidence is averaged.
    log_limit : float
        The logarithm of the evidence that raises the alarm.
    false_alarm : float
        How often a promise that holds raises it, however often you look.
    """

    statements: tuple[Statement, ...]
    log_limit: float
    false_alarm: float


def watched(promise: Promise, significance: float) -> Watched:
    """Return what to watch of a promise; refuse one that has no law.

    On average the law of a rank is exact. What is promised given the data fails for a share delta of calibration sets,
    which adds to false alarms. Where only a bound is known, half of the significance pays for it.
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
    found = [
        _statement(part, i, half / len(usable) if bounded else None)
        for (part, i), bounded in zip(usable, by_bound, strict=True)
    ]
    pays = any(by_bound)
    allowance = (
        0.0
        if all(own.law.rank is not None or own_bound for own, own_bound in zip(found, by_bound, strict=True))
        else promise.delta or 0.0
    )
    return Watched(tuple(found), -math.log(half if pays else significance), min(1.0, significance + allowance))


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
    if own.share is not None:
        return False
    return own.expected.rank is None or own.expected.candidates > 1 or getattr(promise, "chosen_after", False)


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
