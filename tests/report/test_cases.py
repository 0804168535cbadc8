"""Each kind of page that people meet, by its structure; ``test_browser.py`` opens them."""

import json
import re
from html import unescape

import pytest

from guardband.report.low_groups import low_groups
from guardband.report.page import SECTIONS, render
from guardband.report.rendering import asset
from report_cases import CASES, case


def text_of(page):
    """Return what a reader sees of a page, without the rows behind its plots."""
    page = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def headings(page):
    return re.findall(r'<h2 id="([a-z]+)">', page)


@pytest.mark.parametrize("name", CASES)
def test_the_answer_comes_first_then_what_to_do_and_the_contents_name_every_section(name):
    page = render(case(name))
    assert page.index('id="verdict"') < page.index('id="steps"')
    found = headings(page)
    assert found[0] == "steps"
    assert [own for own in SECTIONS if own in found] == found[1:]
    assert re.findall(r'<li><a href="#([a-z]+)">', page) == ["title", *found]
    assert found[-2:] == ["promise", "made"]


@pytest.mark.parametrize("name", ["consistent", "broken", "too few", "time", "several levels", "tiny", "huge"])
def test_a_page_with_rows_has_every_section_in_order(name):
    absent = ("explained", "groupwise") if name == "time" else ("explained", "groupwise", "time", "evidence")
    every = [own for own in SECTIONS if own not in absent]
    assert headings(render(case(name)))[1:] == every


def test_title_author_date_and_unit_are_shown():
    page = text_of(render(case("consistent")))
    assert "House prices in Freiburg A. Analyst, 2026-03-31 Consistent with the promise" in page
    assert re.search(r"Typical width \(median\) \d{3},\d{3} €", page)
    assert "<title>90% prediction intervals for price</title>" in render(case("consistent") | {"title": ""})


def test_a_broken_promise_does_not_open_with_the_promise():
    own = case("broken")
    page = render(own)
    assert own["status"] == "broken"
    assert page.count(own["promise"]) == 1
    assert page.index(own["promise"]) > page.index('<h2 id="promise">')
    assert "Do not rely on these intervals." in text_of(page)
    assert "Use the intervals" not in page


@pytest.mark.parametrize("name", ["infinite", "no rows, infinite"])
def test_infinite_intervals_are_called_unusable_and_nothing_else(name):
    page = render(case(name))
    words = text_of(page)
    assert "No usable intervals 8 calibration rows, and this level needs 9." in words
    assert "Collect 1 more calibration row." in words
    assert not {"outcomes", "width", "groups", "levels", "rows", "examples"} & set(headings(page))
    assert "100% of" not in words
    assert "Rows inside their interval" not in words
    assert "Consistent" not in words
    assert case(name)["promise"] not in words
    assert ("intervals are finite up to 88%" in words) == (name == "infinite")


def test_one_infinite_level_among_others_says_how_many_rows_it_needs():
    words = text_of(render(case("one infinite level")))
    assert "No usable 99% intervals: 60 calibration rows, and this level needs 99." in words
    assert "Collect 39 more calibration rows." in words
    assert "Predictions and true values" in words


def test_too_few_rows_say_how_many_to_collect():
    own = case("too few")
    words = text_of(render(own))
    assert own["audit"]["more_rows"] > 0
    assert "Collect about 40 more test rows." in words
    assert "You need about 40 more rows." in words


def test_a_group_with_low_coverage_is_named_and_the_others_are_folded():
    page = render(case("low group"))
    assert "Look at rows with district: old town." in text_of(page)
    groups = page[page.index('id="groups"') : page.index('id="levels"')]
    opened, folded = (re.findall(rf"<details{kind}><summary><strong>([^<]*)", groups) for kind in (r"[^>]*open", ""))
    assert opened[0] == "By district"
    assert {"By the width of the interval", "By the size of the prediction"} <= set(folded)
    assert "None stands out." in groups


def test_years_codes_and_row_numbers_have_no_separators():
    page = render(case("low group"))
    words = text_of(page)
    assert re.search(r"\b19\d\d to 19\d\d\b", words)
    columns = [own for own in case("low group")["audit"]["families"] if own["key"].startswith("column-")]
    assert not [own for family in columns for own in family["strata"] if "," in own["label"]]
    assert not re.search(r"Row \d,\d", words)
    assert all("," not in row for row in re.findall(r'class="pick">([\d,]+)</button></td>', page))
    assert max(case("low group")["rows"]["row"]) > 1000
    assert all(re.fullmatch(r"10\d{4}", cells[3]) for cells in case("low group")["rows"]["cells"])


