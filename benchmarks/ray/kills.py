"""Kills workers and whole runs at random moments, and compares what comes out with an undisturbed run, byte by byte.

    python benchmarks/ray/kills.py -o FOLDER [--workers 45] [--drivers 5] [--calibrations 10]

A worker is killed every few seconds while parts are scored or scores are computed and counted. A run is killed with all
of its processes, and the next one goes on in the same folder. FOLDER is one that throughput.py made.
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
from pathlib import Path

import numpy as np
from processes import family
from throughput import start

import guardband as gb

PART_ROWS = 1 << 15
FILES = "0[0-3].parquet"


def score(folder: Path, out: Path) -> None:
    """Predict files into a folder, part by part."""
    from guardband.cli.predict_ray import PartWriter
    from guardband.cli.stated_columns import NOTHING_MORE
    from guardband.cli.stream import Inputs
    from guardband.ray.scoring import score_files
    from guardband.ray.sources import Files

    model = gb.load(folder / "m.guardband")
    files = Files.of(str(folder / "in" / FILES), part_rows=PART_ROWS)
    write = PartWriter(model, Inputs.of(model, files.like), None, False, NOTHING_MORE, False, ".parquet")
    out.mkdir(exist_ok=True)
    score_files(files, out, write, ".parquet", {})


def digest(out: Path) -> str:
    """Return a checksum of the names and the bytes of all files but notes."""
    sums = [
        (path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in sorted(out.glob("*")) if path.is_file()
    ]
    return hashlib.sha256(json.dumps(sums).encode()).hexdigest()


class Killer(threading.Thread):
    """Kills a worker that is at work every few seconds, until so many are dead or it is told to end."""

    def __init__(self, kills: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.left, self.done, self._random = kills, 0, random.Random(seed)
        self.end = threading.Event()

    def run(self) -> None:
        """Kill."""
        while self.left and not self.end.wait(self._random.uniform(0.2, 3)):
            busy = [own for own in family() if _name(own).startswith("ray::_")]
            if busy:
                os.kill(self._random.choice(busy), signal.SIGKILL)
                self.left -= 1
                self.done += 1


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        return ""


def main() -> None:
    """Kill, compare, and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=45)
    parser.add_argument("--drivers", type=int, default=5)
    parser.add_argument("--calibrations", type=int, default=10)
    parser.add_argument("--once", type=Path, help="score into this folder and end")
    asked = parser.parse_args()
    start(2)
    if asked.once is not None:
        score(asked.o, asked.once)
        return
    whole, out = asked.o / "undisturbed", asked.o / "disturbed"
    for place in (whole, out):
        shutil.rmtree(place, ignore_errors=True)
    score(asked.o, whole)
    wanted, kills, runs = digest(whole), 0, 0
    while kills < asked.workers:
        shutil.rmtree(out, ignore_errors=True)
        killer = Killer(asked.workers - kills, runs)
        killer.start()
        score(asked.o, out)
        killer.end.set()
        killer.join()
        kills, runs = kills + killer.done, runs + 1
        print(f"scoring, run {runs}: {killer.done} workers killed, same: {digest(out) == wanted}", flush=True)
    model, data = gb.load(asked.o / "m.guardband"), str(asked.o / "in" / FILES)
    before = gb.ray.calibrate(model, data, target="y", keep_scores=1000)
    kills = runs = 0
    while kills < asked.calibrations:
        killer = Killer(asked.calibrations - kills, 100 + runs)
        killer.start()
        after = gb.ray.calibrate(model, data, target="y", keep_scores=1000)
        killer.end.set()
        killer.join()
        kills, runs = kills + killer.done, runs + 1
        a, b = (own.calibration_.found.arrays["threshold"] for own in (before, after))
        same = bool(np.array_equal(a, b)) and before.certificate_ == after.certificate_
        print(f"calibration, run {runs}: {killer.done} workers killed, same: {same}", flush=True)
    import ray

    ray.shutdown()
    shutil.rmtree(out, ignore_errors=True)
    for i in range(asked.drivers + 1):
        command = [sys.executable, "-W", "ignore", __file__, "-o", str(asked.o), "--once", str(out)]
        run = subprocess.Popen(command, start_new_session=True)
        if i == asked.drivers:
            run.wait()
            break
        parts = len(list(out.glob("*.parquet"))) if out.exists() else 0
        while run.poll() is None and (len(list(out.glob("*.parquet"))) if out.exists() else 0) < parts + 3:
            time.sleep(0.05)
        for own in family(run.pid):
            try:
                os.kill(own, signal.SIGKILL)
            except ProcessLookupError:
                continue
        run.wait()
    print(f"{asked.drivers} runs killed, same: {digest(out) == wanted}", flush=True)


if __name__ == "__main__":
    main()
