"""The site builds without a warning, holds every page, reads well in a browser, and asks nothing of other hosts."""

import importlib.util
import re
import shutil
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NEEDED = ("sphinx", "myst_nb", "numpydoc", "pydata_sphinx_theme", "sphinx_copybutton", "sphinx_design")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NO_BROWSER = CHROMIUM is None or any(
    importlib.util.find_spec(name) is None for name in ("playwright", "axe_playwright_python")
)
SEEN = ("index", "quickstart", "commands/fit", "api/metrics", "mathematics")

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"the site needs {MISSING}: pip install 'guardband[docs]'")
in_browser = pytest.mark.skipif(NO_BROWSER, reason="needs a chromium on the path, and the extra dev")


@pytest.fixture(scope="module")
def helpers():
    """The programs that build the site, to import."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        yield


@pytest.fixture(scope="module")
def site(tmp_path_factory, helpers):
    """The site, built as ``make docs`` does but without running the tutorials."""
    from build import build

    folder = tmp_path_factory.mktemp("site")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # extensions of Sphinx warn of what it will change
        assert build(folder, tmp_path_factory.mktemp("work"), execute=False) == 0, "see what Sphinx says below"
    return folder


@pytest.fixture(scope="module")
def html(site):
    """The text of every page, by its path in the site."""
    pages = [path for path in site.rglob("*.html") if not {"_downloads", "_static"} & {*path.parts}]
    return {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in pages}


def test_every_page_of_the_documentation_is_in_the_site(html):
    pages = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")}
    outside = {"CHANGELOG.html", "CONTRIBUTING.html", "examples.html", "benchmarks.html", "paper.html"}
    assert pages | outside <= set(html)


def test_no_page_loads_anything_from_another_host(site, html):
    loads = re.compile(
        r"""<(?:script|img|iframe|source|video)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\bhref=["']?(?:https?:)?//"""
    )
    for name, text in html.items():
        assert not loads.search(text), f"{name}: {loads.search(text).group()}"
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), sheet.name


def test_links_within_the_site_lead_to_a_file(site, html):
    for name, text in html.items():
        for link in re.findall(r"""<a\b[^>]*\bhref=["']([^"'#?]+)""", text):
            if not re.match(r"[a-z]+:", link):
                assert ((site / name).parent / link).exists(), f"{name} links to {link}"


def test_no_markdown_is_left_over(html):
    for name, text in html.items():
        assert not re.search(r"\|:?--+:?\|", text), f"{name} shows a table as it is written"
        assert not re.search(r"<!-- (options|methods)|^!!! |^:::|^```", text, re.MULTILINE), name


def test_the_first_page_leads_into_four_ways(html):
    text = html["index.html"]
    assert "Prediction intervals for neural networks, with a guarantee you can check" in text
    assert "pip install guardband" in re.sub(r"<[^>]+>", "", text)
    cards = re.findall(r'sd-stretched-link[^>]*href="([^"]+)"', text)
    assert cards == ["quickstart.html", "network.html", "your-model.html", "commands/calibrate.html"]


def test_every_page_tells_the_version(html):
    import guardband

    assert all(f"guardband {guardband.__version__}" in text for text in html.values())


def test_the_api_has_every_public_name(html):
    import guardband as gb

    everything = "".join(text for name, text in html.items() if name.startswith("api/"))
    parts = [f"{part}.{name}" for part in ("nn", "extend") for name in vars(getattr(gb, part)) if name[0].isupper()]
    missing = [name for name in (*gb.__all__, *parts) if not re.search(rf'id="guardband\.{name}[".]', everything)]
    assert not [name for name in missing if f'id="guardband.{name.split(".")[-1]}"' not in everything]


def test_a_parameter_is_shown_with_its_kind_and_its_text(html):
    entry = re.search(r"<dt><strong>target_transform</strong>.*?</dd>", html["api/table.html"], re.DOTALL).group()
    assert '<span class="classifier">' in entry
    assert "<p>" in entry


def test_each_command_page_shows_the_options_that_the_program_has(html, helpers):
    import program

    assert "--rows" in program.options("demo")
    for page in DOCS.glob("commands/*.md"):
        if f"<!-- options: {page.stem} -->" in page.read_text():
            for option in re.findall(r"`.*?(--[a-z-]+)", program.options(page.stem)):
                assert option in html[f"commands/{page.stem}.html"], f"{page.name} lacks {option}"


