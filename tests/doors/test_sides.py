"""side= and tails= through every way in: tables, networks, models, predictions, files and graphs."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from msgspec import convert
from scipy.stats import betabinom

import guardband as gb
from guardband.audit.evidence import Evidence
from guardband.bands.predicted import PredictedInterval
from guardband.doors.model_checks import check_calibration
from guardband.doors.network import read_arguments
from guardband.doors.stored_arguments import Promised
from guardband.learning.options import FitOptions
from guardband.nn.heads import NestedTriples, Triple
from guardband.report.document import document

ASKED = [{"side": "upper"}, {"side": "lower", "guarantee": "pac"}, {"tails": (0.05, 0.1)}]
SIGNIFICANCE = 1e-6 / 10


def skewed(n, seed):
    """Return rows whose noise is skewed and grows with x."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2)).astype(np.float32)
    return x, (2 * x[:, 0] + (0.5 + x[:, 0]) * rng.exponential(size=n)).astype(np.float64)


@pytest.fixture(scope="module")
def rows():
    return skewed(1200, 0), skewed(2000, 1)


def model_with(**asked):
    return gb.IntervalRegressor(network="plain", hidden=(8,), epochs=4, random_state=0, **asked)


@pytest.fixture(scope="module")
def fitted(rows):
    (x, y), _ = rows
    return {str(asked): model_with(**asked).fit(x, y) for asked in ASKED}


def misses_as_promised(bands, y):
    """Raise if misses on a side contradict the exact law of its rank."""
    for part in bands.certificate.promise.parts:
        missed = int((bands.lower > y).sum() if part.side == "lower" else (y > bands.upper).sum())
        n, (k,) = part.promise.n_calibration, part.promise.rank
        low, high = betabinom.ppf([SIGNIFICANCE, 1 - SIGNIFICANCE], len(y), n + 1 - k, k)
        assert low <= missed <= high, (part.side, missed, low, high)


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_table_keeps_each_promise(rows, fitted, asked):
    """Skewed noise: a plain interval would miss on one side alone."""
    model, (x, y) = fitted[str(asked)], rows[1]
    bands = model.predict_interval(x)
    misses_as_promised(bands, y)
    assert np.isneginf(bands.lower).all() == (asked.get("side") == "upper")
    assert np.isposinf(bands.upper).all() == (asked.get("side") == "lower")
    assert ((bands.lower <= bands.point) & (bands.point <= bands.upper)).all()
    audit = model.audit(x, y)
    assert audit.verdict != "broken"
    assert [part.side for part in audit.parts] == ["lower", "upper"] if "tails" in asked else [asked["side"]]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_file_holds_the_sides(rows, fitted, asked, tmp_path):
    model, (x, _) = fitted[str(asked)], rows[1]
    model.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband")
    assert again.certificate_ == model.certificate_
    np.testing.assert_array_equal(np.asarray(again.predict_interval(x)), np.asarray(model.predict_interval(x)))
    assert again.get_params()["side"] == asked.get("side", "both")


def test_a_network_learns_the_quantile_of_its_side():
    def head(network="plain", **asked):
        model = gb.IntervalRegressor(network=network, **asked)
        return FitOptions.of(model.get_params(deep=False)).specs[0].head

    assert head(side="upper") == Triple(0.2)
    assert head(side="lower", confidence_level=[0.9, 0.95]).tails == pytest.approx((0.05, 0.05))
    assert head(side="upper", confidence_level=0.3).tails == (0.49, 0.49)
    assert head(tails=(0.02, 0.08)).tails == pytest.approx((0.02, 0.08))
    assert head(tails=(0.05, 0.05)) == Triple(0.1)
    nested = head("tabular", tails=(0.02, 0.08))
    assert isinstance(nested, NestedTriples)
    assert nested.quantiles == pytest.approx((0.02, 0.5, 0.92))
    assert head("tabular", side="upper").quantiles == pytest.approx((0.1, 0.5, 0.9))


