import pytest
import torch
from scipy.stats import norm

import guardband as gb
from guardband.nn import IntervalLoss, QuantileHead, QuantileLoss
from guardband.nn.quantile_gradient import QuantileGradient
from guardband.nn.quantiles import OrderedQuantiles

LEVELS = [0.05, 0.1, 0.5, 0.9, 0.95]


def test_quantiles_never_cross_and_start_as_a_gaussian():
    torch.manual_seed(0)
    head = QuantileHead(4, LEVELS)
    assert (head(torch.randn(500, 4)).diff(dim=-1) > 0).all()
    assert (head(100 * torch.randn(500, 4)).diff(dim=-1) >= 0).all()
    with torch.no_grad():
        head.linear.weight.zero_()
        head.linear.bias[2] = 0
    torch.testing.assert_close(head(torch.zeros(4)).double(), torch.tensor(norm.ppf(LEVELS)), atol=1e-5, rtol=0)


def test_with_three_quantiles_it_is_the_interval_loss():
    torch.manual_seed(0)
    bands, y = torch.randn(20, 3).sort(-1).values, torch.randn(20)
    torch.testing.assert_close(QuantileLoss([0.05, 0.5, 0.95])(bands, y), IntervalLoss(0.1)(bands, y))


def test_gradients_agree_with_finite_differences():
    torch.manual_seed(0)
    outputs, y = torch.randn(2, 7, 5, dtype=torch.float64, requires_grad=True), torch.randn(2, 7, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda out: QuantileLoss(LEVELS)(out, y), outputs)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("levels", [[0.5], [0.1, 0.6], [0.05, 0.5, 0.95], LEVELS])
def test_the_gradient_by_hand_is_autograds(levels, weighted):
    generator = torch.Generator().manual_seed(0)
    z, y, weight = (torch.randn(2, *shape, 50, generator=generator).double() for shape in ((len(levels),), (), ()))
    weight, loss = weight.abs() if weighted else None, QuantileLoss(levels).double()
    order = OrderedQuantiles(len(levels))
    (expected,) = torch.autograd.grad(loss(order(z.requires_grad_().mT), y, weight).sum(), z)
    found = QuantileGradient(loss, order)(z.detach(), y, weight)
    torch.testing.assert_close(found, expected, atol=1e-14, rtol=1e-12)


@pytest.mark.parametrize("wrong", [[], [0.0, 0.5], [0.5, 0.1], [0.5, 0.5], [0.5, 1.0]])
def test_other_levels_are_refused(wrong):
    for kind in (QuantileLoss, lambda levels: QuantileHead(3, levels)):
        with pytest.raises(ValueError, match="quantiles must increase"):
            kind(wrong)


def test_networks_learn_the_quantiles_of_a_gaussian():
    torch.manual_seed(0)
    x, y = torch.rand(4000, 2), torch.randn(4000)
    networks = [torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), QuantileHead(8, LEVELS)) for _ in range(2)]
    gb.train(networks, (x, y), QuantileLoss(LEVELS), epochs=15, learning_rate=0.01)
    for network in networks:
        torch.testing.assert_close(network(x).mean(0).double(), torch.tensor(norm.ppf(LEVELS)), atol=0.15, rtol=0)
