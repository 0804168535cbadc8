import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import norm

import guardband as gb
from guardband.nn import IntervalLoss
from guardband.nn.quantiles import QuantileLoss

FORMS = [(1, "median"), (2, "median"), (1, "mean")]


@pytest.mark.parametrize(("power", "point"), FORMS)
def test_gradients_agree_with_finite_differences(power, point):
    torch.manual_seed(0)
    bands = torch.randn(3, 20, 3, dtype=torch.float64).sort(-1).values.requires_grad_()
    y = torch.randn(20, dtype=torch.float64)
    loss = IntervalLoss([0.1, 0.2, 0.05], power, point)
    assert torch.autograd.gradcheck(lambda b: loss(b, y), bands)


def test_loss_is_the_papers_formula():
    def h(t, r):
        return (t - (r <= 0)) * r

    rng = np.random.default_rng(0)
    bands, y, tau = np.sort(rng.standard_normal((50, 3)), -1), rng.standard_normal(50), 0.2
    lower, middle, upper = (y[:, None] - bands).T
    terms = h(tau / 2, lower), h(0.5, middle), h(1 - tau / 2, upper)
    ours = {form: IntervalLoss(tau, *form).rows(torch.tensor(bands), torch.tensor(y)).numpy() for form in FORMS}
    np.testing.assert_allclose(ours[1, "median"], sum(terms), rtol=1e-6)
    np.testing.assert_allclose(ours[2, "median"], sum(t**2 for t in terms), rtol=1e-6)
    np.testing.assert_allclose(ours[1, "mean"], terms[0] + (y - bands[:, 1]) ** 2 / 4 + terms[2], rtol=1e-6)


@pytest.mark.parametrize("tau", [0.05, 0.1, 0.5])
def test_loss_is_one_and_a_half_weighted_interval_scores(tau):
    rng = np.random.default_rng(1)
    bands, y = np.sort(rng.standard_normal((100, 3)), -1), rng.standard_normal(100)
    score = gb.metrics.weighted_interval_score(y, gb.Intervals(*bands.T, confidence_level=1 - tau))
    assert IntervalLoss(tau)(torch.tensor(bands), torch.tensor(y)).item() == pytest.approx(1.5 * score, rel=1e-6)


@pytest.mark.parametrize(("power", "expected"), [(1, norm.ppf(0.95)), (2, 2.13)])
def test_upper_bound_of_a_gaussian_is_its_quantile_or_its_expectile(power, expected):
    grid = (np.arange(200_000) + 0.5) / 200_000
    y = torch.tensor(norm.ppf(grid))
    loss = IntervalLoss(0.1, power)

    def risk(upper):
        return loss(torch.tensor([[-upper, 0.0, upper]], dtype=torch.float64).expand(len(y), 3), y).item()

    assert minimize_scalar(risk, bounds=(0.5, 4), method="bounded").x == pytest.approx(expected, abs=5e-3)


def test_each_stacked_band_has_its_own_level():
    bands, y = torch.randn(3, 20, 3).sort(-1).values, torch.randn(20)
    taus = [0.3, 0.2, 0.1]
    together = IntervalLoss(taus)(bands, y)
    assert together.shape == (3,)
    apart = torch.stack([IntervalLoss(tau)(own, y) for tau, own in zip(taus, bands, strict=True)])
    torch.testing.assert_close(together, apart)
    torch.testing.assert_close(IntervalLoss(taus).take([2, 0])(bands[[2, 0]], y), together[[2, 0]])


def test_a_column_of_responses_is_refused():
    with pytest.raises(ValueError, match=r"found \(5, 3\) and \(5, 1\)"):
        IntervalLoss(0.1)(torch.zeros(5, 3), torch.zeros(5, 1))
    with pytest.raises(ValueError, match=r"y of shape"):
        IntervalLoss(0.1)(torch.zeros(1, 3), torch.zeros(1, 1))


@pytest.mark.parametrize(
    "wrong", [{"tau": 0}, {"tau": [0.1, 1.0]}, {"tau": 0.1, "power": 3}, {"tau": 0.1, "point": "x"}]
)
def test_other_arguments_are_refused(wrong):
    with pytest.raises(ValueError, match=r"must"):
        IntervalLoss(**wrong)


def test_a_part_of_a_loss_stays_on_its_device():
    assert IntervalLoss([0.1, 0.2]).to("meta").take([1]).tau.device.type == "meta"


def test_tails_that_differ_are_two_quantiles():
    rng = torch.Generator().manual_seed(0)
    bands, y = torch.randn(50, 3, generator=rng).sort(-1).values, torch.randn(50, generator=rng)
    torch.testing.assert_close(IntervalLoss(0.1, below=0.02)(bands, y), QuantileLoss([0.02, 0.5, 0.92])(bands, y))
    torch.testing.assert_close(IntervalLoss(0.1, below=0.05)(bands, y), IntervalLoss(0.1)(bands, y))
    assert "below" in repr(IntervalLoss(0.1, below=0.02))
    assert "below" not in repr(IntervalLoss(0.1))
    for below in (0.1, 0.0):
        with pytest.raises(ValueError, match="below must lie strictly between 0 and tau"):
            IntervalLoss(0.1, below=below)
