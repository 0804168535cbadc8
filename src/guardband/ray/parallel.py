"""Training by several processes at once: Ray Train starts them, and starts them again from the last checkpoint."""

from __future__ import annotations

import io
import os
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from guardband.ray.cluster import RETRIES, Shared
from guardband.ray.streams import RowStream, StoppingRows, Tap, TrainingStream
from guardband.training.checkpoint import SECONDS_BETWEEN, Checkpoint
from guardband.training.job import Job, Trained
from guardband.training.shared import Together

Bytes = bytes


@dataclass(frozen=True)
class Plan:
    """What every process does.

    Parameters
    ----------
    job : Job
        The networks, without rows.
    stream : RowStream
        All pieces: each process takes its share.
    copies : tuple of int
        The copy that each network is of.
    batches : int
        How many steps an epoch has.
    stops : bool
        Whether folds stop the copies.
    about : str
        What the fit is of: checkpoints of another one are not used.
    every : float, default 30.0
        After so many seconds there is a checkpoint again.
    """

    job: Job
    stream: RowStream
    copies: tuple[int, ...]
    batches: int
    stops: bool
    about: str
    every: float = SECONDS_BETWEEN


class AllReduce(Together):
    """The processes of a group of torch."""

    def added(self, numbers: Tensor) -> Tensor:
        """Return the sum over all processes."""
        from torch import distributed

        distributed.all_reduce(numbers)
        return numbers


class Kept:
    """Holds the last checkpoint, and in the end the result, where no worker can take it along when it dies.

    Parameters
    ----------
    path : str or None
        A file to keep the checkpoint in, for another driver.
    about : str
        What the checkpoint is of.
    state : bytes or None
        The checkpoint of an earlier driver.
    """

    def __init__(self, path: str | None, about: str, state: Bytes | None) -> None:
        self._file = Checkpoint(None if path is None else Path(path), about)
        self._state = state
        self._result: Bytes | None = None

    def load(self) -> Bytes | None:
        """Return the last checkpoint."""
        return self._state

    def save(self, state: Bytes) -> None:
        """Keep a checkpoint."""
        self._state = state
        self._file.save(_unpacked(state))

    def finish(self, result: Bytes) -> None:
        """Keep the result."""
        self._result = result

    def result(self) -> Bytes | None:
        """Return the result."""
        return self._result


class SharedCheckpoint(Checkpoint):
    """The checkpoint of a group of processes: the first one reads and writes it, and all go on from there.

    Parameters
    ----------
    kept : actor
        Where the checkpoint is.
    rank : int
        The number of this process.
    every : float
        After so many seconds it is due again.
    """

    def __init__(self, kept: Any, rank: int, every: float) -> None:
        super().__init__()
        self._kept, self._rank, self._every = kept, rank, every

    def load(self) -> dict[str, Any] | None:
        """Return the state that was saved last."""
        from torch import distributed

        import ray

        given = [ray.get(self._kept.load.remote()) if self._rank == 0 else None]
        distributed.broadcast_object_list(given, src=0)
        return None if given[0] is None else _unpacked(given[0])

    @property
    def wanted(self) -> bool:
        """Whether this process saves."""
        return self._rank == 0

    def due(self) -> bool:
        """Whether it is time to save again."""
        return self.wanted and time.monotonic() - self._written >= self._every

    def save(self, state: dict[str, Any]) -> None:
        """Save a state in place of the last one."""
        import ray

        if self._rank == 0:
            ray.get(self._kept.save.remote(_packed(state)))
            self._written = time.monotonic()


def train_together(plan: Plan, workers: int, checkpoints: str | None) -> Trained:
    """Return the networks that processes trained together.

    Parameters
    ----------
    plan : Plan
        What each does.
    workers : int
        The number of processes.
    checkpoints : str or None
        A folder for the checkpoint, for another driver to go on from.
    """
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    # Workers that load torch on a busy machine take longer than the minute that Ray gives them.
    os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "600")
    import ray

    path = None if checkpoints is None else str(Path(checkpoints) / "training.checkpoint")
    actor: Any = ray.remote(num_cpus=0)(Kept)
    known = None if path is None else Checkpoint(Path(path), plan.about).load()
    kept = actor.remote(path, plan.about, None if known is None else _packed(known))
    on_gpu = plan.job.device.type == "cuda"
    with tempfile.TemporaryDirectory() as folder:
        trainer = TorchTrainer(
            _work,
            train_loop_config={"plan": Shared(plan), "kept": [kept]},
            scaling_config=ScalingConfig(num_workers=workers, use_gpu=on_gpu),
            run_config=RunConfig(storage_path=folder, failure_config=FailureConfig(max_failures=RETRIES)),
        )
        trainer.fit()
    result = ray.get(kept.result.remote())
    ray.kill(kept)
    return Trained(**_unpacked(result))


def _work(config: dict[str, Any]) -> None:
    """Train in one of the processes."""
    import ray.train

    import ray

    plan: Plan = config["plan"].get()
    (kept,) = config["kept"]
    context = ray.train.get_context()
    rank, size = context.get_world_rank(), context.get_world_size()
    torch.set_num_threads(1)
    device = plan.job.device
    own = replace(plan.stream, pieces=plan.stream.pieces[rank::size], seed=plan.stream.seed + rank)
    batch = -(-plan.job.recipe.batch_size // size)
    loader = TrainingStream(Tap(own, batch), plan.batches, plan.copies, device, plan.stops)
    held_out = StoppingRows.of(own, plan.copies, 4 * plan.job.recipe.batch_size, device) if plan.stops else None
    checkpoint = SharedCheckpoint(kept, rank, plan.every)
    job = replace(plan.job, loader=loader, held_out=held_out, together=AllReduce(), checkpoint=checkpoint)
    trained = job.train()
    if rank == 0:
        state = {name: t.cpu() for name, t in trained.state.items()}
        ray.get(kept.finish.remote(_packed({"state": state, "epochs": trained.epochs, "losses": trained.losses})))


def _packed(state: Any) -> Bytes:
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def _unpacked(packed: Bytes) -> Any:
    return torch.load(io.BytesIO(packed), map_location="cpu", weights_only=True)
