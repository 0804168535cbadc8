"""The groups of a row as bits of one number, beside a sum of powers of two."""

import numpy as np
import pytest

from guardband.data.group_sets import (
    MOST_BITS,
    ROWS_AT_A_TIME,
    codes_of,
    flags_of,
    labels_of,
    numbers_of,
    sets_of,
)


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


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_labels_of_a_row_are_one_number(kind, order):
    labels = np.asarray(np.random.default_rng(0).integers(0, [4, 2, 14], (1_000, 3)), dtype=kind, order=order)
    number, bits = numbers_of(labels)
    assert bits == 4
    np.testing.assert_array_equal(number, labels.astype(int) @ [1, 16, 256])
    np.testing.assert_array_equal(labels_of(number, bits, 3), labels)


@pytest.mark.parametrize("row", [0, ROWS_AT_A_TIME // 4, 2 * ROWS_AT_A_TIME + 4])
def test_a_larger_label_is_seen_wherever_it_stands(row):
    labels = np.random.default_rng(1).integers(0, 4, (2 * ROWS_AT_A_TIME + 5, 2))
    labels[row, 1] = 255
    number, bits = numbers_of(labels)
    assert bits == 8
    np.testing.assert_array_equal(number, labels @ [1, 256])
    for other in (256, -1):
        labels[row, 1] = other
        assert numbers_of(labels) is None
