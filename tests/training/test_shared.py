"""Processes that train together take the steps that one would take on all their rows."""

import threading
from dataclasses import dataclass, replace

import pytest
import torch

from guardband.nn import FullyConnected
from guardband.nn.heads import Triple
from guardband.nn.mixed import stack_losses
from guardband.training.batches import Batch
from guardband.training.job import Job
from guardband.training.recipe import Recipe
from guardband.training.shared import Stream, Together

WIDTH, STEPS, ROWS, MEMBERS = 3, 7, 24, 2
CPU = torch.device("cpu")


class Threads(Together):
    """Threads of this process, which wait for each other."""

    def __init__(self, count):
        self._barrier = threading.Barrier(count)
        self._given = {}

    def added(self, numbers):
        self._given[threading.get_ident()] = numbers.clone()
        self._barrier.wait(30)
        total = sum(self._given[key] for key in sorted(self._given))
        self._barrier.wait(30)
        return total


@dataclass(frozen=True)
class Rows(Stream):
    """Rows in steps ``(steps, n, ...)``, with the fold of each row: a member does not train on that of its number."""

    x: torch.Tensor
    y: torch.Tensor
    fold: torch.Tensor
    members: tuple
    held_out: bool = False

    def pieces(self, epoch):
        return zip(self.x, self.y, self.fold, strict=True)

    def batch(self, *pieces):
        x, y, fold = pieces
        own = fold == torch.tensor(self.members)[:, None]
        return Batch(x[None], y.expand(len(own), -1), (own if self.held_out else ~own).float())

    def steps(self):
        return len(self.x)

    def take(self, members):
        return replace(self, members=tuple(self.members[i] for i in members))

    def example(self):
        return self.x[0, :2]

    def share(self, part):
        rows = slice(None) if part is None else slice(part, None, 2)
        return replace(self, x=self.x[:, rows], y=self.y[:, rows], fold=self.fold[:, rows])


def job(stream, together):
    torch.manual_seed(0)
    head = Triple(0.1)
    networks = tuple(
        FullyConnected(WIDTH, (8,), last=lambda width: head.last(width, "softplus")) for _ in range(MEMBERS)
    )
    recipe = Recipe(epochs="early", max_epochs=3, patience=3, batch_size=ROWS, averaging=2.0)
    held_out = replace(stream, held_out=True)
    loss = stack_losses([head.loss() for _ in networks], CPU)
    return Job(networks, loss, recipe, CPU, loader=stream, held_out=held_out, together=together)


def rows(empty=False):
    random = torch.Generator().manual_seed(1)
    x = torch.randn(STEPS, ROWS, WIDTH, generator=random)
    y = x[..., 0] + torch.randn(STEPS, ROWS, generator=random)
    fold = torch.randint(0, 4, (STEPS, ROWS), generator=random)
    if empty:  # one process has rows in a step that train no network but the first
        fold[2, ::2] = 1
    return Rows(x, y, fold, tuple(range(MEMBERS)))


@pytest.mark.parametrize("empty", [False, True])
def test_two_processes_end_where_one_does(empty):
    stream, out, together = rows(empty), {}, Threads(2)
    alone = job(stream, Threads(1)).train()

    def work(part):
        out[part] = jobs[part].train()

    jobs = [job(stream.share(part), together) for part in range(2)]
    threads = [threading.Thread(target=work, args=(part,)) for part in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for name, t in alone.state.items():
        assert torch.equal(out[0].state[name], out[1].state[name])
        torch.testing.assert_close(out[0].state[name], t, rtol=1e-4, atol=1e-5)
    assert out[0].epochs == out[1].epochs == alone.epochs
    assert out[0].losses == pytest.approx(alone.losses, rel=1e-4)
