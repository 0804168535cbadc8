"""Full disks, missing rights, two writers, inputs that change and signals: fit, predict, audit, save, train, and more.

    python benchmarks/attacks/faults.py [--seed 0] [--only fit,predict] [--faults disk_full,signals] [FOLDER]

Needs Linux, and root for a small disk of its own and for an ordinary user's rights. Each try is a process of its own,
forked from one that has loaded the packages, in a folder of its own with old results. Signals go to all processes of a
try, as a terminal sends them. It is a find if

- a result is neither the old one nor the new one, whole, or a part file is left;
- a process that it started goes on, or a temporary file or shared memory is left;
- a command ends with another exit code than 0, 1, 2 and 130, with a traceback, or with other than one complaint;
- a call from Python raises something else than what the system said, or leaves something else than a kill would;
- a run that goes on where another one ended, or counts every table once, ends with other results than undisturbed.

``benchmarks/results/faults/faults.csv`` has tries and finds for each operation and fault.
"""

import argparse
import contextlib
import errno
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from figures import keep
from forked import FaultyCalls, left_running, run, start
from operations import operations, parts_in

RESULTS = Path(__file__).parents[1] / "results" / "faults" / "faults.csv"
NOBODY = 65534
CODES = (0, 1, 2, 130)
FROM_PYTHON = ("save", "train")
MOST_CALLS = 30
MOMENTS = 6
WRITING = ("open", "os.rename", "os.mkdir", "fsync")
DISK_KB = (8, 16, 24, 40, 64, 100, 200, 400)
SIGNALS = {
    "Ctrl-C": [signal.SIGINT],
    "Ctrl-C twice": [signal.SIGINT, signal.SIGINT],
    "SIGTERM": [signal.SIGTERM],
    "SIGHUP": [signal.SIGHUP],
}


def raises(number):
    """Return a fault that raises what the system would."""

    def fault():
        raise OSError(number, os.strerror(number))

    return fault


