"""Model files forged one entry or tensor at a time, with a checksum that is right, and files damaged byte by byte.

python benchmarks/attacks/model_files.py [--share 0.1] [--seed 0] [--models tabular,pav] [--workers 2]

Each file is loaded in a process that may use no more than a gigabyte beyond what torch takes, and ten seconds. It must
be refused with a ModelFileError, or give a model that predicts no NaN and promises what the file says. Prints the
number of tries and every fault. ``--share 1`` tries all, some 140,000 files, which takes the best part of an hour.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

SECONDS, ROOM = 10, 2**30


class TooLong(BaseException):
    """Loading took too long; it is no Exception, of which load makes a ModelFileError."""


def main() -> None:
    """Start the workers, and add up what they found."""
    arguments = _arguments()
    if arguments.worker is not None:
        work(arguments)
        return
    from forged_models import NETWORKS, RULES, TABLES

    names = arguments.models.split(",") if arguments.models else [*TABLES, *NETWORKS, *RULES]
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, __file__, "--models", ",".join(names), "--share", str(arguments.share)]
        program += ["--seed", str(arguments.seed), "--workers", str(arguments.workers), "--folder", folder]
        started = [
            subprocess.Popen([*program, "--worker", str(i)], stdout=subprocess.PIPE, text=True)
            for i in range(arguments.workers)
        ]
        counts: Counter[str] = Counter()
        for worker in started:
            assert worker.stdout is not None
            last = ""
            for line in worker.stdout:
                found = json.loads(line)
                last = found.get("next", last)
                if "outcome" in found:
                    counts[found["outcome"]] += 1
                    if found["outcome"] == "fault":
                        print(found["what"], "|", found["error"], flush=True)
            if worker.wait():
                counts["fault"] += 1
                print(last, f"| the process ended with {worker.returncode}", flush=True)
    print(f"{sum(counts.values()):,} files: {dict(counts)}")


def work(arguments: argparse.Namespace) -> None:
    """Try this worker's share of the files, and print what came of each."""
    import torch

    from forged_models import judged, saved

    torch.set_num_threads(1)
    folder, chance = Path(arguments.folder) / str(arguments.worker), random.Random(arguments.seed)
    folder.mkdir()
    names = arguments.models.split(",")
    for name in names:
        judged(saved(name, folder), name)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))
    signal.signal(signal.SIGALRM, _too_long)
    for name in names:
        for number, (what, make) in enumerate(files(saved(name, folder), folder / "forged")):
            mine = number % arguments.workers == arguments.worker
            if chance.random() >= arguments.share or not mine:
                continue
            what = f"{name}: {what}"
            print(json.dumps({"next": what}), flush=True)
            signal.alarm(SECONDS)
            try:
                make()
                found = {"outcome": judged(folder / "forged", name)}
            except BaseException as error:
                found = {"outcome": "fault", "what": what, "error": f"{type(error).__name__}: {error}"[:300]}
            signal.alarm(0)
            print(json.dumps(found), flush=True)


def files(path: Path, out: Path) -> Iterator[tuple[str, Any]]:
    """Yield what is done to a file, and a function that does it."""
    from forged_models import entry_mutants, forged, opened, tensor_mutants

    entries, tensors = opened(path)
    for what, change in entry_mutants(entries):
        yield what, lambda change=change: forged(out, change(), tensors)
    for what, own_tensors in tensor_mutants(tensors):
        yield what, lambda own_tensors=own_tensors: forged(out, entries, own_tensors)
    body = path.read_bytes()
    for part in range(50):
        yield f"cut to {part}/50", lambda part=part: out.write_bytes(body[: len(body) * part // 50])
    for bit in range(0, 8 * len(body), 397):
        yield f"bit {bit}", lambda bit=bit: out.write_bytes(_flipped(body, bit))


def _flipped(body: bytes, bit: int) -> bytes:
    changed = bytearray(body)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _too_long(*_: Any) -> None:
    raise TooLong(f"more than {SECONDS} seconds")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.1, help="of all files, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", default="")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
