"""How far work that takes long has come: a bar on standard error, or one line below the cell of a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from guardband.words import visible

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID
    from rich.status import Status

Counted = Literal["epochs", "rows", "bytes"]
PATIENCE_S = 1.0
"""Work that is done sooner shows no progress."""
EVERY_S = 0.2
"""A notebook's line changes no more often."""
WIDE = 80
"""A terminal with fewer columns gets a bar that shrinks, and fewer words."""
BLOCKS = 24
"""How wide the bar in a notebook's line is."""


_listeners: list[Callable[[str], object]] = []


@contextmanager
def told_of_steps(listener: Callable[[str], object]) -> Iterator[None]:
    """Tell a function what each step of long work is called, for a while."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def step(words: str) -> None:
    """Say that a step begins which may take long, and shows no progress of its own."""
    for listener in _listeners[-1:]:
        listener(words)


class ProgressBar:
    """Shows how much of each task is done and how long the rest will take; nothing at all unless ``shown``."""

    def __init__(self, shown: bool, counted: Counted) -> None:
        self._shown, self._counted = shown, counted
        self._started = time.monotonic()
        self._bar: _Bar | None = None

    @property
    def seconds(self) -> float:
        """How long the work has taken until now."""
        return time.monotonic() - self._started

    def update(self, what: str, done: float, total: float | None, **fields: Any) -> None:
        """Show that so much of a task is done; ``fields`` are for the words about it."""
        if not self._shown or self.seconds < PATIENCE_S:
            return
        if self._bar is None:
            display = notebook_display()
            notebook = None if display is None else _NotebookLine(self._counted, display, self._started)
            self._bar = notebook or _TerminalBar(self._counted)
        self._bar.update(what, done, total, fields)

    def step(self, words: str) -> None:
        """Say that a step begins which shows no progress; whoever listens to steps says it in place of the bar."""
        if _listeners:
            self.stop()
            step(words)
        elif self._bar is not None:
            self._bar.say(words)

    def stop(self) -> None:
        """End the bar, if there is one."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def notebook_display() -> Callable[..., Any] | None:
    """Return what shows objects below the cell of a notebook, None outside a notebook.

    A notebook's kernel has loaded IPython and has a shell with a ``kernel``; the shell of IPython in a terminal has
    none.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    display: Callable[..., Any] = import_module("IPython.display").display
    return display


class _Bar(Protocol):
    def update(self, what: str, done: float, total: float | None, fields: Mapping[str, Any]) -> None: ...

    def say(self, words: str) -> None: ...

    def stop(self) -> None: ...


class _TerminalBar:
    """A bar for each task, by rich."""

    def __init__(self, counted: Counted) -> None:
        self._bar = _started_bar(counted)
        self._tasks: dict[str, TaskID] = {}
        self._status: Status | None = None

    def update(self, what: str, done: float, total: float | None, fields: Mapping[str, Any]) -> None:
        if what not in self._tasks:
            from rich.markup import escape

            self._tasks[what] = self._bar.add_task(escape(visible(what)), **fields)
        self._bar.update(self._tasks[what], completed=done, total=total, **fields)

    def say(self, words: str) -> None:
        self.stop()
        self._status = self._bar.console.status(f"{words} …")
        self._status.start()

    def stop(self) -> None:
        self._bar.stop()
        if self._status is not None:
            self._status.stop()


class _NotebookLine:
    """One line of plain text for the task at hand, which stays when the work is done."""

    def __init__(self, counted: Counted, display: Callable[..., Any], started: float) -> None:
        self._counted, self._display, self._started = counted, display, started
        self._line, self._handle, self._written = "", None, started

    def update(self, what: str, done: float, total: float | None, fields: Mapping[str, Any]) -> None:
        now = time.monotonic()
        full = round(BLOCKS * min(done / total, 1.0)) if total else 0
        bar = "█" * full + "░" * (BLOCKS - full) + "  " if total else ""
        self._line = f"{visible(what)}  {bar}{self._words(done, total, fields)}  {_clock(now - self._started)}"
        if self._handle is None or now - self._written >= EVERY_S:
            self._write()
            self._written = now

    def say(self, words: str) -> None:
        line, self._line = self._line, f"{words} …"
        self._write()
        self._line = line

    def stop(self) -> None:
        self._write()

    def _words(self, done: float, total: float | None, fields: Mapping[str, Any]) -> str:
        if self._counted == "epochs":
            return f"epoch {fields['epoch']}{fields['of']}"
        scale, digits, unit = (1e6, 1, "MB") if self._counted == "bytes" else (1.0, 0, "rows")
        numbers = [f"{amount / scale:,.{digits}f}" for amount in (done, total) if amount is not None]
        return f"{' of '.join(numbers)} {unit}"

    def _write(self) -> None:
        bundle = {"text/plain": self._line}
        if self._handle is None:
            self._handle = self._display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _started_bar(counted: Counted) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class TimeLeft(TimeRemainingColumn):
        """How long the rest takes; nothing where work may end long before the last epoch."""

        def render(self, task: Task) -> Text:
            return Text() if task.fields.get("of") else super().render(task)

    console = Console(stderr=True)
    wide = console.width >= WIDE
    words: ProgressColumn = TextColumn("{task.completed:,} of {task.total:,} rows")
    if counted == "bytes":
        words = DownloadColumn()
    elif counted == "epochs":
        words = TextColumn("epoch {task.fields[epoch]}" + ("{task.fields[of]}" if wide else ""))
    columns = (TextColumn("{task.description}"), BarColumn(40 if wide else None), words)
    made = Progress(*columns, TimeElapsedColumn(), TimeLeft(), console=console, transient=console.is_terminal)
    made.start()
    return made
