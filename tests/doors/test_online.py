"""Intervals that adapt: every way in, late truth, keys, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression

import guardband as gb
from guardband.extend import AdaptiveLevel, Recent, ScaleFree, Tracking
from online_rows import in_time, rows, started

RULES = ["aci", "scale-free", "tracking", "recent"]
METHODS = ["conf-nn", "conf-fw", "cqr", "cqr-r"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("side", ["both", "lower", "upper"])
def test_any_score_goes_with_any_rule_and_covers_what_the_certificate_says(rule, method, side):
    lower, point, upper, y = rows()
    online = started(rule, method=method, side=side)
    found = in_time(online, lower, point, upper, y)
    inside = (found[:, 0] <= y) & (y <= found[:, 1])
    promise = online.certificate.promise
    assert promise.judged == 600
    assert promise.side == side
    assert inside.sum() >= promise.judged - promise.misses
    if rule != "recent":
        assert online.certificate.kind == "long-run"
        assert inside.mean() >= online.certificate.coverage_bound()
        assert 0.8 < online.certificate.coverage_bound() + promise.most_over / 600 <= 0.9 + 1e-12
    else:
        assert online.certificate.kind == "recent"


@pytest.mark.parametrize("rule", RULES)
def test_late_is_in_time_when_nothing_is_late(rule):
    lower, point, upper, y = rows(120)
    plain, keyed = started(rule), started(rule)
    expected = in_time(plain, lower, point, upper, y)
    for i in range(len(y)):
        row = slice(i, i + 1)
        bands = keyed.transform(lower[row], point[row], upper[row], keys=[f"row {i}"])
        assert (bands.lower[0], bands.upper[0]) == tuple(expected[i])
        keyed.update(y[row], keys=[f"row {i}"])
    assert keyed.certificate == plain.certificate


@pytest.mark.parametrize("rule", RULES)
def test_rows_judged_together_are_judged_one_by_one(rule):
    lower, point, upper, y = rows(50)
    together, apart = started(rule), started(rule)
    for online in (together, apart):
        online.transform(lower, point, upper)
    together.update(y)
    for i in range(50):
        apart.update(y[i : i + 1])
    assert together.certificate == apart.certificate
    assert together.certificate.promise.judged == 50
    one = together.transform(lower[:1], point[:1], upper[:1])
    other = apart.transform(lower[:1], point[:1], upper[:1])
    assert one.lower == other.lower


def test_truth_may_arrive_in_part_and_in_any_order():
    lower, point, upper, y = rows(10)
    online = started("aci")
    bands = online.transform(lower, point, upper)
    assert bands.index.tolist() == online.waiting == list(range(10))
    online.update(y[:2])  # the oldest
    assert online.waiting == list(range(2, 10))
    online.update(y[[7, 3]], keys=[7, 3])
    assert online.waiting == [2, 4, 5, 6, 8, 9]
    online.update(y[[2, 4]])
    online.discard([5])
    assert online.waiting == [6, 8, 9]
    promise = online.certificate.promise
    assert (promise.judged, promise.most_waiting) == (6, 10)
    assert online.transform(lower[:2], point[:2], upper[:2]).index.tolist() == [10, 11]


def test_each_row_is_judged_by_the_interval_that_it_was_given():
    online = gb.OnlineCalibrator("aci", method="conf-fw").fit(None, np.zeros(50), None, np.arange(50.0))
    first = online.transform(None, [0.0], None, keys=["early"])
    for _ in range(30):
        online.transform(None, [0.0], None)
        online.update([1000.0], keys=online.waiting[-1:])
    assert online.transform(None, [0.0], None).upper[0] > 2 * first.upper[0]
    misses = online.certificate.promise.misses
    online.update([first.upper[0] + 1], keys=["early"])
    assert online.certificate.promise.misses == misses + 1


REFUSED = [
    ({"keys": ["a", "a", "b"]}, {}, r"The key 'a' occurs more than once. Name each row once."),
    ({"keys": ["a", "b"]}, {}, r"keys must have one entry for each of 3 rows, found 2."),
    ({"keys": [1.5, 2.5, 3.5]}, {}, r"A key must be a whole number or text, found 1.5. Use str"),
    ({}, {"keys": [0, 99]}, r"No row with the key 99 is waiting for its true value. It was judged already, or"),
    ({}, {"keys": [0, 0]}, r"The key 0 occurs more than once"),
    ({}, {"keys": [0]}, r"y must have one true value for each of 1 keys, found 2"),
    ({}, {"y": [1.0, np.nan]}, r"contains NaN in row 1"),
    ({}, {"y": [1.0, "x"]}, r"y must hold numbers"),
    ({}, {"y": [1.0] * 4}, r"y has 4 true values, but 3 rows wait for theirs. Pass a true value"),
    ({}, {"y": [[1.0, 2.0]]}, r"y must be one column of shape"),
]


@pytest.mark.parametrize(("given", "told", "why"), REFUSED)
def test_what_cannot_be_used_is_refused_and_nothing_is_half_done(given, told, why):
    online = started("aci")
    certificate = online.certificate
    bands = [-1.0] * 3, [0.0] * 3, [1.0] * 3
    if not given:
        online.transform(*bands)
    with pytest.raises((ValueError, TypeError), match=why):
        online.transform(*bands, **given) if given else online.update(**{"y": [1.0, 2.0]} | told)
    assert online.waiting == ([] if given else [0, 1, 2])
    assert online.certificate.promise.judged == certificate.promise.judged == 0


def test_a_key_that_waits_is_not_given_again_but_one_that_was_judged_may_be():
    online = started("aci")
    online.transform([-1.0], [0.0], [1.0], keys=["monday"])
    with pytest.raises(ValueError, match="A row with the key 'monday' is waiting for its true value already"):
        online.transform([-1.0], [0.0], [1.0], keys=["monday"])
    online.update([0.5], keys=["monday"])
    with pytest.raises(ValueError, match="No row with the key 'monday' is waiting"):
        online.update([0.5], keys=["monday"])
    online.transform([-1.0], [0.0], [1.0], keys=np.array(["monday"]))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"rule": "pid"}, r"rule must be one of 'aci', 'scale-free', 'tracking', 'recent', or an OnlineRule"),
        ({"confidence_level": (0.8, 0.9)}, r"takes one confidence level, found \(0.8, 0.9\). Make one for each."),
        ({"confidence_level": 90}, r"Write 0.9 for 90%"),
        ({"method": "pav"}, r'method="pav" has no score that an online rule could follow. Use "conf-nn"'),
        ({"method": "bayes"}, r'method="bayes" has no score'),
        ({"window": 5}, r"window must be a number of rows, 9 or more at this level, found 5"),
        ({"crossing": "maybe"}, r"crossing must be 'raise' or 'sort'"),
        ({"side": "left"}, r"side must be one of"),
        ({"model": LinearRegression()}, r"model must be an IntervalRegressor.*found LinearRegression. Calibrate it"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(options, why):
    with pytest.raises((ValueError, TypeError), match=why):
        gb.OnlineCalibrator(**options)


def test_a_start_comes_first_and_needs_no_model():
    online = started("aci")
    online.transform([-1.0], [0.0], [1.0])
    with pytest.raises(ValueError, match="Start from past rows before the first new row"):
        online.fit([-1.0], [0.0], [1.0], [0.5])
    with pytest.raises(ValueError, match=r"has no model to ask. Pass model=..., or use transform"):
        online.predict_interval([[1.0]])
    with pytest.raises(ValueError, match="lower <= point <= upper must hold"):
        online.transform([1.0], [0.0], [2.0])
    sorts = started("aci", crossing="sort")
    assert sorts.transform([1.0], [0.0], [2.0]).point[0] == 1.0


def test_without_a_start_intervals_are_infinite_until_there_are_scores():
    online = gb.OnlineCalibrator("aci")
    lower, point, upper, y = rows(40)
    found = in_time(online, lower, point, upper, y)
    assert np.isinf(found[:9]).all()
    assert np.isfinite(found[12:]).all()
    assert online.certificate.promise.n_calibration == 0


def test_a_rule_may_be_an_object_with_a_step_of_its_own():
    lower, point, upper, y = rows()
    for slow, fast in ((AdaptiveLevel(0.001), AdaptiveLevel(0.05)), (Tracking(0.01), Tracking(0.5))):
        widths = [np.ptp(in_time(started(rule), lower, point, upper, y)[300:], axis=1).mean() for rule in (slow, fast)]
        assert widths[0] < widths[1]
    assert started(ScaleFree()).certificate == started("scale-free").certificate
    assert started(Recent(30)).certificate != started("recent").certificate


# ------------------------------------------------------------------------------------- with a model


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.standard_normal(700), "b": rng.choice(["u", "v"], 700)})
    y = np.exp(X["a"].to_numpy() / 2 + rng.standard_normal(700) * 0.3)
    return X, y


def regressor(X, y, **options):
    quick = {"network": "plain", "hidden": (8,), "epochs": 3, "random_state": 0}
    return gb.IntervalRegressor(**quick | options).fit(X[:400], y[:400])


@pytest.mark.parametrize("options", [{}, {"target_transform": "log", "y_min": 0}, {"method": "cqr", "side": "upper"}])
def test_a_table_models_first_intervals_are_its_own(table, options):
    X, y = table
    model = regressor(X, y, **options)
    online = gb.OnlineCalibrator("aci", model=model)
    own, found = model.predict_interval(X[400:]), online.predict_interval(X[400:])
    np.testing.assert_array_equal(found.lower, own.lower)
    np.testing.assert_array_equal(found.upper, own.upper)
    online.update(y[400:])
    misses = online.certificate.promise.misses
    assert misses == (~own.contains(y[400:])).sum()
    assert online.certificate.promise.n_calibration == model.certificate_.n_calibration


def test_whole_numbers_stay_whole_and_are_judged_as_such(table):
    X, y = table
    counts = np.floor(5 * y)
    model = regressor(X, counts)
    online = gb.OnlineCalibrator("tracking", model=model)
    for i in range(400, 600):
        bands = online.predict_interval(X[i : i + 1])
        assert bands.lower[0] == np.floor(bands.lower[0])
        before = online.certificate.promise.misses
        online.update(counts[i : i + 1])
        assert online.certificate.promise.misses - before == (not bands.contains(counts[i : i + 1])[0])


def test_what_the_model_was_told_cannot_be_is_refused(table):
    X, y = table
    online = gb.OnlineCalibrator("aci", model=regressor(X, y, y_min=0))
    online.predict_interval(X[400:402])
    with pytest.raises(ValueError, match=r"y must be at least y_min = 0.0, found -1"):
        online.update([1.0, -1.0])
    assert len(online.waiting) == 2


def test_any_fitted_model_and_bands_from_anywhere_start_from_their_calibration_rows(table):
    X, y = table
    numbers = X[["a"]].to_numpy()
    guarded = gb.calibrate(LinearRegression().fit(numbers[:200], y[:200]), (numbers[200:400], y[200:400]))
    online = gb.OnlineCalibrator("scale-free", model=guarded)
    own, found = guarded.predict_interval(numbers[400:]), online.predict_interval(numbers[400:])
    np.testing.assert_array_equal(found.upper, own.upper)
    online.update(y[400:410])
    lower, point, upper, z = rows(100)
    rule = gb.BandCalibrator("cqr", confidence_level=0.8).fit(lower, point, upper, z)
    online = gb.OnlineCalibrator("aci", model=rule)
    np.testing.assert_array_equal(
        online.transform(lower, point, upper).upper, rule.transform(lower, point, upper).upper
    )
    assert online.certificate.confidence_level == 0.8
    assert online.certificate.method == "cqr"


def test_a_calibrated_network_starts_from_rows_that_are_brought():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), gb.nn.TripleHead(8))
    x, y = torch.randn(1500, 2), torch.randn(1500)  # more rows than the network sees at once
    guarded = gb.calibrate(net, (x[:200], y[:200]))
    online = gb.OnlineCalibrator("aci", model=guarded)
    assert online.certificate.whole_line
    online.fit_rows(x[:200], y[:200])
    found, own = online.predict_interval(x[200:]), guarded(x[200:]).double().numpy()
    np.testing.assert_allclose(found.lower, own[:, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.upper, own[:, 2], rtol=1e-5, atol=1e-6)
    online.update(y[200:])
    assert online.certificate.promise.judged == 1300
    with pytest.raises(TypeError, match="x must be a tensor, or a tuple or mapping of tensors, found str"):
        online.predict_interval("rows")


def test_groups_tails_and_two_voices_are_refused(table):
    X, y = table
    with pytest.raises(ValueError, match=r"cannot use groups or weights. Calibrate without them"):
        gb.OnlineCalibrator("aci", model=regressor(X, y, groups="b"))
    tails = gb.BandCalibrator(tails=(0.05, 0.05)).fit(*rows(100))
    with pytest.raises(ValueError, match=r'not one for each tail. Make one with side="lower"'):
        gb.OnlineCalibrator("aci", model=tails)
    model = regressor(X, y)
    with pytest.raises(ValueError, match=r"method and side are those of the model. Remove them"):
        gb.OnlineCalibrator("aci", model=model, method="cqr")
    online = gb.OnlineCalibrator("aci", model=model)
    with pytest.raises(ValueError, match=r"This calibrator asks its model. Use predict_interval\(X\)"):
        online.transform([-1.0], [0.0], [1.0])


def test_intervals_are_a_table_by_key_and_the_calibrator_shows_itself():
    online = started("aci")
    bands = online.transform([-1.0, -2.0], [0.0, 0.0], [1.0, 2.0], keys=["a", "b"])
    assert bands.to_pandas().index.tolist() == ["a", "b"]
    assert bands.contains(pd.Series([0.0, 0.0], index=["a", "b"])).all()
    with pytest.raises(ValueError, match="in another order"):
        bands.contains(pd.Series([0.0, 0.0], index=["b", "a"]))
    assert repr(online) == "OnlineCalibrator('aci', confidence_level=0.9): 0 rows judged, 0 misses, 2 waiting"
    assert "Coverage of rows so far" in online._repr_html_()
