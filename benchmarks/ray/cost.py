"""What many files cost on Ray by the row, measured here at two sizes, and what follows for 10^9 rows on 64 machines.

    python benchmarks/ray/cost.py -o FOLDER --results benchmarks/results/ray/cost.json

Two workers predict a table of 20 columns, calibrate on it, and fit it in passes, each at two sizes. The difference of
the two is what a row costs in seconds of processors, and what a part of a file costs the driver and its network, since
workers tell as much of a part of any size. The rest is fixed. The extrapolation adds these up for 64 machines like this
one. Nothing of it ran on 64 machines. Disks, or a network that is slower than assumed, make it longer. The steps of
training are measured by ``steps.py``.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from large_table import Watch
from processes import TICKS, family
from pyarrow import parquet
from throughput import calibrate, make, predict, start

import guardband as gb
from guardband.ray import streamed
from guardband.ray.models import TableAsked
from guardband.ray.pieces import Reader
from guardband.ray.sources import PART_ROWS, Files
from guardband.ray.summarising import _summarised

ROWS, MACHINES, CORES, BYTES_A_SECOND = 10**9, 64, 2, 125e6
"""What is extrapolated to: machines of two cores, as this one, with a network of 1 Gbit/s each."""
EPOCHS = 3


@dataclass
class Run:
    """What one run took.

    Parameters
    ----------
    rows, parts : int
        How large it was.
    processor : float
        Seconds of processors, of all processes.
    driver : float
        Of these the driver's.
    told : int
        Bytes that workers sent to the driver.
    sent : int
        Bytes that the driver sent to each machine.
    training : float
        Of the seconds of processors those of the training steps.
    """

    rows: int = 0
    parts: int = 0
    processor: float = 0.0
    driver: float = 0.0
    told: int = 0
    sent: int = 0
    training: float = 0.0


class Clock(threading.Thread):
    """Adds up seconds of processors of this process and of all below it, also of those that end meanwhile."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._seen: dict[int, float] = {}
        self._lock = threading.Lock()

    def run(self) -> None:
        """Look twice a second."""
        while True:
            self.seconds()
            time.sleep(0.5)

    def seconds(self) -> float:
        """Return the seconds so far."""
        with self._lock:
            for process in family():
                try:
                    numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                self._seen[process] = sum(map(int, numbers[11:13])) / TICKS
            return sum(self._seen.values())


class Traffic:
    """Counts what the driver gets, what it puts, and what training takes."""

    def __init__(self, clock: Clock) -> None:
        import ray

        self._clock = clock
        self.told = self.sent = 0
        self.training = 0.0
        self._ray, self._kept = ray, (ray.get, ray.put, streamed.train_together)

    def __enter__(self) -> Traffic:
        get, put, train = self._kept

        def getting(references: Any, **more: Any) -> Any:
            found = get(references, **more)
            self.told += len(self._ray.cloudpickle.dumps(found))
            return found

        def putting(value: Any, **more: Any) -> Any:
            self.sent += len(self._ray.cloudpickle.dumps(value))
            return put(value, **more)

        def training(*given: Any) -> Any:
            before = self._clock.seconds()
            out = train(*given)
            self.training += self._clock.seconds() - before
            return out

        self._ray.get, self._ray.put, streamed.train_together = getting, putting, training
        return self

    def __exit__(self, *error: object) -> None:
        self._ray.get, self._ray.put, streamed.train_together = self._kept


