"""Time limits, by a clock that ticks whenever it is read."""

import math
from dataclasses import replace
from itertools import count

import pytest
import torch

from guardband.nn import FullyConnected, IntervalLoss
from guardband.training.batches import Draw, Rows
from guardband.training.deadline import NEVER, Deadline
from guardband.training.fleet import Fleet
from guardband.training.job import Job
from guardband.training.recipe import Recipe

CPU = torch.device("cpu")


def ticking():
    """Return a clock that counts how often it is read."""
    ticks = count()
    return lambda: float(next(ticks))


def job(groups, recipe, **more):
    """Return a job of one network a group, each with rows of its own: they train one after another."""
    x = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0))
    networks = tuple(FullyConnected(3, (8,)) for _ in range(groups))
    draws = tuple(Draw(torch.arange(i, 900 + 10 * i), i) for i in range(groups))
    return Job(networks, IntervalLoss([0.1] * groups), recipe, CPU, Rows(x, x.sum(-1)), draws, engine="dense", **more)


def test_what_is_left():
    now = [10.0]
    deadline = Deadline.after(8, lambda: now[0])
    assert deadline.left == 8
    assert deadline.share(0.25).ends == 12
    assert deadline.sooner(3).left == 5
    now[0] = 18.5
    assert deadline.left == 0
    assert deadline.is_over
    assert deadline.share(0.5).is_over


def test_no_limit_never_reads_the_clock():
    never = replace(NEVER, clock=None)
    assert never.left == math.inf
    assert not never.is_over
    assert never.share(0.1) == never == never.sooner(7)


def test_squads_that_take_turns_share_the_time(monkeypatch):
    monkeypatch.setattr("guardband.training.fleet.allowed_threads", lambda: 1)
    fleet = Fleet(job(3, Recipe(epochs=1, batch_size=2), deadline=Deadline.after(90, ticking())))
    with fleet.at_work():
        fleet.epoch(1)
    steps = [squad.state().done for squad in fleet._squads.values()]
    assert len(steps) == 3
    assert min(steps) >= 25
    assert max(steps) <= 35
    assert fleet.is_over


@pytest.mark.parametrize("epochs", ["early", "cv", 500])
def test_the_time_ends_within_an_epoch(epochs):
    recipe = Recipe(epochs=epochs, batch_size=2, max_epochs=500)
    trained = job(1, recipe, deadline=Deadline.after(300, ticking())).train()
    assert trained.epochs == (1,)  # which has 450 steps or so, or more on folds


@pytest.mark.parametrize("epochs", ["early", "cv", 500])
def test_each_network_trains_for_a_step_if_there_is_no_time(epochs):
    limited = job(2, Recipe(epochs=epochs, batch_size=2), deadline=Deadline.after(0, ticking()))
    trained = limited.train()
    assert trained.epochs == (1, 1)
    before = [dict(network.named_parameters()) for network in limited.networks]
    for name, value in trained.state.items():
        assert not any(value[i].equal(own[name]) for i, own in enumerate(before))
