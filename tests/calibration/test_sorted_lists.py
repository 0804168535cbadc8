from __future__ import annotations

import numpy as np
import pytest

from guardband.calibration.sorted_lists import SHORT, kth_smallest

KINDS = ("normal", "ties", "infinite", "shifted")


def _lists(kind: str, lengths: np.ndarray, rows: int, rng: np.random.Generator) -> list[np.ndarray]:
    shapes = [(length, rows) for length in lengths]
    if kind == "ties":
        return [np.sort(rng.integers(0, 4, shape).astype(float), axis=0) for shape in shapes]
    made = [np.sort(rng.standard_normal(shape), axis=0) for shape in shapes]
    if kind == "infinite":
        made = [np.sort(np.where(rng.random(own.shape) < 0.3, np.inf, own), axis=0) for own in made]
    if kind == "shifted":  # lists that do not overlap
        made = [own + 100 * rng.integers(-3, 4, (1, rows)) for own in made]
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_the_kth_of_all_lists_is_that_of_their_union(kind: str) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(40):
        lengths = rng.integers(1, 3 * SHORT, rng.integers(1, 7))
        rows = int(rng.integers(1, 5))
        lists = _lists(kind, lengths, rows, rng)
        union = np.sort(np.concatenate(lists), axis=0)

        def entry(places: np.ndarray, lists: list[np.ndarray] = lists, rows: int = rows) -> np.ndarray:
            each = zip(lists, places, strict=True)
            return np.stack([own[np.minimum(at, len(own) - 1), np.arange(rows)] for own, at in each])

        for k in range(1, len(union) + 1):
            assert np.array_equal(kth_smallest(entry, lengths, k, rows), union[k - 1])


def test_few_entries_are_looked_at() -> None:
    rng, looks = np.random.default_rng(0), 0
    every = np.sort(rng.standard_normal((8, 1250, 100)), axis=1)

    def entry(places: np.ndarray) -> np.ndarray:
        nonlocal looks
        looks += 1
        return np.take_along_axis(every, np.minimum(places, 1249)[:, None], axis=1)[:, 0]

    found = kth_smallest(entry, np.full(8, 1250), 9001, 100)
    assert np.array_equal(found, np.sort(every.reshape(-1, 100), axis=0)[9000])
    assert looks < 8 * np.log2(1250)


def test_many_short_lists_and_no_rows_at_all() -> None:
    """So many entries that a partition at another place would leave them in another order."""
    rng = np.random.default_rng(0)
    every = np.sort(rng.standard_normal((150, SHORT, 2)), axis=1)
    union = np.sort(every.reshape(-1, 2), axis=0)
    lengths = np.full(150, SHORT)

    def entry(places: np.ndarray) -> np.ndarray:
        return np.take_along_axis(every, places[:, None], axis=1)[:, 0]

    for k in (*range(1, 1200, 37), 1200):
        assert np.array_equal(kth_smallest(entry, lengths, k, 2), union[k - 1])
    assert kth_smallest(lambda places: places * 1.0, np.full(3, 2 * SHORT), 5, 0).shape == (0,)
