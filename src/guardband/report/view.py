"""What a page says beyond what stands in its document: what needs more than a number in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guardband.report.parts import AuditPart, Checked, FamilyPart, StratumPart
from guardband.report.rendering import or_infinite
from guardband.words import as_written, chance, level_name, percent

Amount = Callable[[float | None], str]

DRIFT_ROWS = 25
COLUMNS_OPEN = 3
LONGEST_COLUMN = 40
EXAMPLES = {
    "narrow": "A narrow interval",
    "typical": "A typical interval",
    "wide": "A wide interval",
    "low": "A low prediction",
    "middle": "A typical prediction",
    "high": "A high prediction",
}


def found_view(own: Checked, amount: Amount) -> dict[str, Any]:
    """Return what labelled rows say: the words of each level, tables, and what stands out."""
    families, columns = ([f for f in own["audit"]["families"] if _is_column(f) is one] for one in (False, True))
    time = next((f for f in families if f["key"] == "time"), None)
    words = level_words(own, amount)
    standing_out = [f for f in columns if any(stratum["flag"] == "low" for stratum in f["strata"])]
    shown = {f["title"].removeprefix("By ") for f in families if f["key"] == "group"}
    opened = [f for f in standing_out if f["title"] not in shown][:COLUMNS_OPEN]
    return {
        "words": words,
        "one_width": has_one_width(own),
        "level_rows": [entry.values() for entry in words],
        "promised": _promised(own["audit"]),
        "time": time,
        "time_words": "" if time is None else _periods(time),
        "families": [f for f in families if f is not time],
        "columns": columns,
        "standing_out": standing_out,
        "columns_open": opened,
        "columns_folded": [f for f in columns if f not in opened],
        "summaries": {f["key"]: _summary(f, amount) for f in own["audit"]["families"]},
        "flagged": {f["key"] for f in own["audit"]["families"] if any(s["flag"] for s in f["strata"])},
        "starts": {f["key"]: _start(f, own["audit"]["levels"][0]["level"]) for f in own["audit"]["families"]},
        "examples": _examples(own, amount),
        "widths": _widths(own),
        "shifts": _shifts(own),
    }


def has_one_width(own: Checked) -> bool:
    """Return whether all intervals are finite and equally wide."""
    return own["widths"] is None and own["spread"]["median_width"] is not None


def level_words(document: Checked, amount: Amount = or_infinite) -> list[dict[str, str]]:
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
            "width": amount(width),
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


def _examples(document: Checked, amount: Amount) -> list[dict[str, str]]:
    """Return rows in words: what the most telling columns say of them, their interval and the true value."""
    rows, at = document["rows"], document["rows"]["headline"]
    found = []
    for kind, i in rows["examples"]:
        inside = rows["inside"][at][i] == "1"
        sides = [side[i] for side in (rows["lower"][at], rows["point"], rows["upper"][at], rows["y"])]
        lower, point, upper, truth = map(amount, _rounded(sides, inside))
        told = ", ".join(f"{_brief(rows['columns'][j])} {rows['cells'][i][j]}" for j in rows["telling"][:3])
        found.append(
            {
                "title": EXAMPLES[kind],
                "row": as_written(rows["row"][i]),
                "told": told,
                "point": point,
                "lower": lower,
                "upper": upper,
                "truth": truth,
                "where": "inside" if inside else "outside",
            }
        )
    return found


def _rounded(sides: list[float | None], inside: bool) -> list[float | None]:
    """Return lower end, prediction, upper end and true value with as few digits, three or more, as keep their order."""
    for digits in range(3, 9):
        own = [None if side is None else float(f"{side:.{digits}g}") for side in sides]
        lower, point, upper, truth = own
        if None in own:
            return sides
        if lower < point < upper and (lower <= truth <= upper) is inside:  # type: ignore[operator]
            return own
    return sides


def _brief(name: str) -> str:
    return name if len(name) <= LONGEST_COLUMN else f"{name[: LONGEST_COLUMN - 1]}…"


def _is_column(family: FamilyPart) -> bool:
    return family["key"].startswith("column-")


def _summary(family: FamilyPart, amount: Amount) -> str:
    """Return what a folded table holds: how many groups, and from where to where coverage and widths go."""
    own = [stratum for stratum in family["strata"] if stratum["n"]]
    shares = sorted(stratum["covered"] / stratum["n"] for stratum in own)
    widths = sorted(stratum["median_width"] for stratum in own if stratum["median_width"] is not None)
    groups = "1 group" if len(own) == 1 else f"{len(own):,} groups"
    covered = _span(percent(shares[0]), percent(shares[-1]))
    wide = f", median width {_span(amount(widths[0]), amount(widths[-1]))}" if widths else ""
    return f"{groups}, {covered} of rows inside{wide}. {_standing_out(own)}"


def _periods(family: FamilyPart) -> str:
    """Return how many periods have fewer rows inside than expected, and how many have more."""
    flags = [stratum["flag"] for stratum in family["strata"] if stratum["n"]]
    counts, periods = ((flags.count("low"), "fewer"), (flags.count("high"), "more")), f"{len(flags):,} periods"
    said = [
        f"{count:,} of {periods} {'has' if count == 1 else 'have'} {which} rows inside than expected"
        for count, which in counts
        if count
    ]
    return f"{', and '.join(said)}." if said else f"all {periods} have about as many rows inside as expected."


def _standing_out(strata: list[StratumPart]) -> str:
    flagged = sum(stratum["flag"] is not None for stratum in strata)
    return "None stands out." if not flagged else "1 stands out." if flagged == 1 else f"{flagged:,} stand out."


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _start(family: FamilyPart, aim: float) -> float:
    """Return where the graph of a family begins: a little below the least share that it shows."""
    shares = [min(own["covered"], own["low"]) / own["n"] for own in family["strata"] if own["n"]]
    return min(0.9, max(0.0, int(20 * (min([aim, *shares]) - 0.01)) / 20))


def _widths(document: Checked) -> list[tuple[str, ...]]:
    own = document["widths"]
    if own is None:
        return []
    bins = zip(own["edges"][:-1], own["edges"][1:], own["counts"], own["missed"], strict=True)
    return [(f"{or_infinite(a)} to {or_infinite(b)}", f"{count:,}", f"{missed:,}") for a, b, count, missed in bins]


def _shifts(document: Checked) -> list[tuple[str, ...]]:
    """Return the target and the most changed columns: what has changed, how far, and whether by chance."""
    drift = document["audit"]["drift"]
    shifts = [(own["name"], own) for own in (drift["columns"] or [])[:DRIFT_ROWS]]
    if drift["response"] is not None:
        shifts.insert(0, (f"{document['response']} (target)", drift["response"]))
    return [
        (name, own["detail"] if own["drifted"] else "", percent(own["gap"]), chance(own["p_value"]))
        for name, own in shifts
    ]
