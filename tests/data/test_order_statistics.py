"""Keys are ordered as floats are, and quantiles of neighbours are numpy's, to the last bit."""

import numpy as np
import pytest

from guardband.data.order_statistics import between, keys_of, middle_ranks, ranks_around, values_of

ENDS = [-1.7976931348623157e308, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.7976931348623157e308]


def test_keys_are_ordered_as_values_and_lead_back_to_them():
    keys = keys_of(np.array(ENDS))
    assert (np.diff(keys.astype(object)) >= 0).all()
    assert keys[3] == keys[4]
    np.testing.assert_array_equal(values_of(keys), ENDS)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 10, 99, 100, 1001])
def test_quantiles_and_medians_are_numpys(n):
    random = np.random.default_rng(n)
    for values in (random.standard_normal(n), random.standard_cauchy(n), np.round(random.standard_normal(n))):
        known = np.sort(values)
        for share in (0.25, 0.5, 0.75, 0.99, 0.01):
            low, high = ranks_around(share, n)
            assert between(known[low], known[high], share, n) == np.quantile(values, share)
        assert np.mean(known[list(middle_ranks(n))]) == np.median(values)
