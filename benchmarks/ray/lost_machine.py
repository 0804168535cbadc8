"""Loses a whole machine in every phase of the work on Ray, and compares what comes out with undisturbed runs.

    python benchmarks/ray/lost_machine.py -o FOLDER [--times 2] [--only scoring,audit] [--results FILE.json]

Three Ray nodes on this machine, of one core each, are the cluster: that of the driver, and two that can be lost. While
a worker of such a node runs a task of the phase, the node is lost: its raylet, with its part of the object store
and all of its processes are ended at once by SIGKILL. Nothing tells the others. A new node joins half a minute
later, because Ray Train waits until it has as many cores as before. Phases and tables are those of ``kills.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from kills import MOST_RUNS, Phase, digest, make, phases, title_of
from processes import family

NODES, STORE = 2, 300 << 20
UNTIL_NEW = 30.0
LATEST = 0.5
"""A node is lost up to so many seconds after a worker of it began with the task."""
NEVER_THERE = "_fit"
"""A task without a core of its own runs beside the driver."""
PHASES = (
    "fit: passes",
    "fit: gathering",
    "fit: copies",
    "fit: all workers",
    "fit: all workers and checkpoints",
    "calibration: rows",
    "calibration: weights, pac",
    "calibration: entities",
    "calibration: entities, pac",
    "scoring: folder",
    "scoring: dataset",
    "audit: rows",
    "audit: entities",
    "monitor",
)


class Machines:
    """A cluster whose nodes can be lost."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        # A node that joins from a thread cannot ask for signals, so that all are ended here.
        self._cluster = Cluster(False, shutdown_at_exit=False)
        self._added()
        self.nodes = [self._added() for _ in range(NODES)]

    def connect(self) -> None:
        """Connect this process to the cluster."""
        import ray
        from guardband.ray.cluster import connect

        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": 40}
        ray.init(address=self._cluster.address, **quiet)
        connect()

    def lose(self, node: Any) -> int:
        """End all processes of a node at once, and return how many."""
        every = processes_of(node)
        for own in every:
            os.kill(own, signal.SIGSTOP)  # so that none learns of the end of another
        every = processes_of(node)
        for own in every:
            os.kill(own, signal.SIGKILL)
        self.nodes.remove(node)
        return len(every)

    def fill(self) -> None:
        """Let new nodes join in place of those that were lost."""
        while len(self.nodes) < NODES:
            self.nodes.append(self._added())

    def end(self) -> None:
        """End all nodes."""
        import ray

        ray.shutdown()
        self._cluster.shutdown()

    def _added(self) -> Any:
        return self._cluster.add_node(num_cpus=1, object_store_memory=STORE)


def processes_of(node: Any) -> list[int]:
    """Return all processes of a node."""
    begun = [own.process.pid for each in node.all_processes.values() for own in each]
    return sorted({own for first in begun for own in family(first)})


class Loss(threading.Thread):
    """Loses one node while a worker of it runs a task, and lets a new one join later.

    Parameters
    ----------
    machines : Machines
        The cluster.
    task : str
        What the title of the worker holds.
    seed : int
        The seed of its wait.
    """

    def __init__(self, machines: Machines, task: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._machines, self._task, self._random = machines, task, random.Random(seed)
        self.lost = self.of = 0
        self.end = threading.Event()

    def run(self) -> None:
        """Lose a node."""
        self.end.wait(self._random.uniform(0, LATEST))
        looked = -1.0
        while not self.end.is_set():
            if time.monotonic() - looked > 0.5:
                known, looked = [(own, processes_of(own)) for own in self._machines.nodes], time.monotonic()
            for node, processes in known:
                if any(map(self._is_at_work, processes)):
                    self.of = self._machines.lose(node)
                    self.lost = 1
                    self.end.wait(UNTIL_NEW)
                    self._machines.fill()
                    return
            time.sleep(0.005)

    def _is_at_work(self, process: int) -> bool:
        title = title_of(process)
        return title.startswith("ray::") and self._task in title


def disturbed(phase: Phase, machines: Machines, times: int) -> dict[str, Any]:
    """Run a phase undisturbed, then lose a node in each of its tasks so many times; return what was found."""
    begin = time.monotonic()
    wanted, alone = digest(phase.run()), time.monotonic() - begin
    told: list[dict[str, Any]] = []
    tasks = [task for task in phase.tasks if task != NEVER_THERE]
    for task in tasks:
        lost = 0
        for i in range(times * MOST_RUNS):
            loss = Loss(machines, task, i)
            loss.start()
            one = time.monotonic()
            try:
                found = digest(phase.run())
            finally:
                loss.end.set()
                loss.join()
            took = round(time.monotonic() - one, 1)
            told.append({"task": task, "lost": loss.lost, "same": found == wanted, "seconds": took})
            print("  ", phase.name, told[-1], loss.of, "processes", flush=True)
            lost += loss.lost
            if lost == times:
                break
    return {
        "lost": sum(own["lost"] for own in told),
        "of": {task: sum(own["lost"] for own in told if own["task"] == task) for task in tasks},
        "runs": len(told),
        "identical": sum(own["same"] for own in told),
        "undisturbed, seconds": round(alone, 1),
        "longest, seconds": max(own["seconds"] for own in told),
    }


def lose(asked: argparse.Namespace, machines: Machines, found: dict[str, Any]) -> None:
    """Lose machines in the phases that are asked for."""
    import guardband as gb

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        some = str(asked.o / "in" / "0[0-1].parquet")
        gb.ray.calibrate(gb.load(asked.o / "rows.guardband"), some, target="y").save(asked.o / "calibrated.guardband")
        every = [own for own in phases(asked.o) if own.name in PHASES]
    wanted = tuple((asked.only or "").split(","))
    for phase in every:
        if phase.name.startswith(wanted):
            found[phase.name] = disturbed(phase, machines, asked.times)
            print(phase.name, json.dumps(found[phase.name]), "load", round(os.getloadavg()[0], 1), flush=True)
            if asked.results is not None:
                asked.results.write_text(json.dumps(found, indent=1) + "\n")


def main() -> None:
    """Lose machines, compare, and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", type=Path, required=True)
    parser.add_argument("--times", type=int, default=2, help="in each task of a phase")
    parser.add_argument("--only", help="some phases, by their beginnings")
    parser.add_argument("--results", type=Path, help="a JSON file, to which phases are added")
    asked = parser.parse_args()
    found = json.loads(asked.results.read_text()) if asked.results is not None and asked.results.exists() else {}
    make(asked.o)
    machines = Machines()
    try:
        machines.connect()
        lose(asked, machines, found)
    finally:
        machines.end()


if __name__ == "__main__":
    main()
