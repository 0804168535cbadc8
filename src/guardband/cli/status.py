"""A word before a silence: one line on standard error that says what is being done, and goes away by itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from guardband.words import visible

ERASE = "\r\x1b[2K"
DUMB = ("dumb", "unknown", "")
"""Terminals without movements of the cursor, by the name in ``TERM``."""


class StatusLine:
    """The line at the bottom of a terminal; a terminal that cannot erase gets a line for each step."""

    def __init__(self) -> None:
        self._words = ""

    def show(self, words: str) -> None:
        """Say what is being done from now on; nothing unless standard error is a terminal."""
        if not sys.stderr.isatty():
            return
        line = f"{visible(words)} …"
        if _is_dumb():
            print(line, file=sys.stderr, flush=True)
            return
        self._words = words
        width = _width()
        print(f"{ERASE}{line if len(line) < width else line[: width - 2] + '…'}", end="", file=sys.stderr, flush=True)

    def erase(self) -> None:
        """Take the words away."""
        if self._words:
            self._words = ""
            print(ERASE, end="", file=sys.stderr, flush=True)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Make room for what is printed inside, and say the words again below it."""
        words = self._words
        self.erase()
        try:
            yield
        finally:
            if words:
                self.show(words)


STATUS = StatusLine()
"""The one line that a process has."""


def _is_dumb() -> bool:
    return os.environ.get("TERM", "").lower() in DUMB


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80