class Own(torch.nn.Module):
    """A network whose bounds are wrong on both sides."""

    def forward(self, x):
        point = 2 * x[:, 0] + 0.3
        return torch.stack([point - 0.2, point, point + 1 + x[:, 0]], -1)


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("method", ["conf-nn", "cqr", "cqr-r", "conf-fw"])
def test_a_network_keeps_each_promise(rows, asked, method, tmp_path):
    (x, y), (new, truth) = rows
    network, tensors = Own(), (torch.from_numpy(x), torch.from_numpy(y))
    guarded = gb.calibrate(network, tensors, method, **asked)
    lower, _, upper = guarded(torch.from_numpy(new)).numpy().astype(float).T
    assert np.isneginf(lower).all() == (asked.get("side") == "upper")
    assert np.isposinf(upper).all() == (asked.get("side") == "lower")
    for part in guarded.certificate.promise.parts:
        missed = (lower > truth).sum() if part.side == "lower" else (truth > upper).sum()
        n, (k,) = part.promise.n_calibration, part.promise.rank
        assert missed <= betabinom.isf(SIGNIFICANCE, len(truth), n + 1 - k, k)
    guarded.save(tmp_path / "n.guardband")
    again = gb.load(tmp_path / "n.guardband", network=Own())
    torch.testing.assert_close(again(torch.from_numpy(new)), guarded(torch.from_numpy(new)), rtol=0, atol=0)
    assert again.certificate == guarded.certificate


def test_a_network_with_groups_and_tails(rows, tmp_path):
    (x, y), _ = rows
    tensors = (torch.from_numpy(x), torch.from_numpy(y))

    def groups(inputs):
        return inputs[:, 1] > 0.5

    guarded = gb.calibrate(Own(), tensors, tails=(0.05, 0.1), groups=groups)
    assert len(guarded.certificate.promise.parts) == 4
    guarded.save(tmp_path / "n.guardband")
    again = gb.load(tmp_path / "n.guardband", network=Own(), groups=groups)
    assert again.certificate == guarded.certificate


def test_a_forged_side_is_refused(rows):
    (x, y), _ = rows
    guarded = gb.calibrate(Own(), (torch.from_numpy(x), torch.from_numpy(y)), tails=(0.05, 0.1))
    certificate, (low, high) = guarded.certificate, guarded.certificate.promise.parts
    arrays = {name: own.numpy() for name, own in guarded.calibration.arrays().items()}
    like = PredictedInterval(*(np.zeros((1, 1, 1)) for _ in range(3)))
    rule, *_ = read_arguments(guarded.arguments, 1)
    check_calibration(rule, arrays, certificate, like)
    for parts in (
        (replace(low, promise=replace(low.promise, rank=(low.promise.rank[0] - 1,))), high),
        (low, replace(high, promise=replace(high.promise, n_calibration=high.promise.n_calibration - 1))),
        (replace(low, promise=replace(low.promise, whole_line=(True,))), high),
        (low, replace(high, promise=replace(high.promise, confidence_level=(0.95,)))),
        (high, low),
        (low,),
    ):
        forged = replace(certificate, promise=replace(certificate.promise, parts=parts))
        with pytest.raises(ValueError, match="certificate"):
            check_calibration(rule, arrays, forged, like)
    with pytest.raises(ValueError, match="calibrated in another way"):
        check_calibration(rule, {"upper_threshold": arrays["upper_threshold"]}, certificate, like)


class Quantiles:
    """A model that predicts the quantiles it is told."""

    def __init__(self, levels):
        self.levels = levels

    def predict(self, X):
        point = 2 * np.asarray(X)[:, 0]
        return point[:, None] - np.log1p(-np.array(self.levels))


@pytest.mark.parametrize(
    ("asked", "levels", "picked"),
    [
        ({"side": "upper"}, [0.5, 0.8, 0.9, 0.97], (0.5, 0.5, 0.9)),
        ({"side": "lower"}, [0.02, 0.1, 0.5], (0.1, 0.5, 0.5)),
        ({"tails": (0.02, 0.08)}, [0.01, 0.025, 0.5, 0.9, 0.99], (0.025, 0.5, 0.9)),
    ],
)
def test_a_model_of_quantiles_gives_the_bound_that_is_asked_for(rows, asked, levels, picked):
    (x, y), (new, _) = rows
    guarded = gb.calibrate(Quantiles(levels), (x, y), outputs=levels, **asked)
    read = guarded.bands.read(np.array([levels]))
    assert [float(part[0, 0, 0]) for part in read.parts] == pytest.approx(picked)
    assert len(guarded.predict_interval(new)) == len(new)


def test_a_model_without_a_quantile_on_that_side_is_refused(rows):
    (x, y), _ = rows
    with pytest.raises(ValueError, match="needs a quantile on that side"):
        gb.calibrate(Quantiles([0.1, 0.5]), (x, y), outputs=[0.1, 0.5], side="upper")


def test_predictions_keep_their_sides_in_a_file(tmp_path):
    y = np.random.default_rng(2).exponential(size=500)
    zero = np.zeros(500)
    for asked in ASKED:
        rule = gb.BandCalibrator(**asked).fit(zero - 1, zero, zero + 1, y)
        rule.save(tmp_path / "r.guardband")
        again = gb.load(tmp_path / "r.guardband")
        assert again.certificate == rule.certificate
        assert str(again.certificate) == str(rule.certificate)


