"""Ctrl-C, and the signals by which a shell or a system ends a process: all of them end a command alike."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
STOPPED_WORDS = "stopped. No half-written file is left behind."


def hear_signals() -> None:
    """Let signals end the process at once, before there is a command: for a process that is nothing else.

    Ctrl-C is not raised, since imports may make another error of it.
    """
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end_early)


def _end_early(number: int, frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, f"guardband: {STOPPED_WORDS}\n".encode())
    os._exit(130)


class Stops:
    """While it is entered, the first signal raises ``KeyboardInterrupt``; a second one ends the process at once.

    ``at_once`` does so, and does not return. What is ignored stays ignored, as ``nohup`` wants it. Once a command is
    over, signals change nothing any more; if the process ends with it, that stays so. ``heard`` says whether there was
    a signal.
    """

    def __init__(self, at_once: Callable[[], None]) -> None:
        self._at_once = at_once
        self.heard = self._over = False
        self._process = os.getpid()
        self._before: dict[int, Any] = {}
        self._hook = sys.unraisablehook

    def __enter__(self) -> Self:
        self._hook, sys.unraisablehook = sys.unraisablehook, self._dropped
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler, _end_early):
                    self._before[number] = signal.signal(number, self._stop)
            atexit.register(_ignore, tuple(self._before))  # Python's own end takes a moment, too
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.unraisablehook = self._hook
        for number, handler in self._before.items():
            if handler is not _end_early:
                signal.signal(number, handler)

    def over(self) -> None:
        """Let signals change nothing any more: the exit code is known, and what had to be said is said."""
        self._over = True
        # Python kills itself by SIGINT in the end if that was raised while a string was executed, as dataclasses do
        # it, even if it was caught. It forgets about that when it executes another one.
        exec("")

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self._over:
            return
        if os.getpid() != self._process:  # a child that was forked ends as any process does
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        if self.heard:
            self._end()
        self.heard = True
        raise KeyboardInterrupt

    def _dropped(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Stop all the same if the signal was heard where Python drops what is raised; all else there is no matter."""
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            self._end()

    def _end(self) -> None:
        self.over()  # a third signal must not disturb it
        self._at_once()


def _ignore(signals: tuple[int, ...]) -> None:
    for number in signals:
        signal.signal(number, signal.SIG_IGN)
