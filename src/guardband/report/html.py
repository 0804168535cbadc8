"""Building blocks of self-contained pages: skeleton, tables, and data for scripts, all of them escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any


def asset(name: str) -> str:
    """Return the text of a style sheet or script of this package."""
    return files("guardband.report").joinpath(name).read_text(encoding="utf-8")


def skeleton(title: str, body: str, *, script: str = "", data: Any = None) -> str:
    """Return a whole page that needs nothing from outside: style, script and data are inside it."""
    embedded = "" if data is None else f'<script type="application/json" id="data">{json_text(data)}</script>\n'
    code = f"<script>\n{script}</script>\n" if script else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{asset('page.css')}</style>\n</head>\n<body>\n{body}\n{embedded}{code}</body>\n</html>\n"
    )


def json_text(data: Any) -> str:
    """Return JSON that cannot end the script element it stands in, nor open a comment there."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def table(
    head: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str = "", words: int = 1, name: str = ""
) -> str:
    """Return a table that scrolls within its place; the first ``words`` columns are text, the others numbers.

    ``name`` becomes its id; a caption is read out by screen readers and shown above.
    """
    kinds = ["text" if j < words else "number" for j in range(len(head))]
    top = "".join(
        f'<th scope="col" class="{kind}">{escape(title)}</th>' for title, kind in zip(head, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{kind}">{escape(str(cell))}</td>' for cell, kind in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows
    )
    own = f' id="{escape(name)}"' if name else ""
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption or "table")}"><table{own}>{said}'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )
