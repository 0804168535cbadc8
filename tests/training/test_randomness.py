"""What is random in training depends on a network's own seed, whatever trains beside it."""

import warnings

import numpy as np
import pytest
import torch
from scipy.stats import binom, chisquare
from torch import nn
from torch.func import vmap
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import guardband as gb
from guardband.learning.architecture import Architecture
from guardband.nn import FullyConnected, IntervalLoss, TripleHead
from guardband.nn.heads import Triple
from guardband.nn.keyed import Keyed, keyed_numbers
from guardband.nn.tabular import TabularNetwork
from guardband.training.batches import Draw, Rows
from guardband.training.fleet import Fleet
from guardband.training.job import Job, best_engine
from guardband.training.randomness import KeyedDropout, needs_seeds, step_keys, take_over
from guardband.training.recipe import Recipe

CPU, D = torch.device("cpu"), 4


def tabular():
    return TabularNetwork(D, 2, (), (16, 8), "silu", 0.2, lambda width: Triple(0.1).last(width, "softplus"))


class Broadcasts(TabularNetwork):
    """Whose code might be another."""

    def __init__(self):
        super().__init__(D, 2, (), (16, 8), "silu", 0.2, lambda width: Triple(0.1).last(width, "softplus"))


class Recurrent(nn.Module):
    """``vmap`` has no rule for an LSTM."""

    def __init__(self):
        super().__init__()
        self.cells, self.dropout, self.head = nn.LSTM(1, 4, batch_first=True), nn.Dropout(0.3), TripleHead(4)

    def forward(self, x):
        return self.head(self.dropout(self.cells(self.dropout(x)[:, :, None])[0][:, -1]))


class Functional(nn.Module):
    """Draws random numbers that nothing outside can take over."""

    def __init__(self):
        super().__init__()
        self.first, self.dropout, self.head = nn.Linear(D, 8), nn.Dropout(0.2), TripleHead(8)

    def forward(self, x):
        h = functional.dropout(self.first(x).relu(), 0.3, self.training)
        return self.head(self.dropout(h))


