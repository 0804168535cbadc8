"""The sections of the page below its first screen, as text and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from guardband.report.html import table
from guardband.report.strata import strata_table, width_text
from guardband.words import chance, level_name, number, percent

DRIFT_ROWS = 25


def levels_part(document: Mapping[str, Any], words: Sequence[Mapping[str, str]]) -> str:
    """Return the slider over all levels with its curves, or why there is none."""
    if not words:
        return (
            f'<p class="note">There is no slider here: {escape(document["method"])} gives intervals at the levels it '
            "was calibrated for, and other levels would need another calibration. Methods that cut at a rank, such as "
            "conf-nn, have them all.</p>" + _levels_table(document)
        )
    at = document["rows"]["headline"]
    own = words[at]
    entries = (("covered", "Rows inside"), ("expected", "Expected range"), ("width", "Mean width"))
    shown = "".join(f'<div><dt>{name}</dt><dd id="at-{key}">{escape(own[key])}</dd></div>' for key, name in entries)
    rows = [[w["level"], w["covered"], w["expected"], w["width"]] for w in words]
    return (
        '<div class="dial"><div><label for="level">Level: <output id="at-level" for="level">'
        f'{escape(own["level"])}</output></label><input type="range" id="level" min="0" max="{len(words) - 1}" '
        f'step="1" value="{at}" aria-valuetext="{escape(own["level"])}"></div><dl aria-live="polite">{shown}</dl></div>'
        '<p class="note script">Move the level: the picture above and the curves below follow.</p>'
        '<div class="pair"><figure><div class="plot script" id="curve" data-label="Coverage at each level, '
        'with the expected range and the line of equality"></div><figcaption>Share of rows inside, at every '
        "level. Grey: the range to expect if the promise holds. Dashed: exactly the level.</figcaption>"
        "</figure>"
        '<figure><div class="plot script" id="lengths" data-label="Mean width at each level"></div>'
        "<figcaption>What a level costs: the mean width of the intervals.</figcaption></figure></div>"
        "<details><summary>All levels as a table</summary>"
        + table(["level", "rows inside", "expected range", "mean width"], rows)
        + "</details>"
    )


def level_words(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what the slider shows at each level: coverage, what was to be expected of it, and the mean width."""
    curve, n = document["audit"]["curve"], document["audit"]["n"]
    return [
        {
            "level": level_name(level),
            "covered": f"{covered:,} of {n:,} rows ({percent(covered / n)})",
            "expected": f"{low:,} to {high:,} ({percent(low / n)} to {percent(high / n)})",
            "width": width_text(width),
        }
        for level, covered, low, high, width in zip(
            curve["levels"], curve["covered"], curve["low"], curve["high"], curve["mean_width"], strict=True
        )
    ]


def _levels_table(document: Mapping[str, Any]) -> str:
    levels = document["audit"]["levels"]
    rows = [
        [
            level_name(own["level"]),
            f"{own['covered']:,} of {own['n']:,} ({percent(own['share'])})",
            f"{own['low']:,} to {own['high']:,}",
            chance(own["p_value"]),
            width_text(own["median_width"]),
        ]
        for own in levels
    ]
    head = ["level", "rows inside", "expected range", "exact test", "median width"]
    return table(head, rows)


def coverage_section(document: Mapping[str, Any]) -> str:
    """Return coverage at all levels, then by group, time, width, size and column."""
    own = document["audit"]
    slides = own["curve"] is not None and document["rows"]["levels"] == own["curve"]["levels"]
    aim = own["levels"][0]["level"]
    families = [family for family in own["families"] if not family["key"].startswith("column-")]
    columns = [family for family in own["families"] if family["key"].startswith("column-")]
    parts = [
        '<section aria-labelledby="levels"><h2 id="levels">At every level</h2>',
        levels_part(document, level_words(document) if slides else []),
    ]
    if len(own["levels"]) > 1 and slides:
        parts += ["<h3>The promised levels</h3>", _levels_table(document)]
    parts += [
        "</section>",
        '<section aria-labelledby="groups"><h2 id="groups">Where it covers more, and where less</h2>',
        f"<p>{escape(own['groups_inform'])} Grey bars are the expected ranges, and the thin line is the level. A "
        "group outside its range is marked below or above.</p>",
        '<p class="note script">Choose a group to see only its rows in the picture and in the tables of rows.</p>',
    ]
    for family in families:
        parts += [f"<h3>{escape(family['title'])}</h3>", strata_table(family, aim)]
    if own["searched_region"] is not None:
        parts.append(_region(own["searched_region"]))
    if columns:
        flagged = [family for family in columns if any(s["flag"] == "low" for s in family["strata"])]
        first = (flagged or columns)[0]["key"]
        options = "".join(
            f'<option value="{family["key"]}"{" selected" if family["key"] == first else ""}>'
            f"{escape(family['title'])}{' (stands out)' if family in flagged else ''}</option>"
            for family in columns
        )
        left_out = document["columns_left_out"]
        not_shown = f" {left_out:,} further columns are not shown." if left_out else ""
        parts += [
            "<h3>By the range of a column</h3>",
            f"<p>{_column_words(flagged, columns[0]['compared'])}{not_shown}</p>",
            f'<p class="script"><label for="column">Column </label><select id="column">{options}</select></p>',
        ]
        for family in columns:
            parts.append(
                f'<div data-column="{family["key"]}">' + strata_table(family, aim, caption=family["title"]) + "</div>"
            )
    return "\n".join([*parts, "</section>"])


