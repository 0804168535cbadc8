"""Weights through every way in."""

import pickle
from copy import copy

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

import guardband as gb
from guardband.bands.predicted import Context
from guardband.calibration.rejection_cut import kept_rows
from guardband.calibration.weighted_cut import WeightedCut
from guardband.doors.band_columns import BandColumns


def rows(n, seed, shifted=False):
    """Return x and y, whose spread grows with x; shifted rows have the density 3 x^2, and their weights are that."""
    rng = np.random.default_rng(seed)
    x = rng.random(n) ** (1 / 3) if shifted else rng.random(n)
    return x, rng.standard_normal(n) * (0.2 + x), 3 * x**2


def bands(x):
    return -np.ones_like(x), np.zeros_like(x), np.ones_like(x)


def test_a_band_calibrator_takes_weights():
    x, y, w = rows(400, 0)
    rule = gb.BandCalibrator().fit(*bands(x), y, weights=w)
    new, _, w_new = rows(50, 1, shifted=True)
    out = rule.transform(*bands(new), weights=w_new)
    found = WeightedCut().calibrate(np.abs(y), Context(weight=w), rule._options.rule.levels, False)
    want = WeightedCut().thresholds(found.arrays, Context(weight=w_new))[:, 0]
    assert np.allclose(out.upper, want)
    assert rule.certificate.kind == "marginal"
    assert "counted each calibration row by its weight" in str(rule.certificate)
    other = rule.transform(*bands(new), weights=w_new, confidence_level=0.8)
    assert (other.upper < out.upper).all()


def test_with_a_pac_guarantee_new_rows_need_no_weights():
    x, y, w = rows(400, 0)
    rule = gb.BandCalibrator(guarantee="pac").fit(*bands(x), y, weights=w, max_weight=3.0)
    kept = kept_rows(np.abs(y), w, 3.0)
    plain = gb.BandCalibrator(guarantee="pac").fit(*bands(x[kept]), y[kept])
    assert rule.certificate.n_calibration == len(kept)
    assert rule.transform(*bands(x)).upper.tolist() == plain.transform(*bands(x)).upper.tolist()
    with pytest.raises(ValueError, match="New rows need no weights"):
        rule.transform(*bands(x), weights=w)


def test_an_audit_of_weighted_intervals_shows_the_count_and_cannot_judge():
    x, y, w = rows(400, 0)
    rule = gb.BandCalibrator().fit(*bands(x), y, weights=w)
    new, y_new, w_new = rows(300, 1, shifted=True)
    found = rule.audit(*bands(new), y_new, weights=w_new)
    assert found.verdict == "cannot judge"
    assert found.reason == "no law"
    assert found.sentence.startswith("Cannot judge: ")
    assert "nobody knows how far one calibration set may fall below the average" in found.sentence
    assert found.levels[0].covered == int((np.abs(y_new) <= rule.transform(*bands(new), weights=w_new).upper).sum())
    pac = gb.BandCalibrator(guarantee="pac").fit(*bands(x), y, weights=w, max_weight=3.0)
    assert pac.audit(*bands(new), y_new).verdict == "consistent"
    assert pac.audit(*bands(new), 3 * y_new).verdict == "broken"


@pytest.mark.parametrize(
    ("asked", "given", "words"),
    [
        ({}, {"weights": [1.0]}, "weights must have one number for each of 100 rows"),
        ({}, {"max_weight": 2.0}, "max_weight is a bound on weights, and there are none"),
        ({}, {"weights": np.ones(100), "max_weight": 2.0}, 'max_weight is for guarantee="pac"'),
        ({"guarantee": "pac"}, {"weights": np.ones(100)}, "need max_weight"),
        ({"guarantee": "pac"}, {"weights": np.full(100, 3.0), "max_weight": 2.0}, "The largest weight is 3"),
        ({}, {"weights": np.ones(100), "groups": np.arange(100) % 2}, "weights and groups together need"),
        ({}, {"weights": np.ones(100), "entities": np.arange(100) % 9}, "Weights are for rows that stand alone"),
        ({}, {"weights": lambda x: x}, "A function of rows needs rows"),
        ({"side": "upper"}, {"weights": np.ones(100)}, "weights cannot go with side= or tails= yet"),
        ({}, {"weights": np.zeros(100)}, "All weights are 0"),
        ({}, {"weights": np.full(100, -1.0)}, "100 of 100 are negative"),
    ],
)
def test_bad_weights_are_one_sentence(asked, given, words):
    x, y, _ = rows(100, 0)
    with pytest.raises(ValueError, match=words):
        gb.BandCalibrator(**asked).fit(*bands(x), y, **given)


