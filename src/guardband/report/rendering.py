"""Self-contained pages from the templates of this package; whatever is put into one is escaped.

A page forbids itself everything but its own style and script, so that nothing else in it can run or fetch anything.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from guardband.markup import environment
from guardband.words import number

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(template: str, view: Mapping[str, Any], *, script: str = "", data: Any = None) -> str:
    """Return a whole page that needs nothing from outside: style, script and data are inside it."""
    style = asset("page.css")
    code = f"script-src {_hash(script)}; " if script else ""
    policy = f"default-src 'none'; {code}style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    # Only what the package itself wrote is put in as it is.
    own = {"style": Markup(style), "script": Markup(script), "data": data and Markup(json_text(data))}
    return _environment().get_template(template).render(view, policy=policy, **own)


def asset(name: str) -> str:
    """Return the text of a style sheet or script of this package."""
    return files("guardband.report").joinpath(name).read_text(encoding="utf-8")


def json_text(data: Any) -> str:
    """Return JSON that cannot end the script element it stands in, nor open a comment there."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def or_infinite(value: float | None) -> str:
    """Return a number in words; in a document, None stands for infinity."""
    return "∞" if value is None else number(value)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> Environment:
    made = environment("guardband.report")
    made.filters["number"] = or_infinite
    return made
