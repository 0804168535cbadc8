"""A table's model as a network and as an ONNX graph: the same intervals, from the same rows."""

import json

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch

import guardband as gb
from guardband.data.artificial import PaperModel
from guardband.data.codes import TargetCode
from guardband.data.table import read_table
from guardband.data.target import Target
from guardband.methods.registry import method_names

X, Y = PaperModel(n_features=6).draw(500, seed=1)


def frame(n=500):
    table = pd.DataFrame(X[:n], columns=list("abcdef"))
    table["kind"] = np.where(X[:n, 0] > 0.7, "high", np.where(X[:n, 0] > 0.3, "mid", "low"))
    table.loc[::7, "b"] = np.nan
    table.loc[::11, "kind"] = None
    return table


def fitted(method="conf-nn", **asked):
    asked = {"hidden": (8,), "epochs": 3, "preset": "fast", "random_state": 0} | asked
    return gb.IntervalRegressor(method, **asked).fit(frame(), np.maximum(Y + 20, 18))


def assert_close(found, bands):
    for j, name in enumerate(("lower", "point", "upper")):
        own = getattr(bands, name)
        np.testing.assert_allclose(found[:, j] if found.ndim == 2 or own.ndim == 2 else found[:, j, 0], own, rtol=1e-5)


@pytest.mark.parametrize("method", method_names())
def test_it_gives_the_models_intervals_for_every_method(method):
    model = fitted(method)
    network = model.as_network()
    assert_close(network(network.rows(frame())).numpy(), model.predict_interval(frame()))
    assert network.certificate == model.certificate_


UNITS = [
    {"target_transform": "log"},
    {"target_transform": "log1p"},
    {"target_transform": "asinh"},
    {"target_transform": "sqrt"},
    {"y_min": 18.0, "y_max": 60.0},
    {"confidence_level": [0.5, 0.9]},
]


@pytest.mark.parametrize("asked", UNITS)
def test_units_bounds_and_levels_come_along(asked):
    model = fitted(**asked)
    network = model.as_network()
    assert_close(network(network.rows(frame())).numpy(), model.predict_interval(frame()))


def test_a_long_tail_comes_along(tmp_path):
    """Copies learn on two scales, and their predictions are averaged in the target's own units."""
    rows, y = frame().assign(a=np.exp(6 * X[:, 0])), np.exp(Y / 2)
    model = gb.IntervalRegressor(hidden=(8,), max_epochs=3, preset="fast", random_state=0).fit(rows, y)
    learned = model.fitted_.learned
    assert [scale.unit is None for scale in learned.target.scales] == [True, False]
    each = learned.predict(read_table(rows), each_copy=True)
    np.testing.assert_allclose(learned.predict(read_table(rows)).upper[0], each.upper.mean(0), rtol=1e-6)
    model.save(tmp_path / "m.guardband")
    bands = model.predict_interval(rows)
    np.testing.assert_array_equal(gb.load(tmp_path / "m.guardband").predict_interval(rows).upper, bands.upper)
    network = model.as_network()
    assert_close(network(network.rows(rows)).numpy(), bands)
    gb.export_onnx(network, network.rows(rows[:3]), tmp_path / "m.onnx")
    found = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": network.rows(rows).numpy()})
    np.testing.assert_allclose(found[2], bands.upper, rtol=1e-4)


def test_described_categories_come_along(tmp_path):
    rng, place = np.random.default_rng(0), np.repeat(np.arange(150), 6)
    rows = pd.DataFrame({"place": [f"p{i}" for i in place], "x": rng.standard_normal(900)})
    y = 3 * rng.standard_normal(150)[place] + 0.3 * rng.standard_normal(900)
    trains = np.arange(900) % 6 < 4
    model = gb.IntervalRegressor(hidden=(16,), max_epochs=6, preset="fast", random_state=0, calibration_size=None)
    model.set_params(split_by=[]).fit(rows[trains], y[trains]).calibrate(rows[~trains], y[~trains])
    assert isinstance(model.fitted_.learned.encoder.codes[0], TargetCode)
    model.save(tmp_path / "m.guardband")
    bands = model.predict_interval(rows)
    np.testing.assert_array_equal(gb.load(tmp_path / "m.guardband").predict_interval(rows).upper, bands.upper)
    network = model.as_network()
    np.testing.assert_allclose(network(network.rows(rows))[:, 0], bands.lower, rtol=1e-4, atol=1e-4)
    gb.export_onnx(network, network.rows(rows[:3]), tmp_path / "m.onnx")
    found = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": network.rows(rows).numpy()})
    np.testing.assert_allclose(found[2], bands.upper, rtol=1e-4, atol=1e-4)


