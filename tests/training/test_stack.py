import pytest
import torch
from torch import nn

from guardband.nn import FullyConnected, IntervalLoss, TripleHead
from guardband.training.batches import Rows, ShuffledBatches
from guardband.training.loop import train_loop
from guardband.training.stack import Row, Stack, stack

TAUS = [0.3, 0.1, 0.02]


def rows(n=300, d=4):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, d, generator=generator)
    return Rows(x, x.sum(-1) + torch.randn(n, generator=generator), torch.rand(n, generator=generator))


def build(seed, **shape):
    torch.manual_seed(seed)
    return FullyConnected(4, hidden=(16,), **shape)


def run(members, loss, data, index, epochs=5, decay=1e-2):
    batches = ShuffledBatches(data, index, batch_size=64, seed=3)
    train_loop(
        members, batches, loss, epochs=epochs, learning_rate=0.01, weight_decay=decay, after_epoch=lambda epoch: False
    )
    return members.snapshot()


def test_stacked_members_train_as_they_would_alone():
    data = rows()
    index = torch.arange(len(data))
    together = run(stack([build(i) for i in range(3)], data.x[:2]), IntervalLoss(TAUS), data, index)
    for i, tau in enumerate(TAUS):
        alone = run(Row([build(i)]), IntervalLoss([tau]), data, index)
        for name, value in alone.items():
            torch.testing.assert_close(together[name][i], value[0], atol=1e-5, rtol=1e-5)


def test_members_with_rows_of_their_own_train_as_they_would_alone():
    data = rows()
    index = torch.stack([torch.arange(0, 200), torch.arange(100, 300)])
    orders = ShuffledBatches(data, index, 200, seed=3)
    first = next(iter(orders))
    assert first.x.shape == (2, 200, 4)
    assert not first.shared
    stacked = stack([build(0), build(1)], data.x[:2])
    in_a_row = Row([build(0), build(1)])
    loss = IntervalLoss(TAUS[:2])
    a, b = run(stacked, loss, data, index), run(in_a_row, loss, data, index)
    for name in a:
        torch.testing.assert_close(a[name], b[name], atol=1e-5, rtol=1e-5)


def test_every_row_is_seen_once_in_each_pass():
    data = rows(101)
    seen = torch.cat([batch.y for batch in ShuffledBatches(data, torch.arange(101), 25, seed=0)])
    assert seen.sort().values.equal(data.y.sort().values)
    sizes = [len(batch.y) for batch in ShuffledBatches(data, torch.arange(101), 25, seed=0)]
    assert max(sizes) - min(sizes) <= 1


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


def test_a_module_that_cannot_be_stacked_falls_back_to_a_row():
    members = stack([Recurrent(), Recurrent()], torch.zeros(2, 4))
    assert isinstance(members, Row)
    assert members(torch.zeros(5, 4), shared=True).shape == (2, 5, 3)


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(4), nn.LayerNorm(4), nn.Dropout(0.2)])
def test_common_layers_stack_and_train(layer):
    networks = [nn.Sequential(layer, TripleHead(4)) for _ in range(2)]
    data = rows()
    members = stack(networks, data.x[:2])
    assert isinstance(members, Stack)
    before = members.snapshot()
    after = run(members, IntervalLoss(TAUS[:2]), data, torch.arange(len(data)), epochs=1)
    assert all(torch.isfinite(value).all() for value in after.values())
    assert any(not before[name].equal(after[name]) for name in before)


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(4, momentum=None), nn.BatchNorm1d(4)])
def test_trying_a_step_leaves_no_trace(layer):
    network = nn.Sequential(layer, TripleHead(4))
    members = stack([network, network], torch.randn(8, 4))
    state = members.snapshot()
    for name, value in network.state_dict().items():
        assert state[name][0].equal(value)
    run(members, IntervalLoss(TAUS[:2]), rows(), torch.arange(300), epochs=1)
    after = members.snapshot()
    assert not after["1.0.weight"][0].equal(after["1.0.weight"][1])  # one object given twice is two networks


class Still(nn.Module):
    def forward(self, x):
        return torch.stack([x[:, 0] - 1, x[:, 0], x[:, 0] + 1], -1)


def test_a_network_without_parameters_is_refused():
    with pytest.raises(ValueError, match="must have parameters to train"):
        run(stack([Still()], torch.zeros(2, 4)), IntervalLoss([0.1]), rows(), torch.arange(300), epochs=1)


def test_decay_is_for_matrices_alone():
    stacked, in_a_row = stack([build(0)], torch.zeros(2, 4)), Row([build(0)])
    for members, axes in ((stacked, 3), (in_a_row, 2)):
        decayed, free = members.parameter_groups(0.5)
        assert decayed["weight_decay"] == 0.5
        assert free["weight_decay"] == 0
        assert all(p.ndim == axes for p in decayed["params"])
        assert all(p.ndim == axes - 1 for p in free["params"])


def test_weight_zero_leaves_a_row_out():
    data = rows()
    keep = torch.rand(300, generator=torch.Generator().manual_seed(1)) < 0.5
    weighted = Rows(data.x, data.y, keep.float())
    loss, members = IntervalLoss([0.1]), Row([build(0)])
    from guardband.training.loop import member_losses

    torch.testing.assert_close(
        member_losses(members, weighted.at(torch.arange(300)), loss),
        member_losses(members, Rows(data.x, data.y).at(torch.arange(300)[keep]), loss),
    )
