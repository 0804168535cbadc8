"""Kill ``guardband monitor`` at random moments and repeat it: the state must be that of runs that nobody disturbed.

    python benchmarks/attacks/monitor_kills.py [--kills 200] [--seed 0] [FOLDER]

Tables come one after the other: rows with keys whose true values are known for a part, then the other true values
alone, and rows without keys. Each run is a process of its own, forked from one that has loaded the packages. Before
each table counts, up to three runs are killed by SIGKILL, at moments drawn uniformly from the time that a run takes,
unless one has written its state; then the run is repeated. This goes on, with a new state each round, until there were
enough kills. After every kill the state and the page must be whole. After every round the checksum of the state and
the page must be those of undisturbed runs. The last line counts kills and finds.
"""

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from pyarrow import csv

import guardband as gb
import guardband.cli.app
import guardband.cli.monitor_steps
import guardband.cli.monitor_words
import guardband.report.monitor_page
from guardband.cli import program as cli_main
from guardband.monitor.state_file import read_state

torch.set_num_threads(1)

STEPS, ROWS = 12, 150


def draw(random, n, spread):
    """Return rows whose prices vary by ``spread``."""
    size, town = random.standard_normal(n), random.choice(["Wien", "Graz", "Linz"], n)
    return pa.table({"size": size, "town": town, "price": 3 * size + spread * random.standard_normal(n)})


def make_files(folder):
    """Return the arguments of each run, in order; the model and the tables are written."""
    random = np.random.default_rng(0)
    old = draw(random, 900, 1.0)
    model = gb.IntervalRegressor(hidden=(8,), epochs=5, random_state=0).fit(old.drop_columns("price"), old["price"])
    model.save(folder / "m.guardband")
    runs = []
    for step in range(STEPS):
        table = draw(random, ROWS, 1.0 if step < STEPS - 2 else 3.0)
        if step % 3 == 2:
            csv.write_csv(table, folder / f"plain-{step}.csv")
            runs.append([f"plain-{step}.csv"])
            continue
        keyed = table.append_column("id", pa.array(np.arange(step * ROWS, (step + 1) * ROWS)))
        known = random.random(ROWS) < 0.5
        csv.write_csv(
            keyed.set_column(2, "price", pa.array(table["price"].to_numpy(), mask=~known)), folder / f"now-{step}.csv"
        )
        csv.write_csv(keyed.filter(pa.array(~known)).select(["id", "price"]), folder / f"late-{step}.csv")
        runs += [[f"now-{step}.csv", "--key", "id"], [f"late-{step}.csv", "--key", "id"]]
    return runs


def run(arguments, state, kill_after=None):
    """Run the command in a child; return its exit code, negative if it was killed, and how long it took."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            sys.argv = ["guardband", "monitor", "m.guardband", *arguments, "--state", state, "--target", "price"]
            try:
                cli_main()
            except SystemExit as end:
                os._exit(int(end.code or 0))
        os._exit(99)
    if kill_after is not None:
        time.sleep(kill_after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, time.monotonic() - began


def checksum(state):
    """Return the checksum of a state that is there whole, nothing if there is none; half a state raises."""
    return read_state(Path(state))[2] if Path(state).exists() else ""


def is_whole(page):
    """Return whether a page is there whole, or not at all."""
    return not Path(page).exists() or Path(page).read_text().endswith("</html>\n")


def is_unlike(state, other):
    """Return whether two states or their pages differ; safetensors writes its header in any order, so bytes may."""
    pages = [Path(f"{own}.html").read_bytes() for own in (state, other)]
    differ = checksum(state) != checksum(other) or pages[0] != pages[1]
    if differ:
        print(f"{state} or its page differ from those of undisturbed runs")
    return differ


def main():
    """Run, kill, repeat, compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    os.chdir(folder)
    runs = make_files(folder)
    codes, seconds = zip(*(run(arguments, "whole.monitor") for arguments in runs), strict=True)
    longest = float(np.median(seconds))
    print(f"{len(runs)} undisturbed runs, exit codes {sorted(set(codes))}, {longest:.2f} s each")
    random, killed, after, finds, rounds = np.random.default_rng(given.seed), 0, 0, 0, 0
    while killed < given.kills:
        state, rounds = f"m{rounds}.monitor", rounds + 1
        for arguments, undisturbed in zip(runs, codes, strict=True):
            before, is_written = checksum(state), False
            for _ in range(random.integers(1, 4)):
                code, _ = run(arguments, state, random.uniform(0, longest))
                is_written = checksum(state) != before
                killed += code == -signal.SIGKILL
                after += code == -signal.SIGKILL and is_written
                if not is_whole(f"{state}.html"):
                    finds += 1
                    print(f"half a page after {arguments}")
                if is_written:
                    break
            code, _ = run(arguments, state)
            if code != (2 if is_written else undisturbed):  # 2: there is nothing left to judge
                finds += 1
                print(f"{arguments}: exit code {code}, undisturbed {undisturbed}")
        finds += is_unlike(state, "whole.monitor")
    left = [path.name for path in folder.iterdir() if path.name.endswith(".part")]
    finds += len(left)
    print(f"{rounds} rounds; {after} of the kills came after the state was written; {len(left)} part files left")
    print(f"{killed} kills, {finds} finds")
    sys.exit(bool(finds))


if __name__ == "__main__":
    main()
