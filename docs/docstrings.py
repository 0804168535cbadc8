"""Makes docstrings readable as Markdown: doctests as code, and parameters that share a text one by one."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

DOCTEST = re.compile(r"^>>> .*?(?=\n[ \t]*\n|\Z)", re.MULTILINE | re.DOTALL)
POSITIVE_PART = re.compile(r"(?<=\))_\+")
SHARED = re.compile(r"^(\w+)((?:, \w+)+)( : .*)?\n((?:    .*\n?)+)", re.MULTILINE)


class ReadableDocstrings(Extension):
    """Rewrites docstrings before they are parsed."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        """Fence doctests, which would be quotations; separate ``a, b``, where b would get a's type; keep ``(r)_+``."""
        if obj.docstring is not None:
            text = SHARED.sub(_separated, POSITIVE_PART.sub(r"\_+", obj.docstring.value))
            obj.docstring.value = DOCTEST.sub(lambda found: f"```pycon\n{found.group()}\n```", text)


def _separated(found: re.Match[str]) -> str:
    first, others, kind, about = found.group(1), found.group(2).split(", ")[1:], found.group(3) or "", found.group(4)
    rest = "".join(f"{name}{kind}\n    See ``{first}``.\n" for name in others)
    return f"{first}{kind}\n{about.rstrip()}\n{rest}"
