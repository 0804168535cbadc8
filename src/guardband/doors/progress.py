"""The progress of a fit."""

from __future__ import annotations

import math
import sys

from guardband.progress import ProgressBar, notebook_display


class FitProgress(ProgressBar):
    """Shows epochs after a second, in a terminal, in a notebook, or if ``verbose`` is true.

    If the time is limited, the bar shows how much of it is used: training will hardly reach the last epoch.
    """

    def __init__(self, verbose: bool | None, seconds: float = math.inf) -> None:
        super().__init__(_is_watched() if verbose is None else verbose, "epochs")
        self._limit = seconds

    def __call__(self, what: str, epoch: int, epochs: int) -> None:
        """Show that ``epoch`` of at most ``epochs`` is done."""
        if self._limit == math.inf:
            self.update(what, epoch, epochs, epoch=epoch, of=f" of at most {epochs}")
        else:
            self.update(what, min(self.seconds, self._limit), self._limit, epoch=epoch, of="")


def _is_watched() -> bool:
    """Return whether somebody looks at standard error, or at the output of a notebook."""
    return notebook_display() is not None or (sys.stderr is not None and sys.stderr.isatty())
