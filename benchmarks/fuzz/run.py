"""Coverage-guided fuzzing of what guardband reads: ``python benchmarks/fuzz/run.py csv --executions 20000 --seed 1``.

atheris (``pip install atheris``) watches which lines of guardband an input reaches, and goes on from those that reach
new ones. All runs in a forked process with little memory, so that an input that ends it is kept. Inputs that
guardband answers in another way than it should are kept in ``build/fuzz/TARGET/finds``, and told once for each place
in the code. With several targets, or ``all``, one follows the other. ``--results FILE`` adds a line of figures for
each.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib
import mmap
import os
import pkgutil
import re
import resource
import signal
import struct
import sys
import time
import traceback
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import atheris
import numpy  # noqa: F401  what is loaded before guardband is not watched
import pandas  # noqa: F401
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import sklearn.base  # noqa: F401
import torch
from targets import CORPUS, FILES, target

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "fuzz"
ROOM = 2 << 30
"""Bytes beyond those of the loaded packages that a process may take."""
GROWN = 1 << 30
"""Bytes that it may come to use; what is only asked for and never used does not count."""
SECONDS = 25
MOST_KEPT = 30
"""Inputs of a target that are kept in the repository: the tests read each of them."""
LARGEST = 1 << 20
TOLD = struct.Struct("QQQ")


class Told:
    """What a worker says while it may die at any moment: how many inputs it tried, and the present one."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, TOLD.size + LARGEST)

    def begin(self, data: bytes) -> None:
        """Note the input that is tried next."""
        count, finds, _ = self.counts()
        self._memory[TOLD.size : TOLD.size + len(data)] = data
        TOLD.pack_into(self._memory, 0, count + 1, finds, len(data) + 1)

    def end(self, find: bool) -> None:
        """Note that it came to an end."""
        count, finds, _ = self.counts()
        TOLD.pack_into(self._memory, 0, count, finds + find, 0)

    def counts(self) -> tuple[int, int, int]:
        """Return how many inputs were tried, how many were finds, and the size of the present one, plus 1."""
        return TOLD.unpack_from(self._memory, 0)

    def pending(self) -> bytes | None:
        """Return the input under way."""
        size = self.counts()[2]
        return bytes(self._memory[TOLD.size : TOLD.size + size - 1]) if size else None


def main() -> None:
    """Fuzz the targets, and say what was found."""
    arguments = _arguments()
    asked = [own.partition(":") for own in (FILES if arguments.targets == ["all"] else arguments.targets)]
    if unknown := [name for name, _, _ in asked if name not in FILES]:
        raise SystemExit(f"There is no target {unknown[0]!r}. The targets are {', '.join(FILES)}.")
    _load_guardband()
    for name, _, count in asked:
        own = target(name)
        row = fuzz(name, own, int(count or arguments.executions), arguments.seed, arguments.seconds)
        print(", ".join(f"{key}: {value}" for key, value in row.items()), flush=True)
        if arguments.keep:
            _commit(name, arguments.keep)
        if arguments.results:
            _note(Path(arguments.results), {"pass": arguments.which, **row})


