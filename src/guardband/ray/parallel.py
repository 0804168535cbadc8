"""Training by several processes at once: Ray Train starts them, and starts them again from the last checkpoint."""

from __future__ import annotations

import io
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from guardband.data.damage import reason_of
from guardband.ray.cluster import RETRIES, Failed, Shared, fetched, said_in_one_sentence
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
        All pieces.
    shares : tuple of Share
        What each process takes of them.
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
    shares: tuple[Share, ...]
    copies: tuple[int, ...]
    batches: int
    stops: bool
    about: str
    every: float = SECONDS_BETWEEN


@dataclass(frozen=True)
class Share:
    """What one process trains on.

    Parameters
    ----------
    pieces : tuple of int
        The numbers of its pieces.
    batch : int
        How many rows of a batch are its own.
    """

    pieces: tuple[int, ...]
    batch: int


def shared_out(rows: Sequence[int], most: int, batch: int) -> tuple[Share, ...]:
    """Return what each of some processes trains on, with about as many rows each; all of them have some.

    A process has that part of a batch that it has of the rows, so each row trains about equally often, however unequal
    files are.

    Parameters
    ----------
    rows : sequence of int
        How many rows each piece has.
    most : int
        How many processes there are at most.
    batch : int
        The rows of a batch.

    >>> [share.pieces for share in shared_out([4, 0, 3, 3], 2, 10)]
    [(0,), (2, 3)]
    >>> [share.batch for share in shared_out([4, 0, 3, 3], 2, 10)]
    [4, 6]
    """
    pieces = sorted((i for i, n in enumerate(rows) if n), key=lambda i: -rows[i])
    held: list[list[int]] = [[] for _ in pieces[:most]]
    counts = [0] * len(held)
    for i in pieces:  # the largest first, to whoever has least
        least = counts.index(min(counts))
        held[least].append(i)
        counts[least] += rows[i]
    total = sum(counts)
    return tuple(
        Share(tuple(sorted(own)), max(1, round(batch * n / total))) for own, n in zip(held, counts, strict=True)
    )


class AllReduce(Together):
    """The processes of a group of torch."""

    def added(self, numbers: Tensor) -> Tensor:
        """Return the sum over all processes."""
        from torch import distributed

        distributed.all_reduce(numbers)
        return numbers


class Kept:
    """Holds the last checkpoint, and in the end the result, where no worker can take it along when it dies.

    If its own process dies, another one begins with the file, and is told of the next checkpoint.

    Parameters
    ----------
    path : str or None
        A file to keep the checkpoint in, for another process or driver.
    about : str
        What the checkpoint is of.
    """

    def __init__(self, path: str | None, about: str) -> None:
        self._file = Checkpoint(None if path is None else Path(path), about)
        known = self._file.load()
        self._state = None if known is None else _packed(known)
        self._result: Bytes | None = None
        self._failed: Failed | None = None

    def load(self) -> Bytes | None:
        """Return the last checkpoint."""
        return self._state

    def save(self, state: Bytes) -> None:
        """Keep a checkpoint."""
        self._state = state
        self._file.save(_unpacked(state))

    def fail(self, why: Failed) -> None:
        """Keep why training cannot go on, however often it begins anew."""
        self._failed = why

    def failed(self) -> Failed | None:
        """Return why training cannot go on."""
        return self._failed

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


def train_together(plan: Plan, checkpoints: str | None) -> Trained:
    """Return the networks that processes trained together.

    Parameters
    ----------
    plan : Plan
        What each does.
    checkpoints : str or None
        A folder for the checkpoint, for another driver to go on from.
    """
    from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
    from ray.train.torch import TorchTrainer

    # Workers that load torch on a busy machine take longer than the minute that Ray gives them.
    os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "600")
    import ray

    path = None if checkpoints is None else str(Path(checkpoints) / "training.checkpoint")
    Checkpoint(None if path is None else Path(path), plan.about).load()  # one that cannot be used is refused here
    kept = _beside(Kept).remote(path, plan.about)
    on_gpu = plan.job.device.type == "cuda"
    with tempfile.TemporaryDirectory() as folder:
        trainer = TorchTrainer(
            _work,
            train_loop_config={"plan": Shared(plan), "kept": [kept]},
            scaling_config=ScalingConfig(num_workers=len(plan.shares), use_gpu=on_gpu),
            run_config=RunConfig(storage_path=folder, failure_config=FailureConfig(max_failures=RETRIES)),
        )
        try:
            with said_in_one_sentence():
                trainer.fit()
        except TrainingFailedError as error:
            reason = reason_of(str(error).rstrip().rsplit("\n", 1)[-1])
            raise ValueError(
                f"Training failed {RETRIES + 1} times, at last with: {reason}. Check the machines, and run again."
            ) from None
    fetched(kept.failed.remote())  # which is raised
    result = fetched(kept.result.remote())
    ray.kill(kept)
    if result is None:
        raise ValueError("The process that held the trained networks was killed. Run again, best with checkpoints.")
    return Trained(**_unpacked(result))


def _beside(kind: type) -> Any:
    """Return an actor that runs on this machine, so that no other one takes it along, and again if it is killed."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    import ray

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    again: Any = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(kind)
    return again.options(scheduling_strategy=here)


def _work(config: dict[str, Any]) -> None:
    """Train in one of the processes; what would go wrong every time is told, and the next time all end at once."""
    import ray

    (kept,) = config["kept"]
    if ray.get(kept.failed.remote()) is not None:
        return
    try:
        _trained(config["plan"].get(), kept)
    except ValueError as error:
        ray.get(kept.fail.remote(Failed.of(error)))
        raise


def _trained(plan: Plan, kept: Any) -> None:
    import ray.train

    import ray

    rank = ray.train.get_context().get_world_rank()
    torch.set_num_threads(1)
    device, share = plan.job.device, plan.shares[rank]
    pieces = tuple(plan.stream.pieces[i] for i in share.pieces)
    own = replace(plan.stream, pieces=pieces, seed=plan.stream.seed + rank)
    loader = TrainingStream(Tap(own, share.batch), plan.batches, plan.copies, device, plan.stops)
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
