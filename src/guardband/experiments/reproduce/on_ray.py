"""Cells as tasks of Ray: each on one core, or on a GPU if there are any, and again elsewhere if its worker dies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from guardband.experiments.reproduce.cells import Cell
from guardband.experiments.reproduce.contest import Outcome
from guardband.experiments.reproduce.outcome import outcome
from guardband.learning.options import resolve_device
from guardband.ray.cluster import RETRIES, connected, fetched


def on_ray(
    cells: Sequence[Cell], seed: int, device: str, data_dir: Path | None, address: str
) -> Iterator[tuple[Cell, Outcome]]:
    """Yield each cell with what it gives, as they get ready; real data must lie in one folder on all machines."""
    with connected(address):
        import ray

        gpus = ray.cluster_resources().get("GPU", 0) if device != "cpu" else 0  # type: ignore[no-untyped-call]
        run = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0, max_retries=RETRIES)(_of_cell)
        waiting = {run.remote(cell, seed, device, data_dir): cell for cell in cells}
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            for reference in ready:
                yield waiting.pop(reference), fetched(reference)


def _of_cell(cell: Cell, seed: int, device: str, data_dir: Path | None) -> Outcome:
    import torch

    torch.set_num_threads(1)
    return outcome(cell, seed, data_dir, resolve_device(device), lambda share: None)
