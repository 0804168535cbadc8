"""What a page says beyond what stands in its document: what needs more than a number in words."""

from __future__ import annotations

from typing import Any

from guardband.report.rendering import or_infinite
from guardband.report.schema import AuditPart, Checked, FamilyPart
from guardband.words import chance, level_name, number, percent

DRIFT_ROWS = 25


def found_view(own: Checked) -> dict[str, Any]:
    """Return what labelled rows say: the words of each level, tables, and what stands out."""
    families, columns = ([f for f in own["audit"]["families"] if _is_column(f) is one] for one in (False, True))
    words = level_words(own)
    return {
        "words": words,
        "level_rows": [entry.values() for entry in words],
        "promised": _promised(own["audit"]),
        "families": families,
        "columns": columns,
        "standing_out": [f for f in columns if any(stratum["flag"] == "low" for stratum in f["strata"])],
        "starts": {f["key"]: _start(f, own["audit"]["levels"][0]["level"]) for f in own["audit"]["families"]},
        "widths": _widths(own),
        "shifts": _shifts(own),
    }


def level_words(document: Checked) -> list[dict[str, str]]:
    """Return what the slider shows at each level; nothing where intervals are known at the promised levels only."""
    curve, n = document["audit"]["curve"], document["audit"]["n"]
    if curve is None or document["rows"]["levels"] != curve["levels"]:
        return []
    sides = (curve["covered"], curve["low"], curve["high"], curve["mean_width"])
    return [
        {
            "level": level_name(level),
            "covered": f"{covered:,} of {n:,} rows ({percent(covered / n)})",
            "expected": f"{low:,} to {high:,} ({percent(low / n)} to {percent(high / n)})",
            "width": or_infinite(width),
        }
        for level, covered, low, high, width in zip(curve["levels"], *sides, strict=True)
    ]


def _promised(audit: AuditPart) -> list[tuple[str, ...]]:
    return [
        (
            level_name(own["level"]),
            f"{own['covered']:,} of {own['n']:,} ({percent(own['covered'] / own['n'])})",
            f"{own['low']:,} to {own['high']:,}",
            chance(own["p_value"]),
            or_infinite(own["median_width"]),
        )
        for own in audit["levels"]
    ]


def _is_column(family: FamilyPart) -> bool:
    return family["key"].startswith("column-")


def _start(family: FamilyPart, aim: float) -> float:
    """Return where the graph of a family begins: a little below the least share that it shows."""
    shares = [min(own["covered"], own["low"]) / own["n"] for own in family["strata"] if own["n"]]
    return min(0.9, max(0.0, int(20 * (min([aim, *shares]) - 0.01)) / 20))


def _widths(document: Checked) -> list[tuple[str, ...]]:
    own = document["widths"]
    if own is None:
        return []
    bins = zip(own["edges"][:-1], own["edges"][1:], own["counts"], own["missed"], strict=True)
    return [(f"{number(a)} to {number(b)}", f"{count:,}", f"{missed:,}") for a, b, count, missed in bins]


def _shifts(document: Checked) -> list[tuple[str, ...]]:
    """Return the outcome and the most changed columns: what has changed, how far, and whether by chance."""
    drift = document["audit"]["drift"]
    shifts = [(own["name"], own) for own in (drift["columns"] or [])[:DRIFT_ROWS]]
    if drift["response"] is not None:
        shifts.insert(0, (f"{document['response']} (outcome)", drift["response"]))
    return [
        (name, own["detail"] if own["drifted"] else "", percent(own["gap"]), chance(own["p_value"]))
        for name, own in shifts
    ]
