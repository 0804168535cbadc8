"""What happens on D1: encode the table, standardise the response, train the networks, look at their health."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.parameter import is_lazy

from guardband.data.encoder import Encoder, PlainNumbers, TableEncoder
from guardband.data.table import Table
from guardband.data.target import Target
from guardband.exceptions import DegenerateBandWarning, warn
from guardband.nn import FullyConnected, IntervalLoss
from guardband.nn.loss import Point
from guardband.nn.ordering import Ordering
from guardband.training.batches import Draw, Rows, seed_generators
from guardband.training.epochs import Job, Progress, Trained
from guardband.training.health import DEAD_SHARE, dead_shares, mean_leaves
from guardband.training.members import Members
from guardband.training.predict import predict_bands
from guardband.training.recipe import Recipe
from guardband.training.stack import stack

Array = NDArray[np.float64]
Builder = Callable[[int], nn.Module]

MOST_RESTARTS = 2
ROWS_FOR_HEALTH = 10_000


@dataclass(frozen=True)
class Architecture:
    """A fully connected network, or a function of the number of inputs that builds the user's own."""

    hidden: tuple[int, ...] = (200,)
    activation: str = "relu"
    dropout: float = 0.0
    ordering: Ordering = "softplus"
    builder: Builder | None = None

    def build(self, in_features: int, seed: int, device: torch.device) -> nn.Module:
        """Return a fresh network, without touching the caller's random state."""
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            seed_generators(seed, device)
            if self.builder is None:
                network: nn.Module = FullyConnected(
                    in_features, self.hidden, self.activation, self.dropout, self.ordering
                )
            else:
                network = self.builder(in_features)
        if not isinstance(network, nn.Module):
            raise TypeError(f"network must build a torch.nn.Module, found {type(network).__name__}.")
        if any(is_lazy(p) or p.dtype != torch.float32 for p in network.parameters()):
            raise ValueError("network must build a module with parameters of known shape in float32, found others.")
        return network.to(device)


@dataclass(frozen=True)
class Learned:
    """All that D1 taught: how to encode rows, the scale of the response, and the trained networks."""

    encoder: Encoder
    target: Target
    architecture: Architecture
    members: Members
    epochs: tuple[int, ...]
    in_features: int
    device: torch.device

    def bands(self, table: Table) -> Array:
        """Return the bands of all networks in work units, ``(K, n, 3)``."""
        return self.target.bands_to_work(predict_bands(self.members, self.encoder.encode(table), self.device))


def learn(
    table: Table,
    y: Array,
    weight: Array | None,
    taus: Sequence[float],
    architecture: Architecture,
    recipe: Recipe,
    target: Target,
    *,
    power: Literal[1, 2],
    point: Point,
    device: torch.device,
    seed: int,
    progress: Progress,
) -> Learned:
    """Return what the rows of D1 teach, with one network per tau, trained as one stack from equal starts."""
    encoder = TableEncoder.learn(table) if architecture.builder is None else PlainNumbers()
    target = target.learn(y)
    x, learnt = encoder.encode(table), target.to_learn(y)
    rows = Rows(
        torch.from_numpy(x).to(device),
        torch.from_numpy(learnt).float().to(device),
        None if weight is None else torch.from_numpy(weight).float().to(device),
    )
    loss = IntervalLoss(list(taus), power, point).to(device)

    def build(start: int, count: int) -> tuple[nn.Module, ...]:
        return tuple(architecture.build(x.shape[1], start, device) for _ in range(count))

    def train(members: Sequence[int], attempt: int) -> Trained:
        start = seed + attempt
        networks = first if attempt == 0 else build(start, len(members))
        draw = Draw(torch.arange(len(x)), start)
        trained = Job(
            networks,
            loss.take(members),
            recipe,
            device,
            rows,
            (draw,) * len(members),
            seed=start,
            progress=progress,
        ).train()
        if 0 in trained.epochs:
            raise ValueError("Training diverged: no epoch had a finite loss. Lower the learning rate.")
        return trained

    if architecture.builder is not None:
        _refuse_other_outputs(architecture.build(x.shape[1], seed, device), rows.x[:256])
    looked_at = np.random.default_rng(seed).permutation(len(x))[:ROWS_FOR_HEALTH]

    first = build(seed, len(taus))
    members = stack(first, rows.x[:2])

    def bands_of(trained: Trained) -> NDArray[np.float32]:
        members.restore(trained.state)
        return predict_bands(members, x[looked_at], device)

    trained = train(range(len(taus)), 0)
    bands = bands_of(trained)
    if not np.isfinite(bands).all():
        raise ValueError(f"Training diverged: bands are not finite. Lower learning_rate, found {recipe.learning_rate}.")
    if np.ptp(y) > 0:
        trained = _restart_dead(trained, dead_shares(bands), train, bands_of)
    if point == "mean" and mean_leaves(bands_of(trained), learnt[looked_at], taus).any():
        warn(
            "The mean leaves the band: on some of the training rows it lies beyond an outer quantile, so skewed is the "
            'response. The band was stretched to contain it; use point="median" or target_transform="log".',
            DegenerateBandWarning,
        )
    members.restore(trained.state)
    return Learned(encoder, target, architecture, members, trained.epochs, x.shape[1], device)


def rebuild(architecture: Architecture, size: int, in_features: int, device: torch.device) -> Members:
    """Return untrained members of the right shape, to load a state into."""
    networks = [architecture.build(in_features, 0, device) for _ in range(size)]
    return stack(networks, torch.zeros(2, in_features, device=device))


def _restart_dead(
    trained: Trained,
    shares: Array,
    train: Callable[[Sequence[int], int], Trained],
    bands_of: Callable[[Trained], NDArray[np.float32]],
) -> Trained:
    """Train members with a dead side again, from other starts; ``shares`` is how dead each is, ``(M,)``."""
    dead = np.flatnonzero(shares > DEAD_SHARE)
    if not len(dead):
        return trained
    found = f"{len(dead)} of {len(shares)} networks had a side of no width on {shares[dead].max():.0%} of the rows"
    attempt = 0
    while len(dead) and attempt < MOST_RESTARTS:
        attempt += 1
        trained = _replace(trained, dead.tolist(), train(dead.tolist(), attempt))
        dead = np.flatnonzero(dead_shares(bands_of(trained)) > DEAD_SHARE)
    outcome = f"{len(dead)} still have" if len(dead) else "none has"
    warn(
        f'{found}; after {attempt} restart(s) {outcome}. ordering="softplus" has no dead side.',
        DegenerateBandWarning,
    )
    return trained


def _replace(trained: Trained, which: Sequence[int], fresh: Trained) -> Trained:
    state = {name: t.clone() for name, t in trained.state.items()}
    epochs = list(trained.epochs)
    for j, i in enumerate(which):
        epochs[i] = fresh.epochs[j]
        for name in state:
            state[name][i] = fresh.state[name][j]
    return replace(trained, state=state, epochs=tuple(epochs))


def _refuse_other_outputs(network: nn.Module, x: torch.Tensor) -> None:
    with torch.no_grad():
        out = network.eval()(x)
    found = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
    crosses = found == (len(x), 3) and bool((out.diff(dim=-1) < 0).any())
    if found != (len(x), 3) or crosses:
        raise ValueError(
            "A network of your own must put out ordered bands (n, 3) = lower, point, upper, found "
            f"{'bands that cross' if crosses else found}: end it with gb.nn.TripleHead."
        )
