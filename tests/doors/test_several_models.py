"""Models of other libraries for several targets."""

import random
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom
from sklearn.linear_model import LinearRegression, QuantileRegressor

import guardband as gb
from forged_models import entry_mutants, forged, opened, tensor_mutants
from guardband.bands.promise import Promise
from laws import SIGNIFICANCE


def rows(n, seed=0):
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.standard_normal((n, 3)), columns=list("abc"))
    noise = random.standard_normal((n, 2)) @ np.array([[1, 80], [0, 60]])
    return X, pd.DataFrame({"price": X["a"] + noise[:, 0], "days": 100 * X["b"] + noise[:, 1]})


TRAINING, CALIBRATION, TEST = rows(500), rows(400, 1), rows(1000, 2)


@pytest.fixture(scope="module")
def linear():
    return LinearRegression().fit(*TRAINING)


def check(guarded):
    boxes, certificate = guarded.predict_interval(TEST[0]), guarded.certificate
    law = betabinom(1000, certificate.rank, 401 - certificate.rank)
    assert law.ppf(SIGNIFICANCE) <= boxes.contains(TEST[1]).sum() <= law.isf(SIGNIFICANCE)
    return boxes


def test_one_model_that_predicts_all_targets(linear, tmp_path):
    guarded = gb.calibrate(linear, CALIBRATION, targets="joint", training=TRAINING)
    boxes = check(guarded)
    assert boxes.targets == ("price", "days")
    np.testing.assert_allclose(guarded.predict(TEST[0]), linear.predict(TEST[0]))
    shares = [boxes[name].contains(TEST[1][name]).mean() for name in boxes.targets]
    assert max(shares) - min(shares) < 0.03  # scales from the training rows let both targets share the misses
    found = guarded.audit(*TEST, significance=SIGNIFICANCE)
    assert found.verdict != "broken"
    assert '<h2 id="target-1">days</h2>' in guarded.report(tmp_path / "p.html", *TEST).read_text()
    assert guarded.audit(*CALIBRATION).verdict == "cannot judge"


@pytest.fixture(scope="module")
def models():
    X, Y = TRAINING
    return {
        name: tuple(QuantileRegressor(quantile=q, alpha=0).fit(X, Y[name]) for q in (0.05, 0.5, 0.95))
        for name in ("days", "price")
    }


def test_a_model_for_each_target(models):
    boxes = check(gb.calibrate(models, CALIBRATION, targets="joint"))
    assert boxes.targets == ("days", "price")
    assert boxes.certificate.method == "conf-nn"
    each = gb.calibrate(models, CALIBRATION, targets="each").predict_interval(TEST[0])
    assert each["price"].width.mean() < boxes["price"].width.mean()


def test_a_function_and_scales(linear):
    check(gb.calibrate(lambda X: linear.predict(X), CALIBRATION, targets="joint", scales=[1, 100]))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"targets": "joint"}, r"Pass training=\(X, Y\)"),
        ({"targets": "each", "scales": [1, 1]}, 'scales are for targets="joint"'),
        ({"scales": [1, 1]}, 'scales are for targets="joint"'),
        ({"targets": "joint", "groups": "a"}, "Several targets cannot use groups"),
        ({"targets": "joint", "weights": np.ones(400)}, "Several targets cannot use weights"),
        ({"targets": "joint", "residuals": TRAINING}, "Several targets cannot use residuals"),
        ({"targets": "joint", "side": "upper"}, "no promise for one side"),
        ({"targets": "both"}, 'targets must be "joint", "each" or None'),
        ({"targets": "joint", "training": CALIBRATION}, "calibration rows"),
        ({}, "pass targets="),
    ],
)
def test_what_cannot_be_is_refused(linear, asked, says):
    with pytest.raises(ValueError, match=says):
        gb.calibrate(linear, CALIBRATION, **asked)


def test_other_models_and_uses_are_refused(linear):
    one = LinearRegression().fit(TRAINING[0], TRAINING[1]["price"])
    with pytest.raises(ValueError, match="one column for each of 2 targets"):
        gb.calibrate(one, CALIBRATION, targets="each")
    guarded = gb.calibrate(linear, CALIBRATION, targets="each")
    with pytest.raises(ValueError, match="one target"):
        guarded.explain(TEST[0])
    with pytest.raises(ValueError, match="one target"):
        guarded.for_target(TEST[0])


def bands_of_both(models):
    """Return a function that predicts the bounds and the points of both targets side by side."""
    return lambda X: np.column_stack([own.predict(X) for name in ("price", "days") for own in models[name]])


def test_a_function_that_predicts_the_bounds_of_all_targets(models):
    joint = {"targets": "joint", "training": TRAINING}
    boxes = check(gb.calibrate(bands_of_both(models), CALIBRATION, outputs="bands", **joint))
    apart = gb.calibrate(models, CALIBRATION, **joint).predict_interval(TEST[0])
    np.testing.assert_array_equal(boxes["days"].upper, apart["days"].upper)


