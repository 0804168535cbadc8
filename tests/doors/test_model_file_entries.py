"""What is written of each kind of model and how it comes back, on models that are fitted in a hundredth of a second."""

import warnings
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import guardband as gb
from forged_models import PLAIN, QUICK, bounds, forged, network, numbers, opened, own_network, quantiles, triple
from guardband.doors.kept_report import read_report
from guardband.doors.model_file import _plain_arguments, load_to_predict, save
from guardband.methods.conf_nn import ConfNN
from guardband.methods.registry import method_named

pytestmark = pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
LEVELS = (0.005, 0.05, 0.5, 0.95, 0.995)


class Mine(ConfNN):
    """A method of the user's own."""

    name = "mine"


def frame(n=60):
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(n), "D")
    rows = pd.DataFrame({"a": rng.standard_normal(n), "shop": np.array(list("wxyz"))[rng.integers(0, 4, n)]})
    return rows.assign(day=days), rows["a"].to_numpy() + rng.standard_normal(n)


def rare():
    """Return a table of which one fold knows a column's values and others do not."""
    rows, y = frame()
    return rows[["a"]].assign(kind=np.where(np.arange(60) < 2, "rare", "other")), y


def both(n=60):
    X, y = numbers(n)
    return X, np.stack([y, -y + X[:, 0]], axis=1)


def is_x(rows):
    return rows["shop"] == "x"


def first_positive(X):
    return np.where(np.asarray(X)[:, 0] > 0, 1.0, 2.0)


def cubed(y):
    return y**3


def loss(y, lower, upper):
    return np.minimum(1.0, np.maximum(lower - y, y - upper).clip(0))


def halves(x):
    return x[:, 0] > 0


def two_halves(x):
    return torch.stack([x[:, 0] > 0, x[:, 1] > 0], dim=1)


def unit_weights(x):
    return 1 + (x[:, 0] > 0).double()


def every_second(out):
    return out[:, ::2]


def wide():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), gb.nn.TripleHead(4), Twice())


class Twice(nn.Module):
    def forward(self, x):
        return x.repeat_interleave(2, dim=1)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.heads = nn.Linear(3, 4), nn.ModuleList([gb.nn.TripleHead(4), gb.nn.TripleHead(4)])

    def forward(self, x):
        return torch.stack([head(self.body(x)) for head in self.heads], dim=1)


def build_pair():
    torch.manual_seed(1)
    return Pair()


def table(own_rows=lambda: numbers(60), **asked):
    return lambda: gb.IntervalRegressor(**asked).fit(*own_rows())


def calibrated_later(**asked):
    def make():
        X, y = numbers()
        model = gb.IntervalRegressor(**PLAIN, calibration_size=None).fit(X[:60], y[:60])
        return model.calibrate(X[60:], y[60:], **asked)

    return make


def for_target():
    X, y = numbers(400)
    return gb.IntervalRegressor(**PLAIN).fit(X, y).for_target(X[:100] + 0.1)


def twice():
    X, y = numbers(60)
    return gb.IntervalRegressor(**PLAIN).fit(np.concatenate([X, X]), np.concatenate([y, y]))


def line(X):
    return np.asarray(X, dtype=float).sum(axis=1)


