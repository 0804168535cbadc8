"""Kills workers in every phase of the work on Ray, and whole runs, and compares what comes out with undisturbed runs.

    python benchmarks/ray/kills.py -o FOLDER [--kills 6] [--drivers 5] [--only audit,monitor] [--results FILE.json]

A worker is stopped while its process says that it runs a task of the phase, and killed if it still does. There are
three workers. A phase is run again until as many workers were killed in each of its tasks as asked. What comes out of
each run is compared to the bit. Training by all workers is compared in two ways: begun anew, and from a checkpoint
after each epoch. In the second, rows come in another order afterwards, and only what was learnt before training is
compared. FOLDER gets tables of half a million rows, once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from processes import family
from pyarrow import parquet

import guardband as gb
from guardband.ray import streamed
from guardband.ray.parallel import Plan, train_together
from guardband.ray.streams import StoppingRows, Tap, TrainingStream
from guardband.training.job import Trained

WORKERS, FILES, ROWS, PART_ROWS = 3, 12, 40_000, 1 << 15
MOST_WEIGHT = 4.0
LONGEST_WAIT = 0.5
"""Between two kills there are up to so many seconds."""
MOST_RUNS = 8
FEATURES = ["a", "b", "letter", "w", "patient"]
FIT = {"preset": "fast", "hidden": (16,), "max_epochs": 3, "random_state": 0}
MODELS: dict[str, dict[str, Any]] = {
    "rows": {},
    "pac": {"guarantee": "pac"},
    "patients": {"split_by": "patient"},
    "patients drawn": {"split_by": "patient", "guarantee": "pac"},
}
Lines = Iterable[Any]


def table(n: int, seed: int, first: int) -> pa.Table:
    """Return rows of patients, of whom each has about 20, with weights and a noise that grows."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, n))
    patient = first + rng.integers(0, max(1, n // 20), n)
    y = a + rng.standard_normal(n) * (1 + np.abs(b)) + np.sin(patient)
    letter, weight = rng.choice(["u", "v", "w"], n), np.minimum(np.exp(0.3 * a), MOST_WEIGHT)
    names = [f"p{i}" for i in patient]
    return pa.table({"a": a, "b": b, "letter": letter, "w": weight, "patient": names, "y": y})


def make(folder: Path) -> None:
    """Write the tables and the models, once."""
    if (folder / "made").exists():
        return
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for i in range(FILES):
        rows = table(ROWS, 100 + i, 10_000 * (1 + i // 2))
        parquet.write_table(rows, folder / "in" / f"{i:02}.parquet", row_group_size=PART_ROWS // 2)
    train = table(4000, 0, 0)
    for name, options in MODELS.items():
        model = gb.IntervalRegressor(calibration_size=None, verbose=False, **FIT, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(train.select(FEATURES), train["y"].to_numpy().copy())
        model.save(folder / f"{name}.guardband")
    (folder / "made").touch()


def start() -> None:
    """Start Ray."""
    import ray
    from guardband.ray.cluster import connect

    quiet: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": 40}
    ray.init(address="local", num_cpus=WORKERS, object_store_memory=400 << 20, **quiet)
    connect()


class Killer(threading.Thread):
    """Kills workers that run a task, until so many are dead or it is told to end.

    Parameters
    ----------
    task : str
        What the titles of their processes hold.
    kills : int
        How many to kill.
    seed : int
        The seed of its waits.
    """

    def __init__(self, task: str, kills: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._task, self._kills, self._random = task, kills, random.Random(seed)
        self.killed = 0
        self.end = threading.Event()

    def run(self) -> None:
        """Kill."""
        while self.killed < self._kills and not self.end.wait(self._random.uniform(0, LONGEST_WAIT)):
            self._kill_one()

    def _kill_one(self) -> None:
        """Wait for a process that runs the task, and kill it."""
        known: list[int] = []
        looked = -1.0
        while not self.end.is_set():
            if time.monotonic() - looked > 0.2:
                known, looked = family(), time.monotonic()
            seen = [own for own in known if self._is_at_work(own)]
            if seen:
                self.killed += self._is_killed(self._random.choice(seen))
                return
            time.sleep(0.001)

    def _is_at_work(self, process: int) -> bool:
        title = title_of(process)
        return title.startswith("ray::") and self._task in title

    def _is_killed(self, process: int) -> bool:
        """Kill a process that stands still, if it runs the task still."""
        try:
            os.kill(process, signal.SIGSTOP)
            still = self._is_at_work(process)
            os.kill(process, signal.SIGKILL if still else signal.SIGCONT)
        except ProcessLookupError:
            return False
        return still


def title_of(process: int) -> str:
    """Return what a process says that it is."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True)
class Phase:
    """A part of the work.

    Parameters
    ----------
    name : str
        What it is called.
    tasks : tuple of str
        What is killed in it, one after another.
    run : function
        Does the work, and returns what came out.
    """

    name: str
    tasks: tuple[str, ...]
    run: Callable[[], Lines]


def digest(found: Lines) -> str:
    """Return a checksum of arrays, tensors and all else that is told."""
    sums = hashlib.sha256()
    for own in found:
        told = own.numpy() if hasattr(own, "numpy") else own
        sums.update(told.tobytes() if isinstance(told, np.ndarray) and told.dtype != object else repr(told).encode())
    return sums.hexdigest()


def learnt(model: Any) -> Lines:
    """Yield what a fit learns before it trains."""
    fitted = model.fitted_
    yield fitted.learned.encoder
    yield fitted.learned.target
    yield fitted.seen
    yield np.sort(fitted.training_prints)
    yield np.sort(fitted.calibration_prints)
    yield model.certificate_.n_calibration


def calibrated(model: Any) -> Lines:
    """Yield what a model was calibrated to."""
    for name, own in sorted(model.calibration_.found.arrays.items()):
        yield name
        yield own
    yield model.certificate_.promise
    yield model.certificate_.notes


def whole(model: Any) -> Lines:
    """Yield all that a fit gives."""
    yield from learnt(model)
    for name, own in sorted(model.fitted_.learned.members.snapshot().items()):
        yield name
        yield own
    yield from calibrated(model)


def trained_here(plan: Plan, checkpoints: str | None) -> Trained:
    """Train in this process what all workers train together: to kill them in passes, none need to."""
    size = plan.job.recipe.batch_size
    loader = TrainingStream(Tap(plan.stream, size), plan.batches, plan.copies, plan.job.device, plan.stops)
    held_out = StoppingRows.of(plan.stream, plan.copies, 4 * size, plan.job.device) if plan.stops else None
    return replace(plan.job, loader=loader, held_out=held_out).train()


def phases(folder: Path) -> list[Phase]:
    """Return what is disturbed."""
    data, some, few, later = (str(folder / "in" / f"{own}.parquet") for own in ("*", "0[0-5]", "0[0-1]", "0[2-9]"))
    model = {name: gb.load(folder / f"{name}.guardband") for name in MODELS}
    ready = gb.ray.calibrate(model["rows"], few, target="y")
    ready_patients = gb.ray.calibrate(model["patients"], few, target="y")

    def fitted(pattern: str, training: Any = train_together, **options: Any) -> Any:
        streamed.train_together = training
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return gb.ray.fit(pattern, target="y", columns=["a", "b", "letter"], **{**FIT, **options})

    def with_checkpoints(plan: Plan, checkpoints: str | None) -> Trained:
        return train_together(replace(plan, every=0.0), checkpoints)

    def calibration(name: str, **options: Any) -> Callable[[], Lines]:
        return lambda: calibrated(gb.ray.calibrate(model[name], data, target="y", keep_scores=1000, **options))

    def scored() -> Lines:
        out = folder / "disturbed"
        shutil.rmtree(out, ignore_errors=True)
        score(folder, out)
        return written(out)

    def dataset() -> Lines:
        blocks = gb.ray.predict(ready, some).iter_batches(batch_size=None, batch_format="pyarrow")
        found = pa.concat_tables(list(blocks))  # which may be cut elsewhere
        return [found[name].to_numpy() for name in ("a", "point", "lower", "upper")]

    def audited(own: Any) -> Callable[[], Lines]:
        return lambda: [repr(gb.ray.audit(own, later, target="y"))]

    def monitored() -> Lines:
        monitor = gb.Monitor(ready)
        found = gb.ray.update(monitor, later, target="y")
        return [repr(found), found.order, repr(monitor)]

    passes, counted = ("_of_piece",), ("_summarised", "_answer")
    bounded = {"weights": "w", "max_weight": MOST_WEIGHT}
    return [
        Phase("fit: passes", passes, lambda: whole(fitted(some, trained_here, memory_limit=1000))),
        Phase("fit: gathering", (*passes, "_fit"), lambda: whole(fitted(some))),
        Phase("fit: copies", ("_train",), lambda: whole(fitted(few, preset="default", max_epochs=2))),
        Phase("fit: all workers", ("RayTrainWorker",), lambda: whole(fitted(few, memory_limit=1000))),
        Phase(
            "fit: all workers and checkpoints",
            ("RayTrainWorker",),
            lambda: learnt(fitted(few, with_checkpoints, memory_limit=1000, max_epochs=20)),
        ),
        Phase("calibration: rows", counted, calibration("rows")),
        Phase("calibration: weights", counted, calibration("rows", weights="w")),
        Phase("calibration: weights, pac", (*counted, "_kept"), calibration("pac", **bounded)),
        Phase("calibration: entities", (*counted, "_split", "_merge", "_sized"), calibration("patients")),
        Phase("calibration: entities, pac", (*counted, "_split", "_merge", "_chosen"), calibration("patients drawn")),
        Phase("scoring: folder", ("_write",), scored),
        Phase("scoring: dataset", ("MapBatches",), dataset),
        Phase("audit: rows", ("_tallied",), audited(ready)),
        Phase("audit: entities", ("_labelled", "_tallied"), audited(ready_patients)),
        Phase("monitor", ("_brought",), monitored),
        Phase("cells", ("_of_cell",), lambda: cells(folder / "cells")),
    ]


def cells(place: Path) -> Lines:
    """Return the numbers of some cells of an experiment, and how many there are."""
    from guardband.experiments.reproduce.cells import Cell
    from guardband.experiments.reproduce.folder import Folder
    from guardband.experiments.reproduce.run import run
    from guardband.experiments.reproduce.setting import CONF_NN, QREG_UN, Setting

    shutil.rmtree(place, ignore_errors=True)
    setting = Setting("tuned", (32,), (CONF_NN, QREG_UN), max_epochs=10, batch_size=100)
    every = [Cell("simulation", replace(setting, name=f"s{i}"), (0,), 3000, 1000) for i in range(9)]
    out = Folder(place)
    out.open({"seed": 7}, {"command": "kills"})
    run(every, out, seed=7, device="cpu", verbose=False, cluster="auto")
    found = out.tables()["results"].drop(columns="seconds")
    return [sum(map(out.is_done, every)), found.to_csv(index=False)]


def score(folder: Path, out: Path) -> None:
    """Predict files into a folder, part by part."""
    from guardband.cli.predict_ray import PartWriter
    from guardband.cli.stated_columns import NOTHING_MORE
    from guardband.cli.stream import Inputs
    from guardband.ray.scoring import score_files
    from guardband.ray.sources import Files

    model = gb.load(folder / "calibrated.guardband")
    files = Files.of(str(folder / "in" / "*.parquet"), part_rows=PART_ROWS)
    write = PartWriter(model, Inputs.of(model, files.like), None, False, NOTHING_MORE, False, ".parquet")
    out.mkdir(exist_ok=True)
    score_files(files, out, write, ".parquet", {})


def written(out: Path) -> list[tuple[str, str]]:
    """Return the names of all files but notes, with a checksum of each."""
    return [
        (path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in sorted(out.glob("*")) if path.is_file()
    ]


def disturbed(phase: Phase, kills: int) -> dict[str, Any]:
    """Run a phase undisturbed, then with kills until there were enough; return what was found."""
    begin = time.monotonic()
    wanted, alone = digest(phase.run()), time.monotonic() - begin
    killed: Counter[str] = Counter()
    same = []
    for task in phase.tasks:
        for i in range(MOST_RUNS):
            killer = Killer(task, -(-kills // len(phase.tasks)) - killed[task], i)
            killer.start()
            try:
                found = digest(phase.run())
            finally:
                killer.end.set()
                killer.join()
            killed[task] += killer.killed
            same.append(found == wanted)
            if killed[task] * len(phase.tasks) >= kills:
                break
    told = {"kills": killed.total(), "of": dict(killed), "runs": len(same), "identical": sum(same)}
    return {**told, "undisturbed, seconds": round(alone, 1), "seconds": round(time.monotonic() - begin, 1)}


def drivers_killed(folder: Path, kills: int) -> dict[str, Any]:
    """Kill a run with all of its processes so many times, begin it again each time, and compare."""
    out, begin = folder / "disturbed", time.monotonic()
    score(folder, folder / "whole")
    wanted = written(folder / "whole")
    import ray

    ray.shutdown()
    shutil.rmtree(out, ignore_errors=True)
    parts = lambda: len(list(out.glob("*.parquet"))) if out.exists() else 0  # noqa: E731
    for i in range(kills + 1):
        before = parts()
        command = [sys.executable, "-W", "ignore", __file__, "-o", str(folder), "--once", str(out)]
        run = subprocess.Popen(command, start_new_session=True)
        while i < kills and run.poll() is None and parts() < before + 2:
            time.sleep(0.02)
        for own in family(run.pid) if i < kills else ():
            try:
                os.kill(own, signal.SIGKILL)
            except ProcessLookupError:
                continue
        run.wait()
    same = written(out) == wanted
    return {"kills": kills, "runs": kills + 1, "identical": same, "seconds": round(time.monotonic() - begin, 1)}


def main() -> None:
    """Kill, compare, and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=6, help="workers in each phase, divided among its tasks")
    parser.add_argument("--drivers", type=int, default=5)
    parser.add_argument("--only", help="some phases, by their beginnings")
    parser.add_argument("--results", type=Path, help="a JSON file, to which phases are added")
    parser.add_argument("--once", type=Path, help="score into this folder and end")
    asked = parser.parse_args()
    make(asked.o)
    start()
    if asked.once is not None:
        score(asked.o, asked.once)
        return
    known = asked.results is not None and asked.results.exists()
    found = json.loads(asked.results.read_text()) if known else {}
    shutil.rmtree(asked.o / "whole", ignore_errors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gb.ray.calibrate(gb.load(asked.o / "rows.guardband"), str(asked.o / "in" / "0[0-1].parquet"), target="y").save(
            asked.o / "calibrated.guardband"
        )
        every = phases(asked.o)
    wanted = tuple((asked.only or "").split(","))
    for phase in every:
        if phase.name.startswith(wanted):
            found[phase.name] = disturbed(phase, asked.kills)
            _told(phase.name, found, asked.results)
    if "drivers".startswith(wanted):
        found["drivers"] = drivers_killed(asked.o, asked.drivers)
        _told("drivers", found, asked.results)
    print(sum(own["kills"] for own in found.values()), "kills in all")


def _told(name: str, found: dict[str, Any], results: Path | None) -> None:
    print(name, json.dumps(found[name]), "load", round(os.getloadavg()[0], 1), flush=True)
    if results is not None:
        results.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
