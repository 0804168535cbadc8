"""Networks of one fit on many workers: each worker trains some copies, as they would be trained on one machine."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from guardband.ray.cluster import RETRIES, fetched, workers
from guardband.training.batches import Rows
from guardband.training.checkpoint import Checkpoint
from guardband.training.deadline import NEVER, Deadline
from guardband.training.job import Job, Trained


def _silent(what: str, epoch: int, epochs: int) -> None:
    """Show no progress: nobody sees the terminal of a worker."""


@dataclass(frozen=True)
class Spread:
    """A trainer that spreads the members of a job over workers.

    Members with the same rows stay together. A member depends on its own seed alone, so that the result is that of one
    machine. A worker that dies costs what its members learnt since their last checkpoint, or from the start on if there
    is no folder for checkpoints.

    Parameters
    ----------
    checkpoints : str or None
        A folder that all machines see.
    about : str
        What the fit is of: checkpoints of another one are not used.
    """

    checkpoints: str | None = None
    about: str = ""

    def __call__(self, job: Job) -> Trained:
        """Return the trained members of a job.

        Parameters
        ----------
        job : Job
            What to train.
        """
        import ray

        parts = _parts(job, workers())
        if len(parts) == 1 and self.checkpoints is None:
            return job.train()
        on_gpu = job.device.type == "cuda"
        run = ray.remote(num_cpus=1, num_gpus=1 if on_gpu else 0, max_retries=RETRIES)(_train)
        rows = None if job.rows is None else [ray.put(_arrays(job.rows))]
        bare = replace(job, rows=None, progress=_silent, deadline=NEVER)
        seconds = job.deadline.left if job.deadline.is_set else None
        waiting = []
        for part in parts:
            own = bare.take(part)
            y = None if job.rows is None or job.rows.y.ndim == 1 else _targets_of(job.rows, part)
            waiting.append(run.remote(own, rows, y, seconds, self._file(job, part)))
        return _together(job.size, parts, [fetched(own) for own in waiting])

    def _file(self, job: Job, part: Sequence[int]) -> tuple[str, str] | None:
        """Return where members keep their checkpoint, and what it is of."""
        if self.checkpoints is None:
            return None
        draws = [(len(job.draws[i].index), int(job.draws[i].index.sum()), job.draws[i].seed) for i in part]
        about = f"{self.about} {[job.seeds[i] for i in part]} {draws} {job.recipe}"
        name = hashlib.sha256(about.encode()).hexdigest()[:16]
        return str(Path(self.checkpoints) / f"{name}.checkpoint"), about


def _parts(job: Job, count: int) -> list[list[int]]:
    """Return the members in parts of equal length: those with the same rows are in one part."""
    groups: list[list[int]] = []
    for i in range(job.size):
        if groups and job.draws and job.draws[groups[-1][0]] is job.draws[i]:
            groups[-1].append(i)
        else:
            groups.append([i])
    # One set of rows for all members, as without folds: then each may train alone.
    if len(groups) == 1:
        groups = [[i] for i in range(job.size)]
    share = -(-len(groups) // min(count, len(groups)))
    return [[i for own in groups[j : j + share] for i in own] for j in range(0, len(groups), share)]


def _arrays(rows: Rows) -> dict[str, Any]:
    """Return rows as arrays, which workers of one machine share; targets of each member are sent apart."""
    y = rows.y.cpu().numpy() if rows.y.ndim == 1 else None
    weight = None if rows.weight is None else rows.weight.cpu().numpy()
    assert isinstance(rows.x, torch.Tensor)
    return {"x": rows.x.cpu().numpy(), "y": y, "weight": weight}


def _targets_of(rows: Rows, part: Sequence[int]) -> tuple[list[Any], list[int]]:
    """Return the targets of some members: those that differ, and which of them each member has."""
    kinds: list[torch.Tensor] = []
    index: list[int] = []
    for own in rows.take(part).y:
        known = next((i for i, kind in enumerate(kinds) if torch.equal(kind, own)), len(kinds))
        kinds += [own] if known == len(kinds) else []
        index.append(known)
    return [kind.cpu().numpy() for kind in kinds], index


def _train(job: Job, rows: Any, y: Any, seconds: float | None, file: tuple[str, str] | None) -> Trained:
    """Train members on a worker."""
    import ray

    torch.set_num_threads(1)
    if rows is not None:
        (reference,) = rows
        held = {name: _tensor(own, job.device) for name, own in ray.get(reference).items() if own is not None}
        if y is not None:
            kinds, index = y
            each = [_tensor(kind, job.device) for kind in kinds]
            held["y"] = (
                each[0].expand(job.size, *each[0].shape) if len(each) == 1 else torch.stack([each[i] for i in index])
            )
        job = replace(job, rows=Rows(held["x"], held["y"], held.get("weight")))
    if seconds is not None:
        job = replace(job, deadline=Deadline.after(seconds))
    if file is not None:
        job = replace(job, checkpoint=Checkpoint(Path(file[0]), file[1]))
    trained = job.train()
    return replace(trained, state={name: t.cpu() for name, t in trained.state.items()})


def _tensor(array: Any, device: torch.device) -> torch.Tensor:
    """Return an array of the object store as a tensor over the same memory, which nobody writes to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that one could
        return torch.from_numpy(array).to(device)


def _together(size: int, parts: Sequence[Sequence[int]], trained: Sequence[Trained]) -> Trained:
    """Return what parts of a job gave, as one."""
    state: dict[str, torch.Tensor] = {}
    epochs, losses = [0] * size, [0.0] * size
    for part, own in zip(parts, trained, strict=True):
        for j, i in enumerate(part):
            epochs[i], losses[i] = own.epochs[j], own.losses[j]
        for name, t in own.state.items():
            state.setdefault(name, t.new_empty((size, *t.shape[1:])))[list(part)] = t
    return Trained(state, tuple(epochs), tuple(losses))
