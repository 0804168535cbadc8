"""The page as a person meets it, in a real browser without a window."""

import csv
import io
import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import guardband as gb
from guardband.data.table import Column
from guardband.data.table_writer import csv_lines
from guardband.report.document import document
from guardband.report.page import write_report
from guardband.report.view import level_words
from judged import evidence_of
from report_cases import CASES, case


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A document with awkward names, and the file of its page."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.random(2000),
            "<script>alert(1)</script>": rng.choice(["a", "b</script>", None], 2000),
            "x" * 200: rng.random(2000),
        }
    )
    model = gb.IntervalRegressor(hidden=(8,), epochs=2, random_state=0).fit(rng.random((300, 2)), rng.random(300))
    group = Column("shop & co", rng.choice(np.array(["north", 'so"uth'], dtype=object), 2000))
    own = document(model, evidence_of(2000, 1000, X=X, group=group))
    return own, write_report(own, tmp_path_factory.mktemp("report") / "page.html")


@pytest.fixture
def visit(browser, made):
    """Open the page in a window of some size; anything that is said, thrown or fetched fails the test."""
    heard, contexts = [], []

    def open_page(width=1280, height=800, path=made[1], **asked):
        context = browser.new_context(viewport={"width": width, "height": height}, **asked)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or heard.append(request.url))
        page.goto(path.as_uri())
        if asked.get("java_script_enabled", True):
            settle(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert heard == []


def settle(page):
    """Wait until the page was drawn twice: plots are drawn, and events of a scroll arrive, before the second time."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def unfold(page):
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    settle(page)  # what was folded is drawn when it opens


def drawn(page):
    """Return how many intervals the picture shows: those that hold, and those that miss."""
    return [page.locator(f"#picture path.{kind}").get_attribute("d").count("M") for kind in ("hold", "lost")]


def test_it_loads_in_silence_and_draws_every_plot(visit, made):
    page = visit()
    assert "90% prediction intervals" in page.title()
    for name in ("picture", "scatter", "errors", "widths", "curve", "costs"):
        assert page.locator(f"#{name} svg").count() == 1
    hold, lost = drawn(page)
    assert hold + lost >= 300
    assert 0.04 < lost / (hold + lost) < 0.18


def test_the_slider_shows_the_coverage_that_python_counted(visit, made):
    page, words = visit(), level_words(made[0])
    evidence = evidence_of(2000, 1000)
    before = drawn(page)
    for index in (0, 25, len(words) - 1):
        page.locator("#level").evaluate(
            "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', { bubbles: true })); }", index
        )
        level = evidence.levels()[index][0]
        lower, upper = (ends[:, 0] for ends in evidence.ends([level]))
        covered = int(((lower <= evidence.y) & (evidence.y <= upper)).sum())
        assert page.locator("#at-level").text_content() == f"{float(100 * level):g}%"
        assert page.locator("#at-covered").text_content() == f"{covered:,} of 2,000 rows ({covered / 20 + 1e-9:.1f}%)"
        assert page.locator("#at-expected").text_content() == words[index]["expected"]
        assert page.locator("#at-width").text_content() == f"{(upper - lower).mean():.4g}"
        assert (drawn(page)[1] > before[1]) == (level < 0.9)


def test_the_slider_moves_by_keyboard(visit, made):
    page = visit()
    page.locator("#level").focus()
    page.keyboard.press("ArrowRight")
    at = made[0]["rows"]["headline"] + 1
    assert page.locator("#at-level").text_content() == level_words(made[0])[at]["level"]


def cells(page, table, column):
    return page.locator(f"#{table} tbody tr td:nth-child({column + 1})").all_text_contents()


def test_tables_sort_both_ways_and_say_so(visit):
    page = visit()
    head = page.locator("#widest thead th").nth(1)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    values = [float(text.replace("\N{MINUS SIGN}", "-")) for text in cells(page, "widest", 1)]
    assert values == sorted(values, reverse=True)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    values = [float(text.replace("\N{MINUS SIGN}", "-")) for text in cells(page, "widest", 1)]
    assert values == sorted(values)
    page.locator("#widest thead th").nth(0).locator("button").click()
    assert head.get_attribute("aria-sort") == "none"


def test_choosing_a_group_shows_its_rows_alone_until_all_are_shown(visit, made):
    page, rows = visit(), made[0]["rows"]
    all_of_them, tables = drawn(page), [cells(page, name, 0) for name in ("missed", "widest")]
    unfold(page)
    button = page.locator('[data-family="group"]', has_text='so"uth')
    button.click()
    chosen = button.get_attribute("data-place")
    own = {str(row) for row, place in zip(rows["row"], rows["strata"]["group"], strict=True) if place == chosen}
    assert page.locator("#filter").is_visible()
    assert 'so"uth' in page.locator("#filter-words").text_content()
    assert button.get_attribute("aria-pressed") == "true"
    for name in ("missed", "widest"):
        assert 0 < len(cells(page, name, 0)) <= 20
        assert set(cells(page, name, 0)) <= own
    sampled = sum(place == chosen for place in rows["strata"]["group"][: rows["sampled"]])
    assert sum(drawn(page)) == min(sampled, sum(all_of_them))
    page.locator("#show-all").click()
    assert not page.locator("#filter").is_visible()
    assert drawn(page) == all_of_them
    assert [cells(page, name, 0) for name in ("missed", "widest")] == tables


def test_a_column_is_chosen_and_the_others_are_hidden(visit):
    page = visit()
    unfold(page)
    page.locator("#column").select_option("column-1")
    assert page.locator('[data-column="column-1"]').is_visible()
    assert not page.locator('[data-column="column-0"]').is_visible()


def test_a_row_is_shown_under_the_pointer_and_by_the_keyboard(visit):
    page = visit()
    page.locator("#picture svg").scroll_into_view_if_needed()
    settle(page)  # a scroll hides what is shown of a row
    box = page.locator("#picture svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert "<script>alert(1)</script>" in tip.text_content()
    page.mouse.move(5, 5)
    assert not tip.is_visible()
    page.locator("#picture svg").focus()
    page.keyboard.press("Home")
    first = tip.text_content()
    page.keyboard.press("ArrowRight")
    assert tip.is_visible()
    assert tip.text_content() != first
    page.keyboard.press("Escape")
    assert not tip.is_visible()


@pytest.mark.parametrize("width", [320, 390, 768])
def test_small_screens_never_scroll_sideways(visit, width):
    page = visit(width, 800)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_light_and_dark_follow_the_system_and_the_button(visit):
    paper = "getComputedStyle(document.body).backgroundColor"
    page = visit(color_scheme="dark")
    dark = page.evaluate(paper)
    page.locator("#theme").click()
    light = page.evaluate(paper)
    assert light != dark
    assert visit(color_scheme="light").evaluate(paper) == light


def test_it_prints_on_white_also_where_the_screen_is_dark(visit):
    page = visit(color_scheme="dark")
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("#theme").is_visible()
    assert page.locator("#verdict").is_visible()


def test_without_script_every_table_is_there(visit):
    page = visit(java_script_enabled=False)
    assert page.locator("#verdict").is_visible()
    page.locator("summary", has_text="Coverage and width by column").click()
    assert page.locator('[data-column="column-1"]').is_visible()
    assert not page.locator("#level").is_visible()


def test_everything_that_can_be_used_has_a_name_and_can_be_reached(visit):
    page = visit()
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, select, input, a')].filter((e) =>
        !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).length"""
    )
    assert nameless == 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"


