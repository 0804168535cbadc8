"""Calibration, scoring and fits of many files: one worker, two workers, and no Ray at all.

    python benchmarks/ray/throughput.py -o FOLDER [--rows 4000000] [--rounds 3] [--only predict,dataset] [--workers 2]
    python benchmarks/ray/throughput.py -o OTHER --rows 200000 --only fit --workers 0,2

Every round runs all three once, in turn. A cluster is warm before the clock starts, as each worker has read a part.
Besides the wall clock it prints seconds of processors, because other work on the machine does not change those as much:
two workers on two free cores need half the processor seconds that both use together, if neither waits for the other.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from processes import Peak, seconds
from pyarrow import parquet

import guardband as gb
from guardband.cli.predict_ray import PartWriter
from guardband.cli.stated_columns import NOTHING_MORE
from guardband.cli.stream import Inputs, predict_into
from guardband.data.several import open_tables
from guardband.data.table_writer import open_writer

FILES, COLUMNS = 16, 20
EPOCHS = 20
"""Of a fit, which else ends when it no longer gets better, and is short here."""


def table(n: int, seed: int) -> pa.Table:
    """Return rows of a regression with noise that grows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((COLUMNS, n))
    y = X[0] + X[1] * X[2] + rng.standard_normal(n) * (1 + np.abs(X[3]))
    return pa.table({f"x{i}": own for i, own in enumerate(X)} | {"y": y})


def make(folder: Path, rows: int) -> None:
    """Write the files and a model, once."""
    if (folder / "m.guardband").exists():
        return
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for i in range(FILES):
        parquet.write_table(table(rows // FILES, 100 + i), folder / "in" / f"{i:02}.parquet", compression="none")
    train = table(4000, 0)
    model = gb.IntervalRegressor(preset="fast", random_state=0, verbose=False)
    model.fit(train.drop_columns(["y"]).to_pandas(), np.array(train["y"])).save(folder / "m.guardband")


def start(workers: int) -> None:
    """Start Ray with so many workers."""
    import ray
    from guardband.ray.cluster import connect

    ray.init(
        address="local",
        num_cpus=workers,
        object_store_memory=400 << 20,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=40,
    )
    connect()


def predict(folder: Path, workers: int, rows: str) -> None:
    """Predict files into a folder; without workers, into one file."""
    model, out = gb.load(folder / "m.guardband"), folder / f"out-{workers}"
    shutil.rmtree(out, ignore_errors=True)
    if not workers:
        disk = open_tables(sorted(map(str, Path(folder / "in").glob(rows))))
        out.mkdir()
        with open_writer(out / "all.parquet", ".parquet") as writer:
            for _ in predict_into(writer, model, disk, Inputs.of(model, disk), None):
                pass
        return
    from guardband.ray.scoring import score_files
    from guardband.ray.sources import Files

    files = Files.of(str(folder / "in" / rows))
    inputs = Inputs.of(model, files.like)
    out.mkdir()
    score_files(files, out, PartWriter(model, inputs, None, False, NOTHING_MORE, False, ".parquet"), ".parquet", {})


def dataset(folder: Path, workers: int, rows: str) -> None:
    """Predict files as a dataset, and look at each block once; without workers, file by file."""
    model, seen = gb.load(folder / "m.guardband"), 0
    if workers:
        predicted = gb.ray.predict(model, str(folder / "in" / rows))
        for block in predicted.iter_batches(batch_size=None, batch_format="pyarrow"):
            seen += int(np.isfinite(block["upper"].to_numpy()).sum())
    else:
        for path in sorted((folder / "in").glob(rows)):
            seen += int(np.isfinite(model.predict_interval(parquet.read_table(path).drop_columns(["y"])).upper).sum())
    assert seen == sum(parquet.read_metadata(path).num_rows for path in (folder / "in").glob(rows))


def calibrate(folder: Path, workers: int, rows: str) -> None:
    """Calibrate the model on files."""
    model = gb.load(folder / "m.guardband")
    if workers:
        gb.ray.calibrate(model, str(folder / "in" / rows), target="y", keep_scores=1000)
        return
    whole = pa.concat_tables([parquet.read_table(path) for path in sorted((folder / "in").glob(rows))])
    model.calibrate(whole.drop_columns(["y"]), np.array(whole["y"]))


def fit(folder: Path, workers: int, rows: str) -> None:
    """Fit a model of the default preset to files whose rows one process holds."""
    options = {"random_state": 0, "max_epochs": EPOCHS}
    if workers:
        gb.ray.fit(str(folder / "in" / rows), target="y", **options)
        return
    whole = pa.concat_tables([parquet.read_table(path) for path in sorted((folder / "in").glob(rows))])
    gb.IntervalRegressor(**options, verbose=False).fit(whole.drop_columns(["y"]), np.array(whole["y"]))


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="predict,calibrate")
    parser.add_argument("--workers", default="0,1,2")
    asked = parser.parse_args()
    make(asked.o, asked.rows)
    found: dict[str, list[tuple[float, float, int]]] = {}
    for _ in range(asked.rounds):
        for workers in map(int, asked.workers.split(",")):
            if workers:
                start(workers)
            for name in asked.only.split(","):
                run = {"predict": predict, "calibrate": calibrate, "dataset": dataset, "fit": fit}[name]
                run(asked.o, workers, "0[0-1].parquet")  # processes start, and models are sent
                with Peak() as peak:
                    wall, used = time.monotonic(), seconds()
                    run(asked.o, workers, "*.parquet")
                    own = time.monotonic() - wall, seconds() - used, peak.driver >> 20
                found.setdefault(f"{name}, {workers or 'no'} workers", []).append(own)
                print(name, workers, [round(x, 1) for x in own], flush=True)
            if workers:
                import ray

                ray.shutdown()
    shown = {
        name: {
            "wall": [round(own[0], 1) for own in each],
            "processor": [round(own[1], 1) for own in each],
            "driver MB": max(own[2] for own in each),
            "rows a second": round(asked.rows / statistics.median(own[0] for own in each)),
            "times no workers, wall and processor": [
                [round(own[i] / bare[i], 2) for i in (0, 1)]
                for own, bare in zip(each, found.get(f"{name.split(',')[0]}, no workers", []), strict=False)
            ],
        }
        for name, each in found.items()
    }
    print(json.dumps(shown, indent=1))


if __name__ == "__main__":
    main()
