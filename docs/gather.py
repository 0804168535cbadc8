"""Gathers the pages of the site into one folder, from docs/ and from elsewhere in the repository.

A link that leaves docs/ works on a code host. Here the file it leads to is gathered too, and the link leads to where
the file lies in the site. ``<!-- options: fit -->`` becomes the options of ``guardband fit``, ``<!-- methods -->`` a
table of all methods, and a flowchart in Mermaid a drawing. A section's first page gets the list of its pages.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath

import flowchart
from navigation import SECTIONS
from program import methods, options

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#|/)([^)\s#]+)")
OPTIONS = re.compile(r"^<!-- options: (\w+) -->$", re.MULTILINE)
METHODS = re.compile(r"^<!-- methods -->$", re.MULTILINE)


def gather(folder: Path) -> None:
    """Write every page, and every file that a page shows or links to, into a folder, in place of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    for source in files():
        place = folder / site_path(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            place.write_text(page(source), encoding="utf-8")
        else:
            shutil.copy2(source, place)


def files() -> list[Path]:
    """Return the files of docs/ but for the programs that build the site, and all files that their pages lead to."""
    own = [
        path
        for path in DOCS.rglob("*")
        if path.is_file() and not set(path.parts) & {"__pycache__", "_static", "_templates"}
    ]
    waiting = [path for path in own if path.parent != DOCS or path.suffix != ".py"]
    found = set(waiting)
    while waiting:
        new = {target for target in links(waiting.pop()) if not target.is_relative_to(DOCS)} - found
        found |= new
        waiting += sorted(new)
    return sorted(found - {ROOT / "README.md"})


def page(source: Path) -> str:
    """Return the text of a page as the site has it."""
    home = PurePosixPath(site_path(source)).parent

    def moved(match: re.Match[str]) -> str:
        target = leads_to(source, match.group(1))
        return match.group(1) if target is None else Path(os.path.relpath(site_path(target), home)).as_posix()

    parts = CODE.split(source.read_text(encoding="utf-8"))  # prose at even places, code at odd ones
    parts[::2] = [LINK.sub(moved, part) for part in parts[::2]]
    text = METHODS.sub(lambda _: methods(), "".join(parts))
    text = flowchart.drawn(OPTIONS.sub(lambda match: options(match.group(1)), text))
    followers = SECTIONS.get(site_path(source).removesuffix(".md"))
    return text if followers is None or "{toctree}" in text else f"{text}\n{contents(source.parent, followers)}"


def contents(folder: Path, pages: list[str]) -> str:
    """Return the directive that puts pages into the navigation; ``*`` stands for those of the folder not yet named."""
    if "*" in pages:
        rest = {path.stem for path in folder.glob("*.md")} - {"index", *pages}
        pages = [*(name for name in pages if name != "*"), *sorted(rest)]
    return "\n".join(["```{toctree}", ":hidden:", "", *pages, "```", ""])


def links(source: Path) -> set[Path]:
    """Return the files of the repository that a page leads to."""
    if source.suffix != ".md":
        return set()
    prose = "".join(CODE.split(source.read_text(encoding="utf-8"))[::2])
    found = {leads_to(source, match.group(1)) for match in LINK.finditer(prose)}
    return {target for target in found if target is not None}


def leads_to(source: Path, link: str) -> Path | None:
    """Return the file of the repository that a page's link leads to, if there is one."""
    path = Path(os.path.normpath(source.parent / link))
    return path if path.is_file() and path.is_relative_to(ROOT) else None


def site_path(path: Path) -> str:
    """Return where a file lies in the site: docs/a.md as a.md, examples/README.md as examples.md."""
    if path == ROOT / "README.md":
        return "index.md"
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    inside = path.relative_to(ROOT)
    return (inside.parent.with_suffix(".md") if inside.name == "README.md" else inside).as_posix()
