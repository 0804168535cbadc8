"""Groups that have a promise of their own: what is promised of each, and what test rows say of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from guardband.audit.verdict import rows_needed
from guardband.bands.promise import DELTA, Part
from guardband.words import plain

if TYPE_CHECKING:
    from guardband.audit.counts import LevelFinding
    from guardband.bands.certificate import Certificate

Entries = dict[str, Any]


def promised_groups(certificate: Certificate) -> list[Entries]:
    """Return what is promised of each group, side and level, for JSON; nothing if there are no groups.

    ``needed`` is the fewest calibration rows for finite intervals, ``cost`` how much wider they are than with one
    promise for all rows, as a share.
    """
    parts = [part for part in certificate.promise.statements() if part.group is not None]
    delta = (DELTA if certificate.delta is None else certificate.delta) / max(1, len(parts))
    return [entry for part in parts for entry in _levels(part, delta)]


def findings_of_groups(certificate: Certificate, found: Iterable[LevelFinding]) -> list[Entries | None]:
    """Return what test rows say of each entry of ``promised_groups``, None if none of them is in the group."""
    known = {(own.group, own.side, own.level): own.to_dict() for own in found}
    return [known.get((own["group"], own["side"], own["level"])) for own in promised_groups(certificate)]


def group_lines(promised: Sequence[Mapping[str, Any]], found: Sequence[Any]) -> list[Entries]:
    """Return a line for each group, side and level: what is promised, and ``found``. The worst come first.

    These are groups whose promise is broken, then those with infinite intervals, then those with the lowest coverage.
    """
    every = [*found, *[None] * (len(promised) - len(found))]
    lines = [{**own, "found": judged} for own, judged in zip(promised, every, strict=True)]
    return sorted(lines, key=_goodness)


def _levels(part: Part, delta: float) -> list[Entries]:
    promise, ranks = part.promise, part.promise.rank or ()
    bounds = promise.coverage_bound(delta) if promise.is_bound_known else [None] * len(ranks)
    out: list[Entries] = []
    for i, (level, rank, bound) in enumerate(zip(promise.confidence_level, ranks, bounds, strict=True)):
        needed = rows_needed(promise, level)
        entry = {
            "group": part.group,
            "name": part.name,
            "side": part.side,
            "level": level,
            "rows": promise.n_calibration,
            "rank": rank,
            "needed": None if needed is None or needed <= promise.n_calibration < rank else needed,
            "bound": bound,
            "infinite": promise.whole_line[i],
            "mean_width": None if part.width is None else part.width[i],
            "cost": None if part.cost is None else part.cost[i],
        }
        out.append(plain(entry))
    return out


def _goodness(line: Entries) -> tuple[int, float, float]:
    found, cost = line["found"], line["cost"] or 0.0
    broken = found is not None and found["verdict"] == "broken"
    if line["infinite"] and not broken:
        return 1, line["rows"], 0.0
    if found is None:
        return 3, 0.0, -cost
    return (0 if broken else 2), found["covered"] / found["n"] - line["level"], -cost