TABLES = {
    "plain": (table(**PLAIN, alpha=[0.1, 0.3]), {}),
    "heads": (table(**PLAIN, method="pav", taus=[0.1, 0.2]), {}),
    "copies": (table(hidden=(4,), epochs=1, random_state=0, verbose=False), {}),
    "each-copy": (table(hidden=(4,), epochs=1, random_state=0, verbose=False, method="bayes"), {}),
    "auto": (table(**QUICK | {"epochs": "early", "max_epochs": 2}, method="auto"), {}),
    "own": (table(network=own_network, epochs=1, random_state=0, verbose=False), {"network": own_network}),
    "own-heads": (
        table(network=own_network, epochs=1, random_state=0, verbose=False, method="pav", taus=[0.1, 0.2]),
        {"network": own_network},
    ),
    "crossed": (table(**PLAIN, calibration="cv+", folds=3), {}),
    "crossed-uneven": (table(rare, **PLAIN, calibration="cv+", folds=3), {}),
    "own-crossed": (
        table(network=own_network, epochs=1, random_state=0, verbose=False, calibration="cv-minmax", folds=2),
        {"network": own_network},
    ),
    "several": (table(both, **PLAIN, targets="joint", target_transform=[None, "asinh"]), {}),
    "several-each": (table(both, **PLAIN, targets="each"), {}),
    "entities": (table(frame, **PLAIN, split_by="shop"), {}),
    "time": (table(frame, **PLAIN, split_by_time="day"), {}),
    "repeated": (twice, {}),
    "uncalibrated": (table(**PLAIN, calibration_size=None), {}),
    "risk": (table(**PLAIN, risk=gb.Risk(0.2, 3)), {}),
    "own-risk": (table(**PLAIN, risk=gb.Risk(0.2, 1, loss=loss)), {"risk": gb.Risk(0.2, 1, loss=loss)}),
    "groups": (table(frame, **PLAIN, groups="shop"), {}),
    "own-groups": (table(frame, **PLAIN, groups=is_x), {"groups": is_x}),
    "weights": (calibrated_later(weights=first_positive), {"weights": first_positive}),
    "target": (for_target, {}),
    "seeded": (table(**PLAIN | {"random_state": np.random.RandomState(0)}), {}),
    "own-transform": (
        table(**PLAIN, target_transform=(cubed, np.cbrt)),
        {"target_transform": (cubed, np.cbrt)},
    ),
    "own-cut": (table(**PLAIN, guarantee=gb.extend.PacCut()), {"guarantee": gb.extend.PacCut()}),
    "own-method": (table(**PLAIN, method=Mine()), {"method": Mine()}),
    "method": (table(**PLAIN, method=method_named("cqr")), {}),
}
NETWORKS = {
    "network": (network(triple, confidence_level=[0.9, 0.5]), {"network": triple}),
    "networks": (
        lambda: gb.calibrate([triple(), triple()], tensors_(), "pav", taus=(0.3, 0.1)),
        {"network": lambda: [triple(), triple()]},
    ),
    "network-quantiles": (network(quantiles, method="pav", outputs=LEVELS), {"network": quantiles}),
    "network-groups": (network(triple, groups=halves), {"network": triple, "groups": halves}),
    "network-members": (network(triple, groups=two_halves), {"network": triple, "groups": two_halves}),
    "network-weights": (network(triple, weights=unit_weights), {"network": triple, "weights": unit_weights}),
    "network-outputs": (network(wide, outputs=every_second), {"network": wide, "outputs": every_second}),
    "network-several": (
        lambda: gb.calibrate(build_pair(), tensors_(both), targets="each"),
        {"network": build_pair},
    ),
}
OTHERS = {
    "rule": (lambda: gb.BandCalibrator(confidence_level=[0.9, 0.5]).fit(*bounds(60)), {}),
    "model": (lambda: gb.calibrate(line, numbers(60)), {"model": line}),
    "distribution": (lambda: gb.DistributionCalibrator().fit(bounds(60)[1], bounds(60)[3]), {}),
    "own-online": (lambda: gb.OnlineCalibrator("tracking", method=Mine()), {"method": Mine()}),
    "online": (lambda: gb.OnlineCalibrator("tracking"), {}),
}


def tensors_(rows=numbers):
    return tuple(torch.from_numpy(own).float() for own in rows(60))


EVERY = TABLES | NETWORKS | OTHERS


def told(own):
    """Return all that an object holds as lists and dictionaries, with a network as its weights."""
    if hasattr(own, "snapshot"):
        return told(own.snapshot())
    if isinstance(own, np.ndarray | torch.Tensor):
        return str(own.dtype), own.tolist()
    if isinstance(own, dict):
        return {name: told(value) for name, value in own.items()}
    if isinstance(own, tuple | list):
        return [told(value) for value in own]
    if is_dataclass(own):
        return type(own).__name__, {field.name: told(getattr(own, field.name)) for field in fields(own)}
    return own if isinstance(own, str | int | float | None) else repr(type(own))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


MADE = {}


