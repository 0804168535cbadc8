"""What is written of each kind of model, and that all of it comes back."""

from dataclasses import fields

import pytest
import torch

import guardband as gb
from forged_models import numbers, opened
from guardband.doors.file_arguments import plain_arguments
from guardband.doors.kept_report import read_report
from guardband.doors.model_file import load_to_predict, save
from guardband.methods.conf_nn import ConfNN
from tiny_models import NETWORKS, OTHERS, TABLES, contents, frame, half, made, rare, tensors_, told

pytestmark = pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


FITTED_ONLY = {"source", "known", "params"}
LEARNED_ONLY = {"losses", "dead", "left_out"}


def kept(fitted):
    """Return what is to come back of a table's model: no rows, and nothing of how training went."""
    out = {field.name: getattr(fitted, field.name) for field in fields(fitted) if field.name not in FITTED_ONLY}
    each = [
        {field.name: told(getattr(own, field.name)) for field in fields(own) if field.name not in LEARNED_ONLY}
        for own in fitted.learned.each
    ]
    return {"each": each} | {name: told(value) for name, value in out.items() if name != "learned"}


@pytest.mark.parametrize("name", TABLES)
def test_a_model_of_a_table_comes_back(name, folder, tmp_path):
    model, path, own = made(name, folder)
    loaded = gb.load(path, **own)
    assert type(loaded) is gb.IntervalRegressor
    assert kept(loaded.fitted_) == kept(model.fitted_)
    assert loaded.fitted_.params["device"] == "auto"
    X = rare()[0] if "uneven" in name else frame()[0] if hasattr(model, "feature_names_in_") else numbers(20)[0]
    assert told(loaded.predict(X)) == told(model.predict(X))
    assert loaded.n_features_in_ == model.n_features_in_
    if name != "uncalibrated":
        assert loaded.certificate_ == model.certificate_
        ours, theirs = loaded.predict_interval(X), model.predict_interval(X)
        assert [told(own) for own in (ours.lower, ours.upper)] == [told(own) for own in (theirs.lower, theirs.upper)]
    loaded.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(path)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_comes_back(name, folder, tmp_path):
    model, path, own = made(name, folder)
    loaded = gb.load(path, **own)
    x = tensors_()[0]
    assert torch.equal(loaded(x), model(x))
    assert loaded.certificate == model.certificate
    assert told(loaded.calibration_prints) == told(model.calibration_prints)
    assert told(dict(loaded.state_dict())) == told(dict(model.state_dict()))
    assert not any(weights.requires_grad for weights in loaded.parameters())
    loaded.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(path)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_network_comes_back(name, folder, tmp_path):
    model, path, own = made(name, folder)
    loaded = gb.load(path, **own)
    assert type(loaded) is type(model)
    loaded.save(tmp_path / "again")
    (entries, tensors), (others, same) = contents(path), contents(tmp_path / "again")
    assert tensors == same
    for one in (entries, others):
        one["arguments"] = {key: value for key, value in one.get("arguments", {}).items() if value is not None}
    assert entries == others


def test_a_model_that_only_predicts_needs_no_more_than_its_file(folder):
    model, path, _ = made("plain", folder)
    found = load_to_predict(path)
    assert type(found).__name__ == "TableModel"
    bands, others = found.predict_interval(numbers()[0]), model.predict_interval(numbers()[0])
    assert told(bands.upper) == told(others.upper)
    rule, path, _ = made("rule", folder)
    assert load_to_predict(path).certificate == rule.certificate
    _, path, _ = made("distribution", folder)
    with pytest.raises(gb.ModelFileError, match=f"^{path} holds no model of tables: use it in Python, by gb.load.$"):
        load_to_predict(path)


@pytest.mark.parametrize("name", ["plain", "rule"])
def test_a_report_is_saved_with_the_model(name, folder, tmp_path):
    model, path, _ = made(name, folder)
    assert read_report(path) is None
    save(model, tmp_path / "m", report={"own": 1})
    assert read_report(tmp_path / "m") == {"own": 1}
    entries, tensors = contents(tmp_path / "m")
    del tensors["report"]
    assert (entries, tensors) == contents(path)


ENTRIES = {
    "own-method": {"method": "custom"},
    "method": {"method": "cqr"},
    "heads": {"method": "pav", "taus": [0.1, 0.2]},
    "own": {"network": "custom"},
    "own-cut": {"guarantee": "custom"},
    "own-transform": {"target_transform": "custom"},
    "several": {"target_transform": [None, "asinh"]},
    "risk": {"risk": {"limit": 0.2, "cap": 3.0}, "groups": None},
    "own-risk": {"risk": "custom"},
    "groups": {"groups": "shop"},
    "own-groups": {"groups": "custom"},
    "seeded": {"random_state": None},
    "plain": {"random_state": 0, "alpha": [0.1, 0.3], "hidden": [4]},
}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_file_holds_arguments_but_no_code(name, folder):
    params = opened(made(name, folder)[1])[0]["params"]
    assert {key: params[key] for key in ENTRIES[name]} == ENTRIES[name]
    assert params.keys() == gb.IntervalRegressor().get_params().keys() - {"device"}


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("method", ConfNN(), "custom"),  # not the one that its name stands for
        ("target_transform", [None, (half, half)], "custom"),
        ("target_transform", [half, None], "custom"),
        ("target_transform", ("log", None), ["log", None]),
        ("groups", ["a", "b"], ["a", "b"]),
        ("groups", half, "custom"),
    ],
)
def test_what_a_file_cannot_hold_is_marked_as_the_users_own(name, value, written):
    assert plain_arguments({name: value}) == {name: written}
