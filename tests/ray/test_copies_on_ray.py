"""Copies and folds that are spread over workers come out as on one machine."""

import os

import numpy as np
import pytest

import guardband as gb
from guardband.data.hash_split import HashSplit
from guardband.data.table import read_table
from guardband.learning.options import MORE_COPIES
from guardband.ray.gathered import divided, in_order, joined, together
from ray_rows import COLUMNS, QUICK, same_networks, table, write

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    # Ray 2.60 sets options of its own that it deprecates, and leaves pipes to the collector.
    *(pytest.mark.filterwarnings(f"ignore::{name}") for name in ("DeprecationWarning", "ResourceWarning")),
    pytest.mark.filterwarnings("ignore::ray.util.annotations.RayDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SPLIT = HashSplit(QUICK["random_state"], 0.25)


def with_prints(rows):
    X, y = rows.select(COLUMNS), rows["y"].to_numpy()
    return joined(X, y, SPLIT.prints(read_table(X), y))


def columns(part):
    X, y = divided(part)
    return X, y.copy()


def test_copies_that_muon_trains_are_those_of_one_machine(tmp_path):
    rows = table(5600, 5).select([*COLUMNS, "y"])
    options = {"hidden": (8, 8), "max_epochs": 2, "random_state": 0}
    training, calibration = map(columns, in_order([with_prints(rows)], SPLIT))
    alone = gb.IntervalRegressor(calibration_size=None, verbose=False, **options).fit(*training).calibrate(*calibration)
    model = gb.ray.fit(write(tmp_path / "in", rows, 2), target="y", **options)
    assert model.fitted_.learned.copies == MORE_COPIES
    same_networks(model.fitted_.learned, alone.fitted_.learned)
    assert model.certificate_.promise == alone.certificate_.promise
    found, wanted = (own.calibration_.found.arrays["threshold"] for own in (model, alone))
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


@pytest.mark.parametrize("kind", ["cv+", "cv-minmax"])
def test_folds_are_those_of_one_machine_in_any_order_of_files(kind, tmp_path):
    rows = table(300, 6).select([*COLUMNS, "y"])
    options = QUICK | {"calibration": kind, "folds": 5}
    whole, order = together([with_prints(rows)], SPLIT)
    X, y = columns(whole.take(order))
    alone = gb.IntervalRegressor(**options).fit(X, y)
    options.pop("verbose")
    pattern = write(tmp_path / "in", rows.take(np.random.default_rng(0).permutation(300)), 2)
    model = gb.ray.fit(pattern, target="y", checkpoints=tmp_path / "checkpoints", **options)
    assert model.certificate_.promise == alone.certificate_.promise
    np.testing.assert_array_equal(model.fitted_.training_prints, alone.fitted_.training_prints)
    np.testing.assert_array_equal(model.fitted_.calibration_prints, alone.fitted_.calibration_prints)
    for own, other in zip(model.fitted_.learned.each, alone.fitted_.learned.each, strict=True):
        assert own.encoder == other.encoder
        same_networks(own, other)
    found, wanted = (each.predict_interval(X.slice(0, 20)) for each in (model, alone))
    np.testing.assert_allclose(found.lower, wanted.lower, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.upper, wanted.upper, rtol=1e-3, atol=1e-3)
    said = str(model.certificate_)
    assert "divided into folds at random" in said
    assert "One process held all rows" in said
    again = gb.ray.fit(pattern, target="y", checkpoints=tmp_path / "checkpoints", **options)
    for own, other in zip(again.fitted_.learned.each, model.fitted_.learned.each, strict=True):
        assert all((t == other.members.snapshot()[name]).all() for name, t in own.members.snapshot().items())


def test_repeated_rows_are_refused_with_what_to_do(tmp_path):
    rows = table(200, 7).select([*COLUMNS, "y"])
    pattern = write(tmp_path / "in", rows.take([*range(200)] * 2), 2)
    options = {name: value for name, value in QUICK.items() if name != "verbose"}
    with pytest.raises(ValueError, match="some rows of this table are repeated"):
        gb.ray.fit(pattern, target="y", calibration="cv+", **options)


def test_the_machine_with_the_least_memory_decides_how_many_rows_one_process_holds(tmp_path, monkeypatch):
    here = os.getpid()
    monkeypatch.setattr("guardband.ray.fitting.memory", lambda: 1 << 40 if os.getpid() == here else 1000)
    pattern = write(tmp_path / "in", table(100, 8).select([*COLUMNS, "y"]), 1)
    with pytest.raises(ValueError, match="Cross-validation needs all rows in one process, and they are more than"):
        gb.ray.fit(pattern, target="y", calibration="cv+")
