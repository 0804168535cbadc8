"""The section on groups that have a promise of their own."""

import json
import re
from html import unescape

import pytest

from guardband.audit.promised_groups import group_lines
from guardband.report.document import document
from guardband.report.page import render
from guardband.report.promised import LINES_OPEN, lines_of, promised_csv
from guardband.report.schema import checked
from report_cases import case
from reported import grouped_evidence

HOSTILE = ["<script>alert(1)</script>", "x" * 300, "two\nlines", "=1+1"]


def section_of(page):
    """Return the section, which ends where the next one begins."""
    start = page.index('<h2 id="groupwise">')
    return page[start : page.index("<h2", start + 1)]


def lines_on(page):
    """Return the cells of each line of the section's tables, as a reader sees them."""
    found = re.findall(r'<tr class="[a-z]*"><th scope="row".*?</tr>', section_of(page), re.DOTALL)
    return [[unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", own, re.DOTALL)] for own in found]


def test_it_follows_the_answer_and_has_a_line_for_each_group_the_worst_first():
    own = case("groups")
    page = render(own)
    assert re.findall(r'<h2 id="([a-z]+)">', page)[:2] == ["steps", "groupwise"]
    lines = lines_on(page)
    assert [line[:2] for line in lines] == [
        ["district = old town", "broken"],
        ["district = station", "infinite"],
        ["district = hillside", "as expected"],
    ]
    broken, infinite, fine = lines
    first = next(group for group in own["promised_groups"] if group["name"] == "district = old town")
    found = own["audit"]["parts"][own["promised_groups"].index(first)]
    assert broken[4] == f"{found['n']:,}"
    assert broken[-3:-1] == [f"{first['rows']:,}", f"{first['rank']:,}"]
    assert re.fullmatch("[+\N{MINUS SIGN}]?[0-9]+%", broken[6])
    assert infinite[5:] == ["∞", "", "5", "", ""]
    assert all(fine[2:])
    assert "The worst come first: 1 broken, 1 infinite, 1 as expected." in page


def test_no_curve_is_shown_if_some_groups_have_infinite_intervals_and_the_reason_is():
    assert "not shown, because some groups have infinite intervals." in render(case("groups"))
    assert "because some groups have infinite intervals" not in render(case("many groups"))


def test_many_groups_are_folded_and_all_are_there():
    page = render(case("many groups"))
    assert len(lines_on(page)) == 70
    before, after = section_of(page).split("<details>")
    assert before.count('<th scope="row"') == LINES_OPEN
    assert after.startswith("<summary>58 more lines</summary>")


def test_without_test_rows_it_shows_the_promise_alone():
    page = render(case("groups, no rows"))
    (line, *_), head = lines_on(page), section_of(page).split("</thead>")[0]
    assert len(line) == head.count("<th scope") == 6
    assert "verdict" not in head
    assert "download-groups" not in section_of(page)


def test_a_promise_for_all_rows_has_no_such_section():
    page = render(case("consistent"))
    assert 'id="groupwise"' not in page
    assert "Promise for each group" not in page


def test_the_page_says_that_other_groups_have_no_promise():
    page = unescape(render(case("groups")))
    assert 'Only the groups under "Promise for each group" have a promise of their own.' in page
    assert "The promise is about all rows together" not in page
    assert "Coverage within another group, or within a part of one." in page
    assert "The promise is about all rows together" in render(case("consistent"))


def test_what_to_do_names_broken_groups_and_the_rows_that_small_ones_lack():
    page = unescape(render(case("groups")))
    assert "Do not rely on the intervals of rows with 'district = old town'." in page
    assert "Collect 4 more calibration rows with district = station." in page
    assert "Or pool small groups." in page


def test_names_of_groups_are_text_wherever_they_stand():
    own = document(*grouped_evidence(HOSTILE, worse=4))
    page = render(checked(json.loads(json.dumps(own))))
    assert "<script>alert" not in page
    assert page.count("<script") == 2  # the data and the page's own
    shown = {line[0] for line in lines_on(page)}
    assert shown == {f"district = {name}" for name in HOSTILE}
    head, *lines = promised_csv(own)
    assert {line[0] for line in lines} == shown
    assert {len(line) for line in lines} == {len(head)}


def test_several_levels_have_a_line_each():
    own = document(*grouped_evidence(confidence_level=[0.8, 0.9]))
    lines = lines_on(render(own))
    assert len(lines) == 6
    assert {line[1] for line in lines} == {"80%", "90%"}


def test_what_test_rows_say_is_said_of_its_own_group():
    rule, evidence = grouped_evidence(worse=0)
    own = document(rule, evidence)
    for group, part in zip(own["promised_groups"], own["audit"]["parts"], strict=True):
        rows = evidence.members(group["group"])
        assert part["n"] == rows.sum()
        assert part["covered"] == evidence.covered[rows, 0].sum()


def test_an_audit_of_other_groups_than_the_promise_is_refused():
    own = json.loads(json.dumps(case("groups")))
    own["audit"]["parts"].pop()
    with pytest.raises(Exception, match="the groups that have a promise do not match"):
        checked(own)


def test_worst_are_broken_then_infinite_then_the_lowest_coverage_and_last_those_without_rows():
    def promised(**more):
        return {"level": 0.9, "infinite": False, "cost": None, "rows": 50} | more

    def found(covered, verdict="consistent"):
        return {"n": 100, "covered": covered, "verdict": verdict}

    names = ["no rows", "high", "infinite", "low", "broken"]
    groups = [promised(name=name, infinite=name == "infinite") for name in names]
    judged = [None, found(95), found(100, "cannot judge"), found(91), found(92, "broken")]
    assert [own["name"] for own in group_lines(groups, judged)] == ["broken", "infinite", "low", "high", "no rows"]
    assert group_lines(groups, [])[0]["name"] == "infinite"


def test_a_page_of_very_many_groups_stays_small_and_says_what_it_leaves_out(monkeypatch):
    rule, evidence = grouped_evidence([f"shop {i}" for i in range(30)], 900)
    monkeypatch.setattr("guardband.report.document.MOST_GROUPS", 20)
    own = document(rule, evidence)
    assert len(lines_of(own)) == len(own["audit"]["parts"]) == 20
    assert "10 further groups are not shown." in render(own)
