import json
import os
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from sklearn.base import BaseEstimator
from torch import nn

import guardband as gb
from guardband.doors.file_format import _checksum
from guardband.doors.model_file import load_to_predict
from guardband.methods.conf_nn import ConfNN

PLAIN = {"hidden": (16,), "epochs": 5, "random_state": 0}
QUICK = PLAIN | {"preset": "fast"}


def table(n=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(n), "c": rng.choice(["x", "y", None], n)})
    frame.loc[::7, "a"] = np.nan
    return frame, frame["a"].fillna(0).to_numpy() + rng.standard_normal(n)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.guardband"
    model = gb.IntervalRegressor(**QUICK, confidence_level=[0.9, 0.5]).fit(*table())
    model.save(path)
    return path, model


IN_A_NEW_PROCESS = """
import sys, numpy as np, pandas as pd, guardband as gb
import torch; torch.set_num_threads(1)
frame = pd.read_pickle(sys.argv[1])
for path in sys.argv[2:]:
    model = gb.load(path)
    bands = model.predict_interval(frame)
    words = str(model.certificate_)
    np.savez(path + ".npz", lower=bands.lower, point=bands.point, upper=bands.upper, words=words)
"""


def test_predictions_are_bit_identical_in_a_new_process(tmp_path):
    frame, y = table()
    wishes = [
        {"confidence_level": [0.9, 0.5], "preset": "default"},
        {"method": "pav", "rule": "nested"},
        {"guarantee": "pac", "target_transform": None, "y_min": -50},
    ]
    models = {
        str(tmp_path / f"{i}"): gb.IntervalRegressor(**QUICK | wish).fit(frame, y) for i, wish in enumerate(wishes)
    }
    for path, model in models.items():
        model.save(path)
    frame.to_pickle(tmp_path / "x.pkl")
    subprocess.run([sys.executable, "-c", IN_A_NEW_PROCESS, str(tmp_path / "x.pkl"), *models], check=True)
    for path, model in models.items():
        bands, out = model.predict_interval(frame), np.load(f"{path}.npz")
        for side in ("lower", "point", "upper"):
            np.testing.assert_array_equal(out[side], getattr(bands, side))
        assert str(out["words"]) == str(model.certificate_)


def test_a_loaded_model_has_its_arguments_and_goes_on(saved):
    path, model = saved
    loaded = gb.load(path)
    assert loaded.get_params() | {"confidence_level": None} == model.get_params() | {"confidence_level": None}
    assert loaded.confidence_level == (0.9, 0.5)
    frame, y = table()
    later = loaded.predict_interval(frame, confidence_level=0.8)
    assert (later.upper == model.predict_interval(frame, confidence_level=0.8).upper).all()
    with pytest.raises(gb.OverlapError):
        loaded.calibrate(frame, y)
    with pytest.raises(ValueError, match="X lacks 1 of the model's 2 columns"):
        loaded.predict(frame[["a"]])
    rng = np.random.default_rng(1)
    loaded.calibrate(frame.assign(a=rng.standard_normal(400)), rng.standard_normal(400))
    assert loaded.certificate_.n_calibration == 400


def test_a_model_without_calibration_can_be_saved(tmp_path):
    model = gb.IntervalRegressor(**QUICK, calibration_size=None, alpha=Fraction(1, 10)).fit(*table())
    model.save(tmp_path / "m")
    loaded = gb.load(tmp_path / "m")
    assert loaded.alpha == Fraction(1, 10)
    assert (loaded.predict(table()[0]) == model.predict(table()[0])).all()


def test_a_file_holds_no_code_so_an_own_network_is_brought_again(tmp_path):
    def build(in_features):
        return nn.Sequential(nn.Linear(in_features, 8), nn.BatchNorm1d(8), gb.nn.TripleHead(8))

    X = np.random.default_rng(0).standard_normal((200, 3))
    model = gb.IntervalRegressor(**PLAIN | {"hidden": None}, network=build).fit(X, X.sum(1))
    model.save(tmp_path / "m")
    with pytest.raises(gb.ModelFileError, match=r"a network of your own: pass it as load\(..., network=...\)"):
        gb.load(tmp_path / "m")
    loaded = gb.load(tmp_path / "m", network=build)
    assert (loaded.predict_interval(X).upper == model.predict_interval(X).upper).all()


def test_no_pickle_in_the_file(saved):
    body = saved[0].read_bytes()
    assert b"pickle" not in body
    assert b"ctorch" not in body
    with safe_open(saved[0], framework="pt") as file:
        assert json.loads(file.metadata()["guardband"])["schema"] == 8


def rewritten(path, out, change):
    with safe_open(path, framework="pt") as file:
        tensors, metadata = {k: file.get_tensor(k) for k in file.keys()}, file.metadata()  # noqa: SIM118
    change(tensors, metadata)
    save_file(tensors, out, metadata)


def newer(tensors, metadata):
    metadata["guardband"] = json.dumps(json.loads(metadata["guardband"]) | {"schema": 9})


def older(tensors, metadata):
    metadata["guardband"] = json.dumps(json.loads(metadata["guardband"]) | {"schema": 4})


def other_weight(tensors, metadata):
    name = next(name for name in tensors if name.startswith("weights."))
    tensors[name].view(-1)[0] += 1


def other_level(tensors, metadata):
    metadata["guardband"] = metadata["guardband"].replace("0.5", "0.6")


def no_json(tensors, metadata):
    del metadata["guardband"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (newer, "newer guardband"),
        (older, "older guardband"),
        (other_weight, "checksum does not match"),
        (other_level, "checksum does not match"),
        (no_json, "no guardband model"),
    ],
)
def test_a_changed_file_is_refused_with_the_reason(saved, tmp_path, change, words):
    rewritten(saved[0], tmp_path / "changed", change)
    with pytest.raises(gb.ModelFileError, match=words):
        gb.load(tmp_path / "changed")