def test_new_rows_without_weights_and_weights_without_use_are_refused():
    x, y, w = rows(100, 0)
    with pytest.raises(ValueError, match="depend on the weight of each row, and these rows have none"):
        gb.BandCalibrator().fit(*bands(x), y, weights=w).transform(*bands(x))
    with pytest.raises(ValueError, match="was calibrated without weights"):
        gb.BandCalibrator().fit(*bands(x), y).transform(*bands(x), weights=w)


def test_a_column_of_a_table_holds_weights():
    x, y, w = rows(100, 0)
    lower, point, upper = bands(x)
    table = pd.DataFrame({"lower": lower, "point": point, "upper": upper, "w": w})
    columns = BandColumns.default("interval", 1)
    rule = gb.BandCalibrator().fit_table(table, y, columns, weights="w")
    same = gb.BandCalibrator().fit(*bands(x), y, weights=w)
    found = rule.intervals_of(rule.read_rows(table))
    assert found.upper.tolist() == same.transform(*bands(x), weights=w).upper.tolist()
    with pytest.raises(ValueError, match="X has no column 'w', as weights asks for"):
        rule.read_rows(table.drop(columns="w"))


# ---------------------------------------------------------------------------------------- tables


def table(n, seed, shifted=False):
    """Return three columns of numbers and y, whose spread grows with the first."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    X[:, 0] = X[:, 0] ** (1 / 4) if shifted else X[:, 0]
    return X, X[:, 1] + (0.05 + X[:, 0] ** 3) * rng.standard_normal(n)


def weights_of_rows(X):
    return 4 * np.asarray(X)[:, 0] ** 3


@pytest.fixture(scope="module")
def fitted():
    """Return a model of one width for all rows, which cannot follow a change of the population."""
    model = gb.IntervalRegressor(
        "conf-fw", network="plain", hidden=(8,), epochs=8, random_state=0, split_by=[], verbose=False
    )
    return model.fit(*table(4000, 0))


@pytest.fixture(scope="module")
def trained():
    model = gb.IntervalRegressor(
        "conf-fw",
        network="plain",
        hidden=(8,),
        epochs=2,
        random_state=0,
        split_by=[],
        verbose=False,
        calibration_size=None,
    )
    return model.fit(*table(300, 0))


def coverage(bands, y):
    return ((bands.lower <= y) & (y <= bands.upper)).mean()


def least_coverage(promise, weights, X, m):
    """Return what coverage is at least on m new rows: the level less half the error of the weights, and chance.

    The chance that it is less is about 1e-6, with as many rows as the weights leave.
    """
    exact = weights_of_rows(X)
    error = np.abs(weights / weights.mean() - exact / exact.mean()).mean() / 2
    assert error < 0.12
    return 0.9 - error - norm.isf(1e-6) * np.sqrt(0.09 / promise.n_effective + 0.09 / m)


def test_a_table_takes_weights_as_numbers_or_as_a_function(trained, tmp_path):
    (X, y), (new, y_new) = table(400, 1), table(300, 2, shifted=True)
    model = copy(trained).calibrate(X, y, weights=weights_of_rows)
    by_function = model.predict_interval(new)
    found = model.audit(new, y_new)
    assert found.reason == "no law"
    model.save(tmp_path / "function.guardband")
    with pytest.raises(gb.ModelFileError, match="weights of your own: pass it as load"):
        gb.load(tmp_path / "function.guardband")
    again = gb.load(tmp_path / "function.guardband", weights=weights_of_rows)
    assert (again.predict_interval(new).upper == by_function.upper).all()
    assert again.certificate_ == model.certificate_
    model.calibrate(X, y, weights=weights_of_rows(X))
    own = weights_of_rows(new)
    assert (model.predict_interval(new, weights=own).upper == by_function.upper).all()
    assert model.audit(new, y_new, weights=own).levels == found.levels
    assert (model.predict(new) == by_function.point).all()
    with pytest.raises(ValueError, match="these rows have none"):
        model.predict_interval(new)
    with pytest.raises(ValueError, match="these rows have none"):
        model.audit(new, y_new)
    model.save(tmp_path / "numbers.guardband")
    again = gb.load(tmp_path / "numbers.guardband")
    assert (again.predict_interval(new, weights=own).upper == by_function.upper).all()
    with pytest.raises(gb.ModelFileError, match="needs no function for weights"):
        gb.load(tmp_path / "numbers.guardband", weights=weights_of_rows)
    with pytest.raises(ValueError, match="cannot find the weights of its rows"):
        model.as_network()
    plain = model.calibrate(X, y)
    assert plain.certificate_.promise.kind == "marginal"
    with pytest.raises(ValueError, match="was calibrated without weights"):
        plain.predict_interval(new, weights=own)


def test_rows_without_a_target_leave_with_their_weights(trained):
    X, y = table(200, 1)
    y[::7] = np.nan
    w = weights_of_rows(X)
    with pytest.warns(gb.MissingTargetWarning):
        model = copy(trained).calibrate(X, y, weights=w)
    known = ~np.isnan(y)
    same = copy(trained).calibrate(X[known], y[known], weights=w[known])
    assert model.certificate_.promise == same.certificate_.promise


def test_pac_with_weights_and_groups_through_a_file(tmp_path):
    X, y = table(900, 0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.where(X[:, 2] > 0.5, "x", "y"))
    model = gb.IntervalRegressor(
        "conf-fw",
        guarantee="pac",
        confidence_level=0.8,
        groups="kind",
        network="plain",
        hidden=(4,),
        epochs=1,
        random_state=0,
        split_by=[],
        verbose=False,
        calibration_size=None,
    ).fit(frame[:200], y[:200])
    model.calibrate(frame[200:], y[200:], weights=weights_of_rows(X[200:]), max_weight=4.0)
    certificate = model.certificate_
    assert certificate.kind == "pac"
    assert f"guardband kept {certificate.n_calibration} of 700 calibration rows" in str(certificate)
    assert 100 < certificate.n_calibration < 250
    model.save(tmp_path / "pac.guardband")
    again = gb.load(tmp_path / "pac.guardband")
    assert (again.predict_interval(frame[:20]).upper == model.predict_interval(frame[:20]).upper).all()
    assert again.certificate_ == certificate


# ------------------------------------------------------------------------------------ for_target


def test_a_model_for_another_population_covers_it(fitted, tmp_path):
    X, y = table(6000, 3, shifted=True)
    calibrated = copy(fitted).calibrate(*table(3000, 9))
    model = calibrated.for_target(X[:2000])
    promise, weighting = model.certificate_.promise, model.fitted_.weighting
    before, after = (coverage(own.predict_interval(X[2000:]), y[2000:]) for own in (calibrated, model))
    some = table(2000, 10)[0]
    limit = least_coverage(promise, weighting.estimate.of(model._read(some)), some, 4000)
    assert before < limit <= after
    assert model.certificate_.kind == "estimated"
    assert promise.n_training == 3000
    assert promise.n_target == 2000
    assert promise.unlike == 0
    words = str(model.certificate_)
    assert "Estimated weights lower it by at most half of their mean error, which nobody knows." in words
    assert f"It limited weights to {promise.largest_weight:.4g}, which changed {promise.clipped:,} calib" in words
    assert model.audit(X[2000:], y[2000:]).sentence.endswith("For an exact promise, calibrate on rows like these.")
    model.save(tmp_path / "target.guardband")
    again = gb.load(tmp_path / "target.guardband")
    assert again.certificate_ == model.certificate_
    assert (again.predict_interval(X).upper == model.predict_interval(X).upper).all()
    with pytest.raises(ValueError, match=r"Call calibrate\(X, y\) with the calibration rows again"):
        again.for_target(X)
    with pytest.raises(ValueError, match="for_target estimated the weights of this model"):
        model.predict_interval(X, weights=y)


def test_no_file_holds_rows(fitted, tmp_path):
    fitted.save(tmp_path / "plain.guardband")
    loaded = gb.load(tmp_path / "plain.guardband")
    assert loaded.fitted_.known is None
    assert pickle.loads(pickle.dumps(fitted)).fitted_.known is None
    assert fitted.fitted_.known is not None
    X, y = table(400, 4)
    target, _ = table(400, 5, shifted=True)
    loaded.calibrate(X, y)
    assert loaded.for_target(target, source=table(1200, 0)[0]).certificate_.promise.n_training == 1200


def test_rows_unlike_anything_calibrated_are_counted(fitted):
    X, _ = table(500, 6)
    X[:31, 1] += 9
    with pytest.warns(gb.UnlikeRowsWarning, match="These 31 rows are unlike anything that was calibrated"):
        model = fitted.for_target(X)
    assert "31 of the rows to predict are unlike anything that was calibrated." in str(model.certificate_)
    with pytest.raises(ValueError, match="500 of 500 rows to predict are unlike anything that was calibrated"):
        fitted.for_target(X + 9)


def test_what_estimated_weights_cannot_promise_is_refused(fitted):
    X, y = table(300, 7)
    with pytest.raises(ValueError, match="at least 20 rows to predict to estimate weights from, found 3"):
        fitted.for_target(X[:3])
    options = {"network": "plain", "hidden": (4,), "epochs": 1, "random_state": 0, "split_by": [], "verbose": False}
    pac = gb.IntervalRegressor("conf-fw", guarantee="pac", **options).fit(X, y)
    with pytest.raises(ValueError, match='for_target needs guarantee="marginal"'):
        pac.for_target(X)
    high = gb.IntervalRegressor("conf-fw", confidence_level=0.98, **options).fit(X, y)
    with pytest.raises(gb.InsufficientCalibrationError, match="98% intervals need at least 49"):
        high.for_target(table(300, 8, shifted=True)[0])


# ------------------------------------------------------------------------------------ any model


class Flat:
    """A model that predicts the second column."""

    def predict(self, X):
        return np.asarray(X)[:, 1]


def test_any_model_takes_weights_and_serves_another_population(tmp_path):
    (X1, y1), (X2, y2), (new, y_new) = table(900, 0), table(3000, 1), table(3000, 2, shifted=True)
    exact = gb.calibrate(Flat(), (X2, y2), weights=weights_of_rows)
    numbers = gb.calibrate(Flat(), (X2, y2), weights=weights_of_rows(X2))
    want = exact.predict_interval(new).upper
    assert (numbers.predict_interval(new, weights=weights_of_rows(new)).upper == want).all()
    assert (numbers.predict(new) == new[:, 1]).all()
    exact.save(tmp_path / "weights.guardband")
    again = gb.load(tmp_path / "weights.guardband", model=Flat(), weights=weights_of_rows)
    assert (again.predict_interval(new).upper == want).all()
    with pytest.raises(ValueError, match="for_target needs training rows"):
        numbers.for_target(new)
    plain = gb.calibrate(Flat(), (X2, y2), training=(X1, y1))
    model = plain.for_target(new[:600])
    limit = least_coverage(model.certificate.promise, model.weighting.estimate.of(model._read(X1)), X1, 2400)
    before, after = (coverage(own.predict_interval(new[600:]), y_new[600:]) for own in (plain, model))
    assert before < limit <= after
    assert model.explain(new[:9], evaluations=2000).in_words()
    model.save(tmp_path / "target.guardband")
    again = gb.load(tmp_path / "target.guardband", model=Flat())
    assert (again.predict_interval(new).upper == model.predict_interval(new).upper).all()
    assert again.certificate == model.certificate


def test_weights_of_rows_that_belong_together_are_refused():
    X, y = table(100, 1)
    with pytest.raises(ValueError, match="Weights are for rows that stand alone"):
        gb.calibrate(Flat(), (X, y), weights=weights_of_rows, entities=np.arange(100) // 2)


# -------------------------------------------------------------------------------------- networks


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        middle = x[:, 1]
        return torch.stack([middle - self.scale, middle, middle + self.scale], 1)


def tensor_weights(x):
    return 4 * x[:, 0] ** 3


@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
def test_a_network_takes_a_function_of_its_inputs(guarantee, tmp_path):
    (X, y), (new, y_new) = table(600, 1), table(200, 2, shifted=True)
    x, x_new = torch.tensor(X), torch.tensor(new)
    bound = 4.0 if guarantee == "pac" else None
    options = {"guarantee": guarantee, "weights": tensor_weights, "max_weight": bound}
    guarded = gb.calibrate(Net().double(), (x, torch.tensor(y)), **options)
    rule = gb.BandCalibrator(guarantee=guarantee)
    rule.fit(X[:, 1] - 1, X[:, 1], X[:, 1] + 1, y, weights=tensor_weights(x).numpy(), max_weight=bound)
    known = {} if guarantee == "pac" else {"weights": tensor_weights(x_new).numpy()}
    want = rule.transform(new[:, 1] - 1, new[:, 1], new[:, 1] + 1, **known)
    assert np.allclose(guarded(x_new)[:, 2].detach().numpy(), want.upper)
    assert guarded.certificate == rule.certificate
    assert guarded.audit(x_new, y_new).verdict == ("consistent" if guarantee == "pac" else "cannot judge")
    guarded.save(tmp_path / "net.guardband")
    again = gb.load(tmp_path / "net.guardband", network=Net().double(), weights=tensor_weights)
    assert torch.equal(again(x_new), guarded(x_new))
    assert again.certificate == guarded.certificate


def test_weights_of_networks_that_are_none_are_refused():
    x, y = torch.rand(50, 3), torch.rand(50)
    for weights, words in (
        ([1.0] * 50, "The weights of a network must be a function of its inputs"),
        (lambda x: x, "weights must return a tensor with one number for each row"),
        (lambda x: -x[:, 0], "are negative"),
    ):
        with pytest.raises(ValueError, match=words):
            gb.calibrate(Net(), (x, y), weights=weights)


def test_a_graph_holds_the_weights_of_a_network(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y = table(300, 1)
    x = torch.tensor(X, dtype=torch.float32)
    guarded = gb.calibrate(Net(), (x, torch.tensor(y)), weights=tensor_weights)
    gb.export_onnx(guarded, x[:4], tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"))
    _, _, upper = session.run(["lower", "point", "upper"], {session.get_inputs()[0].name: x.numpy()})
    assert np.allclose(upper, guarded(x)[:, 2].detach().numpy(), atol=1e-5)


def test_rules_with_weights_go_through_a_file(tmp_path):
    x, y, w = rows(200, 0)
    rule = gb.BandCalibrator().fit(*bands(x), y, weights=w)
    rule.save(tmp_path / "rule.guardband")
    again = gb.load(tmp_path / "rule.guardband")
    assert (again.transform(*bands(x), weights=w).upper == rule.transform(*bands(x), weights=w).upper).all()
    assert again.certificate == rule.certificate
