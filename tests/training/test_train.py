import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import guardband as gb


def loader(n=256):
    torch.manual_seed(0)
    x = torch.randn(n, 3)
    return DataLoader(TensorDataset(x, x.sum(-1)), batch_size=64)


def test_train_lowers_the_loss_in_place_and_ends_in_eval_mode():
    network, loss = gb.nn.FullyConnected(3, hidden=(16,)), gb.nn.IntervalLoss(0.1)
    x, y = loader().dataset.tensors
    before = loss(network(x), y).item()
    assert gb.train(network, loader(), loss, epochs=20, learning_rate=0.01) is network
    assert loss(network(x), y).item() < before / 2
    assert not network.training


def test_after_epoch_can_stop():
    seen = []

    def after(epoch):
        seen.append(epoch)
        return epoch == 3

    gb.train(gb.nn.FullyConnected(3), loader(), gb.nn.IntervalLoss(0.1), epochs=10, after_epoch=after)
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ([], "at least one batch"),
        ([(torch.zeros(2, 3), torch.zeros(2, 1))], r"shape \(n,\)"),
        ([torch.zeros(2, 3)], "pairs"),
    ],
)
def test_other_loaders_are_refused(batches, words):
    with pytest.raises(ValueError, match=words):
        gb.train(gb.nn.FullyConnected(3), batches, gb.nn.IntervalLoss(0.1), epochs=1)


def test_a_loss_that_cannot_be_asked_for_rows_is_refused():
    with pytest.raises(TypeError, match="must have a method rows"):
        gb.train(gb.nn.FullyConnected(3), loader(), torch.nn.MSELoss(), epochs=1)
