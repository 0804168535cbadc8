"""What ``guardband audit`` says: the verdict, what to do, and what stands out; the rest if it is asked for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from guardband.cli.console import Speaker, table
from guardband.cli.group_table import tell_groups
from guardband.cli.numbers import plain_number
from guardband.report.advice import step_if_too_few
from guardband.words import chance, level_name, percent

if TYPE_CHECKING:
    from rich.table import Table

Entries = dict[str, Any]

IN_ORDER = ("group", "time", "size", "width")
MOST_PLACES, MOST_COLUMNS = 5, 5
BELOW = "Coverage is lower than expected in some groups: see below."
KEEP = "Keep using the model. Audit again when you know more true values."
SEE_ALL = "Add --all to see every group and column."
INFORM = "The promise covers all rows together. Groups are shown for information."
OTHERS_INFORM = "Only the groups of the model have a promise. These groups are shown for information."
HOW_IF_TOO_FEW = {
    "recalibrate": "guardband audit --recalibrate does this.",
    "collect": "Use rows whose true values you know, and audit all of them together.",
}


def tell_audit(found: Entries, asked_for: Sequence[str], command: str, speaker: Speaker, every: bool) -> None:
    """Say what an audit found; ``asked_for`` are the groupings that the user named, ``command`` is what was typed."""
    speaker.tell_verdict(found["verdict"], found["sentence"])
    places = _places(found)
    to_do = _to_do(found, command, any(place["flag"] == "low" for _, place in places))
    if to_do:
        speaker.tell(f"What to do: {to_do}")
    speaker.tell()
    _tell_levels(found["levels"], speaker, every and not found.get("risk"))
    if found["groups"] and len(found["levels"]) == 1 and not every:
        speaker.tell()
    tell_groups(found["groups"], speaker, None if every else "Add --all to see them.")
    families = [family for key in IN_ORDER for family in found["families"] if family["key"] == key]
    if every:
        families += [family for family in found["families"] if family["key"] not in IN_ORDER]
    shown = families if every else [family for family in families if family["key"] in asked_for]
    for family in shown:
        speaker.tell(family_table(family))
    if shown:
        inform = OTHERS_INFORM if found["groups"] else found["groups_inform"] if every else INFORM
        speaker.tell(f"{inform}\n")
    if every:
        _tell_rest(found, speaker)
    else:
        _tell_what_stands_out(found, [own for own in places if own[0]["key"] not in asked_for], speaker)


def _to_do(found: Entries, command: str, some_are_low: bool) -> str | None:
    if found["verdict"] == "broken":
        return f"If future rows will look like these, recalibrate the model on them:\n  {command}"
    if found["verdict"] == "too few rows":
        kind, title = step_if_too_few(found["reason"], found["more_rows"])
        return f"{title}. {HOW_IF_TOO_FEW[kind]}"
    if found["verdict"] == "consistent":
        return f"{KEEP} {BELOW}" if some_are_low else KEEP
    return None  # the sentence says it


def command_to_recalibrate(model: str, tables: Sequence[str], target: str | None) -> str:
    """Return the command that calibrates a model anew on the rows of an audit."""
    own = model.removesuffix(".guardband")
    rows = [shlex.quote(path) for path in tables] if len(tables) <= 2 else ["TABLE..."]
    more = [] if target is None else ["--target", shlex.quote(target)]
    anew = shlex.quote(f"{own}-2.guardband")
    return " ".join(["guardband audit", shlex.quote(model), *rows, *more, "--recalibrate", anew])


def _tell_levels(levels: list[Entries], speaker: Speaker, every: bool) -> None:
    if len(levels) == 1 and not every:
        (own,) = levels
        if own["mean_width"] is not None:
            mean, side = plain_number(own["mean_width"]), own.get("side", "both")
            if own["median_width"] is None:  # widths were only added up
                what = "Width of the intervals" if side == "both" else f"Distance of the {side} bounds"
                speaker.tell(f"{what}: {mean} on average.")
            elif side == "both":
                median = plain_number(own["median_width"])
                speaker.tell(f"Width of the intervals: {mean} on average; half of them are narrower than {median}.")
            else:
                what, median = f"Distance of the {side} bounds from the predictions", plain_number(own["median_width"])
                speaker.tell(f"{what}: {mean} on average; half of them are nearer than {median}.")
        return
    tests = ("exact test",) if every else ()
    columns = ("level", "rows", "inside", "share", "expected", *tests, "mean width")
    shown = table(*columns, right=range(1, len(columns)))
    for own in levels:
        tested = (chance(own["p_value"]),) if every else ()
        shown.add_row(
            level_name(own["level"]), *_counts(own), f"{own['low']:,} to {own['high']:,}", *tested,
            plain_number(own["mean_width"]),
        )  # fmt: skip
    speaker.tell(shown)


def family_table(family: Entries) -> Table:
    """Return the coverage of groups as a table to print."""
    is_column = family["key"].startswith("column")
    shown = table(
        f"Column {family['title']!r}" if is_column else family["title"], "rows", "inside", "share", "expected", "",
        right=(1, 2, 3, 4),
    )  # fmt: skip
    for own in family["strata"]:
        if own["n"]:
            shown.add_row(own["label"], *_counts(own), f"{own['low']:,} to {own['high']:,}", own["flag"] or "")
    return shown


def _tell_what_stands_out(found: Entries, places: list[tuple[Entries, Entries]], speaker: Speaker) -> None:
    drift = _drift_in_words(found["drift"])
    region = found["searched_region"]
    is_low = region is not None and region["flag"] == "low"
    for note in found["notes"][: found["drawn"]]:
        speaker.tell(note)
    if not found["families"]:
        for note in found["notes"][found["drawn"] :]:
            speaker.tell(note)
        return
    if not places and not drift and not is_low:
        groups = sum(1 for family in found["families"] for own in family["strata"] if own["n"])
        columns = f" and {len(found['drift']['columns']):,} columns"
        speaker.tell(f"Nothing stands out among {groups:,} groups{columns}. {SEE_ALL}")
        return
    if places:
        shown = table("what stands out", "rows", "inside", "share", "expected", "", right=(1, 2, 3, 4))
        for family, own in places[:MOST_PLACES]:
            where = f"{family['title']}: {own['label']}"
            shown.add_row(where, *_counts(own), f"{own['low']:,} to {own['high']:,}", own["flag"])
        speaker.tell(shown)
        more = len(places) - MOST_PLACES
        if more > 0:
            speaker.tell(f"{more:,} more groups stand out.")
    if is_low:
        speaker.tell(_region_in_words(region))
    for words in drift:
        speaker.tell(words)
    speaker.tell(SEE_ALL)


def _tell_rest(found: Entries, speaker: Speaker) -> None:
    if found["searched_region"] is not None:
        speaker.tell(_region_in_words(found["searched_region"]))
    columns = found["drift"]["columns"]
    if columns:
        shown = table("column, compared with training", "difference", "test", "", right=(1, 2))
        for shift in columns:
            detail = f"{shift['detail']}{' (changed)' if shift['drifted'] else ''}"
            shown.add_row(shift["name"], percent(shift["gap"]), chance(shift["p_value"]), detail)
        speaker.tell(shown)
    words = _drift_in_words(found["drift"])
    for line in words or ["Nothing has changed since training beyond chance."]:
        speaker.tell(line)
    for note in found["notes"]:
        speaker.tell(note)


def _drift_in_words(drift: Entries) -> list[str]:
    if drift["columns"] is None:
        return ["The model file has no summary of its training rows. Fit the model again to compare columns."]
    said = []
    moved = [f"{own['name']!r} ({own['detail']})" for own in drift["columns"] if own["drifted"]]
    if moved:
        more = f" and {len(moved) - MOST_COLUMNS:,} more" if len(moved) > MOST_COLUMNS else ""
        to_do = "Check that these columns are measured as before."
        said.append(f"Changed since training: {', '.join(moved[:MOST_COLUMNS])}{more}. {to_do}")
    for key, words in (
        ("response", "True values have changed since training"),
        ("scores", "Errors have changed since calibration"),
    ):
        shift = drift[key]
        if shift is not None and shift["drifted"]:
            said.append(f"{words}: {shift['detail']} ({chance(shift['p_value'])}).")
    return said


def _region_in_words(region: Entries) -> str:
    verdict = {"low": "lower than expected", "high": "higher than expected", None: "within chance"}[region["flag"]]
    return (
        "guardband searched a quarter of the rows for the region with the lowest coverage. Of the other rows in it, "
        f"{region['covered']:,} of {region['n']:,} ({percent(region['share'])}) fell inside: {verdict}."
    )


def _places(found: Entries) -> list[tuple[Entries, Entries]]:
    """Return the groups that chance does not explain, those with the lowest coverage first."""
    marked = [(family, own) for family in found["families"] for own in family["strata"] if own["flag"]]
    return sorted(marked, key=lambda place: (place[1]["flag"] == "high", place[1]["share"]))


def _counts(own: Entries) -> tuple[str, str, str]:
    return f"{own['n']:,}", f"{own['covered']:,}", percent(own["share"])
