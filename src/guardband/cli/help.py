"""Help in the terminal: options in named groups, without types, with defaults, in 80 columns."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from typer.core import TyperCommand, TyperGroup

from guardband.cli.usage import NamesItself

DATA, PROMISE, TRAINING, OUTPUT = "Data", "Promise", "Training", "Output"
GROUPS = (DATA, PROMISE, TRAINING, OUTPUT)
WIDTH, WIDEST = 80, 100
INDENT = 2
LONGEST_NAMES = 24
"""Longer names get a line of their own."""
FEWEST_LETTERS = 24
"""If there is less room beside the names, words stand below them."""
HEADING, CODE = "bold", "cyan"


@dataclass(frozen=True)
class Entry:
    """One argument or option of a command: its group, its names as you type them, and what it means."""

    group: str
    names: str
    words: str


@dataclass(frozen=True)
class Line:
    """A line of the help; its first ``styled`` letters have the style."""

    text: str = ""
    style: str = ""
    styled: int = 0


def entries_of(command: Any, context: Any) -> list[Entry]:
    """Return the arguments and options of a command, group by group."""
    found = [_entry(parameter) for parameter in command.get_params(context) if not getattr(parameter, "hidden", False)]
    order = [*GROUPS, *(own.group for own in found if own.group not in GROUPS)]
    return sorted(found, key=lambda own: order.index(own.group))


def help_lines(command: Any, context: Any, width: int = WIDTH) -> list[Line]:
    """Return the help of a command in lines, none wider than ``width``."""
    lines = _plain(f"Usage: {_usage(command, context)}", width, INDENT)
    for paragraph in (command.help or "").split("\n\n"):
        lines += [Line(), *_paragraph(" ".join(paragraph.split()), width)]
    entries = [*_commands(command, context), *entries_of(command, context)]
    left = max((len(own.names) for own in entries if len(own.names) <= LONGEST_NAMES), default=0) + 2 * INDENT
    group = None
    for own in entries:
        if own.group != group:
            group = own.group
            lines += [Line(), Line(group, HEADING, len(group))]
        lines += _definition(own, left, width)
    return lines


def _entry(parameter: Any) -> Entry:
    group = getattr(parameter, "rich_help_panel", None) or OUTPUT
    words = " ".join((parameter.help or "").split())
    if parameter.param_type_name == "argument":
        return Entry(group, _metavar(parameter), words)
    names = ", ".join([*sorted(parameter.opts, key=len), *parameter.secondary_opts])
    if not _is_flag(parameter):
        names += f" {_metavar(parameter)}"
    return Entry(group, names, f"{words} {_default(parameter)}".rstrip())


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _is_flag(parameter: Any) -> bool:
    return bool(getattr(parameter, "is_flag", False)) or "--help" in parameter.opts


def _default(parameter: Any) -> str:
    if parameter.required:
        return "Required."
    said, value = getattr(parameter, "show_default", None), parameter.default
    if isinstance(said, str):
        return f"Default: {said}."
    if value is None or callable(value) or isinstance(value, bool | list | tuple):
        return ""
    return f"Default: {value}."


def _commands(command: Any, context: Any) -> list[Entry]:
    if not isinstance(command, TyperGroup):
        return []
    every = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return [Entry("Commands", name, _first_sentence(own)) for name, own in every.items()]


def _first_sentence(command: Any) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


def _usage(command: Any, context: Any) -> str:
    parameters = command.get_params(context)
    arguments = [_metavar(own) for own in parameters if own.param_type_name == "argument"]
    options = [own for own in parameters if own.param_type_name == "option" and own.required]
    needed = [f"{max(own.opts, key=len)} {_metavar(own)}" for own in options]
    name = "COMMAND" if isinstance(command, TyperGroup) else command.name
    return " ".join(["guardband", name, *arguments, *needed, "[options]"])


def _paragraph(text: str, width: int) -> list[Line]:
    """Return a paragraph in lines; one that is code and nothing else is set in."""
    if text.startswith("`") and text.endswith("`") and text.count("`") == 2:
        lines = wrap(text.strip("`"), width - INDENT, subsequent_indent=INDENT * " ", break_on_hyphens=False)
        return [Line(INDENT * " " + line, CODE, len(line) + INDENT) for line in lines]
    return _plain(text.replace("`", ""), width)


def _plain(text: str, width: int, indent: int = 0) -> list[Line]:
    return [Line(line) for line in wrap(text, width, subsequent_indent=indent * " ", break_on_hyphens=False)]


def _definition(own: Entry, left: int, width: int) -> list[Line]:
    names = INDENT * " " + own.names
    margin = left if width - left >= FEWEST_LETTERS else 2 * INDENT
    words = wrap(own.words, width - margin, break_on_hyphens=False) or [""]
    lines = [Line(margin * " " + line) for line in words]
    if len(names) + INDENT > margin:
        return [Line(names, CODE, len(names)), *lines]
    return [Line(f"{names:<{margin}}{words[0]}", CODE, len(names)), *lines[1:]]


class _ReadableHelp:
    """Prints the help when it is asked for, to standard output."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help; nothing is left for the formatter to write."""
        from rich.text import Text

        from guardband.cli.console import open_console

        console = open_console(stderr=False)
        width = min(console.width, WIDEST) if console.is_terminal else WIDTH
        for line in help_lines(self, ctx, width):
            shown = Text(line.text)
            shown.stylize(line.style, 0, line.styled)
            console.print(shown, soft_wrap=True)


class Command(_ReadableHelp, NamesItself, TyperCommand):
    """A command with such a help."""


class Commands(_ReadableHelp, NamesItself, TyperGroup):
    """The program with such a help."""
