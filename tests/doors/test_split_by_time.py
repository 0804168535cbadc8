"""A split by time: the certificate says so, files keep it, and no earlier row calibrates."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import guardband as gb
from guardband.exceptions import DependentRowsWarning

FAST = {"network": "plain", "hidden": (8,), "epochs": 2, "random_state": 0}


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n)})
    X["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 100, size=n), unit="D")
    return X, X["a"] + rng.normal(size=n)


@pytest.fixture(scope="module")
def model():
    return gb.IntervalRegressor(split_by_time="day", **FAST).fit(*table())


def test_the_latest_rows_calibrate_and_no_time_is_on_both_sides(model):
    X, _ = table()
    own = model.certificate_.in_time
    early = X["day"] <= own.trained_until
    assert len(model.fitted_.training_prints) == early.sum()
    assert model.certificate_.n_calibration == (~early).sum()
    assert str(X["day"][~early].min().date()) == own.calibrated_from
    assert str(X["day"].max().date()) == own.calibrated_until
    assert abs((~early).sum() - 100) <= X["day"].value_counts().max() / 2


def test_the_certificate_says_so_and_what_it_still_assumes(model):
    own, words = model.certificate_, str(model.certificate_)
    assert "Split by time (day): training rows go up to 2024-03-" in words
    assert "The promise assumes that rows to come are like these calibration rows (exchangeable with them)." in words
    assert own.assumption.endswith("although these rows are in order of time, which makes this doubtful")
    assert own.to_dict()["in_time"]["by"] == "day"
    assert gb.Certificate.from_dict(own.to_dict()) == own
    assert "training rows go up to" in own._repr_html_()
    other = model.predict_interval(table()[0], confidence_level=0.5).certificate
    assert other.in_time == own.in_time
    at_random = gb.IntervalRegressor(**FAST).fit(*table()).certificate_
    assert at_random.in_time is None
    assert "in_time" not in at_random.to_dict()
    assert "time (" not in str(at_random)


def test_a_method_without_a_promise_assumes_nothing():
    own = gb.IntervalRegressor("bayes", split_by_time="day", **FAST).fit(*table()).certificate_
    assert own.in_time is not None
    assert "Split by time" not in str(own)
    assert own.assumption == "none, because nothing is promised"


def test_a_file_keeps_it_and_earlier_rows_cannot_calibrate(model, tmp_path):
    model.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband")
    assert again.certificate_ == model.certificate_
    X, y = table(200, seed=1)
    with pytest.raises(ValueError, match=r"must be later than all training rows, which go up to 2024-03-\d\d \(day\)"):
        again.calibrate(X, y)
    assert again.certificate_ == model.certificate_
    later = X.assign(day=X["day"] + pd.Timedelta(days=400))
    own = again.calibrate(later, y).certificate_.in_time
    assert own.trained_until == model.certificate_.in_time.trained_until
    assert own.calibrated_from == str(later["day"].min().date())


def test_rows_may_be_brought_apart():
    X, y = table()
    own = gb.IntervalRegressor(split_by_time="day", calibration_size=None, **FAST).fit(X, y)
    last = X["day"].max()
    later = X.assign(day=last + pd.to_timedelta(1 + np.arange(400) // 24, unit="D"))
    assert own.calibrate(later, y + 1).certificate_.in_time.trained_until == str(last.date())
    with pytest.raises(ValueError, match=r"400 of 400 rows are not \(rows 0, 1, 2, 3, 4 and 395 more\)"):
        own.calibrate(X.assign(day=last), y + 1)  # the same day as the last training rows


def test_the_time_need_not_be_a_column_that_is_learnt_from(model):
    X, y = table()
    apart = gb.IntervalRegressor(split_by_time=True, **FAST).fit(X[["a"]], y, time=X["day"])
    assert apart.certificate_.in_time == model.certificate_.in_time
    numbers = gb.IntervalRegressor(split_by_time=True, **FAST).fit(X[["a"]].to_numpy(), y, time=np.arange(400))
    own = numbers.certificate_.in_time
    assert (own.by, own.trained_until, own.calibrated_from, own.calibrated_until) == ("time", "299", "300", "399")
    assert clone(apart).split_by_time is True


def test_rows_without_a_target_take_their_time_along():
    X, y = table()
    y[X["day"] == X["day"].max()] = np.nan
    with pytest.warns(gb.exceptions.MissingTargetWarning):
        own = gb.IntervalRegressor(split_by_time="day", **FAST).fit(X, y).certificate_.in_time
    assert own.calibrated_until < str(X["day"].max().date())


@pytest.mark.parametrize("more", [{"split_by": "a"}, {"split_by": lambda X: X["a"]}])
def test_entities_and_time_exclude_each_other(more):
    with pytest.raises(ValueError, match=r"split_by_time and what rows belong to .* exclude each other"):
        gb.IntervalRegressor(split_by_time="day", **more, **FAST).fit(*table())
    X, y = table()
    with pytest.raises(ValueError, match="exclude each other"):
        gb.IntervalRegressor(split_by_time="day", **FAST).fit(X, y, entities=np.arange(400))
    gb.IntervalRegressor(split_by_time="day", split_by=[], **FAST).fit(X, y)  # rows stand alone


def test_a_random_split_that_flatters_is_warned_of_and_a_split_by_time_is_not():
    X, y = table(800)
    y = y * np.where(X["day"] > "2024-03-10", 4, 1)
    with pytest.warns(DependentRowsWarning, match="A random split flatters: .* of the latest rows by 'day'"):
        gb.IntervalRegressor(**FAST).fit(X, y)
    with pytest.warns(DependentRowsWarning, match=r"latest rows\. Add --split-by-time \(split_by_time=True\)"):
        own = gb.IntervalRegressor(**FAST).fit(X[["a"]], y, time=X["day"])
    assert own.certificate_.in_time is None
    assert len(own.fitted_.doubts) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gb.IntervalRegressor(split_by_time="day", **FAST).fit(X, y)
        gb.IntervalRegressor(split_by=[], **FAST).fit(X, y)  # the user knows better


def test_calibration_rows_are_not_looked_at_to_find_that():
    """Targets of calibration rows may be anything: the doubts are the same."""
    X, y = table(800)
    own = gb.IntervalRegressor(**FAST).fit(X, y, time="day")
    held_out = np.isin(np.round(y, 12), np.round(y[_calibration_rows(own, X, y)], 12))
    wild = np.where(held_out & (X["day"] > "2024-03-10"), 50 * y, y)
    assert own.fitted_.doubts == ()
    assert gb.IntervalRegressor(**FAST).fit(X, wild, time="day").fitted_.doubts == ()


def _calibration_rows(model, X, y):
    from guardband.data.fingerprint import fingerprints
    from guardband.data.table import read_table

    return np.isin(fingerprints(read_table(X).settled(), y.to_numpy()), model.fitted_.calibration_prints)


def test_rows_that_repeat_earlier_ones_do_not_calibrate():
    X, y = table()
    early = X["day"] <= "2024-02-01"
    copies = X[early].assign(day=X["day"].max() + pd.Timedelta(days=1))
    both, targets = pd.concat([X, copies], ignore_index=True), pd.concat([y, y[early]], ignore_index=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = gb.IntervalRegressor(split_by_time=True, **FAST).fit(both[["a"]], targets, time=both["day"])
    assert own.certificate_.promise.entity == "distinct row"
    assert own.certificate_.in_time.calibrated_until <= str(X["day"].max().date())
    assert not np.isin(own.fitted_.calibration_entities, own.fitted_.training_entities).any()


def test_weights_for_another_population_keep_it(model):
    X, y = table()
    own = gb.IntervalRegressor("conf-nn", split_by_time="day", **FAST).fit(X, y)
    assert own.for_target(X[:200]).certificate_.in_time == own.certificate_.in_time
