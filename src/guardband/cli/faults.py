"""Why a command failed: what guardband refuses is bad input, and all else that is raised is a fault of its own."""

from __future__ import annotations

import dis
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath

from guardband.cli.console import complain, in_one_line
from guardband.cli.exit_codes import FAULT, REFUSED
from guardband.cli.usage import usage_in_words
from guardband.words import visible

DEBUG = "GUARDBAND_DEBUG"
LONGEST = 300
RAISE = dis.opmap["RAISE_VARARGS"]


def explained(error: BaseException) -> tuple[int, str]:
    """Return the exit code for what was raised, and what to say about it, in one line."""
    if hasattr(error, "format_message"):  # the command line's own errors
        return REFUSED, in_one_line(usage_in_words(error))
    if isinstance(error, ModuleNotFoundError) and not is_refusal(error) and not (error.name or "").startswith("guard"):
        return REFUSED, f"{in_one_line(error)}. Install it, or install guardband again."
    if isinstance(error, OSError) and error.filename is not None and error.strerror:  # of the system
        return REFUSED, f"{in_one_line(error.filename)}: {error.strerror}. Check the path and your rights to it."
    if isinstance(error, OSError | Warning) or is_refusal(error):
        return REFUSED, in_one_line(error)
    if debugging():
        print(visible("".join(traceback.format_exception(error))), file=sys.stderr)
    kind, said = type(error).__name__, in_one_line(error)[:LONGEST]
    what = f"{kind}: {said}" if said else kind
    if isinstance(error, MemoryError) or kind == "OutOfMemoryError":
        return FAULT, f"Not enough memory ({what}). Use fewer rows or columns, or a machine with more memory."
    place = f" ({where})" if (where := _places(error)) else ""
    return FAULT, (
        f"This is guardband's own fault: {what}{place}. Please report it. Set {DEBUG}=1 to see where it happened."
    )


def debugging() -> bool:
    """Return whether the user wants to see where a fault happened."""
    return bool(os.environ.get(DEBUG))


def is_refusal(error: BaseException) -> bool:
    """Return whether guardband itself raised this because of what it was given.

    Other packages and Python raise the same kinds of error, and nobody wrote those for a user to read. They are told
    apart by where they come from: a ``raise`` in guardband's own code.
    """
    frames = list(traceback.walk_tb(error.__traceback__))
    if not isinstance(error, ValueError | TypeError | ImportError) or not frames:
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    assert last is not None
    is_own = _package(last.tb_frame.f_globals) == "guardband"
    return is_own and last.tb_frame.f_code.co_code[last.tb_lasti] == RAISE


@contextmanager
def threads_fail_in_one_line(stopped: Callable[[], bool]) -> Iterator[None]:
    """Let a thread that fails say so in one line; the command that waits for it fails by itself.

    Once a command is ``stopped``, what its threads raise is of no matter, except to who looks for faults.
    """

    def say(failed: threading.ExceptHookArgs) -> None:
        if failed.exc_value is None or isinstance(failed.exc_value, SystemExit | KeyboardInterrupt):
            return
        if debugging() or not stopped():
            complain(explained(failed.exc_value)[1])

    hook, threading.excepthook = threading.excepthook, say
    try:
        yield
    finally:
        threading.excepthook = hook


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).split(".")[0]


def _places(error: BaseException) -> str:
    """Return where it was raised, and which line of guardband's led there."""
    every = list(traceback.walk_tb(error.__traceback__))
    own = [place for place in every if _package(place[0].f_globals) == "guardband"]
    shown = dict.fromkeys(
        f"{'/'.join(PurePath(frame.f_code.co_filename).parts[-3:])}:{line}" for frame, line in [*every[-1:], *own[-1:]]
    )
    return ", from ".join(shown)