def test_rows_that_change_in_place_are_predicted_anew(linear):
    X = TEST[0].to_numpy().copy()
    on_arrays = LinearRegression().fit(TRAINING[0].to_numpy(), TRAINING[1])
    guarded = gb.calibrate(on_arrays, (CALIBRATION[0].to_numpy(), CALIBRATION[1]), targets="each")
    before = guarded.predict(X)
    X += 1
    assert not np.isclose(guarded.predict(X), before).all(axis=1).any()


KINDS = {
    "joint": {"targets": "joint", "training": TRAINING},
    "scales": {"targets": "joint", "scales": [1.0, 100.0], "guarantee": "pac", "confidence_level": [0.9, 0.5]},
    "each": {"targets": "each"},
    "entities": {"targets": "joint", "scales": [1.0, 100.0], "entities": np.arange(400) // 2},
}


def with_gaps(y):
    return y.mask(np.arange(800).reshape(-1, 2) % 9 == 0)


def saved(model, path, kind):
    guarded = gb.calibrate(model, (CALIBRATION[0], with_gaps(CALIBRATION[1])), **KINDS[kind])
    guarded.save(path)
    return guarded


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["linear", "models"])
def test_a_calibration_comes_back_as_it_was(name, kind, request, tmp_path):
    model = request.getfixturevalue(name)
    guarded = saved(model, tmp_path / "m", kind)
    brought = dict(reversed(model.items())) if name == "models" else model
    again = gb.load(tmp_path / "m", model=brought)
    assert again.certificate == guarded.certificate
    for levels in (None, 0.8):
        own, found = (each.predict_interval(TEST[0], confidence_level=levels) for each in (guarded, again))
        assert found.targets == own.targets
        for part in ("lower", "point", "upper"):
            np.testing.assert_array_equal(getattr(found, part), getattr(own, part))
    if kind != "entities":
        assert again.audit(*TEST).to_dict() == guarded.audit(*TEST).to_dict()
    again.save(tmp_path / "twice")
    (entries, tensors), (first, held) = (opened(tmp_path / file) for file in ("twice", "m"))
    assert entries == first
    for key in tensors.keys() | held.keys():
        np.testing.assert_array_equal(tensors[key].numpy(), held[key].numpy())


def test_another_model_than_the_calibrated_one_is_refused(linear, models, tmp_path):
    saved(linear, tmp_path / "m", "each")
    with pytest.raises(gb.ModelFileError, match="not the model that was calibrated"):
        gb.load(tmp_path / "m", model=LinearRegression().fit(*CALIBRATION))
    with pytest.raises(gb.ModelFileError, match="pass the model"):
        gb.load(tmp_path / "m")
    saved(models, tmp_path / "each", "each")
    with pytest.raises(gb.ModelFileError, match="one model for each of"):
        gb.load(tmp_path / "each", model={"price": models["price"]})
    swapped = {"price": models["days"], "days": models["price"]}
    with pytest.raises(gb.ModelFileError, match="not the model that was calibrated"):
        gb.load(tmp_path / "each", model=swapped)


@pytest.mark.parametrize("kind", ["joint", "each"])
def test_a_forged_calibration_is_refused_or_promises_what_it_says(linear, kind, tmp_path):
    saved(linear, tmp_path / "m", kind)
    entries, tensors = opened(tmp_path / "m")
    chance = random.Random(0)
    mutants = [(what, change(), tensors) for what, change in chance.sample(list(entry_mutants(entries)), 100)]
    mutants += [(what, entries, own) for what, own in chance.sample(list(tensor_mutants(tensors)), 25)]
    outcomes = [outcome(linear, tmp_path / "m", *own) for own in mutants]
    assert outcomes.count("refused") > len(outcomes) / 2


def outcome(model, path, what, entries, tensors):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            guarded = gb.load(forged(path, entries, tensors), model=model)
    except gb.ModelFileError:
        return "refused"
    boxes = guarded.predict_interval(TEST[0])
    assert not np.isnan(boxes.lower + boxes.upper).any(), what
    assert guarded.certificate.promise == Promise.from_dict(entries["certificate"]["promise"]), what
    return "loaded"


@pytest.mark.parametrize(
    "change",
    [
        {"several": None},
        {"several": ["price", "days", "rooms"]},
        {"several": ["price", "price"]},
        {"arguments": {"targets": None}},
        {"arguments": {"targets": "each"}},
        {"arguments": {"scales": None}},
        {"arguments": {"scales": [1.0]}},
        {"arguments": {"scales": [1.0, -1.0]}},
        {"arguments": {"side": "upper"}},
        {"arguments": {"calibration": "cv+"}},
    ],
)
def test_targets_that_contradict_the_calibration_are_refused(linear, change, tmp_path):
    saved(linear, tmp_path / "m", "joint")
    entries, tensors = opened(tmp_path / "m")
    for name, value in change.items():
        entries[name] = entries[name] | value if isinstance(value, dict) else value
    with pytest.raises(gb.ModelFileError):
        gb.load(forged(tmp_path / "m", entries, tensors), model=linear)
