"""A progress bar that appears only when a fit takes long."""

from __future__ import annotations

import math
import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

PATIENCE_S = 1.0
WIDE = 80


class FitProgress:
    """Shows epochs on standard error, after a second, if it is a terminal or ``verbose`` is true.

    Where the time is limited, the bar shows how much of it is used: the epochs will hardly all be run.
    """

    def __init__(self, verbose: bool | None, seconds: float = math.inf) -> None:
        self._seconds = seconds
        self._shown = sys.stderr.isatty() if verbose is None else verbose
        self._started = time.monotonic()
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, what: str, epoch: int, epochs: int) -> None:
        """Show that ``epoch`` of at most ``epochs`` is done."""
        if not self._shown or time.monotonic() - self._started < PATIENCE_S:
            return
        if self._bar is None:
            console = Console(stderr=True)
            words = "epoch {task.fields[epoch]}" + (" of at most {task.total}" if console.width >= WIDE else "")
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(None if console.width < WIDE else 40),
                TextColumn(words if self._seconds == math.inf else "epoch {task.fields[epoch]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=console,
                transient=console.is_terminal,
            )
            self._bar.start()
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(what, epoch=epoch)
        used, total = (epoch, epochs) if self._seconds == math.inf else (self._used(), self._seconds)
        self._bar.update(self._tasks[what], completed=used, total=total, epoch=epoch)

    def _used(self) -> float:
        return min(time.monotonic() - self._started, self._seconds)

    def __enter__(self) -> FitProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