def fuzz(name: str, own: Any, executions: int, seed: int, seconds: float) -> dict[str, Any]:
    """Try so many inputs of a target, in processes of which one follows the other if it dies."""
    folder = KEPT / name
    for part in ("corpus", "finds", "work"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    told, died, began, log = Told(), 0, time.monotonic(), folder / "log"
    log.write_bytes(b"")
    os.chdir(folder / "work")
    if not any((folder / "corpus").iterdir()):
        _in_child(lambda: _write_seeds(own, folder / "corpus"))
    while (done := told.counts()[0]) < executions and (left := seconds - time.monotonic() + began) > 0:
        status = _in_child(lambda: _work(name, own, told, executions - done, seed + died, left, log))  # noqa: B023
        if (data := told.pending()) is not None:
            died += 1
            if own.apart is not None:
                told.end(bool(_in_child(lambda: own.apart(data))))
                continue
            how = (
                signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
            )
            _keep(folder / "finds", data, f"the process ended: {how}")
            told.end(True)
        elif status:
            raise SystemExit(f"{name}: a worker ended with {status}: {log.read_text()[-2000:]}")
    os.chdir(ROOT)
    tried, finds, _ = told.counts()
    covered = [(int(a), int(b)) for a, b in re.findall(r"cov: (\d+) ft: (\d+)", log.read_text(errors="replace"))]
    start = re.search(r"INITED cov: (\d+)", log.read_text(errors="replace"))
    return {
        "target": name,
        "seed": seed,
        "executions": tried,
        "seconds": round(time.monotonic() - began),
        "edges at first": int(start[1]) if start else 0,
        "edges at last": max((own[0] for own in covered), default=0),
        "kept inputs": len(list((folder / "corpus").iterdir())),
        "finds": finds,
        "kinds of finds": len(list((folder / "finds").glob("*.txt"))),
        "ended processes": died,
    }


def _work(name: str, own: Any, told: Told, executions: int, seed: int, seconds: float, log: Path) -> None:
    """Fuzz in this process; it does not return if an input ends it."""
    handle = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    torch.set_num_threads(1)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    finds, at_first = KEPT / name / "finds", _most_memory()

    def one(data: bytes) -> None:
        if len(data) > own.longest:
            return
        told.begin(data)
        try:
            own.one(data)
        except Exception as error:
            told.end(True)
            _keep(finds, data, _place(error), traceback.format_exc())
        else:
            grown = _most_memory() - at_first
            told.end(grown > GROWN)
            if grown > GROWN:
                _keep(finds, data, "it took too much memory", f"{grown:,} bytes more than before")
                Path("/proc/self/clear_refs").write_text("5")

    command = [name, f"-runs={executions}", f"-seed={seed}", f"-timeout={SECONDS}", f"-max_len={own.longest}"]
    command += ["-rss_limit_mb=0", "-len_control=0", f"-max_total_time={max(1, int(seconds))}"]
    if own.words:
        words = KEPT / name / "words"
        words.write_text("".join('"' + "".join(f"\\x{b:02x}" for b in word.encode()) + '"\n' for word in own.words))
        command += [f"-dict={words}"]
    command += [f"-artifact_prefix={KEPT / name}/", str(KEPT / name / "corpus")]
    command += [str(CORPUS / name)] if (CORPUS / name).is_dir() else []
    more = {}
    if own.mutate is not None:
        more["custom_mutator"] = lambda data, most, number: own.mutate(data, most, number, atheris.Mutate)
    atheris.Setup(command, one, **more)
    atheris.Fuzz()


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _place(error: BaseException) -> str:
    """Return what was raised and where, which tells one find from another."""
    cause = error.__cause__ or error
    frames = [own for own in traceback.extract_tb(cause.__traceback__) if "/guardband/" in own.filename]
    at = f"{'/'.join(Path(frames[-1].filename).parts[-2:])}:{frames[-1].lineno}" if frames else "judging"
    said = re.sub(r"\d+", "#", str(error))[:160] if not frames else ""
    return f"{type(cause).__name__} at {at} {said}".strip()


def _keep(finds: Path, data: bytes, what: str, more: str = "") -> None:
    """Keep the smallest input of each kind of find."""
    path = finds / hashlib.sha256(what.encode()).hexdigest()[:12]
    if not path.exists() or path.stat().st_size > len(data):
        path.write_bytes(data)
        path.with_suffix(".txt").write_text(f"{what}\n{more}", errors="backslashreplace")


def _write_seeds(own: Any, folder: Path) -> None:
    for data in own.seeds().values():
        if len(data) <= own.longest:
            (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def _in_child(work: Any) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
            sys.stdout.flush()
            os._exit(0)
        except SystemExit as end:
            os._exit(end.code if isinstance(end.code, int) else 0)
        except BaseException:
            traceback.print_exc()
            os._exit(70)
    return os.waitpid(child, 0)[1]


def _load_guardband() -> None:
    """Import all of guardband, and watch its lines alone."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with open(os.devnull, "w") as nothing:
        kept = os.dup(2)
        os.dup2(nothing.fileno(), 2)  # a line for each module
        with atheris.instrument_imports(include=["guardband"]):
            import guardband

            for own in pkgutil.walk_packages(guardband.__path__, "guardband."):
                if not own.name.endswith(("__main__", ".mlflow")):
                    importlib.import_module(own.name)
        os.dup2(kept, 2)


def _commit(name: str, most: int) -> None:
    """Copy finds, and then inputs of all sizes that reach something, to the corpus of the repository."""
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    found = [path for path in (KEPT / name / "finds").iterdir() if path.suffix != ".txt"]
    small = sorted((KEPT / name / "corpus").iterdir(), key=lambda path: path.stat().st_size)
    small = small[:: 1 + len(small) // MOST_KEPT]
    left = most - sum(path.stat().st_size for path in folder.iterdir())
    for path in [*found, *small]:
        left -= path.stat().st_size
        if left < 0:
            break
        (folder / hashlib.sha256(path.read_bytes()).hexdigest()[:12]).write_bytes(path.read_bytes())


def _note(path: Path, row: dict[str, Any]) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", help="names, such as csv, or csv:20000 with its executions; or all")
    parser.add_argument("--executions", type=int, default=10_000, help="of each target")
    parser.add_argument("--seconds", type=float, default=86_400, help="the most for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--keep", type=int, default=0, help="bytes of inputs to keep in the repository, for each target"
    )
    parser.add_argument("--results", help="a file of CSV to which figures are added")
    parser.add_argument("--pass", dest="which", default="", help="words for the first column of that file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
