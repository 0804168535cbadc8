"""Kill fit, predict, audit, save, train, reproduce and monitor: what is there must be old, or new and whole.

    python benchmarks/attacks/kills.py [--kills 200] [--seed 0] [--only fit,predict] [FOLDER]

Each run is a process of its own, forked from one that has loaded the packages. Half of the kills come at moments drawn
uniformly from the time that a run takes. The others come while files are written: before each call in turn that opens,
syncs, locks, renames or removes a file, and at random bytes of a file. After every kill each result must be the old one
or the new one, whole, and no process, temporary file or shared memory may be left. After one to three kills the run is
repeated to its end. Then the results must be those of runs that nobody disturbed, and no part file may be left. The
monitor has a chain of runs, and each of them is disturbed.

Of a fit in processes, every other kill ends one of the processes that it started. That fit must end by itself, with the
results of one that nobody disturbed.

The last line counts kills and finds. ``benchmarks/results/faults/kills.csv`` has them for each operation.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from figures import keep
from forked import FaultyCalls, die, run, workers_of
from operations import operations, parts_in

RESULTS = Path(__file__).parents[1] / "results" / "faults" / "kills.csv"
WORKER = "of a worker"
PHASES = ("any moment", "at a call", "at a byte", WORKER)
KILLED = (-signal.SIGKILL, -signal.SIGXFSZ)


class Attack:
    """Kills one operation until there were enough kills."""

    def __init__(self, operation, folder, kills, random):
        """Run the operation undisturbed, and learn from that what to expect."""
        self.operation, self.folder, self.kills, self.random = operation, folder, kills, random
        self.killed, self.found, self.rounds, self.changed, self.turn = Counter(), [], 0, 0, 0
        self.begin("whole")
        self.old = operation.seen()
        self.expected, self.before = [], []
        for step in operation.steps:
            self.before.append(operation.seen())
            self.expected.append((run(step, calls=FaultyCalls()), operation.seen()))
            assert self.expected[-1][0].code in operation.exits, self.expected[-1][0]
        if operation.has_workers:
            seen = []
            look = lambda child, _: seen.extend(time.monotonic() for own in workers_of(child) if own)  # noqa: E731
            run(operation.steps[0], signals=[(0, 0)], to=look)
            self.seconds_of_workers = seen[-1] - seen[0]

    def begin(self, name):
        """Make a folder with old results, and go there."""
        place = self.folder / self.operation.name / name
        place.mkdir(parents=True)
        os.chdir(place)
        self.operation.begin()

    def find(self, words):
        """Note and show what is wrong."""
        self.found.append(words)
        print(f"{self.operation.name}: {words}", flush=True)

    def seen(self):
        """Return the results, or nothing if one is there by half."""
        try:
            return self.operation.seen()
        except Exception as error:
            self.find(f"{type(error).__name__}: {error}")
            return None

    def kill(self, step, undisturbed):
        """Run a step and kill it; return how it ended, and in which phase the kill was to come."""
        if self.operation.has_workers and 2 * self.killed[WORKER] <= sum(self.killed.values()):
            return self.kill_worker(step, undisturbed), WORKER
        if self.killed["any moment"] <= self.killed["at a call"] + self.killed["at a byte"]:
            return run(step, signals=[(self.random.uniform(0, undisturbed.seconds), signal.SIGKILL)]), PHASES[0]
        if self.killed["at a call"] <= self.killed["at a byte"]:
            self.turn += 1
            return run(step, calls=FaultyCalls(die, at=self.turn % max(1, undisturbed.calls))), PHASES[1]
        opening = int(self.random.integers(undisturbed.openings))
        size = int(np.exp(self.random.uniform(0, np.log(60_000))))
        return run(step, calls=FaultyCalls(at_opening=opening, size=size)), PHASES[2]

    def kill_worker(self, step, undisturbed):
        """Run a step and kill one of its processes, at any moment while it has some; the step must end by itself."""
        hit = []

        def to(child, which):
            next(filter(None, workers_of(child)), None)
            time.sleep(self.random.uniform(0, self.seconds_of_workers))
            if workers := next(workers_of(child), []):
                os.kill(int(self.random.choice(workers)), which)
                hit.append(child)

        ended = run(step, signals=[(0, signal.SIGKILL)], to=to)
        self.killed[WORKER] += len(hit)
        if ended.code != undisturbed.code:
            self.find(f"without one of its processes it ended with {ended.code}: {ended.err.strip()[-300:]}")
        return ended

    def disturb(self, number):
        """Kill a step one to three times, then let it end; return whether it had its effect before."""
        step, (undisturbed, after) = self.operation.steps[number], self.expected[number]
        had_effect = False
        for _ in range(self.random.integers(1, 4)):
            ended, phase = self.kill(step, undisturbed)
            self.killed[phase] += ended.code in KILLED
            for name in ended.left:
                self.find(f"left after a kill {phase} in step {number}: {name}")
            found = self.seen()
            if found is None:
                break
            if phase == WORKER and found != after:
                self.find(f"other results after a kill {phase} in step {number}")
            for name, own in found.items():
                if own not in (self.before[number].get(name, ""), after.get(name)):
                    self.find(f"{name} is neither old nor new after a kill {phase} in step {number}")
            self.changed += ended.code in KILLED and found != self.before[number]
            if self.operation.again is not None:
                first = next(iter(found))
                had_effect = found[first] == after[first]
                if had_effect:
                    break
        return had_effect

    def play(self):
        """Kill and repeat all steps, in a folder of their own."""
        self.rounds += 1
        self.begin(str(self.rounds))
        for number, step in enumerate(self.operation.steps):
            had_effect = self.disturb(number)
            ended, (undisturbed, after) = run(step), self.expected[number]
            code = self.operation.again if had_effect else undisturbed.code
            for name in ended.left:
                self.find(f"left after step {number}: {name}")
            if ended.code != code:
                self.find(f"step {number} ended with {ended.code}, undisturbed {code}: {ended.err.strip()[-300:]}")
            if self.operation.name == "train" and ended.out != undisturbed.out:
                self.find("other weights than undisturbed")
            if self.seen() != after:
                self.find(f"other results than undisturbed after step {number}")
            if parts := parts_in("."):
                self.find(f"part files are left: {parts}")
        os.chdir(self.folder)
        shutil.rmtree(self.folder / self.operation.name / str(self.rounds))

    def until_enough(self):
        """Play rounds until there were enough kills; return a row of figures."""
        while sum(self.killed.values()) < self.kills:
            self.play()
        return {
            "operation": self.operation.name,
            "kills": sum(self.killed.values()),
            **{phase: self.killed[phase] for phase in PHASES},
            "calls": max(own.calls for own, _ in self.expected),
            "after a result had changed": self.changed,
            "rounds": self.rounds,
            "finds": len(self.found),
        }


def main():
    """Attack each operation, and write the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    folder = (given.folder or Path(tempfile.mkdtemp())).resolve()
    rows = []
    for operation in operations(folder):
        if not given.only or operation.name in given.only.split(","):
            rows.append(Attack(operation, folder, given.kills, np.random.default_rng(given.seed)).until_enough())
            print(", ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
            keep(RESULTS, rows[-1], ("operation",))
    kills, finds = (sum(row[name] for row in rows) for name in ("kills", "finds"))
    print(f"{kills} kills, {finds} finds")
    sys.exit(bool(finds))


if __name__ == "__main__":
    main()