class Checkpointed(nn.Module):
    """Runs its dropout again in the backward pass."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(D, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 8), nn.Dropout(0.3))
        self.head = TripleHead(8)

    def forward(self, x):
        return self.head(checkpoint(self.body, x, use_reentrant=False))


def attention():
    layer = nn.TransformerEncoderLayer(D, 2, 8, dropout=0.2, batch_first=True)
    return nn.Sequential(nn.Unflatten(1, (1, D)), layer, nn.Flatten(), TripleHead(D))


def channels():
    return nn.Sequential(
        nn.Unflatten(1, (1, D)), nn.Conv1d(1, 6, 2), nn.Dropout1d(0.4), nn.ReLU(), nn.Flatten(), TripleHead(18)
    )


KINDS = {
    "stack": (lambda: FullyConnected(D, (16, 8), dropout=0.3), "stack"),
    "one module, used twice": (lambda: nn.Sequential(*[nn.Linear(D, D), nn.Dropout(0.5)] * 2, TripleHead(D)), "stack"),
    "channels": (channels, "stack"),
    "tabular": (tabular, "tabular"),
    "broadcast": (Broadcasts, "stack"),
    "row": (Recurrent, "row"),
    "functional": (Functional, "seeded"),
    "attention": (attention, "seeded"),
    "activation checkpoints": (Checkpointed, "seeded"),
}


def build(kind, seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return KINDS[kind][0]()


def data(n=150):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, D, generator=generator)
    return x, x.sum(-1) + torch.randn(n, generator=generator)


def train(kind, seeds, given=None, **settings):
    settings = {"epochs": 3, "learning_rate": 0.01, "batch_size": 40, "seed": list(seeds)} | settings
    networks = [build(kind, seed) for seed in seeds]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gb.SlowTrainingWarning)
        return gb.train(networks, data() if given is None else given, IntervalLoss(0.1), **settings)


def assert_same(one, other, tolerance=1e-5):
    for name, value in one.state_dict().items():
        torch.testing.assert_close(other.state_dict()[name], value, atol=tolerance, rtol=tolerance)


def differs(one, other):
    return any(not value.equal(other.state_dict()[name]) for name, value in one.state_dict().items())


@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_is_the_one_that_these_tests_are_about(kind):
    engine = best_engine([build(kind, 0), build(kind, 1)], data()[0][:2])[0]
    assert engine == KINDS[kind][1]
    assert needs_seeds(build(kind, 0), data()[0][:2], CPU) == (engine == "seeded")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fleet", [(1, 2), (5, 1, 3), (7, 6, 5, 4, 3, 2, 1)])
def test_a_network_with_dropout_ends_alike_in_any_company(kind, fleet):
    alone = {seed: train(kind, [seed])[0] for seed in (1, fleet[0])}
    together = dict(zip(fleet, train(kind, fleet), strict=True))
    for seed, network in alone.items():
        assert_same(network, together[seed])


@pytest.mark.parametrize("kind", KINDS)
def test_networks_with_equal_seeds_end_equal_and_others_do_not(kind):
    starts = [build(kind, 0) for _ in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gb.SlowTrainingWarning)
        a, b, c = gb.train(starts, [data()], IntervalLoss(0.1), epochs=2, learning_rate=0.01, seed=[3, 3, 4])
    assert_same(a, b)
    assert differs(a, c)


@pytest.mark.parametrize("kind", ["stack", "tabular", "broadcast", "row", "functional"])
def test_how_a_fleet_is_divided_changes_nothing(kind):
    x, y = data()
    job = Job(
        tuple(build(kind, i) for i in range(5)),
        IntervalLoss(0.1),
        Recipe(epochs=3, learning_rate=0.01, batch_size=40, averaging=2.0),
        CPU,
        Rows(x, y),
        (Draw(torch.arange(len(x)), 0),) * 5,
        seeds=(5, 6, 7, 8, 9),
        engine=KINDS[kind][1],
    )
    results = []
    for division in [[(0, 1, 2, 3, 4)], [(0, 1), (2, 3, 4)], [(3, 0), (4,), (1, 2)]]:
        fleet = Fleet(job)
        fleet._squad_ids = division
        with fleet.at_work():
            for epoch in range(1, 4):
                fleet.epoch(epoch)
        results.append(fleet.snapshot())
    for other in results[1:]:
        for name, value in results[0].items():
            torch.testing.assert_close(other[name], value, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["stack", "row", "functional"])
def test_networks_that_draw_leave_a_loaders_draws_alone(kind):
    """A loader that adds noise in every batch gives the same batches to one network and to many."""

    class Noisy:
        def __iter__(self):
            x, y = data()
            return ((x[i : i + 50] + torch.randn(50, D), y[i : i + 50]) for i in range(0, 150, 50))

    together = train(kind, [1, 2, 3], Noisy(), seed=1)
    assert_same(train(kind, [1], Noisy(), seed=1)[0], together[0])


def test_a_functional_dropout_is_slow_and_says_what_to_do():
    with pytest.warns(gb.SlowTrainingWarning, match="2 networks .*draws random numbers.*nn.Dropout"):
        gb.train([build("functional", i) for i in range(2)], data(), IntervalLoss(0.1), epochs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gb.train(build("functional", 0), data(), IntervalLoss(0.1), epochs=1)


def test_other_threads_that_draw_meanwhile_do_not_matter():
    """Twice somebody else draws while a network is tried, and never a third time."""
    network, times = build("stack", 0), iter([True, True, False])

    def elsewhere(module, given):
        if next(times):
            torch.rand(1)

    network.register_forward_pre_hook(elsewhere)
    assert not needs_seeds(network, data()[0][:2], CPU)


@pytest.mark.parametrize("kind", KINDS)
def test_the_users_modules_stay_as_they_are(kind):
    networks = train(kind, [0, 1], epochs=1)
    for network in networks:
        assert not any(isinstance(module, KeyedDropout) for module in network.modules())
        assert all(module.key is None for module in network.modules() if isinstance(module, Keyed))


@pytest.mark.parametrize(
    "settings", [{"network": "tabular", "preset": "fast"}, {"network": "plain", "method": "neg-ll"}]
)
def test_every_network_of_an_estimator_has_the_seed_that_it_was_built_with(monkeypatch, settings):
    built, trained, real = [], [], Architecture.build
    monkeypatch.setattr(Architecture, "build", lambda self, *given: (built.append(given[2]), real(self, *given))[1])
    monkeypatch.setattr("guardband.training.epochs._Run.train", lambda run: (trained.append(run._job), 1 / 0))
    x, y = data(60)
    with pytest.raises(ZeroDivisionError):
        gb.IntervalRegressor(device="cpu", dropout=0.5, random_state=1, **settings).fit(x.numpy(), y.numpy())
    (job,) = trained
    assert job.seeds == tuple(built)
    assert settings["network"] == "plain" or len(set(job.seeds)) == job.size == 2


@pytest.mark.parametrize("kind", [torch.uint8, torch.int16])
def test_keyed_numbers_are_uniform_and_unrelated(kind):
    keys = step_keys(range(16), epoch=2, steps=range(4)).flatten()
    drawn = keyed_numbers(keys, 3, (101, 40), kind).to(kind)
    bytes_ = drawn.contiguous().view(torch.uint8).numpy().reshape(64, -1)
    assert 1e-6 < chisquare(np.bincount(bytes_.ravel(), minlength=256)).pvalue < 1 - 1e-6
    # Correlations of independent rows are near normal with a deviation of 1 / sqrt(n): six of them, of 2016 pairs.
    between = np.corrcoef(bytes_.astype(float))[np.triu_indices(64, 1)]
    assert np.abs(between).max() < 6 / np.sqrt(bytes_.shape[1])
    for lag in (1, 2, 4, 8, 40):
        pairs = np.corrcoef(bytes_[:, :-lag].ravel(), bytes_[:, lag:].ravel())[0, 1]
        assert abs(pairs) < 6 / np.sqrt(bytes_[:, lag:].size)
    other = keyed_numbers(keys, 4, (101, 40), kind).to(kind).contiguous().view(torch.uint8).numpy()
    assert abs(np.corrcoef(bytes_.ravel(), other.ravel())[0, 1]) < 6 / np.sqrt(other.size)


def test_keyed_numbers_depend_on_their_own_key_and_position_alone():
    keys = step_keys([3, 5, 3], epoch=1, steps=range(1))[0]
    drawn = keyed_numbers(keys, 1, (7, 5), torch.uint8)
    assert drawn[0].equal(drawn[2])
    assert not drawn[0].equal(drawn[1])
    assert drawn[1].equal(keyed_numbers(keys[1], 1, (7, 5), torch.uint8))
    stacked = keyed_numbers(keys, 1, (7, 5), torch.int16)
    assert stacked.equal(vmap(lambda key: keyed_numbers(key, 1, (7, 5), torch.int16))(keys))


@pytest.mark.parametrize("module", [nn.Dropout(0.3), nn.Dropout(1.0), nn.Dropout(1e-9), nn.Dropout(0.3, inplace=True)])
def test_dropout_that_was_taken_over_keeps_its_rate(module):
    rate = module.p
    take_over(module, torch.tensor(7))
    out = module.train()(torch.ones(300, 300))
    assert binom.ppf(1e-9, 90_000, rate) - 90_000 / 65536 <= (out == 0).sum() <= binom.ppf(1 - 1e-9, 90_000, rate) + 2
    assert out[out > 0].sub(1 / (1 - rate) if rate < 1 else 1).abs().lt(1e-4).all()
    assert module.eval()(torch.ones(3)).eq(1).all()


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Dropout1d(0.4), (50, 8, 5)),
        (nn.Dropout1d(0.4), (8, 5)),
        (nn.Dropout2d(0.4), (50, 8, 5, 5)),
        (nn.Dropout3d(0.4), (50, 8, 5, 5, 2)),
        (nn.Dropout3d(0.4), (8, 5, 5, 2)),
    ],
)
def test_dropout_of_channels_drops_whole_channels(module, shape):
    axes = 1 if shape[0] == 8 else 2
    take_over(module, torch.tensor(7))
    x = torch.ones(shape, requires_grad=True)
    out = module.train()(x)
    dropped = (out == 0).flatten(axes)
    assert dropped.all(-1).equal(dropped.any(-1))
    assert 0 < dropped.sum() < dropped.numel()
    out.sum().backward()
    assert x.grad.equal(out.detach())
