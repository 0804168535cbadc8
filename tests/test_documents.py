"""Every Python block of README and docs runs, in order, as one program per page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def with_code(pages):
    return [page for page in pages if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", with_code(PAGES), ids=lambda page: page.name)
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    program = ["\n" * text[: match.start(1)].count("\n") + match.group(1) for match in BLOCK.finditer(text)]
    names: dict = {}
    for block in program:
        exec(compile(block, str(page), "exec"), names)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
