import numpy as np
import pytest
import torch

from guardband.data.target import Target
from guardband.data.transforms import NAMED, learn_slack

EVERY = 10 ** np.random.default_rng(0).uniform(-12, 12, 5000)
VALUES = {
    "log": EVERY,
    "log1p": np.r_[0.0, EVERY, -0.999 * np.random.default_rng(1).random(100)],
    "asinh": np.r_[0.0, EVERY, -EVERY, 1e300, -1e300],
    "sqrt": np.r_[0.0, EVERY],
}
CUBE_ROOT = (np.cbrt, lambda w: w**3)


@pytest.mark.parametrize("name", NAMED)
def test_every_value_lies_between_its_own_ends(name):
    y = VALUES[name]
    target = Target(name, None, None)
    work = target.to_work(y)
    lower, point, upper = target.to_units(work, work, work)
    assert ((lower <= y) & (y <= upper) & (lower <= point) & (point <= upper)).all()
    assert (upper - lower <= 1e-14 * (np.abs(y) + np.abs(work)) * (1 + np.abs(work))).all()


@pytest.mark.parametrize("name", NAMED)
def test_torch_gives_the_same(name):
    target = Target(name, None, None)
    ends = [np.r_[-np.inf, np.linspace(-3, 3, 101), 30] + shift for shift in (-1, 0, 1)]
    for own, other in zip(target.to_units(*ends), target.to_units(*map(torch.from_numpy, ends), torch), strict=True):
        np.testing.assert_allclose(other.numpy(), own, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(("name", "edge"), [("log", 0), ("log1p", -1), ("sqrt", 0), ("asinh", -np.inf)])
def test_lower_ends_beyond_the_edge_are_the_edge(name, edge):
    lower, _, upper = Target(name, None, None).to_units(np.array([-np.inf]), np.zeros(1), np.array([np.inf]))
    assert (lower[0], upper[0]) == (edge, np.inf)
    assert Target("sqrt", None, None).to_units(-np.ones(1), -np.ones(1), -np.ones(1)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("name", "y", "words"),
    [
        ("log", [1.0, 0.0], r'positive for target_transform="log", found 0: see row 1. Use the transform "log1p"'),
        ("log", [-2.0, 1.0], r'found -2: see row 0. Use the transform "asinh"'),
        (
            "sqrt",
            [1.0, -3.0],
            r'at least 0 for target_transform="sqrt", found -3: see row 1. Use .* "asinh"',
        ),
        ("log1p", [1.0, -1.0], r'above -1 for target_transform="log1p", found -1: see row 1. Use .* "asinh"'),
    ],
)
def test_what_a_transform_cannot_take_is_refused_with_one_that_can(name, y, words):
    with pytest.raises(ValueError, match=words):
        Target(name, None, None).to_work(np.array(y))


def test_a_pair_of_functions_keeps_every_value():
    y = np.r_[EVERY, -EVERY, 0.0]
    target = Target(CUBE_ROOT, None, None).learn(y)
    work = target.to_work(y)
    lower, _, upper = target.to_units(work, work, work)
    assert ((lower <= y) & (y <= upper)).all()
    torches = target.to_units(*(torch.from_numpy(work) for _ in range(3)), torch)
    np.testing.assert_allclose(torches[0].numpy(), lower, rtol=1e-14)
    root = Target((np.sqrt, lambda w: np.where(w < 0, np.nan, w**2)), None, None).learn(EVERY)
    lower, _, upper = root.to_units(np.array([-2.0]), np.array([1.0]), np.array([np.inf]))
    assert (lower[0], upper[0]) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ((lambda y: -y, lambda w: -w), "must be increasing"),
        ((lambda y: 0 * y, lambda w: w), "must be increasing"),
        ((np.log, lambda w: w), "must undo the first"),
        ((np.log, lambda w: 1.0), "must return a finite number for each"),
        ((np.log, lambda w: w + np.inf), "must return a finite number for each"),
        ((lambda y: y[:2], lambda w: w), "array of the shape it gets"),
    ],
)
def test_what_is_no_increasing_pair_is_refused(pair, words):
    with pytest.raises(ValueError, match=words):
        learn_slack(pair, EVERY)


def test_rows_that_a_function_cannot_take_are_named():
    target = Target((np.log, np.exp), None, None)
    with pytest.raises(ValueError, match=r"finite after your target_transform, found 0: see row 1\. Use one"):
        target.to_work(np.array([1.0, 0.0]))
    assert target.possible(np.array([1.0, 0.0])).tolist() == [True, False]


def test_torch_says_if_it_cannot_compute_an_inverse():
    def inverse(w):
        return w.astype(float) ** 3

    target = Target((np.cbrt, inverse), None, None).learn(EVERY)
    with pytest.raises(ValueError, match="torch cannot compute the inverse"):
        target.to_units(*(torch.zeros(2, dtype=torch.float64) for _ in range(3)), torch)
