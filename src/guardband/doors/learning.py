"""What happens on D1: encode the table, standardise the response, train the networks, look at their health."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.parameter import is_lazy

from guardband.data.encoder import Encoder, PlainNumbers, TableEncoder
from guardband.data.table import Table
from guardband.data.target import Target
from guardband.exceptions import DegenerateBandWarning, warn
from guardband.methods.method import NetworkSpec
from guardband.nn import FullyConnected
from guardband.nn.heads import Head, Nest, Triple
from guardband.nn.mixed import stack_losses, take_losses
from guardband.nn.ordering import Ordering
from guardband.nn.tabular import TabularNetwork
from guardband.training.batches import Draw, Rows, seed_generators
from guardband.training.epochs import Job, Progress, Trained
from guardband.training.health import DEAD_SHARE, dead_shares, mean_leaves
from guardband.training.members import Members
from guardband.training.predict import predict
from guardband.training.recipe import Recipe
from guardband.training.stack import stack

Array = NDArray[np.float64]
Builder = Callable[[int], nn.Module]

MOST_RESTARTS = 2
ROWS_FOR_HEALTH = 10_000
SEEDS_OF_A_COPY = 1000


@dataclass(frozen=True)
class Architecture:
    """A fully connected network, the one for tables, or a function of the number of inputs that builds the user's own.

    Once its table is known, ``numbers`` are the columns that the one for tables embeds by waves, and ``sizes`` the
    numbers of places of those for which it learns vectors.
    """

    hidden: tuple[int, ...] = (200,)
    activation: str = "relu"
    dropout: float = 0.0
    ordering: Ordering = "softplus"
    builder: Builder | None = None
    tabular: bool = False
    numbers: int = 0
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.ordering not in get_args(Ordering):
            raise ValueError(f'ordering must be "softplus" or "relu", found {self.ordering!r}.')

    def build(self, in_features: int, head: Head, seed: int, device: torch.device) -> nn.Module:
        """Return a fresh network, without touching the caller's random state."""
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            seed_generators(seed, device)
            network: nn.Module
            shape, last = (self.hidden, self.activation, self.dropout), lambda width: head.last(width, self.ordering)
            if self.builder is not None:
                network = self.builder(in_features)
            elif self.tabular:
                network = TabularNetwork(in_features, self.numbers, self.sizes, *shape, last)
            else:
                network = FullyConnected(in_features, *shape, last=last)
        if not isinstance(network, nn.Module):
            raise TypeError(f"network must build a torch.nn.Module, found {type(network).__name__}.")
        if any(is_lazy(p) or p.dtype != torch.float32 for p in network.parameters()):
            raise ValueError("network must build a module with parameters of known shape in float32, found others.")
        return network.to(device)


@dataclass(frozen=True)
class Lesson:
    """The rows of one D1 as networks see them, ``x (n, d)`` and ``y (n,)``, and the seed of all that is random."""

    encoder: Encoder
    target: Target
    x: NDArray[np.float32]
    y: Array
    weight: Array | None
    seed: int

    @classmethod
    def of(
        cls, table: Table, y: Array, weight: Array | None, seed: int, architecture: Architecture, target: Target
    ) -> Lesson:
        """Return the lesson of a table: how to encode its columns and to standardise the response is learnt here."""
        encoder = (
            PlainNumbers() if architecture.builder is not None else TableEncoder.learn(table, architecture.tabular)
        )
        target = target.learn(y)
        return cls(encoder, target, encoder.encode(table), target.to_learn(y), weight, seed)


def fitting(architecture: Architecture, encoder: Encoder) -> Architecture:
    """Return the architecture for what an encoder makes."""
    if not isinstance(encoder, TableEncoder):
        return architecture
    return replace(architecture, numbers=encoder.numbers, sizes=encoder.sizes)


@dataclass(frozen=True)
class Learned:
    """All that D1 taught: how to encode rows, the scale of the response, and the trained networks.

    ``losses`` are those on the held-out rows of D1 at the epoch kept, for networks that looked for it; ``dead``
    says which had a side of no width when they were first trained; ``held_out`` are the bands of D1's rows by the
    copy that did not see them, ``(K, n, 3)`` in work units, and which rows these are. ``choices`` says in words what
    was chosen here.
    """

    encoder: Encoder
    target: Target
    architecture: Architecture
    heads: tuple[Head, ...]
    members: Members
    epochs: tuple[int, ...]
    in_features: int
    device: torch.device
    losses: tuple[float, ...] = ()
    dead: tuple[bool, ...] = ()
    held_out: tuple[Array, NDArray[np.intp]] | None = None
    choices: str = ""

    def bands(self, table: Table) -> Array:
        """Return the bands of all networks in work units, ``(K, n, 3)``."""
        return self.bands_of(self.encoder.encode(table))

    def bands_of(self, x: NDArray[np.float32]) -> Array:
        """Return the same for rows that are encoded already."""
        outputs = predict(self.members, x, self.device).astype(np.float64)
        return self.target.bands_to_work(bands_of_outputs(self.heads, outputs, np))


