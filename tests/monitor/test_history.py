"""The history: blocks that are joined in time, and lose no row."""

import numpy as np
import pytest

from guardband.monitor.cells import CELLS
from guardband.monitor.history import BLOCKS, FIRST_SIZE, History


def grown(n, seed=0, parts=7):
    random = np.random.default_rng(seed)
    missed, width, evidence = random.random(n) < 0.2, random.random(n), random.standard_normal(n)
    width[::9] = np.inf
    time, cells = np.arange(n) / 10, random.integers(-1, CELLS + 1, (n, 2)).astype(np.int16)
    history = History.empty(2)
    for part in np.array_split(np.arange(n), parts):
        history = history.added(missed[part], width[part], evidence[part], time[part], cells[part])
    return history, missed, width, evidence, time, cells


@pytest.mark.parametrize("n", [1, FIRST_SIZE * BLOCKS, FIRST_SIZE * BLOCKS + 1, 30_011])
def test_no_row_is_lost_when_blocks_are_joined(n):
    history, missed, width, evidence, time, cells = grown(n)
    finite = np.isfinite(width)
    assert history.total == n
    assert history.misses.sum() == missed.sum()
    assert history.finite.sum() == finite.sum()
    assert history.width.sum() == pytest.approx(width[finite].sum())
    assert history.seen.sum() == (cells >= 0).sum()
    assert history.lost.sum() == (cells[missed] >= 0).sum()
    block = np.arange(n) // history.size
    assert history.used == block[-1] + 1 <= BLOCKS
    for j in range(history.used):
        rows = block == j
        assert history.rows[j] == rows.sum()
        assert history.peak[j] == evidence[rows].max()
        assert history.last[j] == evidence[rows][-1]
        assert (history.begin[j], history.end[j]) == (time[rows][0], time[rows][-1])


def test_the_size_is_constant_however_many_rows_there_are():
    few, many = grown(10)[0], grown(20_000)[0]
    assert few.seen.shape == many.seen.shape == (BLOCKS, 2, CELLS + 1)


def test_rows_since_a_row_are_those_from_its_block_on():
    history, missed, *_, cells = grown(5_000)
    first = history.block_of(3_000) * history.size
    seen, lost = history.since(3_000)
    assert seen.sum() == (cells[first:] >= 0).sum()
    assert lost.sum() == (cells[first:][missed[first:]] >= 0).sum()


def test_no_rows_change_nothing():
    none = np.empty(0)
    empty = History.empty(2)
    assert empty.added(none.astype(bool), none, none, none, np.empty((0, 2), np.int16)) is empty
