"""A set of keys: found again, in order, whether they came one at a time or many at once."""

import numpy as np
import pytest

from guardband.monitor.key_set import MOST_LATEST, KeySet


@pytest.mark.parametrize("at_once", [1, 25, MOST_LATEST + 1])
def test_keys_are_found_again_and_stay_in_order(at_once):
    random, own, seen = np.random.default_rng(0), KeySet(), {}
    for _ in range(30):
        keys = np.unique(random.integers(0, 2**64, at_once, dtype=np.uint64) >> np.uint64(50) << np.uint64(50))
        assert own.row_of(keys).tolist() == [seen.get(key, -1) for key in keys.tolist()]
        new = keys[~own.has(keys)]
        rows = len(seen) + np.arange(len(new))
        own, seen = own.added(new, rows), seen | dict(zip(new.tolist(), rows.tolist(), strict=True))
        assert own.in_order().settled.tolist() == sorted(seen)
        assert len(own) == len(seen)


def test_of_many_keys_only_the_latest_are_out_of_order():
    own = KeySet()
    for first in range(0, 5000, 10):
        own = own.added(np.arange(first, first + 10, dtype=np.uint64), np.arange(first, first + 10))
    assert len(own.latest) <= MOST_LATEST
    assert len(own.settled) == 5000 - len(own.latest)
