"""A process of its own for each try, forked from one that has loaded the packages, and faults at chosen moments in it.

A fault is a function that a child calls before it begins its work. ``FaultyCalls`` counts the calls by which a process
changes files in its folder, and does something at one of them.

A child and the processes that it starts are a group. When the child has ended, however it did, its group must end too,
and leave no temporary file and no shared memory.
"""

import contextlib
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from guardband.cli import program as cli_main

CALLS = ("open", "fsync", "os.rename", "os.remove", "os.chmod", "os.mkdir", "os.rmdir")
CALLS += ("shutil.rmtree", "fcntl.flock", "os.truncate")
SHARED = Path("/dev/shm")
SHARED_BY = ("pym-", "psm_", "sem.mp-", "torch_")
"""How Python and torch begin the names of what processes share; other programs of this machine have other names."""
PATIENCE = 30
"""Seconds in which the processes of a child that was killed must end: they notice it after an epoch."""


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code, negative if a signal ended it, what it wrote, and what it left behind."""

    code: int
    out: str
    err: str
    seconds: float
    left: tuple[str, ...]
    calls: int = 0
    openings: int = 0


def command(*words):
    """Return a step that runs a command of guardband, and returns its exit code."""

    def step():
        sys.argv = ["guardband", *words]
        try:
            cli_main()
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    return step


def start(step, out, err, before=None, after=None):
    """Start a step in a child and return its process number; ``before`` and ``after`` are called around it there."""
    child = os.fork()
    if child:
        with contextlib.suppress(OSError):  # it may have ended
            os.setpgid(child, child)
        return child
    code = 99
    try:
        os.setpgid(0, 0)
        for number, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, out.fileno()), (2, err.fileno())):
            os.dup2(file, number)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        if before is not None:
            before()
        try:
            code = step() or 0
        except BaseException:
            code = 98
            os.write(2, traceback.format_exc().encode())
        sys.stdout.flush()
        sys.stderr.flush()
        if after is not None:
            after()
    finally:
        os._exit(code)  # whatever happens, what the parent does next is not for the child


def run(step, before=None, signals=(), calls=None, to=os.kill):
    """Run a step in a child, with signals after so many seconds each; return how it ended.

    ``to`` sends a signal, given the child's number: ``os.kill`` to the child, ``os.killpg`` to all of its group.
    """
    known = traces()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as counted:
        note = None if calls is None else lambda: os.write(counted.fileno(), f"{calls.count} {calls.openings}".encode())
        began = time.monotonic()
        child = start(step, out, err, before if calls is None else calls.arm, note)
        for delay, which in signals:
            time.sleep(delay)
            with contextlib.suppress(ProcessLookupError):
                to(child, which)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        seconds = time.monotonic() - began
        texts = []
        for file in (out, err, counted):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        numbers = [int(word) for word in texts[2].split()] or [0, 0]
        left = (*left_running(child), *sorted(traces() - known))
        return Ended(code, *texts[:2], seconds, left, *numbers)


def traces():
    """Return the temporary files and the shared memory that there are."""
    shared = SHARED.iterdir() if SHARED.exists() else ()
    found = [path for path in shared if path.name.startswith(SHARED_BY)]
    return {str(path) for path in (*found, *Path(tempfile.gettempdir()).iterdir())}


def running():
    """Return the number and the group of each process that has not ended."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            state, _, group = path.read_text().rpartition(")")[2].split()[:3]
            if state not in "ZX":
                yield int(path.parent.name), int(group)


def workers_of(child):
    """Yield the processes that a child has started and that have not ended, again and again until it ends itself."""
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        with contextlib.suppress(OSError):
            own = [int(number) for number in Path(f"/proc/{child}/task/{child}/children").read_text().split()]
            yield [number for number in own if ") Z " not in Path(f"/proc/{number}/stat").read_text()]
        time.sleep(0.003)


def left_running(group):
    """Wait until the processes of a group have ended; return in words those that have not, and end them."""
    until = time.monotonic() + PATIENCE
    while left := [own for own, its in running() if its == group]:
        if time.monotonic() > until:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
            return [f"process {own} goes on" for own in left]
        time.sleep(0.01)
    return []


class FaultyCalls:
    """Counts the calls by which this process changes files, and does ``fault`` just before number ``at``.

    Counted are files opened for writing, and files or folders renamed, removed, locked, synced, made or given other
    rights, or those of them that ``only`` names. ``at_opening`` names a file by the number of its opening instead: from
    then on, a write beyond byte ``size`` of a file ends the process, or fails if that ``kills`` not. The system does
    that, also within a package that is not written in Python.
    """

    def __init__(self, fault=None, at=None, only=CALLS, at_opening=None, size=0, kills=True):
        """Keep what to do, and when."""
        self.fault, self.at, self.only = fault, at, only
        self.at_opening, self.size, self.kills = at_opening, size, kills
        self.count = self.openings = 0

    def arm(self):
        """Begin to count, in this process."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.addaudithook(self._hear)
        sync = os.fsync

        def counted(handle):
            self._call("fsync")
            return sync(handle)

        os.fsync = counted

    def _hear(self, event, arguments):
        if event == "open":
            path, _, flags = arguments
            is_stream = isinstance(path, int) or str(path).startswith(("/dev", "/proc", "/tmp/matplotlib"))
            if is_stream or not flags & (os.O_WRONLY | os.O_RDWR):
                return
            if self.openings == self.at_opening:
                if self.kills:
                    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
                resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.size))
            self.openings += 1
        self._call(event)

    def _call(self, event):
        if event in self.only:
            self.count += 1
            if self.count - 1 == self.at:
                self.fault()


def die():
    """End this process as a power cut would: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)
