"""Muon against a plain loop over members, and what it may not do: let members depend on each other."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from guardband.learning.architecture import Architecture
from guardband.nn.heads import NestedTriples
from guardband.training.adam import Adam, coefficients
from guardband.training.batches import Draw, Rows
from guardband.training.checkpoint import Checkpoint
from guardband.training.epochs import TrainingInterrupted
from guardband.training.job import Job
from guardband.training.muon import MOMENTUM, POLYNOMIALS, Muon, orthogonal
from guardband.training.recipe import Epochs, Recipe

CPU = torch.device("cpu")
SHAPES = ((3, 8, 5), (3, 4, 8), (3, 4, 8), (3, 7))
HIDDEN = [0, 1, 2]


def tensors(seed: int) -> list[torch.Tensor]:
    """Return a tensor of each shape."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in SHAPES]


def muon_of(parameters: list[torch.Tensor]) -> Muon:
    return Muon(parameters, HIDDEN, 4.0, half=False)


def by_singular_values(g: torch.Tensor) -> torch.Tensor:
    """Return one matrix with its singular values taken through the polynomials."""
    left, values, right = torch.linalg.svd(g / g.norm(), full_matrices=False)
    for a, b, c in POLYNOMIALS:
        values = a * values + b * values**3 + c * values**5
    return left @ torch.diag(values) @ right


def test_stacked_matrices_move_as_each_member_does_alone_in_a_plain_loop() -> None:
    steps, rates = 6, np.array([0.003, 0.001, 0.01])
    own = tensors(0)
    alone = [p.clone() for p in own]
    muon = muon_of(own)
    momentum = [torch.zeros_like(p) for p in alone]
    adam = Adam(alone[3:])
    for t, step in enumerate(torch.from_numpy(coefficients(np.tile(rates, (steps, 1)), 0))):
        gradients = tensors(t + 1)
        muon.step([g.clone() for g in gradients], step)
        adam.step(gradients[3:], step)
        for i in HIDDEN:
            for m in range(3):
                momentum[i][m] = MOMENTUM * momentum[i][m] + (1 - MOMENTUM) * gradients[i][m]
                ahead = (1 - MOMENTUM) * gradients[i][m] + MOMENTUM * momentum[i][m]
                a, b = ahead.shape
                alone[i][m] -= 4 * rates[m] * math.sqrt(max(1, a / b)) * by_singular_values(ahead)
    for p, q in zip(own, alone, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)


def test_singular_values_from_a_fiftieth_of_the_norm_come_close_to_one() -> None:
    values = np.geomspace(0.02, 1, 200)
    for a, b, c in POLYNOMIALS:
        values = a * values + b * values**3 + c * values**5
    assert np.abs(values - 1).max() < 0.1
    for shape in ((4, 20, 6), (4, 6, 20)):
        matrices = torch.randn(shape, generator=torch.Generator().manual_seed(1))
        turned, coarse = orthogonal(matrices), orthogonal(matrices, half=True)
        assert (torch.linalg.svdvals(turned) - 1).abs().max() < 0.1
        off = (turned - coarse).flatten(1).norm(dim=1) / turned.flatten(1).norm(dim=1)
        assert off.max() < 2 * len(POLYNOMIALS) * 2**-7  # two roundings by 2^-8 and their sums in each product
    assert torch.equal(orthogonal(torch.zeros(2, 3, 3)), torch.zeros(2, 3, 3))


def test_a_run_goes_on_from_its_state() -> None:
    steps = torch.from_numpy(coefficients(np.full(6, 0.01), 0))
    whole, parts = tensors(0), tensors(0)
    one = muon_of(whole)
    for t, step in enumerate(steps):
        one.step(tensors(t), step)
    first = muon_of(parts)
    for t in range(3):
        first.step(tensors(t), steps[t])
    second = muon_of(parts)
    second.load(first.state())
    for t in range(3, 6):
        second.step(tensors(t), steps[t])
    assert all(torch.equal(p, q) for p, q in zip(whole, parts, strict=True))


def job_of(muon: float, epochs: Epochs = 4) -> Job:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 4)).astype(np.float32)
    y = torch.from_numpy(x[:, 0] + rng.standard_normal(300)).float()
    head = NestedTriples.of([0.1])
    shape = Architecture(hidden=(16, 16), activation="silu", tabular=True, numbers=3)
    networks = tuple(shape.build(4, head, seed, CPU) for seed in range(3))
    draws = tuple(Draw(torch.arange(200) + 50 * i, i) for i in range(3))
    recipe = Recipe(epochs, 0.003, 0.0, 32, max_epochs=4, averaging=2.0, muon=muon)
    return Job(networks, head.loss(), recipe, CPU, Rows(torch.from_numpy(x), y), draws, seeds=(0, 1, 2))


def stop(epoch: int, copied: object) -> bool:
    if epoch == 2:
        raise KeyboardInterrupt
    return False


@pytest.mark.parametrize("epochs", [4, "early"])
def test_a_run_that_was_stopped_goes_on_from_its_checkpoint_to_the_same_end(epochs: Epochs, tmp_path: Path) -> None:
    job = job_of(6.0, epochs)
    undisturbed = job.train()
    place = Checkpoint(tmp_path / "run", "this")
    with pytest.raises(TrainingInterrupted):
        replace(job, checkpoint=place, after_epoch=stop).train()
    saved = place.load()
    assert saved is not None
    assert saved["epoch"] == 2
    again = replace(job, checkpoint=place).train()
    assert again.epochs == undisturbed.epochs
    for name, t in undisturbed.state.items():
        assert torch.equal(again.state[name], t)


def test_a_member_ends_the_same_alone_and_beside_others() -> None:
    job = job_of(6.0)
    together, other = job.train().state, job_of(0.0).train().state
    assert not torch.allclose(together["layers.1.weight"], other["layers.1.weight"], atol=1e-3)
    for i in range(3):
        alone = job.take([i]).train().state
        for name, t in alone.items():
            torch.testing.assert_close(t[0], together[name][i], rtol=1e-3, atol=1e-4)
