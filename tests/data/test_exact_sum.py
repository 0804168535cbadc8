"""Sums of floats are exact, in any order and of any parts."""

from fractions import Fraction

import numpy as np
import pytest

from guardband.data.exact_sum import AT_A_TIME, SHIFT, ExactSum


@pytest.mark.parametrize("exponents", [(0, 0), (-5, 5), (-300, 300)])
def test_the_sum_is_that_of_fractions(exponents):
    random = np.random.default_rng(0)
    values = random.standard_normal(3000) * 10.0 ** random.uniform(*exponents, 3000)
    exact = sum(map(Fraction, values.tolist()))
    found = ExactSum.of(values)
    assert Fraction(found.units, 1 << SHIFT) == exact
    assert found.mean == float(exact / 3000)


def test_the_ends_of_what_a_float_holds_add_up():
    ends = np.array([5e-324, -5e-324, 1.7976931348623157e308, 2.2e-308, 0.0, -0.0])
    assert Fraction(ExactSum.of(ends).units, 1 << SHIFT) == sum(map(Fraction, ends.tolist()))


def test_parts_in_any_order_have_the_same_sum():
    values = np.random.default_rng(1).standard_cauchy(2 * AT_A_TIME + 5)
    whole = ExactSum.of(values)
    mixed = np.random.default_rng(2).permutation(values)
    assert ExactSum.of(mixed[:7]) + ExactSum.of(mixed[7:]) == whole
    assert ExactSum.of(values[:0]) + whole == whole
