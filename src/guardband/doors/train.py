"""``gb.train``: trains your own network, or many of them as one fleet, on your own data."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from guardband.doors.progress import FitProgress
from guardband.doors.training_table import TrainingTable
from guardband.nn.member_loss import MemberLoss
from guardband.nn.mixed import LossFunction, describe, stack_losses
from guardband.training.checkpoint import Checkpoint
from guardband.training.epochs import TrainingInterrupted, try_a_step
from guardband.training.inputs import map_tensors, split_target
from guardband.training.job import AfterEpoch, Job, Trained
from guardband.training.members import State, tensors_of, write_state
from guardband.training.precision import Precision
from guardband.training.recipe import Recipe, Schedule, for_each

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
    averaging: float = 0.0,
    schedule: str | Schedule | Sequence[str | Schedule | None] | None = None,
    batch_size: int = 256,
    seed: int | Sequence[int] = 0,
    precision: Precision = "float32",
    checkpoint: str | Path | None = None,
    target: str = "y",
    verbose: bool | None = None,
    after_epoch: Callable[[int], object] | None = None,
    trainer: Callable[[Job], Trained] | None = None,
) -> Networks:
    """Train a network with Adam, in place, and return it in eval mode; many networks train together in one call.

    Each network ends exactly as if it had been trained alone, because its randomness depends on its own seed only.
    Networks of one architecture train together, other architectures one after another.

    Parameters
    ----------
    network : torch.nn.Module or sequence of torch.nn.Module
        The network, or M networks.
    data : loader or tuple of tensors
        A loader of pairs ``(x, y)`` with y of shape ``(n,)``; x is a tensor, a tuple for ``network(*x)`` or a mapping
        for ``network(**x)``. A loader of mappings with y under ``target`` works too. Or tensors ``(x, y)`` or ``(x, y,
        weight)``, where y may be ``(M, n)`` if each network has a target of its own. A loader that shuffles with
        torch's generator uses the first seed.
    loss : function or sequence of functions
        The loss ``(M, n, C), (M, n) -> (M,)`` for any number M of networks, such as those of ``gb.nn``. If rows have
        weights it takes them, ``(M, n)``, as a third argument. A list gives each network its own.
    rows : array of int or sequence of arrays, default None
        The positions of the rows to train on, for all networks or for each. None means all rows. Only for tensors.
    validation : float or data, default None
        A share of each network's rows, or data of the same form as ``data``. Each network then stops ``patience``
        epochs after its best epoch and keeps that one. None trains for all ``epochs``.
    epochs : int or sequence of int, default 20
        How many passes over the data, or the most with ``validation``. Raise it if the loss still falls at the end.
    patience : int, default 20
        How many epochs to go on after the best one. Only with ``validation``.
    learning_rate : float or sequence of float, default 0.001
        The step size of Adam. Lower it if training diverges.
    weight_decay : float or sequence of float, default 0.0
        How strongly large weights are penalised, for matrices only. Raise it if the network overfits.
    clip : float, None or sequence of these, default None
        The largest norm of a network's gradient. None sets no limit. Use 1 for ``GaussianLoss``.
    averaging : float, default 0.0
        Keep an average of the parameters over about so many epochs. 0 keeps the last ones. 2 often makes results
        steadier.
    schedule : "cosine", function, None or sequence of these, default None
        How the learning rate falls: "cosine", or a function from the share of training done to a factor. None keeps it
        constant.
    batch_size : int, default 256
        How many rows make one step. Only for tensors; a loader has its own.
    seed : int or sequence of int, default 0
        The seed of the order of rows and of dropout.
    precision : {"float32", "bf16", "tf32"}, default "float32"
        The precision of matrix products. "bf16" and, on an NVIDIA GPU, "tf32" are faster and less exact.
    checkpoint : str or path, default None
        A folder for checkpoints. After an interruption, the same call on networks built anew continues from there, to
        the same result. None keeps none.
    target : str, default "y"
        The name of y in batches that are mappings.
    verbose : bool or None, default None
        Whether to show progress. None shows it in a terminal, if training takes more than a second.
    after_epoch : function, default None
        Called with the number of the epoch after each one. It may look at the networks, and ends the training of this
        architecture by returning True.
    trainer : function, default None
        What trains all networks of one architecture. None means this process, and ``gb.ray.train`` brings the workers
        of Ray.

    Returns
    -------
    torch.nn.Module or sequence of torch.nn.Module
        What was given, trained. Ctrl-C leaves each network as it was after its last whole epoch, or at its best one.

    Raises
    ------
    ValueError
        If a network diverges. It is left as it was given; the others are trained.
    """
    networks = [network] if isinstance(network, nn.Module) else list(network)
    size, device = len(networks), _device(networks)
    if precision == "tf32" and device.type != "cuda":
        raise ValueError(f'precision "tf32" needs networks on an NVIDIA GPU, found them on {device}.')
    recipe = _recipe(
        _plain(epochs),
        validation,
        learning_rate=_plain(learning_rate),
        weight_decay=_plain(weight_decay),
        batch_size=_plain(batch_size),
        patience=_plain(patience),
        clip=_plain(clip),
        averaging=averaging,
        schedule=schedule,
        precision=precision,
    )
    seeds = for_each(_plain(seed), size, "seed")
    if not all(isinstance(own, int) and 0 <= own < 2**63 for own in seeds):
        raise ValueError(f"seed must be a whole number from 0 to 2**63 - 1, or one per network, found {seed!r:.80}.")
    job = Job(tuple(networks), _loss(loss, size, device), recipe, device, seeds=seeds)
    if isinstance(data, tuple):
        table = TrainingTable.of(data, validation, rows, seeds).on(device)
        job = replace(job, rows=table.rows, draws=table.draws, held_out=table.held_out)
    else:
        if rows is not None or isinstance(validation, float):
            raise ValueError("rows and a share for validation need data as tensors (x, y), found a loader.")
        if not isinstance(data, Iterable) or isinstance(data, Iterator):
            raise TypeError(f"data must be tensors (x, y) or a loader for many passes, found {type(data).__name__}.")
        if isinstance(validation, tuple):
            validation = [validation]
        job = replace(
            job, loader=_Pairs(data, target), held_out=None if validation is None else _Pairs(validation, target)
        )
    parts = [(members, _part(job, members)) for members in _of_one_architecture(networks)]
    for _, part in parts if job.rows is not None else []:
        try_a_step(part)
    diverged: list[int] = []
    with FitProgress(verbose) as shown:
        for number, (members, part) in enumerate(parts):
            own = [networks[i] for i in members]
            part = replace(part, progress=shown)
            if after_epoch is not None:  # what it sees is written into the networks, and must not change the start
                part = replace(part, networks=copy.deepcopy(part.networks), after_epoch=_shows(own, after_epoch))
            if checkpoint is not None:
                path = Path(checkpoint) / f"fleet-{number}.checkpoint"
                part = replace(part, checkpoint=Checkpoint(path, fingerprint(part)))
            try:
                trained = (trainer or Job.train)(part)
            except TrainingInterrupted as stopped:
                _write(own, stopped.trained.state)
                raise
            _write(own, trained.state)
            diverged += [i for i, kept in zip(members, trained.epochs, strict=True) if kept == 0]
    if diverged:
        which = ", ".join(map(str, sorted(diverged)))
        raise ValueError(
            f"Training diverged for network {which} of {size}, counted from 0: its loss or its parameters became "
            "infinite. It was left as you gave it, and the others are trained. Lower its learning rate."
        )
    return network


class _Pairs:
    """A loader's batches as pairs, for those that are mappings."""

    def __init__(self, loader: Iterable[Any], target: str) -> None:
        self._loader, self._target = loader, target

    def __iter__(self) -> Iterator[Any]:
        return (split_target(item, self._target) for item in self._loader)

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    """Return numbers of numpy and torch, and arrays and lists of them, as Python's."""
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic | torch.Tensor) else value


