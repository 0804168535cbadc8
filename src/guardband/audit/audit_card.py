"""An audit as a card, for notebooks: the verdict, its figures, and the groups that stand out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardband.markup import rendered

if TYPE_CHECKING:
    from guardband.audit.audit import Audit
    from guardband.audit.counts import LevelFinding
    from guardband.audit.strata import Stratum

MOST_GROUPS, MOST_PARTS = 8, 12
BADGES = {
    "consistent": "Consistent with the promise",
    "broken": "Promise broken",
    "too few rows": "Too few rows to tell",
    "cannot judge": "Cannot judge",
}


def audit_card(audit: Audit) -> str:
    """Return the HTML of an audit."""
    found = _flagged(audit)
    found.sort(key=lambda entry: entry[1].flag != "low")  # too few inside come first
    parts = sorted((own for own in audit.parts if own.group is not None), key=_goodness)
    return rendered(
        "audit.html",
        verdict=audit.verdict,
        badge=BADGES[audit.verdict],
        sentence=_without(BADGES[audit.verdict], audit.sentence),
        levels=audit.levels,
        risk=audit.risk,
        parts=parts[:MOST_PARTS],
        more_parts=max(len(parts) - MOST_PARTS, 0),
        standing_out=found[:MOST_GROUPS],
        more=max(len(found) - MOST_GROUPS, 0),
        notes=audit.notes,
    )


def _goodness(part: LevelFinding) -> tuple[bool, float]:
    return part.verdict != "broken", part.share - part.level


def _flagged(audit: Audit) -> list[tuple[str, Stratum]]:
    """Return the groups that stand out with the titles of their families, each set of rows once."""
    distinct: dict[bytes, tuple[str, Stratum]] = {}
    for family in audit.families:
        for i, group in enumerate(family.strata):
            if group.flag is not None:
                distinct.setdefault((family.stratum_of == i).tobytes(), (family.title, group))
    return list(distinct.values())


def _without(badge: str, sentence: str) -> str:
    """Return a sentence without the words before its colon if the badge says them already."""
    rest = sentence.removeprefix(f"{badge}: ")
    return rest[:1].upper() + rest[1:]
