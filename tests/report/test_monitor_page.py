"""The page of a monitor: with and without an alarm, with one block, with groups, with awkward names."""

import re

import numpy as np
import pandas as pd
import pytest

import guardband as gb
from guardband.report.monitor_page import render_monitor

EVIL = "<script>alert(1)</script>"


def drawn(seed, n, spread=1.0, shift=0.0):
    """Rows in time order: numbers, groups with an awkward name, and outcomes, with ``spread`` in one group."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"size": rng.standard_normal(n) + shift, EVIL: rng.choice(["a", 'b"</script>', "c"], n)})
    wide = np.where(X[EVIL] == "c", spread, 1.0)
    return X, 3 * X["size"].to_numpy() + wide * rng.standard_normal(n)


@pytest.fixture(scope="module")
def monitors():
    """Monitors by what their pages show."""
    X, y = drawn(0, 900)
    plain = gb.IntervalRegressor(hidden=(8,), epochs=5, random_state=0).fit(X, y)
    grouped = gb.IntervalRegressor(hidden=(8,), epochs=5, random_state=0, groups=EVIL, confidence_level=[0.8, 0.9]).fit(
        X, y
    )
    made = {}
    for name, model in (("no alarm", plain), ("alarm", plain), ("groups", grouped), ("one block", plain)):
        made[name] = gb.Monitor(model)
        X, y = drawn(1, 20 if name == "one block" else 2400)
        time = pd.date_range("2024-01-01", periods=len(y), freq="h") if name == "groups" else None
        made[name].update(y, X=X, time=time)
    for name in ("alarm", "groups"):
        X, y = drawn(2, 1200, spread=4.0, shift=1.0)
        time = pd.date_range("2024-06-01", periods=len(y), freq="h") if name == "groups" else None
        made[name].update(y, X=X, time=time)
    made["no rows"] = made["alarm"].successor(plain, {"model": EVIL, "state": "m.monitor", "date": "2024-07-01"})
    return made


@pytest.fixture(scope="module")
def pages(monitors, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {name: own.report(folder / f"{i}.html") for i, (name, own) in enumerate(monitors.items())}


NAMES = ["no alarm", "alarm", "groups", "one block", "no rows"]


@pytest.mark.parametrize("name", NAMES)
def test_names_from_outside_are_escaped_and_nothing_is_fetched(pages, name):
    text = pages[name].read_text()
    assert EVIL not in text
    assert not re.search(r"(src|href)=\"https?:", text)
    assert "default-src &#39;none&#39;" in text


def test_it_says_what_the_monitor_says(monitors):
    text = render_monitor(monitors["alarm"])
    finding = monitors["alarm"].finding()
    assert "<b>Alarm</b>" in text
    assert f"{finding.rows:,}<small>" in text
    assert "Calibrate on rows since the change" in text
    assert "<b>No alarm</b>" in render_monitor(monitors["no alarm"])
    assert "<b>No rows yet</b>" in render_monitor(monitors["no rows"])
    assert "The rows so far are one block" in render_monitor(monitors["one block"])


def test_blocks_add_up_and_their_ranges_allow_for_their_number(monitors):
    for name in NAMES[:4]:
        own, blocks = monitors[name], monitors[name].blocks()
        assert sum(block.rows for block in blocks) == own.rows
        assert [block.first for block in blocks] == np.cumsum([0, *(block.rows for block in blocks)])[:-1].tolist()
        assert blocks[-1].log_evidence == own._state.log_evidence
        law = own.certificate.promise.expectations()[0].expected
        assert (blocks[0].low, blocks[0].high) == law.band(blocks[0].rows, 0.01 / 2 / len(blocks))
    assert not any(block.is_low for block in monitors["no alarm"].blocks())
    changed = [block.is_low for block in monitors["alarm"].blocks()]
    assert any(changed)
    assert not any(changed[: 2400 // monitors["alarm"].blocks()[0].rows])


def test_columns_that_moved_come_first_and_only_in_their_blocks(monitors):
    size, other = monitors["alarm"].drift()
    assert size.name == "size"
    rows = [block.rows for block in monitors["alarm"].blocks()]
    since = 2400 // rows[0]
    assert all(size.moved[since + 1 : len(rows) - (rows[-1] < rows[0])])  # the last block may have few rows
    assert not any(size.moved[:since])
    assert other.name == EVIL
    assert not any(other.moved)


def test_a_notebook_shows_the_alarm_and_escapes_names(monitors):
    shown = monitors["groups"]._repr_html_()
    assert 'class="guardband card broken"' in shown
    assert "Alarm at row" in shown
    assert EVIL not in shown
    assert 'class="guardband card consistent"' in monitors["no alarm"]._repr_html_()
    assert "No rows yet" in monitors["no rows"]._repr_html_()


# ---------------------------------------------------------------- in a browser

OUTSIDE = """[...document.querySelectorAll('.plot svg text')].filter((text) => {
    const own = text.getBBox(), box = text.ownerSVGElement.viewBox.baseVal;
    return own.x < 0 || own.x + own.width > box.width || own.y < 0 || own.y + own.height > box.height + 4;
}).map((text) => text.textContent)"""


@pytest.fixture
def visit(browser, pages):
    """Open a page in a window of some size; anything that is said, thrown or fetched fails the test."""
    heard, contexts = [], []

    def open_page(name, width=1280, **asked):
        context = browser.new_context(viewport={"width": width, "height": 844}, **asked)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or heard.append(request.url))
        page.goto(pages[name].as_uri())
        if asked.get("java_script_enabled", True):
            page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert heard == []


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", NAMES)
def test_it_opens_in_silence_draws_every_plot_and_never_scrolls_sideways(visit, name, width):
    page = visit(name, width)
    assert page.locator(".plot svg").count() == (0 if name == "no rows" else 4)
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_alarm_and_the_change_are_marked_at_their_rows(visit, monitors):
    page, finding = visit("alarm"), monitors["alarm"].finding()
    for plot in ("plot-coverage", "plot-evidence"):
        began, raised = (float(page.locator(f"#{plot} .{kind}").get_attribute("x1")) for kind in ("began", "raised"))
        ends = page.locator(f"#{plot} .grid").first.evaluate("own => [own.x1.baseVal.value + 4, own.x2.baseVal.value]")
        for at, row in ((began, finding.since), (raised, finding.alarm_row)):
            share = (at - ends[0]) / (ends[1] - ends[0])
            assert share == pytest.approx(row / finding.rows, abs=1e-6)
    assert f"the alarm, at row {finding.alarm_row:,}." in page.locator("#marks-evidence").text_content()
    assert visit("no alarm").locator(".raised").count() == 0


def test_every_block_is_drawn_and_those_below_their_range_are_crosses(visit, monitors):
    page, blocks = visit("alarm"), monitors["alarm"].blocks()
    low = sum(block.is_low for block in blocks)
    assert page.locator("#plot-coverage .cross").count() == low
    assert page.locator("#plot-coverage circle.mark").count() == len(blocks) - low
    assert page.locator("#plot-evidence circle.mark").count() == len(blocks)


def test_times_stand_at_the_axis_if_they_are_known(visit):
    page = visit("groups")
    assert "2024-01-01" in page.locator("#plot-coverage text").all_text_contents()
    assert "time of the rows" in page.locator("#plot-coverage text").all_text_contents()


def test_without_script_every_number_is_in_a_table(visit):
    page = visit("alarm", java_script_enabled=False)
    page.locator("summary", has_text="All blocks as a table").click()
    assert page.locator("#coverage ~ details tbody tr").first.is_visible()


@pytest.mark.parametrize(
    ("name", "scheme"), [("alarm", "light"), ("groups", "dark"), ("one block", "dark"), ("no rows", "light")]
)
def test_axe_finds_nothing_serious(visit, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page = visit(name, color_scheme=scheme)
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    found = axe.Axe().run(page).response["violations"]
    assert [(own["id"], own["nodes"][0]["html"]) for own in found if own["impact"] in ("serious", "critical")] == []
