"""A progress bar on standard error, for work that takes long."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from guardband.words import visible

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

Counted = Literal["epochs", "rows", "bytes"]
PATIENCE_S = 1.0
"""Work that is done sooner shows no progress."""
WIDE = 80
"""A terminal with fewer columns gets a bar that shrinks, and fewer words."""


class ProgressBar:
    """Shows how much of each task is done and how long the rest will take; nothing at all unless ``shown``."""

    def __init__(self, shown: bool, counted: Counted) -> None:
        self._shown, self._counted = shown, counted
        self._started = time.monotonic()
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    @property
    def seconds(self) -> float:
        """How long the work has taken until now."""
        return time.monotonic() - self._started

    def update(self, what: str, done: float, total: float | None, **fields: Any) -> None:
        """Show that so much of a task is done; ``fields`` are for the words about it."""
        if not self._shown or self.seconds < PATIENCE_S:
            return
        if self._bar is None:
            self._bar = _started_bar(self._counted)
        if what not in self._tasks:
            from rich.markup import escape

            self._tasks[what] = self._bar.add_task(escape(visible(what)), **fields)
        self._bar.update(self._tasks[what], completed=done, total=total, **fields)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _started_bar(counted: Counted) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    wide = console.width >= WIDE
    words: ProgressColumn = TextColumn("{task.completed:,} of {task.total:,} rows")
    if counted == "bytes":
        words = DownloadColumn()
    elif counted == "epochs":
        words = TextColumn("epoch {task.fields[epoch]}" + ("{task.fields[of]}" if wide else ""))
    columns = (TextColumn("{task.description}"), BarColumn(40 if wide else None), words)
    made = Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=console.is_terminal
    )
    made.start()
    return made
