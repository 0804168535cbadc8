"""A Gaussian from its head and loss to its intervals: all of them mean a mean and a standard deviation."""

import numpy as np
import pytest
import torch
from scipy.stats import betabinom, binom
from torch import nn

import guardband as gb
from guardband.bands.predicted import PredictedGaussian
from laws import SIGNIFICANCE

NEW = 2000


def rows(n, seed):
    random = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 1, generator=random)
    return x, x[:, 0] + (0.1 + x[:, 0]) * torch.randn(n, generator=random)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    net = gb.nn.FullyConnected(1, (16,), last=gb.nn.GaussianHead)
    return gb.train(net, rows(2000, 1), gb.nn.GaussianLoss(), epochs=30, learning_rate=0.01, clip=1.0)


@pytest.mark.parametrize("method", ["bayes", "neg-ll", "conf-fw"])
def test_head_loss_and_calibration_agree_on_what_a_gaussian_is(network, method):
    guarded = gb.calibrate(network, rows(999, 2), method, outputs="gaussian")
    x, y = rows(NEW, 3)
    lower, _, upper = guarded(x).unbind(1)
    covered = int(((lower <= y) & (y <= upper)).sum())
    if method == "conf-fw":
        law = betabinom(NEW, 900, 100)
        assert law.ppf(SIGNIFICANCE / 2) <= covered <= law.isf(SIGNIFICANCE / 2)
        return
    assert binom.ppf(SIGNIFICANCE / 2, NEW, 0.86) <= covered <= binom.isf(SIGNIFICANCE / 2, NEW, 0.94)
    lengths = (upper - lower).numpy()
    wide, narrow = (lengths[own].mean() for own in (x[:, 0].numpy() > 0.9, x[:, 0].numpy() < 0.1))
    assert 4 < wide / narrow < 10  # the deviations are 1.05 and 0.15; their square roots or squares lie outside


def test_the_deviation_is_that_of_the_rows(network):
    x = torch.tensor([[0.1], [0.5], [0.9]])
    np.testing.assert_allclose(network(x)[:, 1].detach(), 0.1 + x[:, 0], rtol=0.2)


@pytest.mark.parametrize("method", ["bayes", "neg-ll", "conf-fw"])
def test_a_deviation_that_is_not_positive_is_refused(method):
    torch.manual_seed(0)
    raw = nn.Linear(1, 2)
    with torch.no_grad():
        raw.bias[1] = -5
    with pytest.raises(ValueError, match=r"deviation > 0 must hold in every row, found 50 .*gb\.nn\.GaussianHead"):
        gb.calibrate(raw, rows(50, 0), method, outputs="gaussian")
    flat = PredictedGaussian(np.zeros(50), np.zeros(50))
    with pytest.raises(ValueError, match="deviation > 0 must hold in every row, found 50"):
        gb.BandCalibrator(method).fit_predicted(flat, np.ones(50))


@pytest.mark.parametrize("method", ["bayes", "neg-ll"])
def test_bands_are_no_gaussian(method):
    words = f"{method} needs mean and standard deviation, found lower, point and upper"
    with pytest.raises(ValueError, match=words):
        gb.calibrate(gb.nn.FullyConnected(1, (4,)), rows(50, 0), method)
    with pytest.raises(ValueError, match=words):
        gb.BandCalibrator(method).fit(np.zeros(50), np.ones(50), np.full(50, 2.0), np.ones(50))