def bands_of_outputs(heads: Sequence[Head], outputs: Any, xp: Any) -> Any:
    """Return the bands that networks put out, ``(M, n, C) -> (K, n, 3)``; nests are copies, and averaged."""
    return heads[0].bands(outputs.mean(0) if isinstance(heads[0], Nest) else outputs, xp)


def learn(
    lessons: Sequence[Lesson],
    specs: Sequence[NetworkSpec],
    architecture: Architecture,
    recipe: Recipe,
    *,
    device: torch.device,
    progress: Progress,
    restarts: int = MOST_RESTARTS,
) -> list[Learned]:
    """Return what each D1 teaches, with a network for each spec: those of all lessons train as one fleet.

    The networks of a lesson start alike. The heads are of one kind. Lessons whose tables have different numbers
    of columns once encoded train one after another.
    """
    widths = [lesson.x.shape[1] for lesson in lessons]
    learned: dict[int, Learned] = {}
    for width in dict.fromkeys(widths):
        which = [i for i, own in enumerate(widths) if own == width]
        fleet = _Fleet([lessons[i] for i in which], specs, architecture, recipe, device)
        learned |= zip(which, fleet.train(progress, restarts), strict=True)
    return [learned[i] for i in range(len(lessons))]


class _Fleet:
    """The networks of lessons that have one number of inputs: specs of the first lesson, of the second, ..."""

    def __init__(
        self,
        lessons: Sequence[Lesson],
        specs: Sequence[NetworkSpec],
        architecture: Architecture,
        recipe: Recipe,
        device: torch.device,
    ) -> None:
        self._lessons, self._specs = lessons, specs
        self._architecture, self._device = architecture, device
        decays: list[Any] = [recipe.weight_decay if spec.weight_decay is None else spec.weight_decay for spec in specs]
        limits: list[Any] = [spec.head.clip if recipe.clip is None else recipe.clip for spec in specs]
        self._recipe = replace(recipe, weight_decay=decays * len(lessons), clip=limits * len(lessons))
        weights = [np.ones(len(lesson.y)) if lesson.weight is None else lesson.weight for lesson in lessons]
        weighted = any(lesson.weight is not None for lesson in lessons)
        self._rows = Rows(
            torch.from_numpy(np.concatenate([lesson.x for lesson in lessons])).to(device),
            torch.from_numpy(np.concatenate([lesson.y for lesson in lessons])).float().to(device),
            torch.from_numpy(np.concatenate(weights)).float().to(device) if weighted else None,
        )
        self._heads = [spec.head for spec in specs] * len(lessons)
        self._loss = stack_losses([head.loss().to(device) for head in self._heads], device)
        self._owner = [i for i in range(len(lessons)) for _ in specs]
        if architecture.builder is not None:
            example = architecture.build(self._rows.x.shape[1], specs[0].head, lessons[0].seed, device)
            _refuse_other_outputs(example, specs[0].head, self._rows.x[:256])

    def train(self, progress: Progress, restarts: int) -> list[Learned]:
        """Return the trained networks of each lesson."""
        everyone = range(len(self._heads))
        trained = self._trained(everyone, 0, progress)
        members = [self._members(i) for i in range(len(self._lessons))]
        dead = self._dead(trained, members)
        first = dead.copy()
        attempt = 0
        while dead.any() and attempt < restarts:
            attempt += 1
            again = np.flatnonzero(dead).tolist()
            trained = _replace(trained, again, self._trained(again, attempt, progress))
            dead = self._dead(trained, members)
        if first.any() and restarts:
            outcome = f"{dead.sum()} still have" if dead.any() else "none has"
            warn(
                f"{first.sum()} of {len(first)} networks had a side of no width on more than {DEAD_SHARE:.0%} of the "
                f'rows; after {attempt} restart(s) {outcome}. ordering="softplus" has no dead side.',
                DegenerateBandWarning,
            )
        return [self._learned(i, trained, members[i], first) for i in range(len(self._lessons))]

    def _trained(self, which: Sequence[int], attempt: int, progress: Progress) -> Trained:
        starts = np.cumsum([0] + [len(lesson.x) for lesson in self._lessons])
        rows = [torch.arange(first, last) for first, last in pairwise(starts)]
        draws = [Draw(own, lesson.seed + attempt) for own, lesson in zip(rows, self._lessons, strict=True)]
        job = Job(
            tuple(self._network(i, attempt) for i in which),
            take_losses(self._loss, which),
            self._recipe.take(which),
            self._device,
            self._rows,
            tuple(draws[self._owner[i]] for i in which),
            seeds=tuple(self._seed(i, attempt) for i in which),
            progress=progress,
        )
        trained = job.train()
        refuse_divergence(trained)
        return trained

    def _network(self, i: int, attempt: int) -> nn.Module:
        head = self._specs[i % len(self._specs)].head
        return self._architecture.build(self._rows.x.shape[1], head, self._seed(i, attempt), self._device)

    def _seed(self, i: int, attempt: int) -> int:
        spec = self._specs[i % len(self._specs)]
        return self._lessons[self._owner[i]].seed + attempt + SEEDS_OF_A_COPY * spec.copy

    def _members(self, lesson: int) -> Members:
        place = self._place(lesson)
        return stack([self._network(i, 0) for i in range(place.start, place.stop)], self._rows.x[:2])

    def _bands(self, lesson: int, trained: Trained, members: Members) -> tuple[Array, NDArray[np.intp]]:
        """Return the bands of a lesson's networks for some of its rows, and which rows these are."""
        part, own = self._lessons[lesson], self._place(lesson)
        looked_at = np.random.default_rng(part.seed).permutation(len(part.x))[:ROWS_FOR_HEALTH]
        members.restore({name: t[own] for name, t in trained.state.items()})
        bands = self._specs[0].head.bands(predict(members, part.x[looked_at], self._device).astype(np.float64))
        refuse_infinite(bands, self._recipe)
        return bands, looked_at

    def _dead(self, trained: Trained, members: Sequence[Members]) -> NDArray[np.bool_]:
        """Return which networks have a dead side, ``(M,)``; only a triple can, where there is something to learn."""
        dead = np.zeros(len(self._heads), dtype=bool)
        for i, part in enumerate(self._lessons):
            bands, _ = self._bands(i, trained, members[i])
            if isinstance(self._heads[0], Triple) and np.ptp(part.y) > 0:
                dead[self._place(i)] = dead_shares(bands) > DEAD_SHARE
        return dead

    def _place(self, lesson: int) -> slice:
        return slice(lesson * len(self._specs), (lesson + 1) * len(self._specs))

    def _learned(self, lesson: int, trained: Trained, members: Members, dead: NDArray[np.bool_]) -> Learned:
        part, own = self._lessons[lesson], self._place(lesson)
        heads = tuple(self._heads[own])
        bands, rows = self._bands(lesson, trained, members)
        taus = [head.tau for head in heads if isinstance(head, Triple) and head.point == "mean"]
        if taus and mean_leaves(bands, part.y[rows], taus).any():
            warn(
                "The mean leaves the band: on some of the training rows it lies beyond an outer quantile, so skewed is "
                'the response. The band was stretched to contain it; use point="median" or target_transform="log".',
                DegenerateBandWarning,
            )
        return Learned(
            part.encoder,
            part.target,
            self._architecture,
            heads,
            members,
            trained.epochs[own],
            part.x.shape[1],
            self._device,
            trained.losses[own],
            tuple(dead[own].tolist()),
        )


