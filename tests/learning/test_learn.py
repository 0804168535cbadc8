"""The default for tables: copies over folds of D1."""

from itertools import count
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import guardband as gb
from guardband.data.artificial import PaperModel
from guardband.data.encoder import TableEncoder
from guardband.data.table import read_table
from guardband.training.deadline import Deadline

X, Y = PaperModel(n_features=6).draw(1500, seed=1)
X_NEW, Y_NEW = PaperModel(n_features=6).draw(2000, seed=2)
SMALL = {"hidden": (32, 32), "random_state": 0}


@pytest.mark.parametrize(("preset", "copies"), [("fast", 2), ("default", 8), ("best", 24)])
def test_a_preset_is_a_number_of_copies_that_stop_apart(preset, copies):
    model = gb.IntervalRegressor(preset=preset, **SMALL).fit(X[:500], Y[:500])
    epochs = model.fitted_.learned.epochs
    assert len(epochs) == copies
    assert copies == 2 or len(set(epochs)) > 1
    assert all(np.isfinite(model.fitted_.learned.losses))


def test_the_number_of_threads_does_not_matter():
    found = []
    before = torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(gb.IntervalRegressor(preset="fast", max_epochs=10, **SMALL).fit(X, Y).predict(X_NEW))
    torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)


def test_waves_and_jumps_are_followed():
    """Numbers that are not embedded need far more rows for that."""
    rng = np.random.default_rng(0)
    x = rng.random((3000, 2))
    y = np.sin(25 * x[:, 0]) + (x[:, 1] > 0.3) + 0.1 * rng.standard_normal(3000)
    lengths = {}
    for network in ("tabular", "plain"):
        preset = "fast" if network == "tabular" else "default"
        model = gb.IntervalRegressor(network=network, preset=preset, random_state=0).fit(x[:2000], y[:2000])
        lengths[network] = gb.metrics.mean_length(y[2000:], model.predict_interval(x[2000:]))
    assert lengths["tabular"] < 0.5 * lengths["plain"]


def limited_by(monkeypatch):
    """Return a clock that ticks whenever fit reads it."""
    clock = count()
    deadline = SimpleNamespace(after=lambda seconds: Deadline.after(seconds, lambda: float(next(clock))))
    monkeypatch.setattr("guardband.doors.fit_table.Deadline", deadline)
    return clock


def test_seconds_end_the_fit(monkeypatch):
    """The clock is read after every step, so that steps are seconds; some are set aside for what follows."""
    clock = limited_by(monkeypatch)
    model = gb.IntervalRegressor(preset=200, patience=10_000, max_epochs=10_000, **SMALL).fit(X, Y)
    assert 150 < next(clock) < 200
    assert model.predict_interval(X_NEW).lower.shape == (2000,)


def test_a_fit_without_time_is_usable(monkeypatch):
    limited_by(monkeypatch)
    model = gb.IntervalRegressor(preset=0.1, **SMALL).fit(X, Y)
    assert set(model.fitted_.learned.epochs) == {1}
    assert np.isfinite(model.predict_interval(X_NEW).width).all()


def test_rows_that_are_predicted_later_take_time_from_training(monkeypatch):
    ended = []
    for size in (0.1, 0.8):
        clock = limited_by(monkeypatch)
        gb.IntervalRegressor(preset=200, calibration_size=size, patience=10_000, max_epochs=10_000, **SMALL).fit(X, Y)
        ended.append(next(clock))
    assert ended[1] < ended[0] - 5  # of fewer training rows a tick times fewer


def test_the_clock_needs_no_copy_of_the_networks(monkeypatch):
    monkeypatch.setattr("guardband.training.epochs._Run._as_they_are", None)
    gb.IntervalRegressor(preset=60, max_epochs=2, **SMALL).fit(X, Y)


def test_pavs_grid_comes_nested_from_one_training():
    model = gb.IntervalRegressor("pav", preset="fast", **SMALL).fit(X, Y)
    predicted = model.fitted_.learned.predict(read_table(X_NEW))
    assert predicted.lower.shape == (1, 10, 2000)
    assert (np.diff(predicted.lower, axis=1) <= 0).all()
    assert (np.diff(predicted.upper, axis=1) >= 0).all()
    assert (predicted.point == predicted.point[:, :1]).all()