def made(name, folder):
    """Return a model, the path where it is saved, and what is brought to load it."""
    if name not in MADE:
        make, _ = EVERY[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            MADE[name] = make()
            MADE[name].save(folder / name)
    return MADE[name], folder / name, brought(name)


def brought(name):
    """Return what is passed to load; a network is built anew, and has other weights."""
    own = EVERY[name][1]
    if name not in NETWORKS:
        return own
    built = own["network"]()
    with torch.no_grad():
        for weights in nn.ModuleList(built if isinstance(built, list) else [built]).parameters():
            weights += 1
    return own | {"network": built}


def contents(path):
    entries, tensors = opened(path)
    return entries, {name: (t.dtype, t.tolist()) for name, t in tensors.items()}


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


def half(y):
    return y / 2


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
    assert _plain_arguments({name: value}) == {name: written}


def change(*path, to):
    """Return what puts a value at a place of the entries, or a tensor in the place of another."""

    def apply(entries, tensors):
        *above, last = path
        inside = entries
        for step in above:
            inside = inside[step]
        inside[last] = to(inside[last]) if callable(to) else to

    return apply


def tensor(prefix, to):
    def apply(entries, tensors):
        name = next((own for own in tensors if own.startswith(prefix)), prefix)
        tensors[name] = to(tensors.get(name))

    return apply


def with_one(t):
    own = t.clone()
    own.view(-1)[0] = float("nan")
    return own


def larger(entries, tensors):
    tensors |= {name: 1e30 * t for name, t in tensors.items() if name.startswith("weights.")}


FORGED = [
    ("plain", change("several", to={"names": ["a", "b"], "others": [], "scales": []}), "targets are not what its arg"),
    ("several", change("several", to=None), "its targets are not what its arguments ask for"),
    ("plain", change("target", "y_min", to=-9.0), "its target is not what its arguments ask for"),
    ("crossed", change("crossed", 1, "target", "y_min", to=-9.0), "its target is not what its arguments ask for"),
    ("plain", tensor("more", lambda _: torch.zeros(1)), "it holds something unknown, 'more'"),
    ("plain", tensor("training_prints", lambda t: t.double()), "training_prints is no list of whole numbers"),
    ("plain", change("crossed", to=lambda _: "of another"), "it holds folds that its arguments do not ask for"),
    ("crossed", change("crossed", to=None), "it holds other folds than its arguments ask for"),
    ("heads", change("score", to="cqr"), "its score, 'cqr', is not what its arguments ask for"),
    ("auto", change("score", to=None), "its score, None, is not what its arguments ask for"),
    ("auto", change("score", to="pav"), "its score, 'pav', is not what its arguments ask for"),
    ("plain", change("certificate", to=None), "it holds a calibration without its certificate"),
    ("plain", change("epochs", to=lambda own: own * 2), "it holds other networks than its arguments ask for"),
    ("heads", change("epochs", to=[1]), "it holds other networks than its arguments ask for"),
    ("copies", change("epochs", to=[1]), "it holds other networks than its arguments ask for"),
    ("plain", change("hidden", to=[10**6]), "its networks are larger than its weights"),
    ("plain", change("in_features", to=2), "its encoder does not make what its networks take"),
    ("plain", tensor("weights.", lambda t: t[:, :1]), "its networks need "),
    ("plain", tensor("weights.", with_one), "holds infinity or NaN"),
    ("own", tensor("weights.", with_one), "holds infinity or NaN"),
    ("plain", larger, "could predict infinity"),
    ("network-several", change("several", to=None), "its targets are not what its arguments ask for"),
    ("network", change("several", to=["a", "b"]), "its targets are not what its arguments ask for"),
    ("network", change("groups", to=[[0, 1]]), "its groups are not what its arguments ask for"),
    ("network-groups", change("groups", to=None), "its groups are not what its arguments ask for"),
    ("network", tensor("calibration_prints", lambda t: t.double()), "calibration_prints is no list of whole numbers"),
    ("network", change("certificate", "promise", "n_calibration", to=10**6), "does not fit its calibration"),
    ("network", tensor("networks.", with_one), "holds infinity or NaN"),
    ("network", change("meaning", to="something else"), "it was calibrated as something else, and with what"),
]


@pytest.mark.parametrize(("name", "forge", "words"), FORGED)
def test_entries_that_contradict_each_other_are_refused(name, forge, words, folder, tmp_path):
    _, path, own = made(name, folder)
    entries, tensors = opened(path)
    other, _ = opened(made("crossed", folder)[1])
    forge(entries, tensors)
    if entries.get("crossed") == "of another":
        entries["crossed"] = other["crossed"]
    with pytest.raises(gb.ModelFileError) as found:
        gb.load(forged(tmp_path / "m", entries, {key: t.contiguous() for key, t in tensors.items()}), **own)
    assert words in str(found.value)


IDLE = [
    ("plain", {"groups": is_x}, "it holds its own groups: remove groups=..."),
    ("plain", {"method": Mine()}, "it holds its own method: remove method=..."),
    ("risk", {"risk": gb.Risk(0.2, 3)}, "it holds its own risk: remove risk=..."),
    ("plain", {"weights": first_positive}, "it needs no function for weights: remove weights=..."),
    ("plain", {"model": line}, "it holds its own model: remove model=... and residuals=..."),
    ("plain", {"residuals": numbers()}, "it holds its own model: remove model=... and residuals=..."),
    ("rule", {"model": line}, "it holds no model: remove model=... and residuals=..."),
    ("rule", {"groups": is_x}, "it holds its own groups: remove groups=..."),
    ("model", {"model": line, "outputs": half}, "it holds its own outputs: remove outputs=..."),
    (
        "distribution",
        {"model": line},
        "it holds a DistributionCalibrator, which needs nothing of your own: pass nothing.",
    ),
    (
        "distribution",
        {"groups": is_x},
        "it holds a DistributionCalibrator, which needs nothing of your own: pass nothing.",
    ),
    ("own-groups", {}, "it was made with a groups of your own: pass it as load(..., groups=...)."),
    ("own-risk", {}, "it was made with a risk of your own: pass it as load(..., risk=...)."),
    ("own-online", {}, None),
    ("network", {"network": [triple(), triple()]}, None),
    ("network", {"network": "net"}, None),
    ("network", {}, None),
    ("networks", {"network": triple()}, None),
    ("networks", {"network": [triple(), "net"]}, None),
]


@pytest.mark.parametrize(("name", "given", "words"), IDLE)
def test_what_is_brought_must_be_what_the_file_needs(name, given, words, folder):
    _, path, _ = made(name, folder)
    count = 2 if name == "networks" else 1
    otherwise = f"it holds {count} calibrated network(s): build the network anew and pass network=..."
    if name == "own-online":
        otherwise = "it was made with a method of your own: pass it: gb.OnlineCalibrator.load(path, method=...)."
    with pytest.raises(gb.ModelFileError) as found:
        gb.load(path, **given)
    assert str(found.value) == f"{path}: {words or otherwise}"


def test_what_to_check_depends_on_what_was_brought(folder, tmp_path):
    again = "Get the file again from whoever made it, or fit the model again."
    for name, own, hint in (
        ("plain", {}, again),
        ("own", {"network": own_network}, f"Check what you pass to load. {again}"),
    ):
        entries, tensors = opened(made(name, folder)[1])
        path = forged(tmp_path / name, entries | {"certificate": None}, tensors)
        with pytest.raises(gb.ModelFileError) as found:
            gb.load(path, **own)
        why = "it holds a calibration without its certificate"
        assert str(found.value) == f"{path} does not hold what this version of guardband can use: {why}. {hint}"


def test_a_device_that_is_not_there_is_no_fault_of_the_file(folder):
    with pytest.raises(ValueError, match=r"^device must be") as found:
        gb.load(made("plain", folder)[1], device="nothing")
    assert type(found.value) is ValueError


def test_a_network_of_an_earlier_version_has_no_fingerprints(folder, tmp_path):
    _, path, own = made("network", folder)
    entries, tensors = opened(path)
    del tensors["calibration_prints"]
    assert gb.load(forged(tmp_path / "m", entries, tensors), **own).calibration_prints.shape == (0,)
