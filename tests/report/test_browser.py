"""The page as a person meets it, in a real browser without a window."""

import shutil

import numpy as np
import pandas as pd
import pytest

import guardband as gb
from guardband.data.table import Column
from guardband.report.document import document
from guardband.report.page import write_report
from guardband.report.view import level_words
from judged import evidence_of

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra dev")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a chromium on the path")


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


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser, made):
    """Open the page in a window of some size; anything that is said, thrown or fetched fails the test."""
    heard, contexts = [], []

    def open_page(width=1280, height=800, **asked):
        context = browser.new_context(viewport={"width": width, "height": height}, **asked)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or heard.append(request.url))
        page.goto(made[1].as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert heard == []


def drawn(page):
    """Return how many intervals the picture shows: those that hold, and those that miss."""
    return [page.locator(f"#picture path.{kind}").get_attribute("d").count("M") for kind in ("hold", "lost")]


def test_it_loads_in_silence_and_draws_every_plot(visit, made):
    page = visit()
    assert "90% prediction intervals" in page.title()
    for name in ("picture", "curve", "lengths", "widths"):
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
    button = page.locator('[data-family="group"]', has_text='so"uth')
    button.click()
    chosen = button.get_attribute("data-place")
    own = {f"{row:,}" for row, place in zip(rows["row"], rows["strata"]["group"], strict=True) if place == chosen}
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
    page.locator("#column").select_option("column-1")
    assert page.locator('[data-column="column-1"]').is_visible()
    assert not page.locator('[data-column="column-0"]').is_visible()


def test_a_row_is_shown_under_the_pointer_and_by_the_keyboard(visit):
    page = visit()
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
