"""Selections by Benjamini and Hochberg's rule, and probabilities as arrays."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardband.bands.stated import Probabilities, Selection, benjamini_hochberg


def by_definition(counts, n, fdr):
    """Return which of the p-values counts / n are chosen, in exact arithmetic."""
    p, q = [Fraction(c, n) for c in counts], Fraction(str(fdr))
    for r in range(len(p), 0, -1):
        limit = q * r / len(p)
        if sum(own <= limit for own in p) >= r:
            return [own <= limit for own in p]
    return [False] * len(p)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=30), st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.3, 0.7]))
def test_the_rule_is_that_of_its_definition(counts, fdr):
    assert benjamini_hochberg(np.array(counts) / 20, fdr).tolist() == by_definition(counts, 20, fdr)


def test_probabilities_are_an_array_and_a_series():
    own = Probabilities(np.array([0.1, 0.9]), "above 3", None, pd.Index(["a", "b"]))
    assert (np.asarray(own) > 0.5).tolist() == [False, True]
    assert len(own) == 2
    assert repr(own) == "Probabilities of 2 rows to lie above 3: [0.1 0.9]"
    assert own.to_pandas().name == "probability_above_3"
    assert list(own.to_pandas().index) == ["a", "b"]


def test_a_selection_counts_its_rows():
    own = Selection(np.array([True, False, True]), np.array([0.01, 0.5, 0.02]), "above 3", None)
    assert len(own) == 2
    assert repr(own) == "Selection of 2 of 3 rows that lie above 3"
    assert own.rows.tolist() == [0, 2]


@pytest.mark.parametrize("n", [1, 5])
def test_no_row_may_be_chosen(n):
    assert not benjamini_hochberg(np.ones(n), 0.5).any()
