"""What every method owes, from the registry: an eighth is held to it without a line here."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

import guardband as gb
from guardband.bands.predicted import PredictedGaussian, PredictedInterval
from guardband.data.artificial import PaperModel
from guardband.methods.high_q import CANDIDATES
from guardband.methods.registry import method_named, method_names
from guardband.nn.gaussian import PositiveDeviation
from guardband.nn.heads import Bounds, Gaussian, Median, Triple

QUICK = {"hidden": (8,), "epochs": 5, "random_state": 0, "batch_size": 100}
EVERY = pytest.mark.parametrize("name", method_names())
GAUSSIAN = ("neg-ll", "bayes")
WITHOUT_PROMISE = ("high-q", "neg-ll", "bayes", "qreg-un")

X, Y = PaperModel(n_features=6).draw(500, seed=1)
X_NEW, Y_NEW = PaperModel(n_features=6).draw(50, seed=2)


def fitted(name, **asked):
    own = {"hidden": None} if "network" in asked else {}
    return gb.IntervalRegressor(name, **QUICK | own | asked).fit(X, Y)


def test_the_papers_seven_are_there():
    paper = {"conf-nn", "pav", "conf-fw", "high-q", "neg-ll", "bayes", "qreg-un"}
    assert set(method_names()) == {*paper, "cqr", "cqr-r"}
    assert all(method_named(name).name == name for name in method_names())


@EVERY
def test_a_table_goes_in_and_intervals_come_out(name):
    model = fitted(name)
    bands = model.predict_interval(X_NEW)
    assert (bands.lower <= bands.point).all()
    assert (bands.point <= bands.upper).all()
    np.testing.assert_array_equal(model.predict(X_NEW), bands.point)
    assert model.certificate_.method == name
    assert name in str(model.certificate_)


@EVERY
@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_several_levels_widen(name):
    bands = fitted(name, confidence_level=[0.6, 0.95]).predict_interval(X_NEW)
    assert bands.lower.shape == (50, 2)
    assert (bands.upper - bands.lower).mean(0)[1] > (bands.upper - bands.lower).mean(0)[0]


@EVERY
def test_a_saved_model_is_the_same(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband")
    ours, theirs = model.predict_interval(X_NEW), again.predict_interval(X_NEW)
    for side in ("lower", "point", "upper"):
        np.testing.assert_array_equal(getattr(ours, side), getattr(theirs, side))
    assert again.certificate_ == model.certificate_


@EVERY
def test_what_a_method_has_no_use_for_is_refused(name):
    given = {"tau": 0.2, "taus": [0.1, 0.05], "average": "sharp", "power": 2, "point": "mean"}
    for setting in given.keys() - method_named(name).options:
        with pytest.raises(ValueError, match=f'method="{name}" does not use {setting}'):
            fitted(name, **{setting: given[setting]})


@pytest.mark.parametrize("name", WITHOUT_PROMISE)
def test_without_a_promise_the_certificate_says_why(name):
    certificate = fitted(name).certificate_
    assert certificate.kind == "none"
    assert certificate.rank is None
    assert certificate.promise.reason in str(certificate)
    assert str(certificate).startswith("Promise: none.")
    with pytest.raises(ValueError, match=f"promises no coverage: {certificate.promise.reason}"):
        certificate.coverage_bound(0.1)
    with pytest.raises(ValueError, match=f"promises no coverage: {certificate.promise.reason}"):
        certificate.expected_coverage  # noqa: B018
    assert certificate.to_dict()["coverage_bound"] is None
    assert gb.Certificate.from_dict(certificate.to_dict()) == certificate
    with pytest.raises(ValueError, match=f'method="{name}" has no guarantee'):
        fitted(name, guarantee="pac")


@EVERY
def test_a_torch_network_gives_what_its_bands_give(name):
    """Door 2 and Door 3 agree, in float32 and float64."""
    count = len(method_named(name).networks(gb.Request()))
    torch.manual_seed(0)
    kind, last, outputs = PredictedInterval, None, "bands"
    if name in GAUSSIAN:
        kind, last, outputs = PredictedGaussian, gb.nn.GaussianHead, "gaussian"
    networks = [gb.nn.FullyConnected(6, (8,), last=last) for _ in range(count)]
    x, y = torch.as_tensor(X, dtype=torch.float32), (Y - Y.mean()) / Y.std() / 2
    guarded = gb.calibrate(networks, [(x, torch.as_tensor(y))], name, outputs=outputs)
    bands = torch.stack([network(x) for network in networks]).detach().double().numpy()
    predicted = kind(*np.moveaxis(bands, -1, 0))
    rule = gb.BandCalibrator(name).fit_predicted(predicted, y)
    ours = guarded(x).numpy()
    theirs = rule.transform_predicted(predicted)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, np.stack([theirs.lower, theirs.point, theirs.upper], 1), rtol=1e-5, atol=1e-5)
    assert guarded.certificate == rule.certificate


@pytest.mark.parametrize("name", ["conf-nn", "conf-fw", "cqr", "cqr-r"])
def test_every_score_is_one_of_split_conformal(name):
    """The k-th row by score is on the edge: one calibration row more would be outside of a shorter interval."""
    model = fitted(name, calibration_size=None)
    rows, y = PaperModel(n_features=6).draw(99, seed=3)
    bands = model.calibrate(rows, y).predict_interval(rows)
    assert model.certificate_.rank == 90
    assert ((bands.lower <= y) & (y <= bands.upper)).sum() == 90
    assert fitted(name, guarantee="pac").certificate_.kind == "pac"


def test_heads_read_predictions_off_outputs():
    outputs = np.array([[0.5, np.log(np.expm1(1.999))], [3.0, -1.0]], dtype=np.float32)[None, None]
    gaussian = Gaussian().read(PositiveDeviation()(torch.from_numpy(outputs)).numpy())
    np.testing.assert_allclose([part[0, 0, 0] for part in gaussian.parts], [0.5, 2], rtol=1e-6)
    np.testing.assert_array_equal([part[0, 0, 1] for part in Bounds(0.1).read(outputs).parts], [-1, 1, 3])
    np.testing.assert_array_equal([part[0, 0, 0] for part in Median().read(outputs[..., :1]).parts], [0.5])


def test_equal_heads_are_one_network():
    first, qreg, cqr, pav, high_q = (
        method_named(name).networks(gb.Request()) for name in ("conf-nn", "qreg-un", "cqr", "pav", "high-q")
    )
    assert first == qreg == cqr
    assert first[0] in pav
    assert first[0].head == Triple(0.1)
    assert len(high_q) == len(CANDIDATES)


def test_conf_fw_has_one_length_and_conf_nn_has_not():
    fixed, adaptive = (fitted(name).predict_interval(X_NEW) for name in ("conf-fw", "conf-nn"))
    assert np.ptp(fixed.upper - fixed.lower) < 1e-12 * (fixed.upper - fixed.lower).mean()
    assert np.ptp(adaptive.upper - adaptive.lower) > 0.1


def test_neg_ll_and_bayes_recover_a_gaussian():
    """On data whose law is Gaussian given x the interval is mean +- 1.645 deviations."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (8000, 1))
    y = 3 * x[:, 0] + (1 + 0.5 * x[:, 0]) * rng.standard_normal(8000)
    grid = np.linspace(-0.8, 0.8, 9)[:, None]
    half = norm.ppf(0.95) * (1 + 0.5 * grid[:, 0])
    network = {"network": "plain", "hidden": (16,), "epochs": 30, "split_by": []}
    for name in ("neg-ll", "bayes"):
        found = gb.IntervalRegressor(name, random_state=0, **network).fit(x, y).predict_interval(grid)
        np.testing.assert_allclose(found.lower, 3 * grid[:, 0] - half, atol=0.2)
        np.testing.assert_allclose(found.upper, 3 * grid[:, 0] + half, atol=0.2)


