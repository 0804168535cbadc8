import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardband.monitor.tables import KEPT, SMALLEST, described, first_row_of, refuse_more

NONE = np.empty(0, dtype=np.uint64)


def prints_of(seed, n):
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


@given(st.integers(0, 99), st.integers(1, 300), st.integers(0, 10**9))
def test_a_table_is_known_again_in_any_order(seed, n, before):
    prints = prints_of(seed, n)
    tables = np.concatenate([described(prints_of(seed + 100, n), 5), described(prints, before)])
    assert len(tables) == 2 * KEPT
    assert first_row_of(np.random.default_rng(0).permutation(prints), tables) == before
    assert first_row_of(prints[1:], tables) is None
    assert first_row_of(prints, NONE) is None


@given(st.integers(0, 99), st.integers(SMALLEST, 300), st.integers(1, 300))
def test_a_table_that_holds_an_earlier_one_is_refused_and_a_new_one_is_not(seed, n, more):
    prints, new = prints_of(seed, n), prints_of(seed + 100, more)
    tables = described(prints, 0)
    with pytest.raises(ValueError, match="contains the rows of a table that was counted before"):
        refuse_more(np.concatenate([new, prints]), tables)
    refuse_more(new, tables)
    refuse_more(np.concatenate([new, prints[1:]])[:more], tables)
    refuse_more(new, NONE)


def test_tables_whose_rows_are_often_equal_are_known_again_only_as_a_whole():
    """Of rows with few different values every table holds all, by chance."""
    random = np.random.default_rng(0)
    values = prints_of(0, 30)
    first, second = random.choice(values, 500), random.choice(values, 600)
    tables = described(first, 0)
    refuse_more(second, tables)
    assert first_row_of(second, tables) is None
    assert first_row_of(first[::-1], tables) == 0
