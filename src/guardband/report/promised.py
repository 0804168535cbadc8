"""The groups that have a promise of their own, as a page shows them: a line each, the worst first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from guardband.audit.promised_groups import group_lines
from guardband.report.advice import PromisedGroup
from guardband.report.parts import Document
from guardband.words import at_least, level_name, percent, signed_percent

Amount = Callable[[float | None], str]

LINES_OPEN = 12
SIDES = {"both": "", "lower": ", lower bounds", "upper": ", upper bounds"}
VERDICTS = {
    "consistent": "as expected",
    "broken": "broken",
    "too few rows": "too few rows",
    "cannot judge": "cannot judge",
}
INFINITE, NO_ROWS = "infinite", "no test rows"
INFINITY = "\N{INFINITY}"


def lines_of(own: Document) -> list[dict[str, Any]]:
    """Return a line for each group and level: what is promised, and what test rows say of it."""
    audit = own["audit"]
    promised = cast(list[Mapping[str, Any]], own["promised_groups"])
    return group_lines(promised, [] if audit is None else audit["parts"])


def promised_view(own: Document, amount: Amount) -> dict[str, Any]:
    """Return what the section shows, in words."""
    every = lines_of(own)
    lines = [_line(line, amount) for line in every]
    verdicts = [_verdict(line) for line in every]
    return {
        "open": lines[:LINES_OPEN],
        "folded": lines[LINES_OPEN:],
        "left_out": own["groups_left_out"],
        "several_levels": len({line["level"] for line in every}) > 1,
        "is_bound_known": any(line["bound"] is not None for line in every),
        "is_cost_known": any(line["cost"] is not None for line in every),
        "summary": _summary(verdicts, judged=own["audit"] is not None),
    }


def promised_group(line: Mapping[str, Any]) -> PromisedGroup:
    """Return what advice needs of a line."""
    found = line["found"]
    return PromisedGroup(
        line["name"], line["rows"], line["needed"], line["infinite"], found is not None and found["verdict"] == "broken"
    )


def promised_csv(own: Document) -> list[list[Any]] | None:
    """Return the lines for a spreadsheet, the head first; None without groups. Numbers stay numbers."""
    lines = lines_of(own)
    if not lines:
        return None
    head = ["group", "side", "level", "verdict", "test rows", "inside", "expected at least", "expected at most"]
    head += ["mean width", "cost", "calibration rows", "rank", "coverage at least"]
    return [head, *(_cells(line) for line in lines)]


def _cells(line: Mapping[str, Any]) -> list[Any]:
    found = line["found"] or dict.fromkeys(("n", "covered", "low", "high"))
    counts = [found[name] for name in ("n", "covered", "low", "high")]
    kept = [line[name] for name in ("cost", "rows", "rank", "bound")]
    width = "inf" if line["infinite"] else line["mean_width"]
    return [line["name"], line["side"], line["level"], _verdict(line), *counts, width, *kept]


def _line(line: Mapping[str, Any], amount: Amount) -> dict[str, str]:
    found, unknown = line["found"], line["mean_width"] is None and not line["infinite"]
    own = {
        "name": _named(line),
        "level": level_name(line["level"]),
        "kind": "broken" if found is not None and found["verdict"] == "broken" else "",
        "verdict": _verdict(line),
        "rows": f"{line['rows']:,}",
        "rank": f"{line['rank']:,}" if line["rank"] <= line["rows"] else "",
        "bound": "" if line["bound"] is None or line["infinite"] else at_least(line["bound"]),
        "width": "" if unknown and found is None else _wide(line, amount),
        "cost": "" if line["cost"] is None else signed_percent(line["cost"]),
        "n": "0",
        "inside": "",
        "expected": "",
    }
    if found is not None:
        n = found["n"]
        own |= {"n": f"{n:,}", "inside": f"{percent(found['covered'] / n)}"}
        own["expected"] = "" if line["infinite"] else f"{percent(found['low'] / n)} to {percent(found['high'] / n)}"
    return own


def _wide(line: Mapping[str, Any], amount: Amount) -> str:
    width = None if line["infinite"] else line["mean_width"]
    return INFINITY if width is None else amount(width)


def _named(line: Mapping[str, Any]) -> str:
    return f"{line['name']}{SIDES[line['side']]}"


def _verdict(line: Mapping[str, Any]) -> str:
    found = line["found"]
    if found is not None and found["verdict"] == "broken":
        return VERDICTS["broken"]
    if line["infinite"]:
        return INFINITE
    return NO_ROWS if found is None else VERDICTS[found["verdict"]]


def _summary(verdicts: list[str], judged: bool) -> str:
    """Return how many groups have which verdict."""
    if not judged:
        return ""
    words = [VERDICTS["broken"], INFINITE, VERDICTS["cannot judge"], VERDICTS["too few rows"], NO_ROWS]
    counts = [(verdicts.count(word), word) for word in [*words, VERDICTS["consistent"]]]
    return ", ".join(f"{count:,} {word}" for count, word in counts if count)
