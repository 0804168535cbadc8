"""distill=True: one small network in place of all copies, learnt from training rows alone."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

import guardband as gb
from guardband.data.artificial import PaperModel
from guardband.data.table import read_table
from guardband.doors import fit_rows
from guardband.learning import distill as distillation
from guardband.learning.distill import distill
from guardband.training.recipe import Recipe

X, Y = PaperModel(n_features=4).draw(900, seed=1)
NEW, _ = PaperModel(n_features=4).draw(300, seed=2)
SMALL = {"hidden": (32, 32), "random_state": 0, "split_by": []}


@pytest.fixture
def quickly(monkeypatch):
    """Fewer rows and epochs: enough for what these tests ask."""
    monkeypatch.setattr(distillation, "MOST_ROWS", 4000)
    monkeypatch.setattr(distillation, "STEPS", 20)
    monkeypatch.setattr(distillation, "HIDDEN", (64, 64))
    monkeypatch.setattr(distillation, "RECIPE", Recipe(epochs=8, learning_rate=0.01, schedule="cosine"))


def fitted(X=X, y=Y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return gb.IntervalRegressor("conf-nn", preset="fast", distill=True, **SMALL | given).fit(X, y)


def state_of(model):
    return {name: t.clone() for name, t in model.fitted_.learned.members.snapshot().items()}


def test_one_network_is_nearer_to_the_average_of_copies_than_a_copy_is(quickly, monkeypatch):
    seen = {}

    def watched(learned, *rest):
        seen["copies"] = learned
        return distill(learned, *rest)

    monkeypatch.setattr(fit_rows, "distill", watched)
    model = fitted()
    copies, one = seen["copies"], model.fitted_.learned
    assert (copies.copies, one.copies) == (2, 1)
    table = read_table(NEW)
    average, each, small = copies.predict(table), copies.predict(table, each_copy=True), one.predict(table)
    for whole, apart, own in zip(average.parts, each.parts, small.parts, strict=True):
        of_copies = np.abs(apart - whole).mean((1, 2))
        assert np.abs(own - whole).mean() < of_copies.min()


def test_calibration_rows_do_not_reach_the_network(quickly):
    model = fitted()
    held_out = np.isin(np.arange(len(Y)), _training_rows(model), invert=True)
    assert 0 < held_out.sum() < len(Y)
    other, y = X.copy(), Y.copy()
    other[held_out], y[held_out] = other[held_out][::-1] + 1, y[held_out] - 5
    again = fitted(other, y)
    before, after = state_of(model), state_of(again)
    assert all(torch.equal(t, after[name]) for name, t in before.items())
    assert again.certificate_.n_calibration == model.certificate_.n_calibration == held_out.sum()


def _training_rows(model):
    from guardband.data.fingerprint import fingerprints

    return np.flatnonzero(np.isin(fingerprints(read_table(X), Y), model.fitted_.training_prints))


def test_the_promise_is_that_of_its_own_calibration(quickly):
    """Coverage given the data of the distilled network follows the rank's law, as any network's does."""
    model = fitted(calibration_size=None)
    held_out = PaperModel(n_features=4).draw(200, seed=3)
    certificate = model.calibrate(*held_out).certificate_
    assert (certificate.kind, certificate.n_calibration, certificate.rank) == ("marginal", 200, 181)
    bands, y = model.predict_interval(held_out[0]), held_out[1]
    assert ((bands.lower <= y) & (y <= bands.upper)).sum() == 181


def test_same_seed_same_network_and_a_file_brings_it_back(quickly, tmp_path):
    one, two = fitted(), fitted()
    bands = one.predict_interval(NEW)
    np.testing.assert_array_equal(bands.upper, two.predict_interval(NEW).upper)
    one.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband")
    assert again.fitted_.learned.copies == 1
    np.testing.assert_array_equal(bands.lower, again.predict_interval(NEW).lower)
    assert gb.load(tmp_path / "m.guardband").fitted_.params["distill"] is True


def test_two_scales_of_a_target_keep_a_network_each(quickly, tmp_path):
    rng = np.random.default_rng(0)
    y = np.exp(3 * X[:, 0] + rng.standard_t(2, len(X)))
    model = fitted(y=y)
    assert model.fitted_.learned.target.has_long_tail
    assert model.fitted_.learned.copies == 2
    model.save(tmp_path / "m.guardband")
    np.testing.assert_array_equal(
        gb.load(tmp_path / "m.guardband").predict_interval(NEW).upper, model.predict_interval(NEW).upper
    )


def test_distributions_and_several_targets_are_distilled_too(quickly):
    quantiles = fitted(distribution=True).predict_quantiles(NEW, [0.1, 0.5, 0.9])
    assert (np.diff(quantiles, axis=1) >= 0).all()
    both = fitted(y=np.stack([Y, -2 * Y], axis=1), targets="joint")
    assert both.fitted_.learned.copies == 1
    lower, upper = both.predict_interval(NEW).lower, both.predict_interval(NEW).upper
    assert lower.shape == (300, 2)
    assert (lower <= upper).all()


def test_every_cell_of_a_mixed_row_is_one_of_two_rows(quickly):
    rng = np.random.default_rng(0)
    kinds, names = rng.choice(["a", "b", "c"], 900), rng.choice([f"n{i}" for i in range(150)], 900)
    table = pd.DataFrame({"x": np.round(X[:, 0], 6), "kind": kinds, "name": names})
    learned = fitted(table).fitted_.learned
    encoder, some = learned.encoder, np.arange(0, 900, 2)
    mixed = distillation._mixed(learned, read_table(table), some, np.random.default_rng(1))
    known = encoder.encode(read_table(table.iloc[some]))
    assert len(mixed) == 4000
    np.testing.assert_array_equal(np.unique(mixed[:450], axis=0), np.unique(known, axis=0))  # rows as they are
    for column in range(known.shape[1]):
        assert np.isin(mixed[:, column], known[:, column]).all()
    ones = mixed[:, [j for j in range(known.shape[1]) if set(np.unique(known[:, j])) == {0, 1}]]
    assert (ones.sum(axis=1) == 1).all()  # one of the three kinds
    seen = {row.tobytes() for row in known}
    assert any(row.tobytes() not in seen for row in mixed)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"calibration": "cv+"}, "distill=True needs calibration rows that are held out, and calibration='cv\\+'"),
        ({"preset": 30}, "distill=True takes time of its own, which preset=30 does not leave"),
        ({"network": "plain"}, 'distill=True needs network="tabular"'),
        ({"method": "neg-ll"}, "a method that learns quantiles"),
        ({"distill": "yes"}, "distill must be True or False, found 'yes'"),
    ],
)
def test_what_cannot_be_distilled_is_refused_before_training(given, words):
    model = gb.IntervalRegressor(**{"distill": True, "random_state": 0} | given)
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y)
