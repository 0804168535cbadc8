"""The losses beside the interval loss, and what all of them can do for many networks at once."""

import math

import pytest
import torch

from guardband.nn import AbsoluteLoss, GaussianHead, GaussianLoss, IntervalLoss, PearceLoss
from guardband.nn.gaussian import PositiveDeviation
from guardband.nn.heads import Gaussian
from guardband.nn.interval_gradient import IntervalGradient
from guardband.nn.mixed import MixedLoss, stack_losses
from guardband.nn.ordering import OrderedTriple

CPU = torch.device("cpu")
EACH = [
    (IntervalLoss, [{"tau": 0.1}, {"tau": 0.3}]),
    (AbsoluteLoss, [{}, {}]),
    (GaussianLoss, [{}, {}]),
    (PearceLoss, [{"tau": 0.1, "softness": 5.0}, {"tau": 0.2, "softness": 3.0, "penalty": 4.0}]),
]


def outputs_for(kind, size=2, n=30, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    outputs = torch.randn(size, n, kind.columns, generator=generator, dtype=dtype).sort(-1).values
    y = torch.randn(size, n, generator=generator, dtype=dtype)
    return (PositiveDeviation()(outputs) if kind is GaussianLoss else outputs), y


def test_gaussian_is_the_likelihood_of_the_normal_law():
    outputs, y = outputs_for(GaussianLoss)
    law = torch.distributions.Normal(outputs[..., 0], outputs[..., 1])
    torch.testing.assert_close(GaussianLoss().rows(outputs, y), -law.log_prob(y))


def test_a_gaussian_head_ends_in_a_mean_and_a_thousandth_plus_a_softplus():
    torch.manual_seed(0)
    head, x = GaussianHead(4).double(), 3 * torch.randn(50, 4, dtype=torch.float64)
    raw, outputs = head[0](x), head(x)
    torch.testing.assert_close(outputs[..., 0], raw[..., 0])
    torch.testing.assert_close(outputs[..., 1], 1e-3 + raw[..., 1].exp().log1p())


def test_gaussian_stands_outputs_that_are_far_off():
    """An exponential of either would overflow, and end the training of the network."""
    outputs = torch.tensor([[0.0, -500.0], [0.0, 500.0]], requires_grad=True)
    loss = GaussianLoss()(PositiveDeviation()(outputs), torch.tensor([3.0, 3.0]))
    loss.backward()
    assert loss.isfinite()
    assert outputs.grad.isfinite().all()
    read = Gaussian().read(PositiveDeviation()(outputs.detach())[None, None], torch)
    assert (read.deviation > 0).all()
    assert read.deviation[0, 0, 1] < 1000


def test_absolute_is_the_mean_distance():
    outputs, y = outputs_for(AbsoluteLoss)
    torch.testing.assert_close(AbsoluteLoss()(outputs, y), (outputs[..., 0] - y).abs().mean(-1))


def test_pearce_is_the_papers_formula():
    outputs, y = outputs_for(PearceLoss, size=1)
    tau, softness, penalty = 0.1, 5.0, 4.0
    width = captured = soft = 0.0
    for (lower, upper), response in zip(outputs[0].tolist(), y[0].tolist(), strict=True):
        inside = lower <= response <= upper
        captured += inside
        width += (upper - lower) * inside
        soft += 1 / (1 + math.exp(-softness * (response - lower))) / (1 + math.exp(-softness * (upper - response)))
    n = y.shape[1]
    expected = width / captured + penalty * n / (tau * (1 - tau)) * max(0, 1 - tau - soft / n) ** 2
    assert PearceLoss(tau, softness, penalty)(outputs, y).item() == pytest.approx(expected, rel=1e-6)


def test_pearce_without_any_captured_row_still_has_a_slope():
    outputs = torch.tensor([[[5.0, 6.0]] * 4], requires_grad=True)
    loss = PearceLoss(0.1, softness=1.0)(outputs, torch.zeros(1, 4))
    (slope,) = torch.autograd.grad(loss.sum(), outputs)
    assert loss.isfinite().all()
    assert slope[..., 0].gt(0).all()  # lower bounds are to go down


@pytest.mark.parametrize(("kind", "settings"), EACH)
def test_gradients_agree_with_finite_differences(kind, settings):
    outputs, y = outputs_for(kind)
    loss = kind(**settings[0]).double()
    weight = torch.rand(y.shape, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda out: loss(out, y), outputs.requires_grad_())
    assert torch.autograd.gradcheck(lambda out: loss(out, y, weight), outputs)


@pytest.mark.parametrize(("kind", "settings"), EACH)
def test_many_at_once_are_each_alone(kind, settings):
    outputs, y = outputs_for(kind)
    losses = [kind(**own) for own in settings]
    alone = torch.stack([loss(out, own) for loss, out, own in zip(losses, outputs, y, strict=True)])
    together = stack_losses(losses, CPU)
    assert isinstance(together, kind)
    torch.testing.assert_close(together(outputs, y), alone)
    torch.testing.assert_close(together.take([1])(outputs[1:], y[1:]), alone[1:])


@pytest.mark.parametrize(("kind", "settings"), EACH)
def test_a_weight_of_zero_leaves_a_row_out_and_of_two_counts_it_twice(kind, settings):
    outputs, y = outputs_for(kind, size=1)
    loss, keep = kind(**settings[0]), torch.arange(30) < 15
    if kind is PearceLoss:  # its penalty grows with the number of rows
        loss.penalty /= torch.tensor(2.0)
        half = kind(**settings[0])(outputs[:, keep], y[:, keep])
        torch.testing.assert_close(loss(outputs, y, keep.double()[None]), half)
        return
    torch.testing.assert_close(loss(outputs, y, keep.double()[None]), loss(outputs[:, keep], y[:, keep]))
    twice = torch.cat([outputs, outputs[:, keep]], 1), torch.cat([y, y[:, keep]], 1)
    torch.testing.assert_close(loss(outputs, y, 1 + keep.double()[None]), loss(*twice))


def test_a_mixture_gives_each_member_its_own_loss():
    outputs, y = outputs_for(GaussianLoss, size=5)

    def own(out, y, weight=None):
        return (out.sum(-1) - y).square().mean(-1)

    losses = [GaussianLoss(), PearceLoss(0.1, 5.0), own, GaussianLoss(), PearceLoss(0.3, 2.0)]
    mixed = stack_losses(losses, CPU)
    assert isinstance(mixed, MixedLoss)
    alone = [loss(outputs[i : i + 1], y[i : i + 1]) for i, loss in enumerate(losses)]
    torch.testing.assert_close(mixed(outputs, y), torch.cat(alone))
    torch.testing.assert_close(mixed.take([4, 0])(outputs[[4, 0]], y[[4, 0]]), torch.cat([alone[4], alone[0]]))


@pytest.mark.parametrize("below", [None, [0.02, 0.15, 0.3]])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("power", "point"), [(1, "median"), (2, "median"), (1, "mean")])
@pytest.mark.parametrize("ordering", ["softplus", "relu"])
def test_the_gradient_by_hand_is_autograds(ordering, power, point, weighted, below):
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(3, 3, 200, generator=generator).requires_grad_()
    y = torch.randn(3, 200, generator=generator)
    weight = torch.rand(3, 200, generator=generator) if weighted else None
    loss = IntervalLoss([0.1, 0.2, 0.4], power, point, below)
    (expected,) = torch.autograd.grad(loss(OrderedTriple(ordering)(z.mT), y, weight).sum(), z)
    torch.testing.assert_close(IntervalGradient(loss, ordering)(z.detach(), y, weight), expected)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (PearceLoss, {"tau": 1.0}),
        (PearceLoss, {"tau": 0.1, "softness": 0}),
        (PearceLoss, {"tau": 0.1, "penalty": -1}),
        (PearceLoss, {"tau": [0.1, 0.2], "penalty": [1, 2, 3]}),
        (IntervalLoss, {"tau": [[0.1]]}),
        (IntervalLoss, {"tau": []}),
    ],
)
def test_other_settings_are_refused(kind, wrong):
    with pytest.raises(ValueError, match="must"):
        kind(**wrong)


@pytest.mark.parametrize("kind", [IntervalLoss, AbsoluteLoss, GaussianLoss, PearceLoss])
def test_other_shapes_are_refused(kind):
    loss = kind(0.1) if kind.per_member else kind()
    with pytest.raises(ValueError, match=rf"\(\.\.\., n, {kind.columns}\)"):
        loss(torch.zeros(5, 4), torch.zeros(5))
