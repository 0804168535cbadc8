import pytest
import torch
from torch import nn
from torch.nn import functional

from guardband.nn import FullyConnected, IntervalLoss, OrderedTriple, TripleHead
from guardband.training.batches import Rows
from guardband.training.dense import Dense, chain_of
from guardband.training.stack import Row


def networks(size, hidden=(16,), **settings):
    torch.manual_seed(0)
    return [FullyConnected(5, hidden, **settings) for _ in range(size)]


def plain(size, outputs=2):
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, outputs)) for _ in range(size)]


def batch(groups, size, weighted=False, n=40):
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(200, generator=generator) if weighted else None
    data = Rows(torch.randn(200, 5, generator=generator), torch.randn(200, generator=generator), weight)
    return data.at(torch.randint(200, (groups, n), generator=generator), size)


def by_name(members, tensors):
    """Name a list like the parameters as one network names them."""
    copy = members.snapshot()
    for p, t in zip(members.parameters(), tensors, strict=True):
        p.copy_(t)
    named = members.snapshot()
    members.restore(copy)
    return named


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ordering", ["softplus", "relu"])
@pytest.mark.parametrize("hidden", [(), (16,), (8, 4), (6, 5, 7)])
@pytest.mark.parametrize(("groups", "size"), [(1, 1), (1, 4), (4, 4), (2, 6)])
def test_outputs_and_gradients_are_those_of_autograd(groups, size, hidden, ordering, weighted):
    given, data = networks(size, hidden, ordering=ordering), batch(groups, size, weighted)
    loss = IntervalLoss([0.1 + 0.1 * i for i in range(size)])
    dense, row = Dense(given, chain_of(given[0])), Row(given)
    torch.testing.assert_close(dense(data.x), row(data.x))
    ours = by_name(dense, dense.gradients(data, loss))
    theirs = by_name(row, row.gradients(data, loss))
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("build", [plain, lambda size: [nn.Linear(5, 2) for _ in range(size)]])
def test_other_losses_and_networks_without_an_ordering(build):
    given, data = build(3), batch(1, 3)
    dense, row = Dense(given, chain_of(given[0])), Row(given)
    torch.testing.assert_close(dense(data.x), row(data.x))

    def loss(outputs, y):
        return ((outputs[..., 0] - y).square() + outputs[..., 1].exp()).mean(-1)

    ours, theirs = (by_name(members, members.gradients(data, loss)) for members in (dense, row))
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("activation", ["gelu", "silu", "mish", "elu", "tanh"])
def test_other_activations(activation):
    given, data = networks(3, (8, 6), activation=activation), batch(1, 3)
    dense, row, loss = Dense(given, chain_of(given[0])), Row(given), IntervalLoss([0.1, 0.2, 0.3])
    with torch.no_grad():
        torch.testing.assert_close(dense(data.x), row(data.x))
    ours, theirs = (by_name(members, members.gradients(data, loss)) for members in (dense, row))
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, atol=1e-6, rtol=1e-4)


class Deviation(nn.Module):
    """Makes the second of two columns positive."""

    ends_network = True

    def __init__(self, least=0.1):
        super().__init__()
        self.least = least

    def forward(self, z):
        mean, s = z.unbind(-1)
        return torch.stack([mean, self.least + functional.softplus(s)], dim=-1)


class Random(Deviation):
    """Holds a module, of which nothing is known."""

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout()


def likelihood(outputs, y, weight=None):
    mean, deviation = outputs.unbind(-1)
    rows = deviation.log() + ((y - mean) / deviation).square() / 2
    return rows.mean(-1) if weight is None else (rows * weight).sum(-1) / weight.sum(-1)


def ended(size, end=Deviation):
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2), end()) for _ in range(size)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", [1, 3])
def test_any_module_that_says_so_may_end_a_network(groups, weighted):
    given, data = ended(3), batch(groups, 3, weighted)
    dense, row = Dense(given, chain_of(given[0])), Row(given)
    torch.testing.assert_close(dense(data.x), row(data.x))
    ours, theirs = (by_name(members, members.gradients(data, likelihood)) for members in (dense, row))
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, atol=1e-6, rtol=1e-4)


def test_modules_that_end_networks_count_as_alike_only_with_the_same_settings():
    (one, two), (other,) = ended(2), ended(1, lambda: Deviation(0.2))
    assert chain_of(one) == chain_of(two) != chain_of(other)
    assert chain_of(networks(1)[0]) != chain_of(networks(1, ordering="relu")[0])


