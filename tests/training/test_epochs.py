import numpy as np
import pytest
import torch

from guardband.nn import FullyConnected, IntervalLoss
from guardband.training.batches import Rows
from guardband.training.epochs import _evaluate, _Search, train_members
from guardband.training.predict import BLOCK, predict_bands
from guardband.training.recipe import Recipe
from guardband.training.stack import stack


def build(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return FullyConnected(4, hidden=(32,))


def rows(n=200, noise=1.0):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 4, generator=generator)
    return Rows(x, x.sum(-1) + noise * torch.randn(n, generator=generator))


def trained(recipe, taus=(0.1,), data=None, log=None, seed=5):
    return train_members(
        build,
        [0] * len(taus),
        IntervalLoss(list(taus)),
        rows() if data is None else data,
        recipe,
        seed,
        lambda *done: log.append(done) if log is not None else None,
    )


def test_a_number_of_epochs_is_kept():
    log = []
    result = trained(Recipe(epochs=7), log=log)
    assert result.epochs == (7,)
    assert [epoch for _, epoch, _ in log] == list(range(1, 8))


@pytest.mark.parametrize("epochs", ["early", "cv"])
def test_pure_noise_stops_soon_and_signal_later(epochs):
    recipe = Recipe(epochs=epochs, max_epochs=150, patience=15, learning_rate=0.01)
    noise = Rows(rows().x, torch.randn(200, generator=torch.Generator().manual_seed(9)))
    assert max(trained(recipe, data=noise).epochs) < min(trained(recipe, data=rows(noise=0.05)).epochs)


def test_cross_validation_trains_all_rows_for_the_best_number():
    log = []
    result = trained(Recipe(epochs="cv", max_epochs=12, patience=12), taus=(0.5, 0.1), log=log)
    what = [done[0] for done in log]
    assert what.count("cross-validation") == 12
    assert what.count("training") == max(result.epochs)
    for i in range(2):
        fixed = trained(Recipe(epochs=result.epochs[i]), taus=(0.5, 0.1))
        for a, b in zip(result.members.snapshot().values(), fixed.members.snapshot().values(), strict=True):
            assert torch.equal(a[i], b[i])


class Rigged:
    """A loss whose members 0 and 1 look best at epochs 3 and 5 of every fold, whatever the networks do."""

    def __init__(self, members=(0, 1)):
        self.members = members
        self.epoch = 0

    def take(self, members):
        return Rigged(tuple(members))

    def rows(self, bands, y):
        if torch.is_grad_enabled():
            return bands[:, :, 1] * 0
        self.epoch += 1
        best = torch.tensor([3.0, 5.0])[list(self.members)]
        return ((self.epoch - best).abs() + 1)[:, None].expand(-1, bands.shape[1])


def test_folds_and_members_are_kept_apart():
    recipe = Recipe(epochs="cv", max_epochs=8, patience=8)
    result = train_members(build, [0, 1], Rigged(), rows(), recipe, 0, lambda *done: None)
    assert result.epochs == (3, 5)


def test_members_keep_their_own_best_epoch():
    search = _Search(2, patience=2)
    losses = [[3.0, 1.0], [2.0, 2.0], [1.0, 3.0], [5.0, 0.5], [6.0, 0.1]]
    improved = [search.improved(epoch, torch.tensor(both)).tolist() for epoch, both in enumerate(losses, 1)]
    # The second member's patience ended after epoch 3: what it would have found later does not count.
    assert improved == [[True, True], [True, False], [True, False], [False, False], [False, False]]
    assert search.best == (3, 1)
    assert search.over


def test_early_stopping_keeps_the_weights_of_the_best_epoch():
    recipe = Recipe(epochs="early", max_epochs=40, patience=40)
    stopped = trained(recipe)
    again = trained(Recipe(epochs="early", max_epochs=int(stopped.epochs[0]), patience=40))
    for a, b in zip(stopped.members.snapshot().values(), again.members.snapshot().values(), strict=True):
        assert torch.equal(a, b)


def test_same_seed_same_members_and_the_callers_randomness_is_left_alone():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    a, b = trained(Recipe(epochs="early", max_epochs=5)), trained(Recipe(epochs="early", max_epochs=5))
    assert torch.equal(before, torch.get_rng_state())
    assert all(
        torch.equal(x, y) for x, y in zip(a.members.snapshot().values(), b.members.snapshot().values(), strict=True)
    )
    c = trained(Recipe(epochs="early", max_epochs=5), seed=6)
    assert not all(
        torch.equal(x, y) for x, y in zip(a.members.snapshot().values(), c.members.snapshot().values(), strict=True)
    )


def test_held_out_loss_is_one_weighted_mean_whatever_the_blocks(monkeypatch):
    data = rows(200)
    weighted = Rows(data.x, data.y, torch.cat([torch.ones(5), torch.zeros(150), torch.rand(45)]))
    members, loss, index = stack([build(0)], data.x[:2]), IntervalLoss([0.1]), torch.arange(200)
    whole = _evaluate(members, weighted, index, loss)
    bands = members(data.x, shared=True)
    expected = (loss.rows(bands, data.y) * weighted.weight).sum(-1) / weighted.weight.sum()
    torch.testing.assert_close(whole, expected.detach())
    monkeypatch.setattr("guardband.training.epochs.EVALUATION_BLOCK", 7)
    torch.testing.assert_close(_evaluate(members, weighted, index, loss), whole)


@pytest.mark.parametrize("epochs", ["early", "cv"])
def test_a_diverged_training_is_refused(epochs):
    with pytest.raises(ValueError, match="Training diverged"):
        trained(Recipe(epochs=epochs, max_epochs=5, learning_rate=1e30))


@pytest.mark.parametrize("n", [3, 12])
@pytest.mark.parametrize("epochs", ["early", "cv"])
def test_too_few_rows_to_hold_any_out_still_train(n, epochs):
    assert len(trained(Recipe(epochs=epochs, max_epochs=4), data=rows(n)).epochs) == 1


@pytest.mark.parametrize(
    "wrong", [{"epochs": 0}, {"epochs": "soon"}, {"learning_rate": 0}, {"batch_size": 0}, {"weight_decay": -1}]
)
def test_other_recipes_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Recipe(**wrong)


@pytest.mark.parametrize("size", [1, 10])
def test_a_rows_band_does_not_depend_on_its_neighbours(size):
    members = stack([build(i) for i in range(size)], torch.zeros(2, 4))
    x = np.random.default_rng(0).standard_normal((2 * BLOCK + 77, 4)).astype(np.float32)
    device = torch.device("cpu")
    every = predict_bands(members, x, device)
    order = np.random.default_rng(1).permutation(len(x))
    assert (predict_bands(members, x[order], device) == every[:, order]).all()
    for i in (0, 5, BLOCK, 2 * BLOCK + 76):
        assert (predict_bands(members, x[i : i + 1], device)[:, 0] == every[:, i]).all()
