"""A table many times larger than the memory that a process may fill with it: fitted, calibrated and scored on Ray.

    python benchmarks/ray/large_table.py --gib 4 --limit-mib 1024

Parquet files of random numbers, a long tail, dates and categories are written, and two workers fit a model, which is
calibrated on a tenth of the rows, and predicts all into a folder. While that goes on, the memory of every
process is read ten times a second: its largest resident set as the kernel counts it (VmHWM, with all that it shares),
what it has for itself alone, and how much that is beyond a worker that has only loaded guardband.
"""

import argparse
import json
import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

ROWS_A_FILE = 1 << 18
NUMBERS = 20
MIB = 2**20


def write(folder, gib, seed=0):
    """Write files of about so many GiB, and return their size in bytes and how many rows they have."""
    size = rows = number = 0
    weights = np.random.default_rng(seed).standard_normal(NUMBERS)
    while size < gib * 2**30:
        path = Path(folder) / f"part-{number:04d}.parquet"
        if path.exists():
            size, rows, number = size + path.stat().st_size, rows + ROWS_A_FILE, number + 1
            continue
        random = np.random.default_rng([seed, number])
        x = random.standard_normal((ROWS_A_FILE, NUMBERS))
        tail, shop = np.exp(3 * random.standard_normal(ROWS_A_FILE)), random.integers(0, 300, ROWS_A_FILE)
        noise = random.standard_normal(ROWS_A_FILE) * (0.5 + np.abs(x[:, 0]))
        columns = {f"x{j}": x[:, j] for j in range(NUMBERS)}
        columns |= {
            "tail": tail,
            "when": random.integers(1_500_000_000, 1_700_000_000, ROWS_A_FILE).astype("datetime64[s]"),
            "shop": pa.array(shop.astype(str)),
            "y": x @ weights + np.log(tail) + shop % 7 + noise,
        }
        pq.write_table(pa.table(columns), path, row_group_size=1 << 16)
        size, rows, number = size + path.stat().st_size, rows + ROWS_A_FILE, number + 1
    return size, rows


class Watch:
    """The most memory of each process of this one's family, in MiB: for itself alone, and its largest resident set."""

    def __init__(self):
        self.alone, self.resident = {}, {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()

    def _look(self):
        own = psutil.Process()
        while not self._over.wait(0.1):
            for process in [own, *own.children(recursive=True)]:
                try:
                    about = process.memory_info()
                    kind = "driver" if process == own else process.cmdline()[0].split("(")[0]
                    status = Path(f"/proc/{process.pid}/status").read_text()
                except (psutil.Error, OSError, IndexError):
                    continue
                if kind == "driver" or kind.startswith("ray::"):
                    highest = int(status.split("VmHWM:")[1].split()[0]) / 1024
                    self.alone[kind] = max(self.alone.get(kind, 0), round((about.rss - about.shared) / MIB))
                    self.resident[kind] = max(self.resident.get(kind, 0), round(highest))


def score(model, pattern, out):
    """Predict files into a folder."""
    from guardband.cli.predict_ray import PartWriter
    from guardband.cli.stated_columns import NOTHING_MORE
    from guardband.cli.stream import Inputs
    from guardband.ray.scoring import score_files
    from guardband.ray.sources import Files

    files = Files.of(pattern)
    write = PartWriter(model, Inputs.of(model, files.like), None, False, NOTHING_MORE, False, ".parquet")
    score_files(files, out, write, ".parquet", {})
    return sum(pq.read_metadata(path).num_rows for path in out.glob("*.parquet"))


def loaded():
    """Return how much memory a worker has that has only loaded what fitting needs."""
    import torch  # noqa: F401

    import guardband.ray.streamed  # noqa: F401

    about = psutil.Process().memory_info()
    return (about.rss - about.shared) / MIB


def main():
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--limit-mib", type=float, default=250.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--max-epochs", type=int, default=3)
    parser.add_argument("--folder", default=None, help="where files are written, and left")
    asked = parser.parse_args()
    import guardband as gb
    import ray

    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or temporary
        Path(folder).mkdir(parents=True, exist_ok=True)
        size, rows = write(folder, asked.gib)
        os.environ["RAY_TRAIN_ENABLE_STATE_TRACKING"] = "0"
        ray.init(
            num_cpus=asked.workers,
            include_dashboard=False,
            object_store_memory=100 * MIB,
            log_to_driver=False,
            logging_level="ERROR",
        )
        empty = ray.get(ray.remote(num_cpus=1)(loaded).remote())
        seconds, pattern = {}, f"{folder}/part-*.parquet"
        with Watch() as watch:
            began = time.monotonic()
            model = gb.ray.fit(
                pattern,
                target="y",
                memory_limit=int(asked.limit_mib * MIB),
                preset="fast",
                max_epochs=asked.max_epochs,
                random_state=0,
            )
            seconds["fit and calibrate"] = round(time.monotonic() - began)
            with tempfile.TemporaryDirectory(dir=folder) as out:
                began = time.monotonic()
                scored = score(model, pattern, Path(out))
                seconds["score"] = round(time.monotonic() - began)
        ray.shutdown()
    workers = {kind: most for kind, most in watch.alone.items() if kind != "driver"}
    print(
        json.dumps(
            {
                "files_mib": round(size / MIB),
                "rows": rows,
                "scored": scored,
                "limit_mib": asked.limit_mib,
                "loaded_mib": round(empty),
                "most_beyond_loading_mib": round(max(workers.values()) - empty),
                "alone_mib": watch.alone,
                "resident_mib": watch.resident,
                "seconds": seconds,
                "epochs": model.fitted_.learned.epochs,
                "certificate": str(model.certificate_).splitlines()[1],
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