def test_an_ordering_of_the_users_own_is_not_taken_for_ours():
    class Halved(OrderedTriple):
        def forward(self, z):
            return super().forward(z / 2)

    given, data, loss = [nn.Sequential(nn.Linear(5, 3), Halved())], batch(1, 1), IntervalLoss(0.1)
    dense, row = Dense(given, chain_of(given[0])), Row(given)
    ours, theirs = (by_name(members, members.gradients(data, loss)) for members in (dense, row))
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, atol=1e-6, rtol=1e-4)


def test_gradients_do_not_depend_on_what_the_buffers_held_before():
    given = networks(2)
    dense, loss = Dense(given, chain_of(given[0])), IntervalLoss([0.1, 0.2])
    first = [g.clone() for g in dense.gradients(batch(1, 2), loss)]
    dense.gradients(batch(2, 2), IntervalLoss([0.3, 0.4]))
    dense.gradients(batch(1, 2, n=13), loss)
    assert all(a.equal(b) for a, b in zip(first, dense.gradients(batch(1, 2), loss), strict=True))


def test_state_is_that_of_the_networks_and_comes_back():
    given = networks(3, (8, 4))
    dense = Dense(given, chain_of(given[0]))
    state = dense.snapshot()
    assert list(state) == list(given[0].state_dict())
    for i, network in enumerate(given):
        assert all(state[name][i].equal(value) for name, value in network.state_dict().items())
    for p in dense.parameters():
        p.zero_()
    dense.restore(state)
    assert all(value.equal(state[name]) for name, value in dense.snapshot().items())


def test_decay_is_for_matrices_alone():
    given = networks(2, (8, 4))
    dense = Dense(given, chain_of(given[0]))
    shapes = [tuple(m.shape) for m in dense.matrices(dense.parameters())]
    assert shapes == [(2, 8, 5), (2, 4, 8), (2, 3, 4)]


def test_half_precision_is_near():
    given, data = networks(2), batch(1, 2)
    exact, rough = (Dense(given, chain_of(given[0]), kind) for kind in (torch.float32, torch.bfloat16))
    torch.testing.assert_close(rough(data.x), exact(data.x), atol=0.05, rtol=0.05)
    loss = IntervalLoss([0.1, 0.2])
    for a, b in zip(exact.gradients(data, loss), rough.gradients(data, loss), strict=True):
        assert a.dtype == b.dtype == torch.float32
        torch.testing.assert_close(b, a, atol=0.05, rtol=0.1)


def hooked():
    network = FullyConnected(5)
    network[0].register_forward_hook(lambda module, args, out: out)
    return network


class Doubled(nn.Sequential):
    def forward(self, x):
        return super().forward(2 * x)


def frozen():
    network = FullyConnected(5)
    network[0].weight.requires_grad_(False)
    return network


def tied():
    network = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5))
    network[2].weight = network[0].weight
    return network


@pytest.mark.parametrize(
    "network",
    [
        FullyConnected(5, dropout=0.1),
        nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh(), TripleHead(4)),
        nn.Sequential(nn.Linear(5, 4), nn.PReLU(), TripleHead(4)),
        nn.Sequential(nn.Linear(5, 4), nn.SiLU(inplace=True), TripleHead(4)),
        nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.ReLU(), TripleHead(4)),
        nn.Sequential(nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), TripleHead(4)),
        nn.Sequential(nn.Linear(5, 4), nn.ReLU()),
        nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3)),
        nn.Sequential(nn.Linear(5, 4, bias=False), nn.ReLU(), TripleHead(4)),
        nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), TripleHead(4)),
        Doubled(nn.Linear(5, 4), nn.ReLU(), TripleHead(4)),
        nn.utils.parametrizations.weight_norm(nn.Linear(5, 3)),
        FullyConnected(5).double(),
        *ended(1, Random),
        nn.Sequential(nn.Linear(5, 2), Deviation(), nn.Linear(2, 2)),
        nn.Sequential(nn.Linear(5, 3), OrderedTriple(), nn.Linear(3, 1)),
        nn.Sequential(nn.Linear(5, 2), nn.Softplus()),
        hooked(),
        frozen(),
        tied(),
        nn.ReLU(),
    ],
)
def test_whatever_is_not_linear_and_one_activation_is_left_to_autograd(network):
    assert chain_of(network) is None
