from dataclasses import replace

import numpy as np
import pytest
import torch

from guardband.nn import FullyConnected, IntervalLoss
from guardband.training.batches import Draw, Rows
from guardband.training.checkpoint import Checkpoint
from guardband.training.epochs import Job, folds_of
from guardband.training.fleet import Fleet
from guardband.training.loop import train_loop
from guardband.training.predict import BLOCK, predict
from guardband.training.recipe import Recipe
from guardband.training.search import Search
from guardband.training.squad import Squad
from guardband.training.stack import stack


def build(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return FullyConnected(4, hidden=(32,))


def rows(n=200, noise=1.0):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 4, generator=generator)
    return Rows(x, x.sum(-1) + noise * torch.randn(n, generator=generator))


def job(recipe, taus=(0.1,), data=None, log=None, seed=5, **settings):
    data = rows() if data is None else data
    return Job(
        tuple(build(0) for _ in taus),
        IntervalLoss(list(taus)),
        recipe,
        torch.device("cpu"),
        data,
        (Draw(torch.arange(len(data)), seed),) * len(taus),
        seeds=(seed,) * len(taus),
        progress=lambda *done: log.append(done) if log is not None else None,
        **settings,
    )


def trained(recipe, *given, **settings):
    return job(recipe, *given, **settings).train()


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
        for a, b in zip(result.state.values(), fixed.state.values(), strict=True):
            assert torch.equal(a[i], b[i])


def test_folds_and_members_are_kept_apart(monkeypatch):
    """Members 0 and 1 look best at epochs 3 and 5, whatever the networks do; one fold says otherwise loudly."""
    epochs = []

    def losses(fleet, held_out):
        epochs.append(len(epochs) + 1)
        away = (epochs[-1] - torch.tensor([3.0, 5.0])).abs()
        return torch.stack([away + 5, away, 2 * away, away + 1, away - 3]).flatten()

    monkeypatch.setattr(Fleet, "losses", losses)
    result = trained(Recipe(epochs="cv", max_epochs=8, patience=8), taus=(0.1, 0.2))
    assert result.epochs == (3, 5)


def test_folds_part_the_rows():
    draw = Draw(torch.arange(100, 203), seed=1)
    parts = folds_of(draw, 5)
    held_out = torch.cat([held.index for held, _ in parts])
    assert len(set(held_out.tolist())) == len(held_out) == 100
    for held, kept in parts:
        assert len(held.index) == 20
        assert sorted(torch.cat([held.index, kept.index]).tolist()) == list(range(100, 203))


def test_members_keep_their_own_best_epoch():
    search = Search(2, patience=2)
    losses = [[3.0, 1.0], [2.0, 2.0], [1.0, 3.0], [5.0, 0.5], [6.0, 0.1]]
    improved = [search.improved(epoch, torch.tensor(both)).tolist() for epoch, both in enumerate(losses, 1)]
    # The second member's patience ended after epoch 3: what it would have found later does not count.
    assert improved == [[True, True], [True, False], [True, False], [False, False], [False, False]]
    assert search.best() == (3, 1)
    assert search.ended.all()


def test_early_stopping_keeps_the_weights_of_the_best_epoch():
    recipe = Recipe(epochs="early", max_epochs=40, patience=40)
    stopped = trained(recipe)
    again = trained(Recipe(epochs="early", max_epochs=int(stopped.epochs[0]), patience=40))
    for a, b in zip(stopped.state.values(), again.state.values(), strict=True):
        assert torch.equal(a, b)


def test_same_seed_same_members_and_the_callers_randomness_is_left_alone():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    a, b = trained(Recipe(epochs="early", max_epochs=5)), trained(Recipe(epochs="early", max_epochs=5))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(x, y) for x, y in zip(a.state.values(), b.state.values(), strict=True))
    c = trained(Recipe(epochs="early", max_epochs=5), seed=6)
    assert not all(torch.equal(x, y) for x, y in zip(a.state.values(), c.state.values(), strict=True))


@pytest.mark.parametrize("block", [1, 4])
def test_held_out_loss_is_one_weighted_mean_whatever_the_blocks(monkeypatch, block):
    monkeypatch.setattr("guardband.training.squad.BLOCKS", block)
    data = rows(200)
    weighted = Rows(data.x, data.y, torch.cat([torch.ones(5), torch.zeros(150), torch.rand(45)]))
    loss, held_out = IntervalLoss([0.1]), Draw(torch.arange(3, 200), 0)
    draw = Draw(torch.arange(3), 0)
    recipe = Recipe(epochs=1, batch_size=13)
    one = Job((build(0),), loss, recipe, torch.device("cpu"), weighted, (draw,), engine="dense")
    some, weight = data.x[3:], weighted.weight[3:]
    expected = (loss.rows(build(0)(some)[None], data.y[3:]) * weight).sum(-1) / weight.sum()
    torch.testing.assert_close(Squad(one).losses([held_out]), expected.detach())


def test_a_diverged_cross_validation_is_refused():
    with pytest.raises(ValueError, match="Training diverged"):
        trained(Recipe(epochs="cv", max_epochs=5, learning_rate=1e30))