def as_nobody():
    """Become an ordinary user, in this process."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


@contextlib.contextmanager
def small_disk(place, kilobytes):
    """Mount a disk of that size at a place."""
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", place], check=True)
    try:
        yield
    finally:
        os.chdir("/")
        subprocess.run(["umount", place], check=True)


class Attack:
    """Tries every fault on one operation."""

    def __init__(self, operation, folder, random):
        """Run the operation undisturbed, and learn from that what to expect."""
        self.operation, self.folder, self.random = operation, folder, random
        self.step, self.tries, self.finds, self.number = operation.steps[0], {}, {}, 0
        self.is_command = operation.name not in FROM_PYTHON
        with self.place():
            self.preload()
        with self.place():
            self.old = operation.seen()
            self.undisturbed = run(self.step, calls=FaultyCalls(only=WRITING))
            assert self.undisturbed.code in operation.exits, self.undisturbed
            self.new = operation.seen()

    def preload(self):
        """Import what the step needs: an ordinary user may have no right to read this Python's packages."""

        def step():
            self.step()
            Path("modules").write_text("\n".join(sys.modules))

        run(step)
        for name in Path("modules").read_text().split():
            with contextlib.suppress(Exception):
                importlib.import_module(name)

    @contextlib.contextmanager
    def place(self):
        """Go to a new folder with old results; remove it afterwards."""
        self.number += 1
        place = self.folder / f"{self.operation.name}-{self.number}"
        place.mkdir()
        os.chdir(place)
        self.operation.begin()
        try:
            yield
        finally:
            os.chdir(self.folder)
            shutil.rmtree(place)

    def judge(self, fault, ended, others=(), any_whole=False, left=False, repeats=True):
        """Note what is wrong after a try: ``others`` are further results that may be there."""
        found = [*self._said(ended), *(f"left: {name}" for name in ended.left)]
        try:
            for name, own in self.operation.seen().items():
                allowed = [known.get(name) for known in (self.old, self.new, *others)]
                if own and own not in allowed and not any_whole:
                    found.append(f"{name} is neither old nor new")
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
        if not left and (parts := parts_in(".")):
            found.append(f"part files are left: {parts}")
        if repeats and (self.operation.goes_on or self.operation.again is not None):
            self._repeat(found)
        self.tries[fault] = self.tries.get(fault, 0) + 1
        self.finds[fault] = self.finds.get(fault, 0) + bool(found)
        for words in found:
            print(f"{self.operation.name}, {fault}: {words}", flush=True)
        if os.environ.get("SHOW"):
            print(f"{self.operation.name}, {fault}: {ended.code} {ended.err.strip()[-200:]!r}", flush=True)

    def _said(self, ended):
        complaints = sum(line.startswith("guardband: ") for line in ended.err.splitlines())
        if not self.is_command:
            lines = ended.err.strip().splitlines() or [""]
            if ended.code > 0 and not any(kind in lines[-1] for kind in ("Error: ", "Interrupt")):
                yield f"ended with {ended.code}: {lines[-1][-300:]}"
            return
        if ended.code not in CODES:
            yield f"ended with {ended.code}: {ended.err.strip()[-300:]}"
        if "Traceback" in ended.err or "Exception ignored" in ended.err:
            yield "a traceback"
        if complaints != (ended.code in (2, 130)):
            yield f"{complaints} complaints and exit code {ended.code}: {ended.err.strip()[-300:]}"

    def _repeat(self, found):
        """Run again without a fault: the results must be those of a run that nobody disturbed."""
        had_effect = self.operation.again is not None and self.operation.seen() == self.new
        ended = run(self.step)
        if ended.code != (self.operation.again if had_effect else self.undisturbed.code):
            found.append(f"repeated, it ended with {ended.code}: {ended.err.strip()[-300:]}")
        if self.operation.seen() != self.new or parts_in("."):
            found.append("repeated, it has other results than undisturbed")
        if self.operation.name == "train" and ended.out != self.undisturbed.out:
            found.append("repeated, it has other weights than undisturbed")

    def disk_full(self):
        """Fail the calls that need room, one in each run; then limit the size of files, and that of the disk."""
        calls = self.undisturbed.calls
        for at in np.unique(np.linspace(0, calls - 1, min(calls, MOST_CALLS)).astype(int)):
            with self.place():
                ended = run(self.step, calls=FaultyCalls(raises(errno.ENOSPC), at=int(at), only=WRITING))
                self.judge("disk full at one call", ended)
        for kilobytes in DISK_KB:
            with self.place():
                ended = run(self.step, calls=FaultyCalls(at_opening=0, size=kilobytes << 10, kills=False))
                self.judge("files limited in size", ended)
        for kilobytes in DISK_KB:
            self.number += 1
            place = self.folder / f"{self.operation.name}-{self.number}"
            with small_disk(place, kilobytes):
                os.chdir(place)
                try:
                    self.operation.begin()
                except OSError:
                    continue  # no room for the old results
                self.judge("disk full", run(self.step), repeats=False)

    def rights(self):
        """Run as an ordinary user where it may not write, or not read; and on a disk that is read-only."""
        with self.place():
            os.chmod(".", 0o555)
            self.judge("folder not writable", run(self.step, before=as_nobody), repeats=False)
        with self.place():
            os.chmod(".", 0o333)  # may be written, and not listed
            self.judge("folder not readable", run(self.step, before=as_nobody), any_whole=True, repeats=False)
        self.number += 1
        place = self.folder / f"{self.operation.name}-{self.number}"
        with small_disk(place, 4096):
            os.chdir(place)
            self.operation.begin()
            subprocess.run(["mount", "-o", "remount,ro", place], check=True)
            self.judge("disk read-only", run(self.step), repeats=False)
        for path in self.operation.inputs:
            with self.place():
                mode = os.stat(path).st_mode
                os.chmod(path, 0)
                self.judge("input not readable", run(self.step, before=as_nobody), repeats=False)
                os.chmod(path, mode & 0o777)

    def two_writers(self):
        """Run the step and another one that writes to the same place at once."""
        orders = [[self.operation.other], [self.step, self.operation.other], [self.operation.other, self.step]]
        others = []
        for order in orders:
            with self.place():
                for step in order:
                    run(step)
                others.append(self.operation.seen())
        for _ in range(MOMENTS):
            with self.place(), tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                second = start(self.operation.other, out, err)
                time.sleep(self.random.uniform(0, 0.5 * self.undisturbed.seconds))
                ended = run(self.step)
                code = os.waitstatus_to_exitcode(os.waitpid(second, 0)[1])
                assert not left_running(second)
                if code not in (*self.operation.exits, 2) and (self.is_command or code != 98):
                    err.seek(0)
                    print(f"{self.operation.name}: the other writer ended with {code}: {err.read()[-300:]}", flush=True)
                    self.finds["two writers"] = self.finds.get("two writers", 0) + 1
                self.judge("two writers", ended, others, repeats=False)

    def changing_inputs(self):
        """Cut, empty, overwrite or remove an input at a moment of the run."""
        for path in map(Path, self.operation.inputs):
            whole = path.read_bytes()
            changes = {
                "cut": lambda path=path, whole=whole: os.truncate(path, len(whole) // 2),
                "emptied": lambda path=path: os.truncate(path, 0),
                "overwritten": lambda path=path, whole=whole: path.write_bytes(whole[::-1]),
                "removed": lambda path=path: path.unlink(),
            }
            for name, change in changes.items():
                for moment in range(MOMENTS):
                    with self.place():
                        delay = self.undisturbed.seconds * (moment + self.random.random()) / MOMENTS
                        timer = threading.Timer(delay, change)
                        timer.start()
                        ended = run(self.step)
                        timer.join()
                        path.write_bytes(whole)
                        self.judge(f"input {name} meanwhile", ended, any_whole=True, repeats=False)

    def signals(self):
        """Send signals at moments spread over the run."""
        for name, numbers in SIGNALS.items():
            for moment in range(MOMENTS):
                with self.place():
                    delay = 0.02 + self.undisturbed.seconds * (moment + self.random.random()) / MOMENTS
                    signals = [(delay, numbers[0]), *((0.005, number) for number in numbers[1:])]
                    ended = run(self.step, signals=signals, to=os.killpg)
                    self.judge(name, ended, left=not self.is_command and name != "Ctrl-C")


def main():
    """Attack each operation, and write the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--faults", default="disk_full,rights,two_writers,changing_inputs,signals")
    given = parser.parse_args()
    folder = (given.folder or Path(tempfile.mkdtemp())).resolve()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also under nohup
    every = operations(folder)
    (folder / "matplotlib").mkdir(exist_ok=True)
    for own in (folder, folder / "matplotlib", folder / "temporary"):
        os.chmod(own, 0o777)
    tries = finds = 0
    for operation in every:
        if given.only and operation.name not in given.only.split(","):
            continue
        attack = Attack(operation, folder, np.random.default_rng(given.seed))
        for fault in given.faults.split(","):
            getattr(attack, fault)()
        for fault, count in attack.tries.items():
            row = {"operation": operation.name, "fault": fault, "tries": count, "finds": attack.finds[fault]}
            keep(RESULTS, row, ("operation", "fault"))
        own = sum(attack.tries.values()), sum(attack.finds.values())
        tries, finds = tries + own[0], finds + own[1]
        print(f"{operation.name}: {own[0]} tries, {own[1]} finds", flush=True)
    print(f"{tries} tries, {finds} finds")
    sys.exit(bool(finds))


if __name__ == "__main__":
    main()