def fit(folder: Path, workers: int, rows: str) -> None:
    """Fit in passes, without gathering the rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gb.ray.fit(
            str(folder / "in" / rows),
            target="y",
            memory_limit=1,
            preset="fast",
            max_epochs=EPOCHS,
            random_state=0,
        )


@dataclass(frozen=True)
class Given:
    """What a worker gets, here."""

    value: Any

    def get(self) -> Any:
        """Return it."""
        return self.value


def stored(folder: Path) -> float:
    """Return how many bytes of the object store a calibration row takes: its score and its fingerprint."""
    model, files = gb.load(folder / "m.guardband"), Files.of(str(folder / "in" / "*.parquet"))
    asked = TableAsked(model, files.like.names)
    _, block, prints = _summarised(Given((asked, Reader(asked.kinds, "y", files.like))), files.parts[0])
    return (sum(own.nbytes for own in block.values()) + prints.nbytes) / len(prints)


def measured(name: str, folder: Path, pattern: str, clock: Clock) -> Run:
    """Return what one phase took on the files of a pattern."""
    run = {"predict": predict, "calibrate": calibrate, "fit": fit}[name]
    counts = [parquet.read_metadata(path).num_rows for path in (folder / "in").glob(pattern)]
    used, own = clock.seconds(), time.thread_time()
    with Traffic(clock) as traffic:
        run(folder, 2, pattern)
    return Run(
        sum(counts),
        len(counts),
        clock.seconds() - used,
        time.thread_time() - own,
        traffic.told,
        traffic.sent,
        traffic.training,
    )


def memory(name: str, folder: Path, pattern: str, clock: Clock) -> int:
    """Return the most memory of a worker for itself alone, in MiB. Looking at it takes time of the driver."""
    with Watch() as watch:
        measured(name, folder, pattern, clock)
    return max(most for kind, most in watch.alone.items() if kind.startswith("ray::_") or "RayTrainWorker" in kind)


def constants(small: Run, large: Run) -> dict[str, float]:
    """Return what a row costs, and what is fixed, from runs of two sizes."""
    n, parts = large.rows - small.rows, large.parts - small.parts
    steps = {"small": small.processor - small.training, "large": large.processor - large.training}
    row = (steps["large"] - steps["small"]) / n
    return {
        "processor, microseconds a row": 1e6 * row,
        "processor, seconds whatever the rows": steps["small"] - row * small.rows,
        "driver, milliseconds a part": 1e3 * (large.driver - small.driver) / parts,
        "to the driver, bytes a part": (large.told - small.told) / parts,
        "to each machine, bytes": float(large.sent),
        "training, processor seconds": large.training,
    }


def extrapolated(own: dict[str, float], more: float) -> dict[str, float]:
    """Return what 10^9 rows take; ``more`` are bytes a row that workers send each other."""
    computing = ROWS * own["processor, microseconds a row"] / 1e6 / (MACHINES * CORES)
    parts = ROWS / PART_ROWS
    driver = parts * own["driver, milliseconds a part"] / 1e3
    network = (parts * own["to the driver, bytes a part"] + MACHINES * own["to each machine, bytes"]) / BYTES_A_SECOND
    between = ROWS * more / MACHINES / BYTES_A_SECOND
    return {
        "minutes of computing": computing / 60,
        "minutes of the driver": driver / 60,
        "minutes of the driver's network": network / 60,
        "minutes of the workers' network": between / 60,
        "minutes": (max(computing, driver, network) + between) / 60,
    }


def main() -> None:
    """Measure, extrapolate, and write both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--sizes", nargs=2, default=["0[0-1].parquet", "0[0-7].parquet"])
    parser.add_argument("--only", default="predict,calibrate,fit")
    asked = parser.parse_args()
    make(asked.o, asked.rows)
    start(2)
    clock = Clock()
    clock.start()
    out = json.loads(asked.results.read_text()) if asked.results.exists() else {}
    for name in asked.only.split(","):
        most = memory(name, asked.o, asked.sizes[0], clock)  # workers also start, and load what they need
        runs = [measured(name, asked.o, pattern, clock) for pattern in asked.sizes]
        own, between = constants(*runs) | {"worker, MiB for itself alone": most}, 0.0
        if name == "calibrate":
            own["object store, bytes a row"] = stored(asked.o)
            between = own["object store, bytes a row"]  # scores are fetched once by the worker that counts them
        out[name] = {"runs": list(map(asdict, runs)), "constants": own, "extrapolated": extrapolated(own, between)}
        print(name, json.dumps(out[name], indent=1), flush=True)
        asked.results.parent.mkdir(parents=True, exist_ok=True)
        asked.results.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
