"""Precision: decimals and even steps tell how many values numbers could have."""

import numpy as np
import pytest

from guardband.learning.precision import counts_rows, possible_values


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_decimals_tell_how_many_values_there_could_be(kind):
    values = np.round(np.random.default_rng(0).uniform(0, 10, size=50), 2)
    values[:2] = 0, 10
    assert possible_values(values.astype(kind).astype(float)) == 1000


def test_even_steps_are_seen_after_numbers_were_standardised():
    whole = np.arange(18, 91)
    assert possible_values((whole - 50) / 17.3) == 72


def test_measurements_of_full_precision_could_have_any_value():
    assert possible_values(np.random.default_rng(0).normal(size=50)) > 10**14


def test_only_numbers_in_even_steps_count_rows():
    rng = np.random.default_rng(0)
    some = np.sort(rng.permutation(1000)[:200])
    assert counts_rows(np.arange(10.0))
    assert counts_rows(some.astype(float))
    assert counts_rows(0.1 * some)
    assert not counts_rows(np.sort(rng.uniform(size=200)))
    assert not counts_rows(np.array([1.0, 1, 2, 3]))
    assert not counts_rows(np.array([1.0, np.nan, 2]))
    assert not counts_rows(np.array([1.0, 2, 500, 1000]))
