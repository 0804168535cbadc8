"""Long tails are found by their shape, whatever the unit, and nothing is lost on the scale for them."""

import numpy as np
import pytest
import torch

from guardband.data.tails import FEWEST, origin_and_unit, signed_exp, signed_log

RNG = np.random.default_rng(0)
LONG = {
    "lognormal": np.exp(2 * RNG.standard_normal(2000)),
    "counts, mostly zero": RNG.poisson(np.exp(2 * RNG.standard_normal(2000) - 1)).astype(float),
    "two sides": RNG.standard_cauchy(2000),
}
SHORT = {
    "normal": RNG.standard_normal(2000),
    "exponential": RNG.exponential(size=2000),
    "yes or no": (RNG.random(2000) < 0.02).astype(float),
    "constant": np.ones(2000),
    "too few": np.exp(3 * RNG.standard_normal(FEWEST - 1)),
    "beyond all numbers": np.r_[-1e308 * np.ones(900), 1e308 * np.ones(1100)],
    "farther than numbers go": np.r_[1e-200 * RNG.standard_normal(1900), 1e200 * RNG.random(100)],
    "none": np.empty(0),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_tail_has_a_unit_that_follows_the_values(name):
    origin, unit = origin_and_unit(LONG[name])
    assert unit > 0
    again, larger = origin_and_unit(1000 * LONG[name] + 7)
    assert again == pytest.approx(1000 * origin + 7)
    assert larger == pytest.approx(1000 * unit)


@pytest.mark.parametrize("name", SHORT)
def test_other_values_have_none(name):
    assert origin_and_unit(SHORT[name])[1] is None


def test_the_way_there_and_back_is_the_same_for_numpy_and_torch():
    values = np.r_[0.0, -1.0, 1e-12, LONG["two sides"], 1e12]
    there = signed_log(values, np)
    assert (np.diff(there[np.argsort(values)]) >= 0).all()
    np.testing.assert_allclose(signed_exp(there, np), values, rtol=1e-12)
    np.testing.assert_allclose(signed_log(torch.from_numpy(values), torch).numpy(), there, rtol=1e-15)
    np.testing.assert_allclose(signed_exp(torch.from_numpy(there), torch).numpy(), values, rtol=1e-12)
