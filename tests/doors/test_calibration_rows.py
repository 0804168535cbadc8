"""Rows that would void the promise of gb.calibrate: repeated ones, and those that trained."""

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, TensorDataset

import guardband as gb

torch.manual_seed(0)
X = torch.randn(600, 4)
Y = X.sum(1) + torch.randn(600)
NETWORK = gb.nn.FullyConnected(4, (8,))
ONCE = TensorDataset(X[:200], Y[:200])


def loader(*parts):
    return DataLoader(ConcatDataset(parts), batch_size=64)


def test_a_loader_that_gives_each_row_five_times_is_warned_of_and_noted():
    words = "800 of 1,000 calibration rows equal an earlier one"
    with pytest.warns(gb.RepeatedRowsWarning, match=words):
        guarded = gb.calibrate(NETWORK, loader(*[ONCE] * 5))
    assert any(note.startswith(words) for note in guarded.certificate.notes)
    assert words in str(guarded.certificate)


def test_batches_that_come_again_in_another_order_are_seen():
    mixed = [(X[:200][order], Y[:200][order]) for order in map(torch.randperm, [200] * 3)]
    with pytest.warns(gb.RepeatedRowsWarning, match="400 of 600"):
        gb.calibrate(NETWORK, mixed)


def test_a_few_chance_duplicates_are_none():
    """Warnings are errors here."""
    twins = TensorDataset(X[:6], Y[:6])
    guarded = gb.calibrate(NETWORK, loader(ONCE, twins))
    assert guarded.certificate.n_calibration == 206
    assert guarded.certificate.notes == ()


@pytest.mark.parametrize("form", ["tensors", "arrays", "dataset", "loader", "double"])
def test_rows_that_trained_are_refused_in_any_form(form):
    trained = X[:400], Y[:400]
    training = {
        "tensors": trained,
        "arrays": tuple(own.numpy() for own in trained),
        "dataset": TensorDataset(*trained),
        "loader": DataLoader(TensorDataset(*trained), batch_size=33, shuffle=True),
        "double": tuple(own.double() for own in trained),
    }[form]
    with pytest.raises(gb.OverlapError, match="100 of 300 calibration rows also occur in the training rows"):
        gb.calibrate(NETWORK, (X[300:], Y[300:]), training=training)
    guarded = gb.calibrate(NETWORK, (X[400:], Y[400:]), training=training)
    assert torch.equal(guarded(X), gb.calibrate(NETWORK, (X[400:], Y[400:]))(X))


def test_equal_inputs_with_other_responses_are_other_rows():
    guarded = gb.calibrate(NETWORK, (X, Y + 1), training=(X, Y))
    assert guarded.certificate.notes == ()


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(X, Y, strict=True))


def test_a_stream_of_rows_calibrates():
    guarded = gb.calibrate(NETWORK, Stream(), batch_size=64)
    alone = gb.calibrate(NETWORK, (X, Y))
    assert guarded.certificate == alone.certificate
    np.testing.assert_allclose(guarded(X), alone(X), rtol=1e-6)


def test_training_rows_are_known_again_whatever_the_kind_of_their_numbers():
    x, y = torch.randn(200, 3), torch.randint(0, 50, (200,))
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), gb.nn.TripleHead(4))
    for training in ((x, y), (x.double(), y.double()), (x, torch.where(y == 0, -0.0, y.float()))):
        with pytest.raises(gb.OverlapError):
            gb.calibrate(net, (x, y.float()), training=training)
