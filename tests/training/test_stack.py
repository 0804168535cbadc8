import pytest
import torch
from torch import nn

from guardband.nn import FullyConnected, IntervalLoss, TripleHead
from guardband.training.batches import Rows
from guardband.training.stack import Row, Stack, stack, why_not_stacked

TAUS = [0.3, 0.1, 0.02]


def build(seed, **shape):
    torch.manual_seed(seed)
    return FullyConnected(4, hidden=(16,), **shape)


def batch(groups=1, size=3, n=50):
    generator = torch.Generator().manual_seed(0)
    data = Rows(torch.randn(200, 4, generator=generator), torch.randn(200, generator=generator))
    return data.at(torch.randint(200, (groups, n), generator=generator), size)


@pytest.mark.parametrize(("groups", "size"), [(1, 3), (3, 3), (2, 6)])
def test_outputs_and_gradients_are_each_networks_own(groups, size):
    networks = [build(i, activation="tanh") for i in range(size)]
    data, loss = batch(groups, size), IntervalLoss([0.1 + 0.1 * i for i in range(size)])
    stacked, row = Stack(networks), Row([build(i, activation="tanh") for i in range(size)])
    for members in (stacked, row):
        outputs, gradients = members(data.x), members.gradients(data, loss)
        for i, network in enumerate(networks):
            x, y = data.x[i // (size // groups)], data.y[i]
            torch.testing.assert_close(outputs[i], network(x))
            own = torch.autograd.grad(loss.take([i])(network(x)[None], y[None]).sum(), list(network.parameters()))
            for together, alone in zip(gradients, own, strict=True):
                torch.testing.assert_close(together[i], alone)


@pytest.mark.parametrize("kind", [Stack, Row])
def test_writing_into_the_parameters_changes_the_networks(kind):
    members = kind([build(0), build(1)])
    x = torch.randn(1, 5, 4)
    before = members(x)
    for p in members.parameters():
        p[1].zero_()
    after = members(x)
    assert after[0].equal(before[0])
    assert not after[1].equal(before[1])
    state = members.snapshot()
    assert all(not value[1].any() for value in state.values())


def test_a_row_of_one_trains_the_network_itself():
    network = build(0)
    Row([network]).parameters()[0].zero_()
    assert not network[0].weight.any()


def test_a_state_of_another_shape_is_refused():
    members = stack([build(0), build(1)], torch.zeros(2, 4))
    state = stack([build(0)], torch.zeros(2, 4)).snapshot()
    with pytest.raises(ValueError, match="must fit the networks"):
        members.restore(state)


class Recurrent(nn.Module):
    """``vmap`` has no rule for an LSTM."""

    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(1, 3, batch_first=True)
        self.head = TripleHead(3)

    def forward(self, x):
        return self.head(self.cells(x[:, :, None])[0][:, -1])


class Scaled(nn.Module):
    """Two of these look alike, but do not compute alike."""

    def __init__(self, scale):
        super().__init__()
        self.head, self.scale = TripleHead(4), scale

    def forward(self, x):
        return self.head(x * self.scale)


def test_modules_that_cannot_be_stacked_stand_in_a_row():
    members = stack([Recurrent(), Recurrent()], torch.zeros(2, 4))
    assert isinstance(members, Row)
    assert members(torch.zeros(1, 5, 4)).shape == (2, 5, 3)


def test_modules_with_code_of_their_own_are_not_stacked():
    reason = why_not_stacked([Scaled(1.0), Scaled(2.0)], torch.randn(2, 4))
    assert "code must differ" in reason
    assert why_not_stacked([Scaled(2.0), Scaled(2.0)], torch.randn(2, 4)) is None


@pytest.mark.parametrize("odd", [1, 7, 8, 15])
def test_the_one_network_that_differs_is_found_among_many(odd):
    networks = [Scaled(2.0) for _ in range(16)]
    assert why_not_stacked(networks, torch.randn(2, 4)) is None
    networks[odd].scale = 3.0
    assert "code must differ" in why_not_stacked(networks, torch.randn(2, 4))


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(4), nn.LayerNorm(4), nn.Dropout(0.2)])
def test_common_layers_stack(layer):
    networks = [nn.Sequential(layer, TripleHead(4)) for _ in range(2)]
    members = stack(networks, torch.randn(2, 4))
    assert isinstance(members, Stack)
    assert all(torch.isfinite(g).all() for g in members.gradients(batch(size=2), IntervalLoss(TAUS[:2])))


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(4, momentum=None), nn.BatchNorm1d(4)])
@pytest.mark.parametrize("training", [False, True])
def test_trying_a_step_leaves_no_trace(layer, training):
    network = nn.Sequential(layer, TripleHead(4)).train(training)
    state = {name: value.clone() for name, value in network.state_dict().items()}
    members = stack([network, network], torch.randn(8, 4))
    for name, value in network.state_dict().items():
        assert members.snapshot()[name][0].equal(value)
        assert value.equal(state[name])
    assert all(module.training is training for module in network.modules())


def test_decay_is_for_matrices_alone():
    for members in (stack([build(0)], torch.zeros(2, 4)), Row([build(0)])):
        parameters = members.parameters()
        shapes = [tuple(p.shape) for p in members.matrices(parameters)]
        assert shapes == [(1, 16, 4), (1, 3, 16)]