def rebuild(architecture: Architecture, heads: Sequence[Head], in_features: int, device: torch.device) -> Members:
    """Return untrained members of the right shape, to load a state into."""
    networks = [architecture.build(in_features, head, 0, device) for head in heads]
    return stack(networks, torch.zeros(2, in_features, device=device))


def _replace(trained: Trained, which: Sequence[int], fresh: Trained) -> Trained:
    state = {name: t.clone() for name, t in trained.state.items()}
    epochs, losses = list(trained.epochs), list(trained.losses)
    for j, i in enumerate(which):
        epochs[i], losses[i] = fresh.epochs[j], fresh.losses[j]
        for name in state:
            state[name][i] = fresh.state[name][j]
    return Trained(state, tuple(epochs), tuple(losses))


def refuse_divergence(trained: Trained) -> None:
    """Raise if a network has kept no epoch."""
    if 0 in trained.epochs:
        raise ValueError("Training diverged: no epoch had a finite loss. Lower the learning rate.")


def refuse_infinite(bands: Array, recipe: Recipe) -> None:
    """Raise if bands are not finite."""
    if not np.isfinite(bands).all():
        raise ValueError(f"Training diverged: bands are not finite. Lower learning_rate, found {recipe.learning_rate}.")


def _refuse_other_outputs(network: nn.Module, head: Head, x: torch.Tensor) -> None:
    with torch.no_grad():
        out = network.eval()(x)
    found = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
    if isinstance(head, Triple):
        crosses = found == (len(x), 3) and bool((out.diff(dim=-1) < 0).any())
        if found != (len(x), 3) or crosses:
            raise ValueError(
                "A network of your own must put out ordered bands (n, 3) = lower, point, upper, found "
                f"{'bands that cross' if crosses else found}: end it with gb.nn.TripleHead."
            )
    elif found != (len(x), head.columns):
        raise ValueError(
            f"A network of your own must put out (n, {head.columns}) for this method, which reads a "
            f"{type(head).__name__} off it, found {found}."
        )
