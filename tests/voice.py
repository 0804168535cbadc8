"""What a user can read, and words that do not belong there.

Read are: every string of the sources that could be shown (all but docstrings), docstrings of public names, templates of
the page, and the Markdown pages. Code is left out: what stands in backticks or in a fenced block.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import guardband as gb

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "guardband"

JARGON = {
    "D1, D2": r"\bD[12]\b",
    "slab": r"\bslabs?\b",
    "twins": r"\btwins?\b",
    "fleet": r"\bfleets?\b",
    "doors": r"\bdoors?\b",
    "squad": r"\bsquads?\b",
    "nest": r"\bnests?\b",
    "void": r"\bvoid(s|ed)?\b",
    "held to": r"\bheld to\b",
    "whole line": r"\bwhole line\b",
    "leave it away": r"\bleave \w+ away\b",
    "so that": r"\bso that\b",
    "the paper and us": r"\bthe paper and us\b",
    "numbers like .91": r"(?<![\w.)\]])\.\d",
    "response": r"\bresponses?\b",
    "length of an interval": r"\b(interval|mean|average) lengths?\b|\blengths? of (\w+ )?intervals?\b",
    "one, ours": r"\bone's\b|\bours\b(?!”)",
}
WRONG = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in JARGON.items()}

DEVELOPERS = ("docs/mathematics.md", "docs/log.md", "docs/reproduction.md")
"""Pages for readers of the mathematics, of the measurements and of the paper's tables."""

REPRODUCTION = SOURCES / "experiments" / "reproduce"
PAPERS_WORDS = ("response", "length of an interval")
"""What the paper calls the target and the width: names of its experiments and axes of its figures keep them."""

Found = tuple[str, str, str]
"""Where, which word, and the text around it."""


def wrong_words(where: str, text: str) -> Iterator[Found]:
    """Return the words of a text that do not belong where users read."""
    for name, pattern in WRONG.items():
        for found in pattern.finditer(text):
            around = text[max(0, found.start() - 40) : found.end() + 40]
            yield where, name, " ".join(around.split())


def without_code(text: str) -> str:
    """Return a text without blocks of code, what stands in backticks, links and comments."""
    for pattern in (r"```.*?```", r"<!--.*?-->", r"``.+?``", r"`[^`\n]+`", r"\]\([^)]*\)", r"^\s*>>> .*$"):
        text = re.sub(pattern, " ", text, flags=re.DOTALL | re.MULTILINE)
    return text


def strings_of(path: Path) -> Iterator[tuple[int, str]]:
    """Return line and text of every string that could be shown; values in f-strings become a pair of braces."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            parts = [part for part in node.values if isinstance(part, ast.Constant)]
            inside.update(map(id, parts))
            yield node.lineno, "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def public_objects() -> dict[str, object]:
    """Return every public class and function, and the public members of classes, each once, by its first name."""
    names: dict[int, tuple[str, object]] = {}
    for name, own in _public_names():
        names.setdefault(id(own), (name, own))
    return dict(names.values())


def _public_names() -> Iterator[tuple[str, object]]:
    modules = {f"gb.{name}": getattr(gb, name) for name in gb.__all__ if inspect.ismodule(getattr(gb, name))}
    places = [("gb", gb, gb.__all__)] + [(place, module, list(vars(module))) for place, module in modules.items()]
    for place, module, names in places:
        for name in names:
            own = getattr(module, name)
            if name.startswith("_") or not (inspect.isclass(own) or inspect.isfunction(own)):
                continue
            if own.__module__.startswith(module.__name__) or module is gb.extend:
                yield f"{place}.{name}", own
                yield from _members(f"{place}.{name}", own)


def _members(place: str, own: object) -> Iterator[tuple[str, object]]:
    for base in own.__mro__ if inspect.isclass(own) else ():
        for name, member in vars(base).items() if base.__module__.startswith("guardband.") else ():
            member = inspect.unwrap(getattr(member, "__func__", member))
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                yield f"{place}.{name}", member


def in_sources() -> list[Found]:
    """Return what is wrong in strings, docstrings and templates of the package."""
    found: list[Found] = []
    for path in sorted(SOURCES.rglob("*.py")):
        own_words = PAPERS_WORDS if path.is_relative_to(REPRODUCTION) else ()
        for line, text in strings_of(path):
            if " " in text.strip():
                wrong = wrong_words(f"{path.relative_to(ROOT)}:{line}", without_code(text))
                found += [own for own in wrong if own[1] not in own_words]
    for name, own in public_objects().items():
        found += wrong_words(name, without_code(inspect.getdoc(own) or ""))
    for path in sorted((SOURCES / "report" / "templates").glob("*.html")):
        shown = re.sub(r"<[^>]*>|\{[{%#].*?[}%#]\}", " ", path.read_text(), flags=re.DOTALL)
        found += wrong_words(str(path.relative_to(ROOT)), shown)
    return found


def in_pages() -> list[Found]:
    """Return what is wrong in the Markdown pages for users."""
    found: list[Found] = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        name = path.relative_to(ROOT).as_posix()
        if name not in DEVELOPERS:
            found += wrong_words(name, without_code(path.read_text()))
    return found