def test_networks_of_ones_own_end_as_the_method_needs():
    def two(columns):
        return torch.nn.Sequential(torch.nn.Linear(columns, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))

    def gaussian(columns):
        return torch.nn.Sequential(torch.nn.Linear(columns, 4), torch.nn.ReLU(), gb.nn.GaussianHead(4))

    assert fitted("bayes", network=gaussian).predict_interval(X_NEW).lower.shape == (50,)
    with pytest.raises(ValueError, match=r"must put out \(n, 1\) for this method, which reads a Median"):
        fitted("conf-fw", network=two)


@pytest.mark.parametrize("name", GAUSSIAN)
def test_a_network_of_ones_own_with_deviations_that_are_not_positive_is_refused(name):
    def raw(columns):
        linear = torch.nn.Linear(columns, 2)
        torch.nn.init.constant_(linear.weight, 0)
        torch.nn.init.constant_(linear.bias, -1)
        return linear

    with pytest.raises(
        ValueError, match=r"must put out deviation > 0 in every row\. End the network with gb\.nn\.Gauss"
    ):
        fitted(name, network=raw)


def test_settings_that_do_nothing_are_refused():
    with pytest.raises(ValueError, match="neg-ll chooses its weight decay on the calibration rows"):
        fitted("neg-ll", weight_decay=0.1)
    with pytest.raises(ValueError, match="ordering must be"):
        fitted("conf-fw", ordering="bogus")