def test_numbers_that_are_all_alike_and_large_do_not_stop_the_page(made, browser, tmp_path):
    """Steps between the marks of an axis that are smaller than the numbers' own rounding once never came to an end."""
    rows, n = made[0]["rows"], len(made[0]["rows"]["row"])
    same = {key: [4e14] * n for key in ("y", "point")} | {
        key: [[4e14] * n] * len(rows[key]) for key in ("lower", "upper")
    }
    path = write_report(made[0] | {"rows": rows | same}, tmp_path / "large.html")
    page = browser.new_page()
    page.set_default_timeout(20_000)
    page.goto(path.as_uri())
    page.locator("#picture svg text").nth(1).wait_for()
    page.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The files of the pages that people meet, by name."""
    folder = tmp_path_factory.mktemp("cases")
    return {name: write_report(case(name), folder / f"{i}.html") for i, name in enumerate(CASES)}


TEXTS = "lines => lines.map((line) => [...line.cells].map((cell) => cell.textContent))"
OUTSIDE = """[...document.querySelectorAll('.plot svg text')].filter((text) => {
    const own = text.getBBox(), box = text.ownerSVGElement.viewBox.baseVal;
    return own.x < 0 || own.x + own.width > box.width || own.y < 0 || own.y + own.height > box.height + 4;
}).map((text) => text.textContent)"""


@pytest.mark.parametrize("name", CASES)
def test_each_page_opens_in_silence_and_no_number_of_a_plot_is_cut_off(visit, pages, name):
    page = visit(path=pages[name])
    assert page.evaluate(OUTSIDE) == []
    count = page.locator(".plot svg").count()
    assert count == (
        0 if name == "infinite" or "no rows" in name else {"one width": 4, "groups": 4, "time": 8}.get(name, 6)
    )


@pytest.mark.parametrize("size", [(1280, 800), (360, 640)], ids=["desk", "phone"])
def test_coverage_over_time_is_drawn_with_the_range_of_each_period(visit, pages, size):
    own = case("time")
    (family,) = (family for family in own["audit"]["families"] if family["key"] == "time")
    assert family["title"] == "By month of sold"
    flags = [stratum["flag"] for stratum in family["strata"]]
    assert "low" in flags
    page = visit(*size, path=pages["time"])
    chart = page.locator("#times svg")
    assert chart.locator("rect.ribbon").count() == len(flags)
    assert chart.locator("path.cross").get_attribute("d").count("M") == flags.count("low")
    assert chart.locator("circle.over").count() == flags.count("high")
    assert (chart.locator("path.dot").get_attribute("d") or "").count("M") == flags.count(None)
    worst = family["strata"][flags.index("low")]
    said = chart.locator("rect.ribbon title").nth(flags.index("low")).text_content()
    assert said.startswith(f"{worst['label']}: {round(100 * worst['covered'] / worst['n'], 2):g}% of {worst['n']} rows")
    assert "expected range, allowing for 10 looks" in page.locator("section", has=chart).text_content()
    boxes = [text.bounding_box() for text in chart.locator("text").all() if "-" in text.text_content()]
    assert len(boxes) >= 2
    assert all(a["x"] + a["width"] < b["x"] for a, b in pairwise(boxes))
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_without_a_script_coverage_over_time_is_a_table(visit, pages):
    page = visit(path=pages["time"], java_script_enabled=False)
    section = page.locator("section[aria-labelledby=time]")
    assert section.locator("tbody tr").count() == 10
    assert section.locator("tr.low").count() >= 1


@pytest.mark.parametrize("name", ["tiny", "huge", "low group"])
def test_the_script_writes_numbers_as_python_does(visit, pages, name):
    page = visit(path=pages[name])
    unfold(page)
    before = {own[0]: own for own in page.locator("#widest tbody tr").evaluate_all(TEXTS)}
    page.locator('[data-family="width"]').last.click()
    after = page.locator("#widest tbody tr").evaluate_all(TEXTS)
    assert sum(own[0] in before for own in after) >= 10
    for own in after:
        assert before.get(own[0], own) == own


@pytest.mark.parametrize("name", ["consistent", "broken", "low group", "huge"])
def test_a_phone_shows_it_without_scrolling_sideways_nor_for_long(visit, pages, name):
    page = visit(390, 844, path=pages[name])
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.documentElement.scrollHeight") < 5000
    assert page.evaluate(OUTSIDE) == []
    assert not page.locator(".contents ol").is_visible()
    assert page.locator("#steps").is_visible()


def test_the_contents_stay_in_sight_and_lead_to_their_sections(visit, pages):
    page = visit(path=pages["consistent"])
    page.locator(".contents a", has_text="Rows to look at").click()
    settle(page)
    assert 0 <= page.locator("#rows").bounding_box()["y"] < 100
    assert page.locator(".contents a", has_text="The answer").is_visible()
    assert page.locator(".contents").bounding_box()["y"] < 50


@pytest.mark.parametrize("name", ["low group", "several levels"])
def test_print_loses_no_column_and_unfolds(visit, pages, name):
    """A page of A4 has 718 pixels between margins of 1 cm."""
    page = visit(718, 1000, path=pages[name])
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    cut = """[...document.querySelectorAll('td, th, .plot svg')].filter((own) => {
        const box = own.getBoundingClientRect();
        return box.width && (box.right > innerWidth + 1 || box.left < -1 || own.scrollWidth > own.clientWidth + 2);
    }).map((own) => own.textContent)"""
    assert page.evaluate(cut) == []
    assert page.locator("#missed th").nth(8).is_visible()
    assert page.locator(".strata .mid").first.is_visible()
    assert page.locator("details:not(.aside):not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not(.aside):not([open])").count() > 0


FORMULAS = ["=1+1", "+a", "-b", "@c", "a,=1", '"q"', " =2", "-1.5", "plain", "a\tb", "\uff1dx", "1e-5", "x\n=3"]
CELLS = [*FORMULAS, "missing"]


def test_rows_are_downloaded_without_formulas(visit, pages, tmp_path):
    own = case("too few")
    rows = own["rows"]
    cells = [[CELLS[i % len(CELLS)], "\N{MINUS SIGN}2.5", *line[2:]] for i, line in enumerate(rows["cells"])]
    rows = rows | {"cells": cells, "columns": ["=evil()", *rows["columns"][1:]]}
    page = visit(path=write_report(own | {"rows": rows}, tmp_path / "page.html"))
    with page.expect_download() as waited:
        page.locator("#download").click()
    assert waited.value.suggested_filename == "guardband-rows.csv"
    text = waited.value.path().read_text(encoding="utf-8-sig")
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    assert head[:7] == ["row", "price", "prediction", "lower", "upper", "inside", "'=evil()"]
    assert len(lines) == len(rows["row"])
    for i, line in enumerate(lines):
        assert line[0] == str(rows["row"][i])
        assert float(line[1]) == pytest.approx(rows["y"][i], rel=1e-12)
        assert line[5] == {"1": "yes", "0": "no"}[rows["inside"][rows["headline"]][i]]
        cell = CELLS[i % len(CELLS)]
        assert line[6] == ("" if cell == "missing" else harmless(cell))
        assert line[7] == "-2.5"


def test_groups_are_downloaded_without_formulas(visit, pages, tmp_path):
    own = json.loads(json.dumps(case("groups")))
    for group, name in zip(own["promised_groups"], ["=1+1", "two\nlines", "-2,@x"], strict=True):
        group["name"] = name
    page = visit(path=write_report(own, tmp_path / "page.html"))
    with page.expect_download() as waited:
        page.locator("#download-groups").click()
    assert waited.value.suggested_filename == "guardband-groups.csv"
    head, *lines = csv.reader(io.StringIO(waited.value.path().read_text(encoding="utf-8-sig"), newline=""))
    assert head[0] == "group"
    assert {line[0] for line in lines} == {harmless(group["name"]) for group in own["promised_groups"]}
    assert {len(line) for line in lines} == {len(head)}


def harmless(cell):
    """Return a cell as ``guardband predict --no-formulas`` writes it."""
    return next(csv.reader(io.StringIO(bytes(csv_lines(pa.table({"x": [cell]}), ",", True)).decode(), newline="")))[0]


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("low group", "light"), ("too few", "dark"), ("infinite", "light"), ("groups", "dark"), ("many groups", "light")],
)
def test_axe_finds_nothing_serious(visit, pages, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page = visit(path=pages[name], color_scheme=scheme)
    unfold(page)
    found = axe.Axe().run(page).response["violations"]
    assert [(own["id"], own["nodes"][0]["html"]) for own in found if own["impact"] in ("serious", "critical")] == []


def axis(page):
    return page.locator("#picture svg text[text-anchor=end]").all_text_contents()


def test_a_skewed_target_has_a_logarithmic_axis_and_what_lies_beyond_is_counted(visit, made, tmp_path):
    own = json.loads(json.dumps(made[0]))
    rows, n = own["rows"], own["rows"]["sampled"]
    rows["y"] = rows["point"] = [float(f"{10 ** (1 + 4 * (i % n) / n):.6g}") for i in range(len(rows["y"]))]
    rows["lower"], rows["upper"] = ([[f * p for p in rows["point"]] for _ in rows["levels"]] for f in (0.5, 2))
    page = visit(path=write_report(own, tmp_path / "skewed.html"))
    assert {"100", "1,000", "10,000"} <= set(axis(page))
    words = page.locator("#beyond-picture").text_content()
    assert "The axis is logarithmic" in words
    assert "beyond the axis. It is drawn at the edge." in words
    rows["y"] = [*rows["y"][: n - 1], -1e6, *rows["y"][n:]]
    page = visit(path=write_report(own, tmp_path / "linear.html"))
    assert "logarithmic" not in page.locator("#beyond-scatter").text_content()
    assert "1 row has a true value beyond" in page.locator("#beyond-scatter").text_content()


def test_the_mark_of_a_group_is_on_one_line(visit, pages):
    page = visit(390, 844, path=pages["low group"])
    unfold(page)
    marks = page.locator(".low td.flag")
    assert marks.count() >= 1
    for mark in marks.all():
        if mark.is_visible():
            assert mark.evaluate("own => getComputedStyle(own).whiteSpace") == "nowrap"
            assert mark.evaluate("own => own.scrollWidth <= own.clientWidth + 1")