def test_three_rows_are_told_in_words():
    own = case("consistent")
    words = text_of(render(own))
    kinds = ("A narrow interval", "A typical interval", "A wide interval")
    for kind, (_, i) in zip(kinds, own["rows"]["examples"], strict=True):
        row, area = own["rows"]["row"][i], own["rows"]["cells"][i][0]
        assert f"{kind} Row {row} (area {area}, " in words
    assert len(re.findall(r": \S+\s€ , between \S+\s€ and \S+\s€ \. The true value is", words)) == 3
    assert "A low prediction" in text_of(render(case("one width")))


def test_rounding_never_moves_a_true_value_across_an_end():
    own = case("consistent")
    rows, at = own["rows"], own["rows"]["headline"]
    (_, i), *_ = rows["examples"]
    upper = rows["upper"][at][i]
    for y, where in ((upper * 1.0001, "outside"), (upper * 0.9999, "inside")):
        changed = rows | {"y": [*rows["y"][:i], y, *rows["y"][i + 1 :]]}
        inside = rows["inside"][at][:i] + "01"[where == "inside"] + rows["inside"][at][i + 1 :]
        changed["inside"] = [*rows["inside"][:at], inside, *rows["inside"][at + 1 :]]
        words = text_of(render(own | {"rows": changed}))
        numbers = re.search(r"A narrow interval .*? and ([\d,]+)\s€ \. The true value is ([\d,]+)\s€, (\w+)", words)
        end, truth = (int(text.replace(",", "")) for text in numbers.groups()[:2])
        assert numbers[3] == where
        assert (truth <= end) == (where == "inside")


def test_one_width_is_said_and_not_drawn():
    page = render(case("one width"))
    assert "All intervals have the same width, 320,000" in text_of(page)
    assert 'id="errors"' not in page
    assert 'id="widths"' not in page
    assert "Widest intervals" not in page
    assert "Widest intervals" in render(case("consistent"))
    assert "All intervals have the same width. Use method conf-nn" in text_of(page)


def test_the_advice_names_each_set_of_rows_once():
    own = json.loads(json.dumps(case("low group")))
    ((family, stratum),) = (
        (family, stratum)
        for family in own["audit"]["families"]
        if family["key"] == "group"
        for stratum in family["strata"]
        if stratum["flag"] == "low"
    )
    again = family | {"key": "column-77", "title": "town"}
    own["audit"]["families"].append(again)
    own["rows"]["strata"]["column-77"] = own["rows"]["strata"]["group"]
    (first, *others) = low_groups(own)
    assert first.title == "rows with district: old town"
    assert first.n == stratum["n"]
    assert not [group for group in others if group.title == "rows with town: old town"]
    own["rows"]["strata"]["column-77"] = own["rows"]["strata"]["group"][::-1]  # as many rows, but others
    assert [group.title for group in low_groups(own)].count("rows with town: old town") == 1
    for key, words in (("size", "predictions from"), ("width", "intervals with a width from")):
        (family,) = (family for family in own["audit"]["families"] if family["key"] == key)
        family["strata"][0]["flag"] = "low"
        assert f"{words} {family['strata'][0]['label']}" in [group.title for group in low_groups(own)]


@pytest.mark.parametrize("name", CASES)
def test_words_of_the_page_are_the_users(name):
    words = text_of(render(case(name)))
    own = case(name)
    for line in [*own["certificate"]["text"].splitlines(), *own["not_promised"], own["promise"]]:
        words = words.replace(" ".join(line.split()), "")
    assert not re.search(
        r"\b(lengths?|D1|D2|bands?|outcomes?|whole line|slab|twins|so that|held to|kept)\b|[^\d]\.\d",
        words,
        re.IGNORECASE,
    )


def colours(css):
    """Return the colours of each theme, light, dark by the system, dark by the button, and print."""
    blocks = [own for own in re.findall(r"\{([^{}]*)\}", css) if "--paper:" in own]
    return [dict(re.findall(r"(--[a-z-]+): (#[0-9a-f]{3,6})", own)) for own in blocks]


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = (int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4))
    linear = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


GRAPHICS = ("hold", "lost", "dot", "cross", "point", "now", "ideal", "line", "ribbon", "range", "pillar", "mark")


def test_lines_dots_and_bars_have_enough_contrast_in_every_theme():
    """WCAG 2.2, 1.4.11: 3 to 1, for the fill or, if there is one, for the outline."""
    css = asset("page.css")
    themes = colours(css)
    assert len(themes) == 4
    for name in GRAPHICS:
        rule, *_ = re.findall(rf"(?:^|[ }}])\.{name} \{{([^}}]*)\}}", css, re.MULTILINE)
        assert "opacity" not in rule, name
        used = dict(re.findall(r"(stroke|fill): var\((--[a-z-]+)\)", rule))
        colour = used["fill"] if name == "mark" else used.get("stroke") or used["fill"]
        for theme in themes:
            light, dark = sorted([luminance(theme[colour]), luminance(theme["--paper"])], reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 3, (name, theme["--paper"])
