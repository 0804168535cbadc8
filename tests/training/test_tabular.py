"""Networks for tables by hand do what they do as a stack by autograd."""

import pytest
import torch

from guardband.nn.fully_connected import ACTIVATIONS
from guardband.nn.heads import Bounds, Gaussian, Median, NestedTriples, Triple
from guardband.nn.mixed import stack_losses
from guardband.nn.tabular import TabularNetwork
from guardband.training.batches import Rows
from guardband.training.job import best_engine
from guardband.training.stack import Stack
from guardband.training.tabular import Tabular

CPU, D, N = torch.device("cpu"), 5, 60
HEADS = {
    "quantiles": NestedTriples.of((0.1, 0.4)),
    "one quantile": NestedTriples.of_tails(0.02, 0.1),
    "triple": Triple(0.1),
    "squared": Triple(0.1, power=2),
    "gaussian": Gaussian(),
    "point": Median(),
    "bounds": Bounds(0.1),
}


def networks(
    size, head, *, numbers=3, sizes=(4,), hidden=(16, 8), activation="silu", dropout=(0.0,), kind=torch.float64
):
    """Return networks whose parameters are all at work, as those that start at zero are not."""
    made = []
    for i in range(size):
        torch.manual_seed(i)
        last = lambda width: head.last(width, "softplus")  # noqa: E731
        one = TabularNetwork(D, numbers, sizes, hidden, activation, dropout[i % len(dropout)], last)
        for p in one.parameters():
            p.data += 0.1 * torch.randn_like(p)
        made.append(one.to(kind))
    return made


def batch(groups, size, n=7, *, sizes=(4,), weighted=False, kind=torch.float64):
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(N, D, generator=generator), torch.randn(N, generator=generator)
    for i, places in enumerate(sizes, D - len(sizes)):
        x[:, i] = torch.randint(places, (N,), generator=generator)
    weight = torch.rand(N, generator=generator).to(kind) if weighted else None
    return Rows(x.to(kind), y.to(kind), weight).at(torch.randint(N, (groups, n), generator=generator), size)


def both(given, work=None):
    """Return the networks by hand and by autograd, in a step of the same random numbers."""
    members = Tabular(given, work), Stack(given)
    for one in members:
        one.train()
        one.set_keys(torch.arange(len(given)) * 2**40 + 3)
    return members


def assert_gradients_agree(given, data, loss):
    ours, theirs = both(given)
    names = [name for name, _ in given[0].named_parameters()]
    expected = theirs.gradients(data, loss)
    for name, found, wanted in zip(names, ours.gradients(data, loss), expected, strict=True):
        assert wanted.any(), name
        torch.testing.assert_close(found, wanted, atol=1e-13, rtol=1e-10, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dropout", [(0.0,), (0.3,), (0.1, 0.5)])
@pytest.mark.parametrize("head", HEADS)
def test_gradients_of_every_head(head, dropout, weighted):
    given = networks(4, HEADS[head], dropout=dropout)
    loss = stack_losses([HEADS[head].loss().double() for _ in given], CPU)
    assert_gradients_agree(given, batch(4, 4, weighted=weighted), loss)


@pytest.mark.parametrize(("groups", "size"), [(1, 1), (1, 4), (4, 4), (2, 4)])
@pytest.mark.parametrize(
    ("numbers", "sizes"), [(0, ()), (3, ()), (5, ()), (3, (4,)), (3, (4, 9)), (0, (2, 3, 4)), (0, (2, 3, 4, 5, 6))]
)
def test_gradients_of_every_kind_of_column(numbers, sizes, groups, size):
    given = networks(size, Triple(0.1), numbers=numbers, sizes=sizes, dropout=(0.2,))
    assert_gradients_agree(given, batch(groups, size, 30, sizes=sizes), Triple(0.1).loss().double())


@pytest.mark.parametrize("hidden", [(), (6,), (7, 5, 6)])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_of_every_activation(activation, hidden):
    given = networks(3, Triple(0.1), activation=activation, hidden=hidden, dropout=(0.2,))
    assert_gradients_agree(given, batch(3, 3), Triple(0.1).loss().double())


def test_gradients_of_heads_with_losses_of_several_kinds():
    heads = [Triple(0.1), Triple(0.3, point="mean"), Triple(0.2, power=2)]
    loss = stack_losses([head.loss().double() for head in heads], CPU)
    assert_gradients_agree(networks(3, heads[0]), batch(3, 3), loss)


def test_batches_of_other_sizes_leave_each_other_alone():
    given, loss = networks(2, Triple(0.1), dropout=(0.2,)), Triple(0.1).loss().double()
    ours = both(given)[0]
    for n in (7, 40, 6, 7, 1):
        ours.set_keys(torch.arange(2) * 2**40 + 3)
        theirs = both(given)[1].gradients(batch(2, 2, n), loss)
        for found, wanted in zip(ours.gradients(batch(2, 2, n), loss), theirs, strict=True):
            torch.testing.assert_close(found, wanted, atol=1e-13, rtol=1e-10)


@pytest.mark.parametrize("head", ["quantiles", "triple", "point"])
def test_outputs_are_those_of_the_stack_and_stay(head):
    given = networks(3, HEADS[head], dropout=(0.3,))
    ours, theirs = both(given)
    for members in (ours, theirs):
        members.train(False)
    first = ours(batch(1, 3).x)
    torch.testing.assert_close(ours(batch(3, 3).x), theirs(batch(3, 3).x))
    torch.testing.assert_close(first, theirs(batch(1, 3).x))


def test_products_in_16_bits_are_those_of_autocast():
    given, loss = networks(3, Triple(0.1), dropout=(0.2,), kind=torch.float32), Triple(0.1).loss()
    data = batch(3, 3, 40, kind=torch.float32)
    ours, theirs = both(given, torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        expected = theirs.gradients(data, loss)
    for found, wanted in zip(ours.gradients(data, loss), expected, strict=True):
        torch.testing.assert_close(found, wanted, atol=0.002 * float(wanted.abs().max()), rtol=0)


def test_parameters_and_gradients_are_views_of_one_vector_each():
    given = networks(3, Triple(0.1), kind=torch.float32)
    ours = Tabular(given)
    gradients = ours.gradients(batch(1, 3, kind=torch.float32), Triple(0.1).loss())
    for flat, tensors in zip(ours.flat(), (ours.parameters(), gradients), strict=True):
        torch.testing.assert_close(torch.cat([t.flatten() for t in tensors]), flat)
    ours.flat()[0].zero_()
    assert not ours.snapshot()["layers.0.weight"].any()
    ours.restore(Stack(given).snapshot())
    torch.testing.assert_close(ours.parameters()[0][1], given[1].scale.detach())


@pytest.mark.parametrize("size", [1, 3])
def test_networks_with_parameters_that_stay_are_left_to_autograd(size):
    given = networks(size, Triple(0.1))
    assert best_engine(given, torch.zeros(2, D).double()) == ("tabular", None)
    given[0].scale.requires_grad_(False)
    assert best_engine(given, torch.zeros(2, D).double())[0] == ("row" if size == 1 else "stack")
