import numpy as np
import pytest
import torch
from scipy.stats import binom

from guardband.nn import TripleHead
from guardband.nn.heads import NestedTriples, Triple
from guardband.nn.tabular import ByteDropout, TabularNetwork, differ_in_numbers_alone
from guardband.training import stack as stack_module
from guardband.training.stack import Row, Stack, why_not_stacked


def network(seed, dropout=0.1, numbers=3, sizes=()):
    torch.manual_seed(seed)
    last = lambda width: Triple(0.1).last(width, "softplus")  # noqa: E731
    made = TabularNetwork(5, numbers, sizes, (16, 8), "silu", dropout, last)
    for vectors in made.vectors:
        torch.nn.init.normal_(vectors.weight)
    return made


@pytest.mark.parametrize(("numbers", "sizes"), [(0, ()), (3, ()), (5, ()), (3, (4, 9)), (0, (4, 9))])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_stacked_networks_are_each_alone(groups, numbers, sizes):
    networks = [network(seed, numbers=numbers, sizes=sizes) for seed in range(4)]
    x = torch.randn(groups, 7, 5)
    for i, size in enumerate(sizes):
        x[..., i - len(sizes)] = torch.randint(size, (groups, 7))
    assert stack_module._why_not(networks, x[0]) is None
    stacked, alone = Stack(networks), Row(networks)
    for members in (stacked, alone):
        members.train(False)
    torch.testing.assert_close(stacked(x), alone(x))


class Subclass(TabularNetwork):
    """Whose code may be anything."""


def own_head(width):
    return torch.nn.Sequential(torch.nn.Linear(width, 3), torch.nn.Tanh())


@pytest.mark.parametrize(
    ("kind", "last", "second", "is_known"),
    [
        (TabularNetwork, TripleHead, {"dropout": 0.5}, True),
        (TabularNetwork, TripleHead, {"hidden": (16, 9)}, False),
        (TabularNetwork, TripleHead, {"activation": "relu"}, False),
        (TabularNetwork, own_head, {}, False),
        (Subclass, TripleHead, {}, False),
    ],
)
def test_networks_of_one_shape_with_a_known_head_are_stacked_without_a_trial(kind, last, second, is_known, monkeypatch):
    tried = []
    monkeypatch.setattr("guardband.training.stack._why_not", lambda networks, example: tried.append(networks))
    shape = {"hidden": (16, 8), "activation": "silu", "dropout": 0.1}
    networks = [kind(5, 3, (), **own, last=last) for own in (shape, shape | second)]
    assert differ_in_numbers_alone(networks) == is_known
    assert why_not_stacked(networks, torch.randn(2, 5)) is None
    assert len(tried) == (not is_known)


def test_each_stacked_network_has_its_own_rate_of_dropout():
    rates = (0.0, 0.25, 0.5)
    dropout = Stack([ByteDropoutNetwork(rate) for rate in rates])
    dropout.train()
    dropout.set_keys(torch.arange(3))
    out = dropout(torch.ones(1, 100, 1000))
    for own, rate in zip(out, rates, strict=True):
        dropped = int((own == 0).sum())
        assert binom.ppf(1e-6, 100_000, rate) <= dropped <= binom.ppf(1 - 1e-6, 100_000, rate)
        np.testing.assert_allclose(own[own > 0].detach(), 1 / (1 - rate), rtol=1e-6)
    dropout.set_keys(torch.arange(3))
    assert torch.equal(dropout(torch.ones(1, 100, 1000)), out)


class ByteDropoutNetwork(torch.nn.Module):
    broadcasts = True

    def __init__(self, rate):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(1))
        self.dropout = ByteDropout(rate)

    def forward(self, x):
        return self.dropout(x * self.factor.unsqueeze(-2))


def test_a_nest_has_the_bands_of_its_triples_in_their_order():
    nest = NestedTriples.of((0.1, 0.5, 0.02))
    assert nest.quantiles == (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
    outputs = np.arange(14.0).reshape(2, 7)
    bands = nest.read(outputs[None, None])
    np.testing.assert_array_equal(np.stack(bands.parts, -1)[0, :, 0], [[1, 3, 5], [2, 3, 4], [0, 3, 6]])
    theirs = nest.read(torch.from_numpy(outputs)[None, None], torch)
    for ours, same in zip(bands.parts, theirs.parts, strict=True):
        torch.testing.assert_close(same, torch.from_numpy(ours))


def test_the_loss_of_a_nest_is_that_of_its_triples_with_one_median():
    nest, y = NestedTriples.of((0.1, 0.4)), torch.randn(50, dtype=torch.float64)
    outputs = torch.randn(50, 5, dtype=torch.float64).sort(-1).values
    wide, narrow = (Triple(tau).loss().double() for tau in (0.1, 0.4))
    middle = (y - outputs[:, 2]).abs().mean() / 2
    expected = wide(outputs[:, [0, 2, 4]], y) + narrow(outputs[:, [1, 2, 3]], y) - middle
    torch.testing.assert_close(nest.loss()(outputs, y), expected)
