"""One network for several targets: outputs, losses and gradients are those of each target alone."""

import pytest
import torch

from guardband.bands.predicted_several import PredictedSeveral
from guardband.nn.each_gradient import EachGradient
from guardband.nn.each_target import EachOrder, EachTarget, EachTargetHead, EachTargetLoss
from guardband.nn.heads import Median, NestedTriples, Triple
from guardband.nn.interval_gradient import IntervalGradient
from guardband.nn.loss import IntervalLoss
from guardband.nn.ordering import OrderedTriple
from guardband.nn.quantile_gradient import QuantileGradient
from guardband.nn.quantiles import OrderedQuantiles, QuantileLoss

HEADS = [Median(), Triple(0.1), Triple(0.2, power=2), NestedTriples.of([0.1, 0.3])]


@pytest.mark.parametrize("base", HEADS)
def test_outputs_are_those_of_each_target_alone(base):
    torch.manual_seed(0)
    lasts = [base.last(5, "softplus") for _ in range(3)]
    x = torch.randn(7, 5)
    found = EachTargetHead(lasts)(x)
    torch.testing.assert_close(found, torch.cat([last(x) for last in lasts], dim=-1))
    head = EachTarget(base, 3)
    assert found.shape[-1] == head.columns
    predicted = head.read(found.detach().numpy()[None, None])
    assert isinstance(predicted, PredictedSeveral)
    assert len(predicted.targets) == 3


@pytest.mark.parametrize("base", HEADS)
def test_the_loss_is_the_sum_over_targets_and_a_missing_one_adds_nothing(base):
    torch.manual_seed(0)
    one, loss = base.loss(), EachTarget(base, 2).loss()
    outputs, y = torch.randn(4, 9, 2 * base.columns), torch.randn(4, 9, 2)
    each = outputs.split(base.columns, dim=-1)
    expected = one.rows(each[0], y[..., 0]) + one.rows(each[1], y[..., 1])
    torch.testing.assert_close(loss.rows(outputs, y), expected)
    y[:, 3, 1] = torch.nan
    torch.testing.assert_close(loss.rows(outputs, y)[:, 3], one.rows(each[0], y[..., 0])[:, 3])
    torch.testing.assert_close(loss.take([0]).rows(outputs[:1], y[:1]), loss.rows(outputs, y)[:1])
    together = loss.together([loss, loss])
    torch.testing.assert_close(together.rows(outputs[:2], y[:2]), loss.rows(outputs, y)[:2])
    with pytest.raises(ValueError, match="EachTargetLoss needs outputs"):
        loss(outputs, y[..., 0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["interval", "squared", "quantiles"])
def test_the_gradient_by_hand_is_autograds(kind, weighted):
    if kind == "quantiles":
        levels = [0.05, 0.5, 0.95]
        one, end = QuantileLoss(levels), OrderedQuantiles(3)
        by_hand = QuantileGradient(one.double(), end)
    else:
        one, end = IntervalLoss([0.1, 0.2], 2 if kind == "squared" else 1), OrderedTriple()
        by_hand = IntervalGradient(one.double(), "softplus")
    torch.manual_seed(0)
    z, y = torch.randn(2, 6, 50, dtype=torch.float64), torch.randn(2, 50, 2, dtype=torch.float64)
    y[:, ::7, 0] = torch.nan
    weight = torch.rand(2, 50, dtype=torch.float64) if weighted else None
    loss, order = EachTargetLoss(one, 2), EachOrder(end, 2)
    (expected,) = torch.autograd.grad(loss(order(z.requires_grad_().mT), y, weight).sum(), z)
    torch.testing.assert_close(EachGradient(by_hand)(z.detach(), y, weight), expected, atol=1e-14, rtol=1e-12)
