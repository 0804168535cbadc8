"""Runs cells, one after another or several at a time, with progress over the whole, from where it stopped."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from guardband import __version__
from guardband.experiments.reproduce.boneage import need_images
from guardband.experiments.reproduce.cells import REAL, Cell
from guardband.experiments.reproduce.contest import Share
from guardband.experiments.reproduce.folder import Folder
from guardband.experiments.reproduce.on_ray import on_ray
from guardband.experiments.reproduce.outcome import outcome
from guardband.experiments.sources import data_file
from guardband.learning.options import resolve_device

Advance = Callable[[Cell, float], None]
"""Called with a cell and the share of it that is done."""


def run(
    cells: Sequence[Cell],
    folder: Folder,
    *,
    seed: int = 0,
    device: str = "auto",
    data_dir: Path | None = None,
    jobs: int = 1,
    verbose: bool | None = None,
    cluster: str | None = None,
) -> None:
    """Run all cells that are not done yet, on the cluster of Ray at an address if there is one."""
    left = [cell for cell in cells if not folder.is_done(cell)]
    with _shown(cells, left, verbose) as advance:
        if jobs == 1 and cluster is None:
            for cell in left:
                _run_cell(cell, folder, seed, device, data_dir, partial(advance, cell))
            return
        if cluster is not None:
            for cell, result in on_ray(left, seed, device, data_dir, cluster):
                folder.write(cell, result)
                advance(cell, 1.0)
            return
        with _workers(jobs) as pool:
            waiting = {pool.submit(_run_cell, cell, folder, seed, device, data_dir): cell for cell in left}
            for future in as_completed(waiting):
                future.result()
                advance(waiting[future], 1.0)


def need_data(cells: Sequence[Cell], data_dir: Path | None) -> None:
    """Find, or fetch, the files and packages that cells need; raise if they cannot be had."""
    for name in REAL:
        if any(cell.experiment == name for cell in cells):
            if name == "boneage":
                need_images()
            data_file(name, data_dir)


@contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give processes that share the cores, and that end at once with whoever started them."""
    before = set(multiprocessing.active_children())
    # A fleet's results do not depend on the number of its threads.
    threads = max(1, (os.cpu_count() or 1) // jobs)
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin, (threads,))
    try:
        yield pool
        pool.shutdown()
    except BrokenProcessPool:
        raise ChildProcessError("A process that ran a cell was ended. The same command goes on from there.") from None
    finally:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        pool.shutdown(cancel_futures=True)


def _begin(threads: int) -> None:
    """Set up a worker: Ctrl-C is for its parent, and it ends when that does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def machine(device: str) -> dict[str, str]:
    """Return what a run was made on, and with."""
    where = resolve_device(device)
    name = (
        torch.cuda.get_device_name(where) if where.type == "cuda" else f"{os.cpu_count()} cores, {platform.machine()}"
    )
    return {
        "device": name,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "guardband": __version__,
    }


def _run_cell(
    cell: Cell, folder: Folder, seed: int, device: str, data_dir: Path | None, done: Share = lambda share: None
) -> None:
    folder.write(cell, outcome(cell, seed, data_dir, resolve_device(device), done))
    done(1.0)


@contextmanager
def _shown(
    cells: Sequence[Cell], left: Sequence[Cell], verbose: bool | None
) -> Iterator[Callable[[Cell, float], None]]:
    """Show how far all cells are, in a terminal or if asked, and give what tells the share of a cell."""
    console = Console(stderr=True)
    shown = sys.stderr.isatty() if verbose is None else verbose
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not shown) as progress:
        total = sum(cell.cost for cell in left)
        task = progress.add_task("", total=total)
        shares = {cell.name: 0.0 for cell in left}
        costs = {cell.name: cell.cost for cell in left}

        def advance(cell: Cell, share: float) -> None:
            shares[cell.name] = share
            done = sum(costs[name] * own for name, own in shares.items())
            finished = len(cells) - sum(own < 1 for own in shares.values())
            progress.update(task, completed=done, description=f"{finished} of {len(cells)} cells · {cell.name}")

        yield advance
