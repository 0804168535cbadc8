"""Targets as they come: absurd values, whole numbers, few values, other scales."""

import warnings

import numpy as np
import pytest

import guardband as gb
from guardband.audit.evidence import Evidence
from laws import SIGNIFICANCE, total_count_band

QUICK = {"preset": "fast", "hidden": (16,), "epochs": 5, "random_state": 0}


def rows(n=600, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 2))
    return X, np.exp(13 + 0.5 * X[:, 0] + 0.2 * random.standard_normal(n))


def counts(n=600, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 2))
    return X, random.poisson(np.exp(1 + 0.5 * X[:, 0])).astype(float)


def length(bands):
    return float((bands.upper - bands.lower).mean())


METHODS = [
    {"method": "conf-nn"},
    {"method": "conf-nn", "power": 2, "point": "mean"},
    {"method": "auto", "epochs": "early", "max_epochs": 5},
    {"method": "pav"},
    {"method": "neg-ll"},
    {"method": "bayes"},
    {"method": "high-q"},
    {"method": "conf-fw"},
]


@pytest.mark.parametrize("asked", METHODS)
@pytest.mark.parametrize("value", [1e12, -1e300])
def test_one_absurd_target_does_not_stretch_intervals(asked, value):
    X, y = rows()
    clean = gb.IntervalRegressor(**QUICK | asked, calibration_size=None).fit(X[:400], y[:400])
    wrong = y.copy()
    wrong[[7, 500]] = value  # one trains, one calibrates
    with pytest.warns(gb.TargetWarning, match=r"1 of 400 training targets is far beyond .* in row 7\."):
        model = gb.IntervalRegressor(**QUICK | asked, calibration_size=None).fit(X[:400], wrong[:400])
    clean.calibrate(X[400:], y[400:])
    with pytest.warns(gb.TargetWarning, match=r"1 of 200 calibration targets is far beyond .* in row 100\."):
        model.calibrate(X[400:], wrong[400:])
    new, truth = rows(2000, seed=1)
    bands, others = model.predict_interval(new), clean.predict_interval(new)
    assert np.isfinite(bands.upper).all()
    assert length(bands) < 1.25 * length(others)
    assert gb.metrics.interval_score(truth, bands) < 1.25 * gb.metrics.interval_score(truth, others)


def test_whole_numbers_are_seen_and_said():
    X, y = counts()
    model = gb.IntervalRegressor(**QUICK, confidence_level=[0.5, 0.9]).fit(X, y)
    plain = gb.IntervalRegressor(**QUICK, confidence_level=[0.5, 0.9], integer=False).fit(X, y)
    new, truth = counts(2000, seed=1)
    bands, others = model.predict_interval(new), plain.predict_interval(new)
    for ends in (bands.lower, bands.upper, bands.point):
        assert (ends == np.floor(ends)).all()
    np.testing.assert_array_equal(model.predict(new), bands.point)
    covered, before = (
        ((own.lower <= truth[:, None]) & (truth[:, None] <= own.upper)).mean(0) for own in (bands, others)
    )
    assert (covered >= before).all()
    assert ((bands.upper - bands.lower).mean(0) < (others.upper - others.lower).mean(0)).all()
    assert "rounded inward to whole numbers" in str(model.certificate_)
    assert "whole numbers" not in str(plain.certificate_)


def test_calibration_rows_that_are_not_whole_end_the_rounding_or_are_refused():
    X, y = counts()
    model = gb.IntervalRegressor(**QUICK).fit(X, y)
    X2, y2 = counts(300, seed=2)
    with pytest.warns(gb.TargetWarning, match="no longer rounds"):
        model.calibrate(X2, y2 + 0.5)
    assert "whole numbers" not in str(model.certificate_)
    assert (model.predict_interval(X).lower % 1 != 0).any()
    asked = gb.IntervalRegressor(**QUICK, integer=True).fit(X, y)
    with pytest.raises(ValueError, match=r"0\.5 in row"):
        asked.calibrate(X2, y2 - y2 + 0.5)


KINDS = {
    "two values": lambda random, x: (random.random(len(x)) < 1 / (1 + np.exp(-x))).astype(float),
    "constant": lambda random, x: np.full(len(x), 7.0),
    "counts": lambda random, x: random.poisson(np.exp(0.5 * x)).astype(float),
    "zeros": lambda random, x: np.where(random.random(len(x)) < 0.8, 0.0, np.exp(x + random.standard_normal(len(x)))),
    "three values": lambda random, x: np.round(np.clip(x + 0.3 * random.standard_normal(len(x)), -1, 1)),
}


