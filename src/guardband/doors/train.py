"""``gb.train``: trains your own network, or many of them as one fleet, on your own data."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from guardband.doors.progress import FitProgress
from guardband.doors.training_table import TrainingTable
from guardband.nn.member_loss import MemberLoss
from guardband.nn.mixed import LossFunction, stack_losses
from guardband.training.checkpoint import Checkpoint
from guardband.training.epochs import Job, TrainingInterrupted
from guardband.training.members import State
from guardband.training.pace import Schedule, for_each
from guardband.training.recipe import Recipe
from guardband.training.task import Precision

Networks = TypeVar("Networks", bound=nn.Module | Sequence[nn.Module])


def train(
    network: Networks,
    data: Any,
    loss: LossFunction | Sequence[LossFunction],
    *,
    rows: Any = None,
    validation: Any = None,
    epochs: int | Sequence[int] = 20,
    patience: int = 20,
    learning_rate: float | Sequence[float] = 1e-3,
    weight_decay: float | Sequence[float] = 0.0,
    clip: float | Sequence[float | None] | None = None,
    schedule: str | Schedule | Sequence[str | Schedule | None] | None = None,
    batch_size: int = 256,
    seed: int | Sequence[int] = 0,
    precision: Precision = "float32",
    checkpoint: str | Path | None = None,
    verbose: bool | None = None,
    after_epoch: Callable[[int], object] | None = None,
) -> Networks:
    """Train a network in place with Adam and return it, in eval mode; many networks train as one fleet.

    ``network`` is a module or a sequence of M modules. ``data`` is a loader of pairs ``(x, y)`` with y of
    shape ``(n,)``, or a tuple of tensors ``(x, y)`` or ``(x, y, weight)``, where y may be ``(M, n)``: a
    response of each network's own. ``loss`` gives ``(M, n, C), (M, n) -> (M,)``, as those of ``gb.nn`` do; a
    sequence is one per network. Every network ends as it would have, had it been trained alone.

    ``rows``: positions ``(n,)`` in the tensors for all networks, or a list of M of them.
    ``validation``: a share of each network's rows, or data of the same form, by which each network stops
    ``patience`` epochs after its best epoch, and keeps that one.
    ``epochs``, ``learning_rate``, ``weight_decay`` (Adam's own, for matrices), ``clip`` (largest norm of a
    network's gradient), ``schedule`` (``"cosine"``, or a function of the share of the training done) and
    ``seed`` (of the order of rows): one for all, or a list of one per network.
    ``precision``: ``"float32"``; ``"bf16"``, or on a GPU ``"tf32"``, for the products.
    ``checkpoint``: a folder; the same call after a kill goes on from there, to the same result (with a
    loader, if it gives the same batches again).
    ``verbose``: whether to show progress; by default if it takes over a second and standard error is a terminal.
    ``after_epoch(epoch)`` sees the networks as they are after every epoch, and ends the training by returning
    ``True``.

    Ctrl-C leaves each network as it was after its last whole epoch, or at its best one so far.
    """
    networks = [network] if isinstance(network, nn.Module) else list(network)
    size, device = len(networks), _device(networks)
    if precision == "tf32" and device.type != "cuda":
        raise ValueError(f'precision "tf32" needs networks on an NVIDIA GPU, found them on {device}.')
    if validation is not None and not isinstance(epochs, int):
        raise ValueError("With validation, epochs must be one number for all: the most to try.")
    recipe = Recipe(
        epochs=epochs if validation is None else "early",
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        batch_size=batch_size,
        max_epochs=epochs if isinstance(epochs, int) else max(epochs),
        patience=patience,
        clip=clip,
        schedule=schedule,
        precision=precision,
        validation_share=validation if isinstance(validation, float) else Recipe.validation_share,
    )
    recipe.pace(size)  # refuses settings of another number than the networks
    seeds = for_each(seed, size, "seed")
    job = Job(tuple(networks), _loss(loss, size, device), recipe, device)
    if isinstance(data, tuple):
        table = TrainingTable.of(data, validation, rows, seeds).on(device, next(networks[0].parameters()).dtype)
        job = replace(job, rows=table.rows, draws=table.draws, held_out=table.held_out)
    else:
        if rows is not None or isinstance(validation, float):
            raise ValueError("rows and a share for validation need data as tensors (x, y), found a loader.")
        job = replace(job, loader=data, held_out=[validation] if isinstance(validation, tuple) else validation)
    with FitProgress(verbose) as shown:
        for number, members in enumerate(_of_one_architecture(networks)):
            part = replace(job.take(members), seed=seeds[members[0]], progress=shown)
            part = replace(part, after_epoch=_after_epoch(part.networks, after_epoch))
            if checkpoint is not None:
                path = Path(checkpoint) / f"fleet-{number}.checkpoint"
                part = replace(part, checkpoint=Checkpoint(path, _fingerprint(part)))
            try:
                trained = part.train()
            except TrainingInterrupted as stopped:
                _write(part.networks, stopped.trained.state)
                raise
            _write(part.networks, trained.state)
    return network


def _device(networks: Sequence[nn.Module]) -> torch.device:
    if not networks or not all(isinstance(network, nn.Module) for network in networks):
        raise TypeError(f"network must be a torch.nn.Module or a sequence of them, found {networks!r:.80}.")
    if len({id(network) for network in networks}) < len(networks):
        raise ValueError("Each network must be an object of its own, found one twice: use copy.deepcopy.")
    if not all(any(True for _ in network.parameters()) for network in networks):
        raise ValueError("A network must have parameters to train, found none.")
    devices = {p.device for network in networks for p in network.parameters()}
    if len(devices) > 1:
        raise ValueError(f"Networks must lie on one device, found {', '.join(sorted(map(str, devices)))}.")
    return devices.pop()


def _loss(loss: Any, size: int, device: torch.device) -> LossFunction:
    """Return one loss for all networks, on their device; the caller's is left alone."""
    losses = list(loss) if isinstance(loss, list | tuple) else [loss]
    if not all(callable(own) for own in losses):
        raise TypeError(f"loss must be a function of outputs and y, as gb.nn.IntervalLoss is, found {loss!r:.80}.")
    if isinstance(loss, list | tuple):
        for_each(losses, size, "loss")
    moved = [copy.deepcopy(own).to(device) if isinstance(own, nn.Module) else own for own in losses]
    for own in moved:
        serves = {b.numel() for b in own.buffers()} if isinstance(own, MemberLoss) else set()
        if not serves <= ({1} if isinstance(loss, list | tuple) else {1, size}):
            raise ValueError(f"A loss must have one level, or one per network, {size}, found {own}.")
    return stack_losses(moved, device) if isinstance(loss, list | tuple) else moved[0]


def _of_one_architecture(networks: Sequence[nn.Module]) -> list[list[int]]:
    """Return which networks have the same layers and shapes: each such part is a fleet."""
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for i, network in enumerate(networks):
        shapes = tuple((name, t.shape, t.dtype) for name, t in network.state_dict().items())
        trained = tuple(p.requires_grad for p in network.parameters())
        kinds.setdefault((type(network), str(network), shapes, trained), []).append(i)
    return list(kinds.values())


def _after_epoch(
    networks: Sequence[nn.Module], user: Callable[[int], object] | None
) -> Callable[[int, State], bool] | None:
    if user is None:
        return None

    def call(epoch: int, state: State) -> bool:
        _write(networks, state)
        return user(epoch) is True

    return call


def _write(networks: Sequence[nn.Module], state: State) -> None:
    """Set the networks from a state, ``(M, ...)``, and put them in eval mode."""
    for i, network in enumerate(networks):
        network.load_state_dict({name: t[i] for name, t in state.items()})
        network.eval()


def _fingerprint(job: Job) -> str:
    """Return a digest of what makes a run: networks as they start, a sample of the data, losses and settings."""
    digest = hashlib.sha256()
    tensors = [t for network in job.networks for t in network.state_dict().values()]
    if job.rows is not None:
        x = job.rows.x.flatten()
        tensors += [x[:: max(1, len(x) // 2**20)], job.rows.y]
        tensors += [draw.index for draw in dict.fromkeys(job.draws)]
    for t in tensors:
        digest.update(str((tuple(t.shape), t.dtype)).encode() + t.detach().cpu().contiguous().numpy().tobytes())
    schedules = [
        getattr(schedule, "__qualname__", schedule) for schedule in job.recipe.pace(len(job.networks)).schedule
    ]
    settings = replace(job.recipe, schedule=None)
    digest.update(repr((settings, schedules, job.loss, [draw.seed for draw in job.draws], job.seed)).encode())
    return digest.hexdigest()
