"""The progress of a fit."""

from __future__ import annotations

import math
import sys

from guardband.progress import ProgressBar


class FitProgress(ProgressBar):
    """Shows epochs on standard error, after a second, if it is a terminal or ``verbose`` is true.

    If the time is limited, the bar shows how much of it is used: training will hardly reach the last epoch.
    """

    def __init__(self, verbose: bool | None, seconds: float = math.inf) -> None:
        is_shown = sys.stderr is not None and sys.stderr.isatty() if verbose is None else verbose
        super().__init__(is_shown, "epochs")
        self._limit = seconds

    def __call__(self, what: str, epoch: int, epochs: int) -> None:
        """Show that ``epoch`` of at most ``epochs`` is done."""
        if self._limit == math.inf:
            self.update(what, epoch, epochs, epoch=epoch, of=f" of at most {epochs}")
        else:
            self.update(what, min(self.seconds, self._limit), self._limit, epoch=epoch, of="")