def test_options_stand_in_the_groups_of_the_help_without_types(helpers):
    import program

    shown = program.options("fit")
    assert "| Promise | what it does |" in shown
    assert "| `--delta NUMBER` | With pac: the probability that the promise fails. Default: 0.1. |" in shown
    assert not re.search(r"\[default|\[required|<=x|Default: \.", shown)


def test_the_api_leaves_out_what_is_not_for_users(html):
    everything = "".join(text for name, text in html.items() if name.startswith("api/"))
    inner = "mixer|is_quick|restored|on_its_device|fit_table|read_rows"
    assert not re.findall(rf'id="guardband\.[\w.]+\.({inner})"', everything)


def test_every_command_has_a_page():
    from typer.main import get_command

    from guardband.cli.app import app

    assert set(get_command(app).commands) <= {page.stem for page in DOCS.glob("commands/*.md")}


def test_a_flowchart_is_drawn_without_a_script_from_elsewhere(html):
    text = html["CONTRIBUTING.html"]
    assert "mermaid" not in text
    assert text.count('<figure class="flowchart">') == 1
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for arrow in re.findall(r"^    (\w+) --> (.*)$", page, re.MULTILINE):
        assert all(f"{arrow[0]} imports {name}" in text for name in arrow[1].split(" & "))


def test_links_between_files_of_the_repository_lead_to_their_place_in_the_site(helpers):
    from gather import page

    assert "](quickstart.md)" in page(DOCS / "start.md")
    assert "](../CONTRIBUTING.md)" in (DOCS / "developers.md").read_text()
    assert "](CONTRIBUTING.md)" in page(DOCS / "developers.md")
    assert "](benchmarks.md)" in page(DOCS / "developers.md")
    assert "](examples/cnn.py)" in page(ROOT / "examples" / "README.md")


def test_a_failing_tutorial_fails_the_build_that_runs_it(tmp_path, monkeypatch, capfd, helpers):
    """With the settings of the site, on a page of its own."""
    import build

    def one_page(folder):
        folder.mkdir()
        head = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n# One\n\n"
        (folder / "index.md").write_text(f"{head}```{{code-cell}} python\n1 / 0\n```\n")

    monkeypatch.setattr(build, "gather", one_page)
    assert build.build(tmp_path / "site", tmp_path, execute=True) != 0
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_the_citation_names_this_version_and_the_paper():
    import yaml

    import guardband

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == guardband.__version__
    authors = [author["family-names"] for author in cited["references"][0]["authors"]]
    assert authors == ["Kivaranovic", "Johnson", "Leeb"]


@pytest.fixture
def visit(browser, site):
    """Open a page from its folder; what is complained of, fails or is fetched from elsewhere fails the test."""
    heard, contexts = [], []

    def open_page(name, scheme="light", width=1280):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: said.type in ("error", "warning") and heard.append(said.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("requestfailed", lambda request: heard.append(request.url))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or heard.append(request.url))
        page.goto((site / "index.html").as_uri().replace("index.html", name))
        page.evaluate("window.MathJax?.startup?.promise")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert heard == []


def grave(page):
    """Return what axe-core finds that keeps people from reading the page."""
    from axe_playwright_python.sync_playwright import Axe

    # By itself axe fetches style sheets, which a page opened from a folder must not.
    found = Axe().run(page, options={"preload": False, "resultTypes": ["violations"]}).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SEEN)
def test_a_page_reads_well(visit, name, scheme):
    page = visit(f"{name}.html", scheme)
    assert page.locator("html").get_attribute("data-theme") == scheme
    assert grave(page) == []
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@in_browser
@pytest.mark.parametrize("name", SEEN[:3])
def test_a_page_reads_well_on_a_phone(visit, name):
    assert grave(visit(f"{name}.html", "dark", width=390)) == []


@in_browser
def test_options_stand_above_their_words_on_a_phone_and_beside_them_on_a_desktop(visit):
    for width, below in ((390, True), (1280, False)):
        cells = visit("commands/fit.html", width=width).locator("#options tbody tr").first.locator("td")
        name, words = (cells.nth(i).bounding_box() for i in range(2))
        assert (words["y"] >= name["y"] + name["height"] - 1) == below


@in_browser
def test_formulas_are_drawn(visit):
    page = visit("api/metrics.html")
    assert page.locator(".math").count() == page.locator("mjx-container > svg").count() > 0
    assert page.locator("mjx-merror, [data-mml-node=merror]").count() == 0


@in_browser
def test_search_finds_a_page_without_a_server(visit):
    page = visit("search.html?q=certificate")
    page.locator('#search-results a[href^="certificate.html"]').first.wait_for()  # results come one after another
