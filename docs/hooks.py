"""What the site needs beyond Markdown: files from outside docs/, and the options of each command.

The README is the first page. A link that leaves docs/ works on a code host; here the file it leads to is carried
into the site, so that it works there too. ``<!-- options: fit -->`` becomes the options of ``guardband fit``, read
from the program itself, and ``<!-- methods -->`` a table of all methods. Flowcharts in Mermaid become drawings.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

import flowchart

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#|/)([^)\s#]+)")
KIND = re.compile(r"<(?:list\[)?(str|int|float|path)\]?(?: range)?>")
KINDS = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER", "path": "PATH"}
OPTIONS = re.compile(r"^<!-- options: (\w+) -->$", re.MULTILINE)
METHODS = re.compile(r"^<!-- methods -->$", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add the README as first page, and every file outside docs/ that a page leads to."""
    from mkdocs.structure.files import File

    waiting = [ROOT / "README.md", *(Path(file.abs_src_path) for file in files.documentation_pages())]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        if files.get_file_from_path(_site_uri(path)) is None:
            files.append(File.generated(config, _site_uri(path), abs_src_path=str(path)))
        if path.suffix == ".md":
            new = {target for target in _links(path) if not target.is_relative_to(DOCS)} - seen
            seen |= new
            waiting += sorted(new)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links to where the files lie in the site, write out the options of commands, draw flowcharts."""
    source = Path(page.file.abs_src_path)
    home = PurePosixPath(page.file.src_uri).parent

    def moved(match: re.Match[str]) -> str:
        target = _target(source, match.group(1))
        return match.group(1) if target is None else Path(os.path.relpath(_site_uri(target), home)).as_posix()

    parts = CODE.split(markdown)  # prose at even places, code at odd ones
    parts[::2] = [LINK.sub(moved, part) for part in parts[::2]]
    text = METHODS.sub(lambda _: methods(), "".join(parts))
    return flowchart.drawn(OPTIONS.sub(lambda match: options(match.group(1)), text))


def options(name: str) -> str:
    """Return the arguments and options of a command as a Markdown table."""
    from typer.main import get_command

    from guardband.cli.app import app

    command = get_command(app).commands[name]
    context = command.make_context(f"guardband {name}", [], resilient_parsing=True)
    rows = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            names, about = record
            is_argument = parameter.param_type_name == "argument"
            names = KIND.sub(lambda found, hidden=is_argument: "" if hidden else KINDS[found.group(1)], names).strip()
            rows.append(f"| `{names}` | {' '.join(about.split()).replace('|', '&#124;')} |")
    return "\n".join(["| option | what it does |", "|---|---|", *rows])


def methods() -> str:
    """Return all methods of the registry as a Markdown table, with what they say of themselves."""
    from guardband.methods.registry import method_named, method_names

    rows = [f"| `{name}` | {' '.join((method_named(name).__doc__ or '').split())} |" for name in method_names()]
    return "\n".join(["| `method` | how it works |", "|---|---|", *rows])


def _links(page: Path) -> set[Path]:
    prose = "".join(CODE.split(page.read_text(encoding="utf-8"))[::2])
    found = {_target(page, match.group(1)) for match in LINK.finditer(prose)}
    return {target for target in found if target is not None}


def _target(page: Path, link: str) -> Path | None:
    """Return the file of the repository that a page's link leads to, if there is one."""
    path = Path(os.path.normpath(page.parent / link))
    return path if path.is_file() and path.is_relative_to(ROOT) else None


def _site_uri(path: Path) -> str:
    """Return where a file of the repository lies in the site: docs/a.md as a.md, examples/README.md as examples.md."""
    if path == ROOT / "README.md":
        return "index.md"
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    inside = path.relative_to(ROOT)
    return (inside.parent.with_suffix(".md") if inside.name == "README.md" else inside).as_posix()
