"""Which way of reading many categories is better, by training rows alone."""

import numpy as np
import pandas as pd
import pytest

import guardband as gb
from guardband.learning import category_trial

PLACES = 250


def rare(each, seed=0):
    """Categories with a few rows each and a level of their own: vectors see too few rows of each."""
    rng = np.random.default_rng(seed)
    level, place = 3 * np.random.default_rng(5).standard_normal(PLACES), np.repeat(np.arange(PLACES), each)
    n = len(place)
    rows = pd.DataFrame({"place": [f"p{i}" for i in place], "x": rng.standard_normal(n)})
    return rows, level[place] + 0.3 * rng.standard_normal(n)


def turning(n=1500):
    """Categories that say which way another column counts: the target is alike in all of them."""
    rng = np.random.default_rng(0)
    place, x = rng.integers(110, size=n), rng.standard_normal(n)
    return pd.DataFrame({"place": [f"p{i}" for i in place], "x": x}), 3 * x * np.sign(place - 54.5)


def fitted(rows, y, **given):
    given = {"preset": "fast", "hidden": (16,), "max_epochs": 6, "split_by": [], "random_state": 0} | given
    return gb.IntervalRegressor(**given).fit(rows, y)


@pytest.fixture(scope="module")
def of_rare():
    return fitted(*rare(4), calibration_size=None).calibrate(*rare(2, seed=1))


def test_rare_categories_are_described_by_the_target(of_rare):
    assert "categories described by the target" in of_rare.fitted_.learned.choices
    assert of_rare.fitted_.learned.architecture.sizes == ()
    rows, y = rare(3, seed=2)
    length = gb.metrics.mean_length(y, of_rare.predict_interval(rows))
    assert length < 0.5 * np.ptp(np.quantile(y, [0.05, 0.95]))


def test_a_target_with_a_long_tail_has_a_trial_too():
    rows, y = rare(4)
    learned = fitted(rows, np.exp(y)).fitted_.learned
    assert len(learned.target.scales) == 2
    assert "categor" in learned.choices


def test_categories_that_interact_have_vectors():
    model = fitted(*turning(), max_epochs=25)
    assert "a vector for each category" in model.fitted_.learned.choices
    assert len(model.fitted_.learned.architecture.sizes) == 1


@pytest.fixture
def tried(monkeypatch):
    """What learns in trials: widths, networks each way, the most epochs and the folds."""
    calls, learn = [], category_trial.learn

    def told(sets, specs, shape, recipe, effort, **how):
        calls.append((shape.hidden, len(specs), recipe.max_epochs, effort.folds))
        return learn(sets, specs, shape, recipe, effort, **how)

    monkeypatch.setattr(category_trial, "learn", told)
    return calls


def test_few_rows_are_tried_by_two_copies_of_the_network_that_is_fitted(tried):
    fitted(*rare(4))
    assert tried == [((16,), 2, 6, 2)] * 2


@pytest.mark.parametrize(("most", "tried_epochs"), [(25, category_trial.MOST_EPOCHS), (6, 6)])
def test_many_rows_are_tried_by_one_small_network(tried, monkeypatch, most, tried_epochs):
    monkeypatch.setattr(category_trial, "FEW_ROWS", 500)
    learned = fitted(*turning(), max_epochs=most).fitted_.learned
    assert tried == [(category_trial.SMALL, 1, tried_epochs, category_trial.FOLDS)] * 2
    assert learned.architecture.hidden == (16,)
    assert "a vector for each category" in learned.choices


def test_a_small_network_sees_that_rare_categories_are_to_be_described(monkeypatch):
    monkeypatch.setattr(category_trial, "FEW_ROWS", 100)
    assert "categories described by the target" in fitted(*rare(4)).fitted_.learned.choices


def test_without_rows_to_hold_out_there_is_no_trial():
    learned = fitted(*rare(4), epochs=2).fitted_.learned
    assert learned.choices == ""
    assert len(learned.architecture.sizes) == 1


def test_folds_of_cross_validation_choose_each_for_itself():
    model = fitted(*rare(4), calibration="cv+", folds=2)
    assert all("categor" in own.choices for own in model.fitted_.learned.each)