@pytest.mark.parametrize("method", ["conf-fw", "neg-ll", "high-q"])
def test_methods_without_a_triple_use_the_network_too(method):
    model = gb.IntervalRegressor(method, epochs=3, **SMALL).fit(X, Y)
    assert model.fitted_.learned.architecture.tabular


@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
@pytest.mark.parametrize("n", [8, 40])
def test_few_rows_do(n):
    bands = gb.IntervalRegressor(max_epochs=20, **SMALL).fit(X[:n], Y[:n]).predict_interval(X_NEW)
    assert np.isfinite(bands.point).all()


def test_awkward_columns_do():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X[:300], columns=list("abcdef"))
    frame["constant"] = 3.0
    frame["heavy"] = rng.standard_cauchy(300) ** 3
    frame["two"] = rng.integers(2, size=300).astype(float)
    frame["many"] = [f"c{i % 150}" for i in range(300)]
    frame["missing"] = np.where(rng.random(300) < 0.5, np.nan, 1.0)
    frame["all missing"] = np.nan
    model = gb.IntervalRegressor(preset="fast", max_epochs=20, **SMALL).fit(frame, Y[:300])
    with pytest.warns(gb.UnlikeRowsWarning, match=r"1 of 300 rows is unlike all training rows. 'heavy'"):
        bands = model.predict_interval(frame)
    assert np.isfinite(bands.lower).all()


def test_a_thousand_columns_do():
    x = np.random.default_rng(0).standard_normal((400, 1000))
    model = gb.IntervalRegressor(max_epochs=30, preset="fast", random_state=0).fit(x, x[:, 0] + x[:, 1])
    assert model.fitted_.learned.architecture.numbers == 1000
    assert np.isfinite(model.predict_interval(x).lower).all()


def test_robust_numbers_come_first_and_are_drawn_in():
    table = read_table(pd.DataFrame({"kind": ["a", "b", "a", "b", "a"], "x": [1.0, 2.0, np.nan, 4.0, 1e9]}))
    encoder = TableEncoder.learn(table, robust=True)
    found = encoder.encode(table)
    assert encoder.numbers == 1
    center, scale = 3.0, 250_000_003.0 - 1.75
    z = (np.array([1.0, 2.0, 3.0, 4.0, 1e9]) - center) / scale
    np.testing.assert_allclose(found[:, 0], z / np.sqrt(1 + (z / 3) ** 2), rtol=1e-5)
    assert found[:, 0].max() < 3
    np.testing.assert_array_equal(found[:, 1:], [[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 0], [1, 0, 0]])
    assert TableEncoder.from_dict(encoder.to_dict()) == encoder


WITHOUT_NESTED_TRIPLES = [
    {"method": "conf-fw"},
    {"method": "high-q"},
    {"method": "neg-ll"},
    {"method": "bayes"},
    {"point": "mean"},
    {"power": 2},
]


@pytest.mark.filterwarnings("ignore::guardband.DegenerateBandWarning")
@pytest.mark.parametrize("asked", WITHOUT_NESTED_TRIPLES, ids=str)
def test_copies_reach_every_method_and_loss(asked):
    for preset, copies in (("fast", 2), ("default", 8)):
        small = {"hidden": (8,), "random_state": 0, "max_epochs": 2}
        model = gb.IntervalRegressor(preset=preset, **small, **asked).fit(X[:300], Y[:300])
        learned = model.fitted_.learned
        assert learned.copies == copies
        assert learned.members.size == len(learned.epochs) == copies * len(learned.heads)
        assert learned.predict(model.read_rows(X_NEW[:5]), each_copy=True).copies == copies
        assert np.isfinite(model.predict_interval(X_NEW[:5]).point).all()


@pytest.mark.filterwarnings("ignore::guardband.DegenerateBandWarning")
@pytest.mark.parametrize("asked", WITHOUT_NESTED_TRIPLES, ids=str)
def test_seconds_reach_every_method_and_loss(asked, monkeypatch):
    clock = limited_by(monkeypatch)
    forever = {"patience": 10_000, "max_epochs": 10_000, "hidden": (8,), "random_state": 0}
    model = gb.IntervalRegressor(preset=200, **forever, **asked).fit(X[:300], Y[:300])
    assert next(clock) < 250
    assert model.fitted_.learned.copies == 8