def test_the_bound_that_is_not_promised_may_be_left_out(tmp_path):
    y = np.random.default_rng(3).exponential(size=300)
    point, upper = np.full(300, 0.7), 1 + np.arange(300) / 300
    rule = gb.BandCalibrator(side="upper").fit(None, point, upper, y)
    np.testing.assert_array_equal(
        rule.transform(None, point, upper).upper, rule.transform(point - 9, point, upper).upper
    )
    new = np.random.default_rng(4).exponential(size=300)
    assert rule.audit(None, point, upper, new).verdict != "broken"
    with pytest.raises(ValueError, match="Bring lower and upper"):
        gb.BandCalibrator(side="lower").fit(None, point, upper, y)


def test_groups_of_predictions_have_a_line_with_both_bounds():
    y = np.random.default_rng(5).exponential(size=300)
    zero = np.zeros(300)
    rule = gb.BandCalibrator(tails=(0.05, 0.1)).fit(zero - 1, zero + 1, zero + 2, y, groups=np.arange(300) % 2)
    assert "group = 1: 150 calibration rows; lower bounds: 144 inside, coverage at least" in str(rule.certificate)
    assert "; upper bounds: 136 inside, coverage at least" in str(rule.certificate)
    assert [(line.name, line.side) for line in rule.certificate.groups[:2]] == [
        ("group = 0", "lower"),
        ("group = 0", "upper"),
    ]


def test_bounds_of_the_target_stand_in_for_infinity(rows):
    (x, y), (new, truth) = rows
    model = model_with(side="upper", y_min=0).fit(x, y)
    bands = model.predict_interval(new)
    assert (bands.lower == 0).all()
    misses_as_promised(bands, truth)
    assert bands.side == "upper"
    np.testing.assert_array_equal(bands.reach, bands.upper - bands.point)


def test_a_log_scale_and_whole_numbers_keep_one_side_infinite(rows):
    (x, y), (new, truth) = rows
    model = model_with(side="lower", target_transform="log1p", integer=True).fit(x, np.ceil(y))
    bands = model.predict_interval(new)
    assert np.isposinf(bands.upper).all()
    assert (bands.lower == np.round(bands.lower)).all()
    missed = (bands.lower > np.ceil(truth)).sum()
    part = bands.certificate.promise.parts[0].promise
    assert missed <= betabinom.isf(SIGNIFICANCE, len(truth), part.n_calibration + 1 - part.rank[0], part.rank[0])


def test_a_graph_holds_the_sides(rows, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    (x, y), (new, _) = rows
    guarded = gb.calibrate(Own(), (torch.from_numpy(x), torch.from_numpy(y)), side="upper")
    gb.export_onnx(guarded, torch.from_numpy(x[:5]), tmp_path / "m.onnx")
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: new})
    expected = guarded(torch.from_numpy(new)).numpy()
    for one, two in zip(found, expected.T, strict=True):
        np.testing.assert_allclose(one.reshape(-1), two, rtol=1e-5)


def test_a_report_page_has_no_infinite_number(rows, fitted, tmp_path):
    x, y = rows[1]
    for model in fitted.values():
        made = document(model, Evidence.of(model, x, y))
        json.dumps(made, allow_nan=False)
        assert made["side"] == model.certificate_.promise.side
        assert made["spread"]["median_width"] > 0
        assert model.report(tmp_path / "page.html", x, y).exists()


def test_an_explanation_is_of_the_bound(rows, fitted):
    x = rows[1][0][:30]
    model = fitted[str(ASKED[0])]
    found = model.explain(x, rows=[0, 1], n_background=5, evaluations=500)
    bands = model.predict_interval(x)
    np.testing.assert_allclose(found.widths, bands.reach[:2], rtol=1e-5)
    assert "upper bound" in found.in_words(0)


def test_a_card_says_how_many_rows_each_bound_contains():
    y = np.random.default_rng(6).exponential(size=399)
    zero = np.zeros(399)
    card = gb.BandCalibrator(tails=(0.02, 0.08)).fit(zero - 1, zero, zero + 1, y).certificate._repr_html_()
    for words in ("At or above lower bounds", "392 of 399", "At or below upper bounds", "368 of 399"):
        assert words in card


def test_files_without_sides_are_for_both():
    """As older versions of guardband wrote them."""
    entries = dict.fromkeys(("confidence_level", "alpha", "delta", "tau", "taus", "rule", "average"))
    entries |= {"method": "conf-nn", "guarantee": "marginal", "joint": False, "on_insufficient": "inf"}
    read = convert(entries, Promised)
    assert (read.side, read.tails) == ("both", None)
