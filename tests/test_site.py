"""The site builds without a warning, holds every page, and asks nothing of other hosts."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEEDED = ("mkdocs", "material", "mkdocstrings", "mkdocstrings_handlers")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"the site needs {MISSING}: pip install 'guardband[docs]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    # Material prints a notice about MkDocs 2 unless told not to; it is no warning about these pages.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr + done.stdout, done.stderr
    return folder


def html(site):
    return {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}


def test_every_page_of_the_documentation_is_in_the_site(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages | {"index.html", "examples.html", "benchmarks.html", "paper.html"} <= set(html(site))


def test_no_page_loads_anything_from_another_host(site):
    loads = re.compile(
        r"""<(?:script|img|iframe|source|video)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\bhref=["']?(?:https?:)?//"""
    )
    for name, text in html(site).items():
        assert not loads.search(text), f"{name}: {loads.search(text).group()}"
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), sheet.name


def test_links_within_the_site_lead_to_a_file(site):
    for name, text in html(site).items():
        if name == "404.html":
            continue  # its links begin at the root of wherever the site is put
        for link in re.findall(r"""<a\b[^>]*\bhref=["']([^"'#]+)""", text):
            if not re.match(r"[a-z]+:", link):
                assert ((site / name).parent / link).exists(), f"{name} links to {link}"


def test_the_first_page_is_the_readme(site):
    text = html(site)["index.html"]
    assert "Prediction intervals for neural networks, with a guarantee you can check" in text
    assert 'src="report-light.png"' in text


def test_the_api_is_read_from_the_docstrings(site):
    import guardband as gb

    everything = "".join(text for name, text in html(site).items() if name.startswith("api/"))
    missing = [name for name in gb.__all__ if f'id="guardband.{name}' not in everything]
    assert not missing


def test_each_command_page_shows_the_options_that_the_program_has(site):
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import hooks
    finally:
        sys.path.remove(str(ROOT / "docs"))
    assert "--rows" in hooks.options("demo")
    for page in {*(ROOT / "docs" / "commands").glob("*.md")} - {ROOT / "docs" / "commands" / "index.md"}:
        text = html(site)[f"commands/{page.stem}.html"]
        assert "<!-- options" not in text
        for option in re.findall(r"`.*?(--[a-z-]+)", hooks.options(page.stem)):
            assert option in text, f"{page.name} lacks {option}"


def test_a_flowchart_is_drawn_without_a_script_from_elsewhere(site):
    text = html(site)["CONTRIBUTING.html"]
    assert "mermaid" not in text
    assert text.count('<figure class="flowchart">') == 1
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for arrow in re.findall(r"^    (\w+) --> (.*)$", page, re.MULTILINE):
        assert all(f"{arrow[0]} imports {name}" in text for name in arrow[1].split(" & "))


def test_every_command_has_a_page():
    from typer.main import get_command

    from guardband.cli.app import app

    pages = {page.stem for page in (ROOT / "docs" / "commands").glob("*.md")}
    assert set(get_command(app).commands) <= pages
