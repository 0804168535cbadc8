"""Ask every promise of guardband whether it holds, on thousands of calibration sets each.

    python benchmarks/acceptance/run.py -o FOLDER [--workers N] [--seconds S] [--quick] [--only WORDS]

Each finished run is one line of JSON in FOLDER/runs.jsonl. A run that is there is not repeated: a stopped program goes
on where it was. Seeds depend on the name of a run alone, not on the number of workers. After ``--seconds`` no new run
starts. At the end the judge says what is refuted. The exit code is 1 if a promise is, or if a control is not.
``make acceptance`` runs the whole plan, about an hour on two cores, and writes the page.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # each worker is one process on one core
sys.path.insert(0, str(Path(__file__).parent))

from judge import judged, read  # noqa: E402
from plan import Run, full, quick  # noqa: E402

FILE = "runs.jsonl"


def line_of(run: Run) -> str:
    """Return the line of a run; an error of guardband's is a line too."""
    begun = time.process_time()
    out: dict[str, Any] = {"run": run.name, "promise": run.promise}
    try:
        out["cells"] = [cell.to_dict() for cell in run.cells()]
    except Exception:
        out["error"] = traceback.format_exc(limit=-4)
    return json.dumps(out | {"seconds": round(time.process_time() - begun, 2)})


def quiet() -> None:
    """Make a worker use one thread."""
    import torch

    torch.set_num_threads(1)


def end_line(path: Path) -> None:
    """End a last line that was cut short by a stop, so that the next line stands by itself."""
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        with path.open("a") as file:
            file.write("\n")


def perform(runs: list[Run], path: Path, workers: int, seconds: float) -> int:
    """Append a line for each run, as they finish; return how many were not begun."""
    begun, waiting, left = time.monotonic(), set[Future[str]](), list(reversed(runs))
    if workers == 1:
        with path.open("a") as file:
            while left and time.monotonic() - begun < seconds:
                file.write(line_of(left.pop()) + "\n")
                file.flush()
        return len(left)
    with (
        path.open("a") as file,
        ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=quiet) as pool,
    ):
        while waiting or left:
            while left and len(waiting) < 2 * workers and time.monotonic() - begun < seconds:
                waiting.add(pool.submit(line_of, left.pop()))
            if not waiting:
                break
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for own in done:
                file.write(own.result() + "\n")
                file.flush()
            shown = len(runs) - len(left) - len(waiting)
            print(f"\r{shown} of {len(runs)} runs, {time.monotonic() - begun:.0f} s ", end="", file=sys.stderr)
    return len(left)


def main(arguments: list[str] | None = None) -> int:
    """Run what is left of the plan, and judge all that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="only runs whose name contains these words")
    parser.add_argument("--list", action="store_true", help="print the names of the runs and end")
    given = parser.parse_args(arguments)
    plan = [run for run in (quick() if given.quick else full()) if given.only in run.name]
    if given.list:
        print("\n".join(run.name for run in plan))
        return 0
    given.output.mkdir(parents=True, exist_ok=True)
    end_line(given.output / FILE)
    known = {own["run"] for own in map(json.loads, read(given.output)) if "error" not in own}
    left = perform([run for run in plan if run.name not in known], given.output / FILE, given.workers, given.seconds)
    wanted = {run.name for run in plan}
    verdict = judged(line for line in read(given.output) if json.loads(line)["run"] in wanted)
    for own in verdict.wrong:
        kind = "REFUTED" if own.should_hold else "CONTROL NOT REFUTED"
        print(f"{kind}: {own.run}: {own.cell}, p = {own.p_value:.3g}, {dict(own.figures)}")
    for name, error in verdict.errors:
        print(f"ERROR: {name}\n{error}")
    print(f"\n{len(verdict.cells)} cells, {len(verdict.wrong)} not as they should be, {len(verdict.errors)} errors, ")
    print(f"{left} of {len(plan)} runs not begun. Each cell is judged at {verdict.significance:.2g}.")
    return int(bool(verdict.wrong or verdict.errors))


if __name__ == "__main__":
    sys.exit(main())