def _recipe(epochs: Any, validation: Any, **settings: Any) -> Recipe:
    """Return the recipe: with validation, ``epochs`` is the most to try."""
    if isinstance(epochs, str):
        raise ValueError(f"epochs must be a whole number of at least 1, or one per network, found {epochs!r}.")
    if validation is None:
        return Recipe(epochs=epochs, **settings)
    if not isinstance(epochs, int):
        raise ValueError("With validation, epochs must be one number for all: the most to try.")
    if not isinstance(validation, float):
        return Recipe(epochs="early", max_epochs=epochs, **settings)
    if not 0 < validation < 1:
        raise ValueError(f"validation must be a share strictly between 0 and 1, or data, found {validation}.")
    return Recipe(epochs="early", max_epochs=epochs, validation_share=validation, **settings)


def _part(job: Job, members: Sequence[int]) -> Job:
    """Return the job of networks of one architecture, with inputs of their kind of number."""
    part = job.take(members)
    kind = next(part.networks[0].parameters()).dtype
    if part.rows is None:
        return part
    x = map_tensors(part.rows.x, lambda t: t.to(kind) if t.is_floating_point() else t)
    return replace(part, rows=replace(part.rows, x=x))


def _device(networks: Sequence[nn.Module]) -> torch.device:
    if not networks or not all(isinstance(network, nn.Module) for network in networks):
        raise TypeError(f"network must be a torch.nn.Module or a sequence of them, found {networks!r:.80}.")
    if len({id(network) for network in networks}) < len(networks):
        raise ValueError("Each network must be an object of its own, found one twice: use copy.deepcopy.")
    if not all(any(True for _ in network.parameters()) for network in networks):
        raise ValueError("The network has no parameters to train. Pass one that has some.")
    own = [{id(p) for p in network.parameters()} for network in networks]
    if sum(map(len, own)) != len(set().union(*own)):
        raise ValueError("Networks must not share parameters, found some that do: use copy.deepcopy.")
    if any(is_lazy(p) for network in networks for p in network.parameters()):
        raise ValueError("Lazy modules must know their shapes before training: run the network once.")
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
    copies = {id(own): copy.deepcopy(own).to(device) if isinstance(own, nn.Module) else own for own in losses}
    moved = [copies[id(own)] for own in losses]
    for own in moved:
        serves = {getattr(own, name).shape for name in own.per_member} if isinstance(own, MemberLoss) else set()
        if not serves <= ({(), (1,)} if isinstance(loss, list | tuple) else {(), (size,)}):
            raise ValueError(f"A loss must have one level, or one per network, {size}, found {own}.")
    return stack_losses(moved, device) if isinstance(loss, list | tuple) else moved[0]