def test_new_missing_and_unknown_values_are_encoded_alike():
    model = fitted()
    network = model.as_network()
    strange = frame(6)
    strange["kind"] = ["high", "new", None, "low", "other", "mid"]
    strange.loc[2, "c"] = np.nan
    strange.loc[3, "d"] = 1e30
    with pytest.warns(gb.UnlikeRowsWarning, match=r"such as 1e30 in row 3"):
        bands = model.predict_interval(strange)
    assert_close(network(network.rows(strange)).numpy(), bands)
    assert network.categories == {"kind": ("high", "low", "mid")}


def test_onnx_runtime_gives_the_same(tmp_path):
    model = fitted()
    gb.export_onnx(model, frame(4), tmp_path / "table.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "table.onnx", providers=["CPUExecutionProvider"])
    rows = model.as_network().rows(frame()).numpy()
    for n in (1, 500):
        lower, point, upper = session.run(None, {"x": rows[:n]})
        bands = model.predict_interval(frame(n))
        for found, own in ((lower, bands.lower), (point, bands.point), (upper, bands.upper)):
            np.testing.assert_allclose(found, own, rtol=1e-5, atol=1e-5)
    metadata = {entry.key: entry.value for entry in onnx.load(tmp_path / "table.onnx").metadata_props}
    assert json.loads(metadata["guardband.table"])["categories"] == {"kind": ["high", "low", "mid"]}
    assert metadata["guardband"] == str(model.certificate_)


def test_a_network_of_ones_own_takes_its_numbers():
    model = gb.IntervalRegressor(network=lambda d: gb.nn.FullyConnected(d, (4,)), epochs=2, random_state=0).fit(X, Y)
    network = model.as_network()
    assert_close(network(torch.tensor(X)).numpy(), model.predict_interval(X))


def test_a_model_that_is_not_calibrated_says_so():
    bare = gb.IntervalRegressor(hidden=(4,), epochs=1, calibration_size=None).fit(X, Y)
    with pytest.raises(ValueError, match="not calibrated"):
        bare.as_network()


def test_units_are_rounded_outward_as_the_models_are():
    target = Target("log", None, None, 1.0, 2.0)
    ends = [np.linspace(-3, 3, 101) + shift for shift in (-1, 0, 1)]
    ours, theirs = target.to_units(*ends), target.to_units(*map(torch.from_numpy, ends), torch)
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(other.numpy(), own, rtol=2e-16 * 4)
    assert (theirs[0].numpy() < np.exp(ends[0])).all()
    assert (theirs[2].numpy() > np.exp(ends[2])).all()


def test_whole_numbers_are_the_same_everywhere(tmp_path):
    asked = {"y_min": 0, "target_transform": "asinh", "confidence_level": [0.5, 0.9]}
    y = np.random.default_rng(0).poisson(np.exp(X[:, 0])).astype(float)
    model = gb.IntervalRegressor(preset="fast", hidden=(8,), epochs=3, random_state=0, **asked).fit(X, y)
    bands, network = model.predict_interval(X), model.as_network()
    rows = network.rows(X)
    gb.export_onnx(model, X[:4], tmp_path / "table.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "table.onnx", providers=["CPUExecutionProvider"])
    found = np.moveaxis(network(rows).numpy(), 1, 0)
    for j, (own, other) in enumerate(zip((bands.lower, bands.point, bands.upper), found, strict=True)):
        np.testing.assert_array_equal(own, other[:, 0] if j == 1 else other)
        np.testing.assert_array_equal(own, session.run(None, {"x": rows.numpy()})[j])