def test_a_member_that_diverged_is_as_it_was_given():
    result = trained(Recipe(epochs="early", max_epochs=5, learning_rate=(1e30, 0.01)), taus=(0.1, 0.1))
    assert result.epochs[0] == 0 < result.epochs[1]
    assert all(value[0].equal(build(0).state_dict()[name]) for name, value in result.state.items())


@pytest.mark.parametrize("epochs", [4, "cv"])
def test_a_member_that_diverged_in_a_given_number_of_epochs_is_as_it_was_given(monkeypatch, epochs):
    monkeypatch.setattr(Search, "best", lambda search: (4, 4))
    result = trained(Recipe(epochs=epochs, max_epochs=4, learning_rate=(1e30, 0.01)), taus=(0.1, 0.1))
    assert result.epochs == (0, 4)
    assert all(value[0].equal(build(0).state_dict()[name]) for name, value in result.state.items())


@pytest.mark.parametrize("stop", [("cross-validation", 3), ("training", 1), ("training", 2)])
def test_ctrl_c_in_a_cross_validation_leaves_a_checkpoint_of_the_last_whole_epoch(tmp_path, stop):
    recipe = Recipe(epochs="cv", max_epochs=6, patience=6)
    expected, seen = trained(recipe, taus=(0.2, 0.1)), []
    settings = {"taus": (0.2, 0.1), "checkpoint": Checkpoint(tmp_path / "one", "job")}

    def interrupt(what, epoch, epochs):
        if (what, epoch) == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(job(recipe, **settings), progress=interrupt).train()
    result = replace(job(recipe, **settings), progress=lambda *done: seen.append(done[:2])).train()
    assert seen[0] == (stop[0], stop[1] + 1)
    assert (result.epochs, result.losses) == (expected.epochs, expected.losses)
    assert all(value.equal(expected.state[name]) for name, value in result.state.items())


def test_ctrl_c_before_the_first_epoch_after_a_cross_validation_keeps_what_it_found(tmp_path, monkeypatch):
    recipe = Recipe(epochs="cv", max_epochs=6, patience=6)
    expected, seen, phases = trained(recipe, taus=(0.2, 0.1)), [], []
    settings = {"taus": (0.2, 0.1), "checkpoint": Checkpoint(tmp_path / "one", "job")}

    def interrupted(*given, **more):
        phases.append(1)
        if len(phases) == 2:
            raise KeyboardInterrupt
        train_loop(*given, **more)

    with monkeypatch.context() as patched:
        patched.setattr("guardband.training.epochs.train_loop", interrupted)
        with pytest.raises(KeyboardInterrupt):
            job(recipe, **settings).train()
    result = replace(job(recipe, **settings), progress=lambda *done: seen.append(done[:2])).train()
    assert seen[0] == ("training", 1)
    assert (result.epochs, result.losses) == (expected.epochs, expected.losses)
    assert all(value.equal(expected.state[name]) for name, value in result.state.items())


@pytest.mark.parametrize("stop", [("cross-validation", 3), ("training", 2)])
def test_a_cross_validation_goes_on_from_its_checkpoint(tmp_path, monkeypatch, stop):
    monkeypatch.setattr("guardband.training.checkpoint.SECONDS_BETWEEN", 0.0)
    recipe = Recipe(epochs="cv", max_epochs=6, patience=6)
    expected = trained(recipe, taus=(0.2, 0.1))

    class Killed(Exception):
        pass

    def die(what, epoch, epochs):
        seen.append((what, epoch))
        if seen[-1] == stop and not again:
            raise Killed

    seen, again = [], []
    settings = {"taus": (0.2, 0.1), "checkpoint": Checkpoint(tmp_path / "one", "job")}
    with pytest.raises(Killed):
        replace(job(recipe, **settings), progress=die).train()
    seen.clear()
    again.append(True)
    result = replace(job(recipe, **settings), progress=die).train()
    assert seen[0] == stop  # from the epoch before the one that was not saved
    assert result.epochs == expected.epochs
    assert all(value.equal(expected.state[name]) for name, value in result.state.items())


@pytest.mark.parametrize("n", [3, 12])
@pytest.mark.parametrize("epochs", ["early", "cv"])
def test_too_few_rows_to_hold_any_out_still_train(n, epochs):
    assert len(trained(Recipe(epochs=epochs, max_epochs=4), data=rows(n)).epochs) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        *({"epochs": 0}, {"epochs": "soon"}, {"epochs": [3, 0]}, {"learning_rate": 0}, {"learning_rate": [0.1, -1]}),
        *({"batch_size": 0}, {"weight_decay": -1}, {"clip": 0}, {"schedule": "steps"}, {"precision": "float8"}),
        {"validation_share": 1.0},
    ],
)
def test_other_recipes_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Recipe(**wrong)


@pytest.mark.parametrize("size", [1, 10])
def test_a_rows_band_does_not_depend_on_its_neighbours(size):
    members = stack([build(i) for i in range(size)], torch.zeros(2, 4))
    x = np.random.default_rng(0).standard_normal((2 * BLOCK + 77, 4)).astype(np.float32)
    device = torch.device("cpu")
    every = predict(members, x, device)
    order = np.random.default_rng(1).permutation(len(x))
    assert (predict(members, x[order], device) == every[:, order]).all()
    for i in (0, 5, BLOCK, 2 * BLOCK + 76):
        assert (predict(members, x[i : i + 1], device)[:, 0] == every[:, i]).all()
