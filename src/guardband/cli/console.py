"""What commands say, and where: the result on standard output, all else on standard error."""

from __future__ import annotations

import gc
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from guardband.cli.status import STATUS
from guardband.progress import ProgressBar
from guardband.words import plain, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

ENDLESS = 500
COLOURS = {"consistent": "green", "broken": "red", "too few rows": "yellow", "cannot judge": "yellow"}


@dataclass(frozen=True)
class Speaker:
    """How a command speaks: ``quiet`` says the result alone, ``as_json`` says it as one JSON object.

    ``verbose`` also says what few people need.
    """

    quiet: bool = False
    as_json: bool = False
    verbose: bool = False

    @cached_property
    def out(self) -> Console:
        """The console of the result."""
        return open_console(stderr=False)

    @cached_property
    def err(self) -> Console:
        """The console of everything else."""
        return open_console(stderr=True)

    def note(self, thing: Any = "") -> None:
        """Say something on the way, unless quiet."""
        if not self.quiet:
            with STATUS.aside():
                _print(self.err, thing)

    def detail(self, thing: Any = "") -> None:
        """Say something on the way that few people need, if verbose."""
        if self.verbose:
            self.note(thing)

    def warn(self, words: str) -> None:
        """Say what to beware of, even if quiet."""
        _warn(visible(words))

    def tell(self, thing: Any = "") -> None:
        """Say a part of the result in words or as a table, unless it is told as JSON."""
        if not self.as_json:
            _print(self.out, thing)

    def tell_verdict(self, kind: str, sentence: str) -> None:
        """Say the verdict, with its first words in its colour if the output is a terminal."""
        from rich.text import Text

        sentence = visible(sentence)
        first = len(sentence.split(":")[0]) + 1 if ":" in sentence else len(sentence)
        shown = Text(sentence)
        shown.stylize(f"bold {COLOURS.get(kind, '')}".strip(), 0, first)
        self.tell(shown)

    def tell_json(self, result: dict[str, Any]) -> None:
        """Say the whole result as one JSON object, if that was asked for; what is not finite is null."""
        if self.as_json:
            print(json.dumps(plain(result), allow_nan=False), flush=True)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Say what is being done while it is done, if standard error is a terminal, unless quiet."""
        self.step(what)
        try:
            yield
        finally:
            STATUS.erase()

    @contextmanager
    def loading(self, what: str) -> Iterator[None]:
        """Say what is being done while packages load. Python looks for garbage only afterwards: they hold none.

        It would look through all that is loaded again and again: an eighth of the time that a short command takes.
        """
        was_on = gc.isenabled()
        gc.disable()
        try:
            with self.doing(what):
                yield
        finally:
            _set_aside_what_is_loaded()
            if was_on:
                gc.enable()

    def step(self, what: str) -> None:
        """Say what is being done from now on, in place of what was said before."""
        if not self.quiet:
            STATUS.show(what)

    @contextmanager
    def progress(self, what: str, total: int | None, in_bytes: bool = False) -> Iterator[Callable[[int], None]]:
        """Show how much of long work is done, with the time left, if standard error is a terminal."""
        shown = not self.quiet and self.err.is_terminal
        with self.doing(what), ProgressBar(shown, "bytes" if in_bytes else "rows") as bar:
            yield lambda done: bar.update(what, done, total)


@cache  # only once in a process: what is frozen is never looked at again
def _set_aside_what_is_loaded() -> None:
    gc.freeze()


def open_console(stderr: bool) -> Console:
    """Return a console that breaks lines at the edge of a terminal, and nowhere else."""
    from rich.console import Console

    is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, highlight=False, width=None if is_terminal else ENDLESS)


def _print(console: Console, thing: Any) -> None:
    from rich.text import Text

    is_prose = isinstance(thing, str | Text)
    console.print(_shown(thing), markup=False, soft_wrap=is_prose and not console.is_terminal)


def _shown(thing: Any) -> Any:
    return visible(thing) if isinstance(thing, str) else thing


def _warn(words: str) -> None:
    """Print a warning: in one line, which a terminal breaks between words."""
    from rich.text import Text

    shown = Text(f"Warning: {words}")
    shown.stylize("bold yellow", 0, len("Warning:"))
    with STATUS.aside():
        _print(open_console(stderr=True), shown)


def table(*columns: str, title: str | None = None, right: Sequence[int] = ()) -> Table:
    """Return an empty table; the columns of these indices are numbers."""
    from rich import box
    from rich.table import Table

    class VisibleTable(Table):
        def add_row(self, *cells: Any, **more: Any) -> None:
            super().add_row(*(_shown(cell) for cell in cells), **more)

    made = VisibleTable(
        box=box.SIMPLE_HEAD, title=_shown(title), title_justify="left", title_style="bold", pad_edge=False
    )
    for i, name in enumerate(columns):
        made.add_column(_shown(name), justify="right" if i in right else "left", overflow="fold")
    return made


def cell(value: Any) -> str:
    """Return a cell of a table in short: whole numbers without a point, dates without the hour if there is none."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.10g}"
    return " ".join(str(value).removesuffix(" 00:00:00").split())


def in_one_line(message: object) -> str:
    """Return what somebody else may have written, in one line and with nothing in it that acts on a terminal."""
    return visible(" ".join(str(message).split()))


def complain(message: str) -> None:
    """Say in one line on standard error why a command ends."""
    STATUS.erase()
    print(f"guardband: {in_one_line(message)}", file=sys.stderr)


def show_warnings_in_one_line() -> None:
    """Let warnings say what they have to say, without the line of code that they came from."""

    def show(message: Any, *about: Any, **more: Any) -> None:
        _warn(in_one_line(message))

    warnings.showwarning = show
