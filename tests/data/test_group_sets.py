"""The groups of a row as bits of one number, beside a sum of powers of two."""

import numpy as np
import pytest

from guardband.data.group_sets import MOST_BITS, ROWS_AT_A_TIME, codes_of, flags_of, sets_of


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 1_000])
@pytest.mark.parametrize("groups", [1, 2, 3, 7, 8, 9, 10, 15, 16, 17, 25, 31, MOST_BITS])
def test_a_set_has_the_bit_of_each_group(rows, groups):
    flags = np.random.default_rng(groups).random((rows, groups)) < 0.5
    sets = sets_of(flags)
    np.testing.assert_array_equal(sets, flags @ 2 ** np.arange(groups))
    np.testing.assert_array_equal(flags_of(sets, groups), flags)


def test_blocks_of_rows_join():
    flags = np.random.default_rng(0).random((2 * ROWS_AT_A_TIME + 5, 3)) < 0.5
    np.testing.assert_array_equal(sets_of(flags), flags @ [1, 2, 4])


@pytest.mark.parametrize("rows", [0, 7, 30, 1_000])
def test_a_code_is_the_number_of_its_column(rows):
    flags = np.random.default_rng(1).random((rows, 4)) < 0.5
    np.testing.assert_array_equal(codes_of(flags), np.where(flags, np.arange(4), -1))
