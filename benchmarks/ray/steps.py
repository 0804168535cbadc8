"""What a step of training by many processes costs, measured here in parts, and what follows for 128 processes.

    python benchmarks/ray/steps.py --results benchmarks/results/ray/cost.json

A step is: compute the gradients of a process's own rows, add them up over all processes by gloo, and move the networks.
The model of its time on P processes is

    compute(rows of a batch / P) + 2 (P - 1) / P * bytes / bandwidth + 2 (P - 1) * latency

because gloo sends around a ring, in 2 (P - 1) rounds. Measured: compute in seconds of processors, the bytes, and
all-reduce alone by 2, 3 and 4 processes, on loopback as it is and on loopback at 1 Gbit/s for each process (in a
network of its own, which ends with the process; needs root). Then whole steps by 2 processes, beside what the model
foretells. Of everything the fastest tenth counts, because other work on the machine only adds to it. Not measured: rows
are random and not read.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed

from guardband.doors.table import IntervalRegressor
from guardband.learning.each_member import loss_of_each, recipe_of_each, seed_of
from guardband.learning.effort import LONGEST_EPOCH
from guardband.learning.options import FitOptions
from guardband.ray.parallel import AllReduce
from guardband.ray.streams import TrainingStream
from guardband.training.job import Job
from guardband.training.shared import Together

ROWS, PROCESSES, MACHINES, BANDWIDTH, WIRE = 10**9, 128, 64, 125e6, 50e-6
"""What is extrapolated to: 1 Gbit/s for each machine. ``WIRE`` is assumed: the time of a message between machines."""
COLUMNS, STEPS, EPOCHS = 20, 60, 4
FASTEST = 0.1
SIZES = (2, 8, 32, 128, 256)
BYTES = (4, 1 << 16, 1 << 20, 1 << 22, 1 << 24)


class Tap:
    """Gives batches of random rows, the same work as real ones without reading, and looks at a clock each time.

    Parameters
    ----------
    rows, width, targets : int
        The shape of a batch.
    clock : function
        Returns seconds.
    """

    def __init__(self, rows: int, width: int, targets: int, clock: Callable[[], float]) -> None:
        rng = np.random.default_rng(0)
        x, y = rng.random((rows, width), np.float32), rng.random((rows, targets), np.float32)
        self.first = x, y, np.zeros(rows, np.int64)
        self.marks: list[float] = []
        self._clock = clock

    def next(self, epoch: int) -> tuple[Any, ...]:
        """Return a batch."""
        self.marks.append(self._clock())
        return self.first


class Alone(Together):
    """One process, which adds up nothing."""

    def added(self, numbers: Any) -> Any:
        """Return the numbers."""
        return numbers


def job_of(preset: str) -> tuple[Job, int, int, dict[str, int]]:
    """Return the job of a fit in passes of 10^9 rows, without rows; how wide these are; and what is told of it."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5000, COLUMNS)), rng.standard_normal(5000)
    small = IntervalRegressor(preset=preset, max_epochs=1, random_state=0, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learned = small.fit(X, y).fitted_.learned
    options = FitOptions.of(IntervalRegressor(preset=preset).get_params(deep=False))
    base, recipe, effort = options.training_for(ROWS)
    shape = base.for_table(learned.encoder)
    members = [(copy, spec) for copy in range(effort.copies) for spec in options.specs]
    width, specs = learned.encoder.width, [spec for _, spec in members]
    networks = tuple(
        shape.build(width, spec.head, seed_of(0, copy, spec), torch.device("cpu")) for copy, spec in members
    )
    numbers = sum(p.numel() for network in networks for p in network.parameters()) + len(networks)
    about = {
        "networks": len(networks),
        "bytes of gradients": 4 * numbers,
        "rows of a batch": recipe.batch_size,
        "steps of an epoch at most": LONGEST_EPOCH,
        "epochs at least": recipe.patience + 1,
        "epochs at most": recipe.max_epochs,
    }
    recipe = replace(recipe_of_each(recipe, specs), epochs=EPOCHS)
    job = Job(networks, loss_of_each(specs, torch.device("cpu")), recipe, torch.device("cpu"))
    return job, width, len(learned.target.scales), about


def timed(preset: str, rows: int, clock: Callable[[], float], others: Together) -> float:
    """Return the seconds of a step with so many rows, of the fastest tenth after the first epoch."""
    job, width, targets, _ = job_of(preset)
    tap: Any = Tap(rows, width, targets, clock)
    stream = TrainingStream(tap, STEPS, tuple(range(job.size)), torch.device("cpu"), stops=False)
    replace(job, loader=stream, together=others).train()
    return float(np.quantile(np.diff(tap.marks[STEPS:]), FASTEST))


def line(x: list[float], y: list[float]) -> tuple[float, float]:
    """Return the constant and the slope of a line through points, by relative error: small ones count as much."""
    weight = 1 / np.asarray(y)
    columns = np.stack([weight, weight * np.asarray(x)], axis=1)
    (constant, slope), *_ = np.linalg.lstsq(columns, np.ones(len(y)), rcond=None)
    return float(constant), float(slope)


def joined(rank: int, size: int, port: int) -> None:
    """Join a group of processes."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)


def reduce(rank: int, size: int, port: int, out: Any) -> None:
    """Time all-reduce of several sizes."""
    joined(rank, size, port)
    found = {}
    for n in BYTES:
        numbers = torch.zeros(n // 4)
        took = []
        for _ in range(300 if n < 1 << 20 else 30):
            distributed.barrier()
            began = time.perf_counter()
            distributed.all_reduce(numbers)
            took.append(time.perf_counter() - began)
        found[n] = float(np.quantile(took, FASTEST))
    if rank == 0:
        out.put(found)
    distributed.destroy_process_group()


def steps(rank: int, size: int, port: int, out: Any, preset: str) -> None:
    """Time whole steps of several processes."""
    joined(rank, size, port)
    took = timed(preset, -(-256 // size), time.perf_counter, AllReduce())
    if rank == 0:
        out.put(took)
    distributed.destroy_process_group()


def together(work: Any, size: int, *more: Any) -> Any:
    """Return what the first of so many processes says."""
    context = multiprocessing.get_context("spawn")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    out = context.Queue()
    processes = [context.Process(target=work, args=(rank, size, port, out, *more)) for rank in range(size)]
    for process in processes:
        process.start()
    found = out.get()
    for process in processes:
        process.join()
    return found


def shaped(size: int) -> dict[int, float]:
    """Return the times of all-reduce where each process has 1 Gbit/s: loopback has as many times that as processes."""
    own = f"import steps, json; print(json.dumps(steps.together(steps.reduce, {size})))"
    limit = f"ip link set lo up && tc qdisc add dev lo root tbf rate {size}gbit burst 256kb latency 100ms"
    command = ["unshare", "-n", "sh", "-c", f"{limit} && exec {sys.executable} -c '{own}'"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent).stdout
    return {int(n): took for n, took in json.loads(said).items()}


def rounds_and_rate(found: dict[int, float], size: int) -> tuple[float, float]:
    """Return the seconds of a round, by the smallest sum, and the bytes a process sends in a second, by the largest."""
    least, most = min(found), max(found)
    return found[least] / (2 * (size - 1)), 2 * (size - 1) / size * most / (found[most] - found[least])


def model(
    compute: tuple[float, float], about: dict[str, int], size: int, here: tuple[float, float]
) -> dict[str, float]:
    """Return the parts of a step of so many processes, two on each machine, in seconds."""
    constant, slope = compute
    latency, rate = here if size <= PROCESSES // MACHINES else (here[0] + WIRE, BANDWIDTH)
    nbytes = about["bytes of gradients"]
    return {
        "compute": constant + slope * -(-about["rows of a batch"] // size),
        "bytes": 2 * (size - 1) / size * nbytes / rate,
        "rounds": 2 * (size - 1) * latency,
    }


def main() -> None:
    """Measure, extrapolate, and write both beside what rows cost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--no-shaped", action="store_true", help="leave out what needs root")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    out: dict[str, Any] = {"load": os.getloadavg()[0], "all-reduce": {}, "presets": {}}
    for size in (2, 3, 4):
        for name in ("loopback",) if asked.no_shaped else ("loopback", "1 Gbit/s each"):
            found = together(reduce, size) if name == "loopback" else shaped(size)
            latency, rate = rounds_and_rate(found, size)
            own = {"microseconds": {n: 1e6 * took for n, took in found.items()}}
            own |= {"microseconds a round": 1e6 * latency, "MB a second": rate / 1e6}
            out["all-reduce"][f"{size} processes, {name}"] = own
            print(size, name, json.dumps(own), flush=True)
    two = out["all-reduce"]["2 processes, loopback"]
    here = two["microseconds a round"] / 1e6, two["MB a second"] * 1e6
    for preset in ("fast", "default"):
        took = {rows: timed(preset, rows, time.process_time, Alone()) for rows in SIZES}
        compute, about = line(list(took), list(took.values())), job_of(preset)[-1]
        sizes = [2**i for i in range(int(np.log2(PROCESSES)) + 1)]
        each = {size: model(compute, about, size, here) for size in sizes}
        epoch = about["steps of an epoch at most"] * sum(each[PROCESSES].values()) / 60
        out["presets"][preset] = {
            **about,
            "compute, milliseconds by rows": {rows: 1e3 * own for rows, own in took.items()},
            "compute, milliseconds a step": 1e3 * compute[0],
            "compute, microseconds a row": 1e6 * compute[1],
            "2 processes, milliseconds measured": 1e3 * together(steps, 2, preset),
            "milliseconds by processes, foretold": {
                size: {name: 1e3 * part for name, part in own.items()} | {"all": 1e3 * sum(own.values())}
                for size, own in each.items()
            },
            "minutes of an epoch, extrapolated": epoch,
            "minutes at least, extrapolated": about["epochs at least"] * epoch,
            "minutes at most, extrapolated": about["epochs at most"] * epoch,
        }
        print(preset, json.dumps(out["presets"][preset], indent=1), flush=True)
    known = json.loads(asked.results.read_text()) if asked.results.exists() else {}
    known["training"] = out
    asked.results.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