def _of_one_architecture(networks: Sequence[nn.Module]) -> list[list[int]]:
    """Return which networks have the same layers and shapes: each such part is a fleet."""
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for i, network in enumerate(networks):
        shapes = tuple((name, t.shape, t.dtype) for name, t in tensors_of(network).items())
        trained = tuple(p.requires_grad for p in network.parameters())
        kinds.setdefault((type(network), str(network), shapes, trained), []).append(i)
    return list(kinds.values())


def _shows(networks: Sequence[nn.Module], user: Callable[[int], object]) -> AfterEpoch:
    """Return what shows the networks to the user after an epoch, and says whether the user wants to stop."""

    def call(epoch: int, state: Callable[[], State]) -> bool:
        _write(networks, state())
        return user(epoch) is True

    return call


def _write(networks: Sequence[nn.Module], state: State) -> None:
    """Set the networks from a state, ``(M, ...)``, and put them in eval mode."""
    write_state(networks, state)
    for network in networks:
        network.eval()


def fingerprint(job: Job) -> str:
    """Return a digest of what makes a run: networks as they start, data, losses and settings.

    Of data over 256 MB a sample of the rows; of a loader nothing is known.
    """
    digest = hashlib.sha256()
    tensors = [t for network in job.networks for t in tensors_of(network).values()]
    if job.rows is not None:
        rows = job.rows
        tensors += [t[:: max(1, -(-t.nbytes // 2**28))] for t in rows.inputs]
        tensors += [rows.y, *([] if rows.weight is None else [rows.weight])]
        held_out = job.held_out if isinstance(job.held_out, tuple) else ()
        different = {id(draw): draw for draw in (*job.draws, *held_out)}
        tensors += [draw.index for draw in different.values()]
        numbers = {identity: number for number, identity in enumerate(different)}
        digest.update(repr([(numbers[id(draw)], draw.seed) for draw in (*job.draws, *held_out)]).encode())
    for t in tensors:
        digest.update(str((tuple(t.shape), t.dtype)).encode())
        digest.update(t.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    schedules = [describe(schedule) for schedule in for_each(job.recipe.schedule, job.size, "schedule")]
    settings = replace(job.recipe, schedule=None)
    digest.update(repr((settings, schedules, describe(job.loss), job.seeds)).encode())
    return digest.hexdigest()