@pytest.mark.parametrize("keep", [0, 5, 100, -1, -1000])
def test_a_truncated_file_is_refused(saved, tmp_path, keep):
    (tmp_path / "cut").write_bytes(saved[0].read_bytes()[:keep])
    with pytest.raises(gb.ModelFileError, match="damaged or cut short"):
        gb.load(tmp_path / "cut")


def test_any_flipped_byte_is_refused(saved, tmp_path):
    body = bytearray(saved[0].read_bytes())
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(body), 60):
        damaged = body.copy()
        damaged[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(gb.ModelFileError):
            gb.load(tmp_path / "damaged")


def test_what_is_no_model_is_refused(tmp_path):
    (tmp_path / "text").write_text("hello")
    with pytest.raises(gb.ModelFileError, match="no guardband model"):
        gb.load(tmp_path / "text")
    save_file({"a": torch.zeros(1)}, tmp_path / "other")
    with pytest.raises(gb.ModelFileError, match="no guardband model"):
        gb.load(tmp_path / "other")
    with pytest.raises(gb.ModelFileError, match="no model file"):
        gb.load(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        gb.load(tmp_path / "missing")


def test_a_failed_save_leaves_nothing_behind(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        saved[1].save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_file_keeps_the_arguments_of_the_fit(tmp_path):
    frame, y = table()
    model = gb.IntervalRegressor(**QUICK).fit(frame, y)
    before = model.predict_interval(frame).upper
    model.set_params(confidence_level=0.5, hidden=(32,))
    model.save(tmp_path / "m")
    assert (gb.load(tmp_path / "m").predict_interval(frame).upper == before).all()


@pytest.mark.parametrize(
    "asked",
    [
        {"confidence_level": np.float32(0.8)},
        {"y_min": np.int64(-100), "y_max": Decimal(100)},
        {"guarantee": "pac", "delta": np.float32(0.1), "joint": np.bool_(True)},
        {"method": "pav", "taus": pd.Series([0.1, 0.05])},
        {"tau": Fraction(1, 10), "hidden": range(3, 5)},
        {"random_state": np.random.RandomState(0), "alpha": [Fraction(1, 10), Fraction(1, 3)]},
    ],
)
def test_arguments_of_any_number_type_survive(asked, tmp_path):
    frame, y = table()
    model = gb.IntervalRegressor(**QUICK | asked).fit(frame, y)
    model.save(tmp_path / "m")
    loaded = gb.load(tmp_path / "m")
    assert loaded.certificate_ == model.certificate_
    assert (loaded.predict_interval(frame).upper == model.predict_interval(frame).upper).all()


def test_another_network_or_method_than_saved_is_refused(tmp_path):
    def build(width):
        return lambda d: nn.Sequential(nn.Linear(d, width), gb.nn.TripleHead(width))

    class Mine(ConfNN):
        name = "mine"

    X = np.random.default_rng(0).standard_normal((200, 3))
    gb.IntervalRegressor(Mine(), **PLAIN | {"hidden": None}, network=build(1)).fit(X, X.sum(1)).save(tmp_path / "m")
    gb.load(tmp_path / "m", network=build(1), method=Mine())
    with pytest.raises(
        gb.ModelFileError, match=r"its networks need .* of the shape \(1, 8.*\), found .* Check what you pass"
    ):
        gb.load(tmp_path / "m", network=build(8), method=Mine())
    with pytest.raises(gb.ModelFileError, match="not what the saved certificate promises"):
        gb.load(tmp_path / "m", network=build(1), method=ConfNN())


def test_a_method_this_version_does_not_know_is_refused(saved, tmp_path):
    def unknown(tensors, metadata):
        metadata["guardband"] = metadata["guardband"].replace("conf-nn", "conf-xx")
        metadata["sha256"] = _checksum(metadata["guardband"], tensors)

    rewritten(saved[0], tmp_path / "unknown", unknown)
    with pytest.raises(gb.ModelFileError, match="its score, 'conf-xx', is not what its arguments ask for"):
        gb.load(tmp_path / "unknown")
    gb.IntervalRegressor("conf-nn", **PLAIN).fit(np.eye(40), np.arange(40.0)).save(tmp_path / "named")
    rewritten(tmp_path / "named", tmp_path / "unknown", unknown)
    with pytest.raises(gb.ModelFileError, match="this version of guardband can use: method must be one of"):
        gb.load(tmp_path / "unknown")


def test_a_model_that_only_predicts_is_the_same_model(saved):
    path, model = saved
    plain, frame = load_to_predict(path), pa.Table.from_pandas(table(50)[0])
    assert not isinstance(plain, BaseEstimator)
    ours, theirs = plain.predict_interval(frame), model.predict_interval(frame)
    for name in ("lower", "point", "upper", "unlike"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert plain.certificate_ == model.certificate_
    assert plain.settings() == gb.load(path).settings()
    assert plain.belonging.split_by == model.belonging.split_by
    assert vars(gb.load(path)).keys() == vars(model).keys()


def test_paths_and_devices_that_are_not_there(saved, tmp_path):
    for path in (tmp_path, tmp_path / "missing" / "m"):
        with pytest.raises(OSError, match="in a folder that exists"):
            saved[1].save(path)
    with pytest.raises(gb.ModelFileError):
        gb.load(tmp_path)
    with pytest.raises(ValueError, match="device must be"):
        gb.load(saved[0], device="cuda:99")


def test_a_full_gpu_is_no_fault_of_the_file(saved, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("guardband.doors.model_file.restored_table", full)
    with pytest.raises(torch.OutOfMemoryError):
        gb.load(saved[0])
