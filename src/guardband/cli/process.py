"""The process around a command: its streams and signals, its exit code, and the one line that says why it ends."""

from __future__ import annotations

import os
import sys

from guardband.cli.console import complain, show_warnings_in_one_line
from guardband.cli.exit_codes import BROKEN, DONE, FAULT, REFUSED, STOPPED, VerdictCode
from guardband.cli.faults import debugging, explained, threads_fail_in_one_line
from guardband.cli.standard_streams import ERROR, OutputLostError, open_standard_streams, output_failure
from guardband.cli.stops import STOPPED_WORDS, Stops
from guardband.data.files import remove_unfinished

SHOW_CURSOR = "\x1b[?25h"


def main() -> None:
    """Run the command line, and end the process with its exit code; there is no traceback, whatever happens.

    0 is done, 1 a broken promise, 2 bad input, 3 a fault of guardband's own, 130 a stop by Ctrl-C or another signal.
    """
    with open_standard_streams(), Stops(_end_at_once) as stops, threads_fail_in_one_line(lambda: stops.heard):
        try:
            code, words = _outcome()
            if stops.heard:  # a library made another error of the signal, or none at all
                if words and code != STOPPED and debugging():
                    complain(words)
                raise KeyboardInterrupt
            code = _end(code, words)
            stops.over()
        except KeyboardInterrupt:
            code = _end(STOPPED, STOPPED_WORDS)
            stops.over()
    sys.exit(code)


def _outcome() -> tuple[int, str]:
    """Run the command that was asked for; return its exit code, and why it failed."""
    try:
        show_warnings_in_one_line()
        if _is_nowhere():
            return REFUSED, "The current folder was removed. Change to another one."
        from guardband.cli.app import commands  # takes a moment, in which signals are heard

        code = commands()(standalone_mode=False)
    except KeyboardInterrupt:
        raise
    except OutputLostError:
        return DONE, ""
    except SystemExit as end:
        if isinstance(end.__context__, OSError):  # a broken pipe, which Typer makes an exit of
            return explained(end.__context__)
        code = end.code
    except BaseException as error:
        # Typer takes the end of a damaged file for that of a terminal's input.
        return explained(error.__cause__ if isinstance(error.__cause__, EOFError) else error)
    if isinstance(code, str):
        return REFUSED, code
    if code == BROKEN and not isinstance(code, VerdictCode):
        return REFUSED, ""
    if code not in (None, DONE, BROKEN, REFUSED, FAULT, STOPPED):
        return FAULT, f"This is guardband's own fault: it ended with the exit code {code}. Please report it."
    return code or DONE, STOPPED_WORDS if code == STOPPED else ""


def _is_nowhere() -> bool:
    """Return whether there is no current folder any more, for which the numerics below torch end the process."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _end(code: int, words: str) -> int:
    """Say why a command ends, leave nothing half-written, and return the exit code."""
    remove_unfinished()
    failure = output_failure()
    # If whoever read our output has gone, such as head, there is nobody to tell.
    if failure is not None and not isinstance(failure, BrokenPipeError) and code not in (FAULT, STOPPED):
        code, words = REFUSED, f"Standard output cannot be written: {failure.strerror}. Send it to a file or a pipe."
    if words:
        complain(words)
    return int(code)


def _end_at_once() -> None:
    """End the process from within a signal, and leave nothing half-written."""
    remove_unfinished()
    cursor = SHOW_CURSOR if os.isatty(ERROR) else ""  # a progress bar hides it
    try:
        os.write(ERROR, f"{cursor}guardband: {STOPPED_WORDS}\n".encode())
    finally:
        os._exit(STOPPED)
