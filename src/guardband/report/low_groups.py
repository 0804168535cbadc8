"""The groups that the advice names: those with low coverage, each set of rows once."""

from __future__ import annotations

from guardband.report.advice import LowGroup
from guardband.report.parts import DIGITS, Checked, FamilyPart, StratumPart

NAMES = {"size": "predictions", "width": "intervals with a width"}
"""What the groups of a family are made of, if it is not a column."""


def low_groups(own: Checked) -> tuple[LowGroup, ...]:
    """Return the groups with low coverage, the farthest below its range first.

    Two groups are the same if they have as many rows, as many inside, and the same of the rows that a page shows.
    """
    found = [
        (family, place, stratum)
        for family in own["audit"]["families"]
        for place, stratum in zip(DIGITS, family["strata"], strict=False)
        if stratum["flag"] == "low" and stratum["n"]
    ]
    found.sort(key=lambda entry: (entry[2]["covered"] - entry[2]["low"]) / entry[2]["n"])
    distinct: dict[tuple[object, ...], LowGroup] = {}
    for family, place, stratum in found:
        shown = tuple(i for i, mine in enumerate(own["rows"]["strata"][family["key"]]) if mine == place)
        group = LowGroup(_named(family, stratum), stratum["covered"], stratum["n"], stratum["low"])
        distinct.setdefault((group.n, group.covered, shown), group)
    return tuple(distinct.values())


def _named(family: FamilyPart, stratum: StratumPart) -> str:
    """Return what to look at: predictions from 3 to 5, or rows with a value of a column."""
    label = stratum["label"]
    if family["key"] in NAMES:
        return f"{NAMES[family['key']]} {'from' if ' to ' in label else 'of'} {label}"
    return f"rows with {family['title'].removeprefix('By ').removeprefix('Over ')}: {label}"