def _column_words(flagged: Sequence[Mapping[str, Any]], compared: int) -> str:
    allowing = f"allowing for {compared:,} groups in all columns together"
    if not flagged:
        return f"No range of any column has lower coverage than expected, {allowing}."
    names = ", ".join(f"<strong>{escape(family['title'])}</strong>" for family in flagged[:6])
    more = f" and {len(flagged) - 6} more" if len(flagged) > 6 else ""
    return f"Coverage is lower than expected in some range of {names}{more}, {allowing}."


def _region(region: Mapping[str, Any]) -> str:
    n = region["n"]
    outside = {"low": "That is fewer than expected", "high": "That is more than expected", None: "That is as expected"}
    return (
        "<h3>In a region where coverage looked lowest</h3><p>guardband searched 500 random directions through the "
        "inputs, on a quarter of the rows. It took the region with the lowest coverage among those with at least a "
        f"fifth of the rows. On the other rows, {region['covered']:,} of {n:,} in this region are inside "
        f"(<strong>{percent(region['share'])}</strong>). {outside[region['flag']]} ({region['low']:,} to "
        f"{region['high']:,}). Other regions may have lower coverage.</p>"
    )


def widths_section(document: Mapping[str, Any]) -> str:
    """Return how wide the intervals are."""
    own, spread = document["widths"], document["spread"]
    head = '<section aria-labelledby="wide"><h2 id="wide">How wide the intervals are</h2>'
    if own is None:
        return f"{head}<p>All intervals have one width.</p></section>"
    median, mean = width_text(spread["median_width"]), width_text(spread["mean_width"])
    endless = f" {own['infinite']:,} are infinite." if own["infinite"] else ""
    rows = [
        [f"{number(a)} to {number(b)}", f"{count:,}", f"{missed:,}"]
        for a, b, count, missed in zip(own["edges"][:-1], own["edges"][1:], own["counts"], own["missed"], strict=True)
    ]
    return (
        f"{head}<p>Half of the intervals are narrower than {median}; on average they are {mean} wide.{endless}</p>"
        '<figure><div class="plot script" id="widths" data-label="Histogram of the widths, with the missed rows"></div>'
        "<figcaption>Rows by the width of their interval; those at the foot of each column were missed. The widest "
        "half percent stand in the last column.</figcaption></figure><details><summary>The same as a table</summary>"
        + table(["width", "rows", "of these missed"], rows)
        + "</details></section>"
    )


def rows_section(document: Mapping[str, Any]) -> str:
    """Return the tables of the widest intervals and of the worst misses."""
    rows = document["rows"]
    missed = rows_table(rows, "missed", "beyond") if rows["missed"] else "<p>No row was missed.</p>"
    return (
        '<section aria-labelledby="rows"><h2 id="rows">Rows to look at</h2>'
        '<p class="note">Rows are counted from 1. <span class="script">Columns sort when their heading is chosen; a '
        "row shows its inputs.</span></p><h3>Missed by most</h3>"
        + missed
        + "<h3>Widest intervals</h3>"
        + rows_table(rows, "widest", "width")
        + "</section>"
    )


