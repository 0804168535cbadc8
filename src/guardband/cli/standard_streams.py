"""Standard input, output and error, as commands need them: always there, never a crash, whatever the encoding."""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

INPUT, OUTPUT, ERROR = 0, 1, 2
PLAIN = "guardband.plain"
"""The name under which Python knows how to write a character that an encoding lacks."""
IN_ASCII = {
    "\N{MINUS SIGN}": "-",
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{INFINITY}": "inf",
    "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{MULTIPLICATION SIGN}": "x",
    "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{BULLET}": "*",
    "\N{MIDDLE DOT}": "*",
}


class Lenient(io.FileIO):
    """The end of a stream that never raises: the first error is kept, and what comes after it is dropped."""

    failure: OSError | None = None

    def write(self, data: object) -> int:
        """Write what can be written, and say that all was."""
        size = memoryview(data).nbytes  # type: ignore[arg-type]
        while self.failure is None:
            try:
                written = super().write(data)  # type: ignore[arg-type]
            except OSError as error:
                self.failure = error
            else:
                if written is not None:
                    return written
                select.select([], [self], [])  # full for the moment, and told not to wait
        return size


@contextmanager
def open_standard_streams() -> Iterator[None]:
    """Make ``sys.stdout`` and ``sys.stderr`` lenient, and all three of the standard streams exist, for a while."""
    before = sys.stdin, sys.stdout, sys.stderr
    _open_what_is_closed()
    codecs.register_error(PLAIN, _in_ascii)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(INPUT, closefd=False)))
    sys.stdout, sys.stderr = _lenient(sys.stdout, OUTPUT), _lenient(sys.stderr, ERROR)
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


class OutputLostError(Exception):
    """Nothing more can be written to standard output: a command whose result goes there may end."""


def need_output() -> None:
    """Raise if standard output cannot be written any more."""
    if output_failure() is not None:
        raise OutputLostError


def output_failure() -> OSError | None:
    """Return why standard output cannot be written, None unless that was tried in vain."""
    sys.stdout.flush()
    end = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return end.failure if isinstance(end, Lenient) else None


def _open_what_is_closed() -> None:
    """Give each standard stream that is closed a file: else the next one opened takes its number, and its words.

    It is opened for the opposite of its use, so that using it fails as it does for a closed one.
    """
    for number, mode in ((INPUT, os.O_WRONLY), (OUTPUT, os.O_RDONLY), (ERROR, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)  # takes the lowest number that is free
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)


def _lenient(stream: TextIO | None, number: int) -> TextIO:
    encoding = "utf-8"
    if stream is not None:
        try:
            number, encoding = stream.fileno(), stream.encoding
        except (OSError, AttributeError):
            return stream  # kept in memory, as a notebook or a test does
        stream.flush()
    raw = Lenient(number, "w", closefd=False)
    is_terminal = raw.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors=PLAIN, line_buffering=is_terminal or number == ERROR
    )


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Return what is written for characters that the encoding lacks: plain signs for ours, escapes for all others."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(IN_ASCII.get(sign) or sign.encode("unicode_escape").decode("ascii") for sign in lost), error.end
