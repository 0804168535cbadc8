"""What pages show of the program itself, as Markdown: the options of a command, the methods."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter


def options(name: str) -> str:
    """Return the arguments and options of a command as Markdown: one table for each group, as in its help."""
    from typer.main import get_command

    from guardband.cli.app import app
    from guardband.cli.help import entries_of

    command = get_command(app).commands[name]
    context = command.make_context(f"guardband {name}", [], resilient_parsing=True)
    tables = []
    for group, entries in groupby(entries_of(command, context), attrgetter("group")):
        rows = [f"| `{own.names.replace('|', ' or ')}` | {own.words.replace('|', '&#124;')} |" for own in entries]
        tables.append("\n".join([f"| {group} | what it does |", "|---|---|", *rows]))
    return "\n\n".join(tables)


def methods() -> str:
    """Return all methods of the registry as a Markdown table, with what they say of themselves."""
    from guardband.methods.registry import method_named, method_names

    rows = [f"| `{name}` | {' '.join((method_named(name).__doc__ or '').split())} |" for name in method_names()]
    return "\n".join(["| `method` | how it works |", "|---|---|", *rows])