def rows_table(rows: Mapping[str, Any], which: str, by: str) -> str:
    """Return one table of rows; ``by`` names the numbers that order it."""
    names = rows["columns"][:4]
    head = ["row", "outcome", "prediction", "lower", "upper", "width", "missed by", *names]
    top = "".join(f'<th scope="col" class="{"text" if j > 6 else ""}">{escape(t)}</th>' for j, t in enumerate(head))
    at, lines = rows["headline"], []
    for i in rows[which]:
        values = [rows["y"][i], rows["point"][i], rows["lower"][at][i], rows["upper"][at][i], rows["width"][i]]
        row = rows["row"][i]
        cells = [f'<td class="number" data-v="{row}"><button type="button" class="pick">{row:,}</button></td>']
        for j, value in enumerate([*values, rows["beyond"][i]]):
            text = ("\N{MINUS SIGN}∞" if j == 2 else "∞") if value is None else number(value)
            cells.append(f'<td class="number" data-v="{"" if value is None else value}">{text}</td>')
        cells += [f'<td class="words">{escape(cell)}</td>' for cell in rows["cells"][i][: len(names)]]
        lines.append(f'<tr data-i="{i}">{"".join(cells)}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{which} rows"><table class="sortable" '
        f'id="{which}" data-rows="{by}"><thead><tr>{top}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )


def drift_section(document: Mapping[str, Any]) -> str:
    """Return whether inputs, outcomes and errors look as they did when the model was fitted."""
    drift = document["audit"]["drift"]
    head = '<section aria-labelledby="drift"><h2 id="drift">Have the data changed?</h2>'
    parts = [head]
    columns = drift["columns"]
    if columns is None:
        parts.append(
            "<p>The model keeps no summary of the rows that trained it, so that inputs cannot be compared.</p>"
        )
    else:
        names = drift["drifted"]
        listed = ", ".join(f"<strong>{escape(name)}</strong>" for name in names[:8])
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        parts.append(
            f"<p>Compared with the rows that trained, chance does not explain the change of {listed}{more}.</p>"
            if names
            else "<p>No input differs from the rows that trained by more than chance explains, the number of columns "
            "allowed for.</p>"
        )
    if drift["scores"] is not None:
        own = drift["scores"]
        moved = own["detail"].removeprefix("errors are ")
        words = f"are {moved} than on" if own["drifted"] else "differ by no more than chance explains from those on"
        parts.append(
            f"<p>Errors, in units of the intervals, {escape(words)} the calibration rows (largest gap "
            f"{percent(own['gap'])}, {chance(own['p_value'])}). The promise rests on these two being alike.</p>"
        )
    shifts = [*([drift["response"]] if drift["response"] else []), *(columns or [])[:DRIFT_ROWS]]
    if shifts:
        rows = [
            [own["name"], own["detail"] if own["drifted"] else "", percent(own["gap"]), chance(own["p_value"])]
            for own in shifts
        ]
        if drift["response"]:
            rows[0][0] = f"{document['response']} (outcome)"
        parts.append(
            "<details><summary>Columns, the most changed first</summary>"
            + table(["column", "change", "largest gap", "test"], rows, words=2)
            + "</details>"
        )
    return "\n".join([*parts, "</section>"])


def fitted_section(document: Mapping[str, Any]) -> str:
    """Return what is promised and what is not, how the model was fitted, and with which settings."""
    lines = "".join(f"<p>{escape(line)}</p>" for line in document["certificate"]["text"].splitlines())
    nots = "".join(f"<li>{escape(line)}</li>" for line in document["not_promised"])
    notes = "".join(f"<li>{escape(note)}</li>" for note in (document["audit"] or {}).get("notes", []))
    parts = [
        '<section aria-labelledby="certificate"><h2 id="certificate">The certificate</h2>',
        f"<blockquote>{lines}</blockquote>",
        f"<h3>What is not promised</h3><ul>{nots}</ul>",
        f"<h3>Notes on the test rows</h3><ul>{notes}</ul>" if notes else "",
        '</section><section aria-labelledby="fitted"><h2 id="fitted">How it was fitted</h2>',
        _pairs(document["fitted"]),
        "<h3>Settings that were given</h3>" + _pairs(document["settings"]) if document["settings"] else "",
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _pairs(entries: Sequence[Sequence[str]]) -> str:
    return (
        '<dl class="pairs">'
        + "".join(f"<dt>{escape(str(name))}</dt><dd>{escape(str(value))}</dd>" for name, value in entries)
        + "</dl>"
    )
