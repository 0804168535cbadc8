"""Processes that train together take the steps that one would take on all their rows."""

import threading
from dataclasses import dataclass, replace

import pytest
import torch

from guardband.learning.architecture import Architecture
from guardband.nn import FullyConnected
from guardband.nn.heads import NestedTriples, Triple
from guardband.nn.mixed import stack_losses
from guardband.training.batches import Batch
from guardband.training.checkpoint import Checkpoint
from guardband.training.epochs import TrainingInterrupted
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


def job(stream, together, muon=0.0):
    head = NestedTriples.of([0.1]) if muon else Triple(0.1)
    torch.manual_seed(0)
    if muon:
        shape = Architecture(hidden=(8, 8), activation="silu", tabular=True, numbers=WIDTH)
        networks = tuple(shape.build(WIDTH, head, seed, CPU) for seed in range(MEMBERS))
    else:
        networks = tuple(
            FullyConnected(WIDTH, (8,), last=lambda width: head.last(width, "softplus")) for _ in range(MEMBERS)
        )
    recipe = Recipe(epochs="early", max_epochs=3, patience=3, batch_size=ROWS, averaging=2.0, muon=muon)
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


def in_threads(jobs):
    """Train each job on a thread of its own; return what came out, or what ended it."""
    out = {}

    def work(part):
        try:
            out[part] = jobs[part].train()
        except TrainingInterrupted as stopped:
            out[part] = stopped

    threads = [threading.Thread(target=work, args=(part,)) for part in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [out[part] for part in range(len(jobs))]


@pytest.mark.parametrize("muon", [0.0, 6.0])
@pytest.mark.parametrize("empty", [False, True])
def test_two_processes_end_where_one_does(empty, muon):
    stream, together = rows(empty), Threads(2)
    alone = job(stream, Threads(1), muon).train()
    first, second = in_threads([job(stream.share(part), together, muon) for part in range(2)])
    for name, t in alone.state.items():
        assert torch.equal(first.state[name], second.state[name])
        torch.testing.assert_close(first.state[name], t, rtol=1e-4, atol=1e-5)
    assert first.epochs == second.epochs == alone.epochs
    assert first.losses == pytest.approx(alone.losses, rel=1e-4)


def stop(epoch, copied):
    if epoch == 2:
        raise KeyboardInterrupt
    return False


@pytest.mark.parametrize("muon", [0.0, 6.0])
def test_two_processes_go_on_from_a_checkpoint_as_if_nothing_had_been(muon, tmp_path):
    stream = rows()

    def jobs(**more):
        together = Threads(2)
        places = [Checkpoint(tmp_path / str(part), "this") for part in range(2)]
        own = [replace(job(stream.share(i), together, muon), checkpoint=place) for i, place in enumerate(places)]
        return [replace(one, **more) for one in own]

    stopped = in_threads(jobs(after_epoch=stop))
    assert all(isinstance(own, TrainingInterrupted) for own in stopped)
    together = Threads(2)
    undisturbed = in_threads([job(stream.share(part), together, muon) for part in range(2)])
    for own, wanted in zip(in_threads(jobs()), undisturbed, strict=True):
        assert own.epochs == wanted.epochs
        for name, t in wanted.state.items():
            assert torch.equal(own.state[name], t)
