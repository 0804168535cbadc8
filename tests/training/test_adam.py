import numpy as np
import pytest
import torch

from guardband.training.adam import Adam, clip_, coefficients, copy_each_, lerp_each_

STEPS, SIZE = 40, 3


def problem(seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(SIZE, 4, 5), (SIZE, 4)]
    start = [torch.randn(shape, generator=generator) for shape in shapes]
    gradients = [[torch.randn(shape, generator=generator) for shape in shapes] for _ in range(STEPS)]
    return start, gradients


def ours(rates):
    start, gradients = problem()
    parameters = [p.clone() for p in start]
    adam = Adam(parameters)
    for gradient, own in zip(gradients, torch.from_numpy(coefficients(rates, 0)), strict=True):
        adam.step(gradient, own)
    return parameters


def theirs(rates, member):
    start, gradients = problem()
    parameters = [p[member].clone().requires_grad_() for p in start]
    optimiser = torch.optim.Adam(parameters, lr=1.0)
    for gradient, rate in zip(gradients, rates, strict=True):
        optimiser.param_groups[0]["lr"] = float(rate)
        for p, g in zip(parameters, gradient, strict=True):
            p.grad = g[member].clone()
        optimiser.step()
    return [p.detach() for p in parameters]


def test_one_rate_for_all_is_torchs_adam():
    rates = np.linspace(0.02, 0.001, STEPS)
    together = ours(rates)
    for member in range(SIZE):
        for a, b in zip(together, theirs(rates, member), strict=True):
            torch.testing.assert_close(a[member], b, atol=1e-6, rtol=1e-5)


def test_without_torchs_private_kernel_the_steps_are_the_same(monkeypatch):
    rates = np.linspace(0.02, 0.001, STEPS)
    expected = ours(rates)
    monkeypatch.delattr(torch, "_fused_adam_")
    for a, b in zip(expected, ours(rates), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)


def test_without_torchs_private_functions_for_lists_the_result_is_the_same(monkeypatch):
    def moved():
        tensors, others = problem()[0], problem(1)[0]
        lerp_each_(tensors, others, 0.3)
        copies = [torch.empty_like(t) for t in tensors]
        copy_each_(copies, tensors)
        return copies

    expected = moved()
    monkeypatch.delattr(torch, "_foreach_lerp_")
    monkeypatch.delattr(torch, "_foreach_copy_")
    assert all(a.equal(b) for a, b in zip(expected, moved(), strict=True))


def test_a_rate_for_each_is_torchs_adam_for_each():
    rates = np.linspace(0.02, 0.001, STEPS)[:, None] * np.array([1.0, 0.3, 0.0])
    together, start = ours(rates), problem()[0]
    for member in range(2):
        for a, b in zip(together, theirs(rates[:, member], member), strict=True):
            torch.testing.assert_close(a[member], b, atol=1e-6, rtol=1e-5)
    assert all(a[2].equal(b[2]) for a, b in zip(together, start, strict=True))  # a rate of zero moves nothing


def test_parameters_that_never_had_a_gradient_stay():
    start = [torch.ones(2, 3)]
    adam = Adam(start)
    for own in torch.from_numpy(coefficients(np.full((5, 2), 0.1), 0)):
        adam.step([torch.zeros(2, 3)], own)
    assert start[0].eq(1).all()


@pytest.mark.parametrize("rates", [np.full(STEPS, 0.01), np.full((STEPS, SIZE), 0.01)])
def test_saved_moments_go_on(rates):
    (start, gradients), half = problem(), STEPS // 2
    parameters = [p.clone() for p in start]
    adam = Adam(parameters)
    per_step = torch.from_numpy(coefficients(rates, 0))
    for i in range(half):
        adam.step(gradients[i], per_step[i])
    again = [p.clone() for p in parameters]
    other = Adam(again)
    other.load(adam.state())
    later = torch.from_numpy(coefficients(rates[half:], half))
    assert later.equal(per_step[half:])
    for i in range(half, STEPS):
        adam.step(gradients[i], per_step[i])
        other.step(gradients[i], later[i - half])
    assert all(a.equal(b) for a, b in zip(parameters, again, strict=True))


def test_clipping_is_each_members_own():
    gradients = [torch.randn(3, 4, 5), torch.randn(3, 4)]
    limits = [0.5, 1e9, 2.0]
    expected = []
    for i, limit in enumerate(limits):
        own = [g[i].clone().requires_grad_() for g in gradients]
        for p, g in zip(own, gradients, strict=True):
            p.grad = g[i].clone()
        torch.nn.utils.clip_grad_norm_(own, limit)
        expected.append([p.grad for p in own])
    clip_(gradients, torch.tensor(limits))
    for i in range(3):
        for a, b in zip(gradients, expected[i], strict=True):
            torch.testing.assert_close(a[i], b, atol=1e-6, rtol=1e-5)


def test_a_gradient_of_zero_survives_clipping():
    gradients = [torch.zeros(2, 3)]
    clip_(gradients, torch.tensor([1.0, 1.0]))
    assert gradients[0].eq(0).all()


def test_without_a_limit_nothing_is_changed_however_large():
    gradients = [torch.full((2, 3), 1e30)]
    clip_(gradients, torch.tensor([torch.inf, 1.0]))
    assert gradients[0][0].eq(1e30).all()
