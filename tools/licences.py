"""Writes docs/licences.md: the licence of every package that guardband needs or may use.

    python tools/licences.py

It needs the environment of make test, in which every package is installed.
"""

from __future__ import annotations

from collections.abc import Iterable

from packages import ROOT, Package, packages

PAGE = ROOT / "docs" / "licences.md"
HEAD = ROOT / "tools" / "licences_head.md"


def page() -> str:
    """Return the page."""
    every = packages()
    core = [own for own in every if not own.used_for]
    optional = [own for own in every if own.used_for and own.is_for_users]
    development = [own for own in every if not own.is_for_users]
    parts = [
        HEAD.read_text(),
        f"## What guardband always needs\n\n{len(core)} packages.\n\n{_table(core, extras=False)}",
        f"## What extras need\n\n{len(optional)} packages, each only with an extra.\n\n{_table(optional, extras=True)}",
        f"## What developers need\n\n{len(development)} packages. Users do not install them.\n\n"
        f"{_table(development, extras=False)}",
    ]
    return "\n".join(parts)


def _table(rows: Iterable[Package], extras: bool) -> str:
    lines = ["| package | version | licence | stated in |", "|---|---|---|---|"]
    if extras:
        lines = ["| package | version | licence | stated in | extras |", "|---|---|---|---|---|"]
    for own in rows:
        used_for = ", ".join(extra for extra in own.used_for if extra not in ("dev", "docs"))
        lines.append(
            f"| `{own.name}` | {own.version} | {own.licence} | {own.found} |" + (f" {used_for} |" if extras else "")
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