@pytest.mark.parametrize("method", ["conf-nn", "cqr"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::guardband.TargetWarning")
def test_equal_values_keep_the_promise(kind, method):
    """Ties can only raise coverage above its law, whose sum over calibrations is known exactly."""
    random = np.random.default_rng(3)

    def draw(n):
        X = random.standard_normal((n, 1))
        return X, KINDS[kind](random, X[:, 0])

    model = gb.IntervalRegressor(method, network="plain", hidden=(8,), epochs=5, random_state=0, calibration_size=None)
    model.fit(*draw(300))
    replications, n_test, covered = 40, 200, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gb.RepeatedRowsWarning)
        for _ in range(replications):
            model.calibrate(*draw(50))
            X, y = draw(n_test)
            bands = model.predict_interval(X)
            covered += int(((bands.lower <= y) & (y <= bands.upper)).sum())
    assert covered >= total_count_band(SIGNIFICANCE, replications, n_test, 46, 50)[0]


def test_two_values_are_said():
    X, _ = rows()
    with pytest.warns(gb.TargetWarning, match="A classifier may answer your question better"):
        model = gb.IntervalRegressor(**QUICK).fit(X, (X[:, 0] > 0).astype(float))
    assert "only 2 different values" in str(model.certificate_)
    bands = model.predict_interval(X)
    assert set(np.unique([bands.lower, bands.upper])) <= {-1.0, 0.0, 1.0, 2.0}


CUBE_ROOT = (np.cbrt, lambda w: w**3)


@pytest.mark.parametrize("transform", ["log", "log1p", "asinh", "sqrt", CUBE_ROOT])
def test_transforms_keep_ends_in_order_and_come_back_from_a_file(transform, tmp_path):
    X, y = rows()
    model = gb.IntervalRegressor(**QUICK, target_transform=transform).fit(X, y)
    bands = model.predict_interval(X)
    assert ((bands.lower <= bands.point) & (bands.point <= bands.upper)).all()
    model.save(tmp_path / "model")
    if transform is CUBE_ROOT:
        with pytest.raises(gb.ModelFileError, match=r"target_transform of your own: pass it as load\(\.\.\., "):
            gb.load(tmp_path / "model")
        again = gb.load(tmp_path / "model", target_transform=CUBE_ROOT)
    else:
        with pytest.raises(gb.ModelFileError, match="its own target_transform"):
            gb.load(tmp_path / "model", target_transform=CUBE_ROOT)
        again = gb.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_interval(X).upper, bands.upper)
    assert again.fitted_.learned.target == model.fitted_.learned.target


def test_whole_numbers_come_back_from_a_file(tmp_path):
    X, y = counts()
    model = gb.IntervalRegressor(**QUICK, y_min=0).fit(X, y)
    model.save(tmp_path / "model")
    again = gb.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_interval(X).lower, model.predict_interval(X).lower)
    assert str(again.certificate_) == str(model.certificate_)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"target_transform": "root"}, r'"log", "log1p", "asinh", "sqrt", or a pair of functions'),
        ({"target_transform": (np.log,)}, "or a pair of functions"),
        ({"target_transform": (np.negative, np.negative)}, "must be increasing"),
        ({"integer": "yes"}, "integer must be True, False, or None"),
        ({"integer": True, "y_min": 0.2, "y_max": 0.8}, "no whole number between"),
        ({"integer": True}, "every target must be a whole number"),
    ],
)
def test_what_cannot_be_is_refused(asked, words):
    with pytest.raises(ValueError, match=words):
        gb.IntervalRegressor(**QUICK, **asked).fit(*rows())


def test_scores_of_an_audit_say_what_whole_ends_contain():
    X, y = counts()
    model = gb.IntervalRegressor(**QUICK).fit(X[:400], y[:400])
    between = np.where(np.arange(200) % 2, y[400:], y[400:] + 0.5)
    evidence = Evidence.of(model, X[400:], between)
    threshold = np.sort(evidence.calibration_scores)[evidence.certificate.rank - 1]
    np.testing.assert_array_equal(evidence.scores <= threshold, evidence.covered[:, 0])
