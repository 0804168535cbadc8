"""HTML for notebooks from the templates of this package; whatever is put into one is escaped.

It runs no script and fetches nothing. Its colours suit light and dark notebooks alike, because a page cannot ask which
theme a notebook has: text takes the colour around it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from guardband.words import at_least, at_most, chance, level_name, number, percent

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(template: str, **view: Any) -> str:
    """Return a piece of HTML, with the style that it needs."""
    from markupsafe import Markup

    return _environment().get_template(template).render(view, style=Markup(_style()))


def environment(package: str) -> Environment:
    """Return an environment for the templates of a package that escapes all that is put into them."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined)
    made.trim_blocks = made.lstrip_blocks = made.keep_trailing_newline = True
    made.filters |= {"number": number, "percent": percent, "level": level_name, "chance": chance}
    made.filters |= {"count": "{:,}".format, "at_most": at_most}
    return made


@cache
def _environment() -> Environment:
    made = environment("guardband")
    made.filters["at_least"] = at_least
    return made


@cache
def _style() -> str:
    return files("guardband").joinpath("templates", "notebook.css").read_text(encoding="utf-8")
