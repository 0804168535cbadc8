"""Ctrl-C, and the signals by which a shell or a system ends a process: all of them end a command alike."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stops:
    """While it is entered, the first signal raises ``KeyboardInterrupt``; a second one ends the process at once.

    ``at_once`` does so, and does not return. What is ignored stays ignored, as ``nohup`` wants it. Once a command is
    over, signals change nothing any more.
    """

    def __init__(self, at_once: Callable[[], None]) -> None:
        self._at_once = at_once
        self._heard = self._over = False
        self._process = os.getpid()
        self._before: dict[int, Any] = {}
        self._hook = sys.unraisablehook

    def __enter__(self) -> Self:
        self._hook, sys.unraisablehook = sys.unraisablehook, self._dropped
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[number] = signal.signal(number, self._stop)
            atexit.register(_ignore, tuple(self._before))  # Python's own end takes a moment, too
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.unraisablehook = self._hook
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def over(self) -> None:
        """Let signals change nothing any more: the exit code is known, and what had to be said is said."""
        self._over = True

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self._over:
            return
        if os.getpid() != self._process:  # a child that was forked ends as any process does
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        if self._heard:
            self._end()
        self._heard = True
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
