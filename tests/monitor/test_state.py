"""The state after rows: the same however they are divided into updates, also for groups, levels and inputs."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from guardband.data.reference import Reference
from guardband.data.table import read_table
from guardband.monitor.cells import cells_of, codes_of
from guardband.monitor.evidence_process import Stream, advanced
from guardband.monitor.history import History
from guardband.monitor.miss_law import MissLaw
from guardband.monitor.rows import PredictedRows
from guardband.monitor.state import AT_A_TIME, State
from guardband.monitor.watched import Statement, Watched

RANK, SHARE = MissLaw(rank=(181, 200)), MissLaw(share=0.9)
WATCHED = {
    "one statement": (Statement(RANK, 0.9, 0),),
    "groups": tuple(Statement(RANK, 0.9, 0, group) for group in range(3)),
    "groups of several columns": tuple(Statement(SHARE, 0.9, 0, group) for group in range(5)),
    "levels": (Statement(RANK, 0.9, 0), Statement(MissLaw(rank=(101, 200)), 0.5, 1)),
    "tails": (Statement(RANK, 0.9, 0, side="lower"), Statement(RANK, 0.9, 0, side="upper")),
}
N = AT_A_TIME + 1_700


def rows_of(n=N, seed=0):
    random = np.random.default_rng(seed)
    table = read_table(pd.DataFrame({"a": random.standard_normal(n), "b": random.choice(["x", "y"], n)}))
    cells = cells_of(Reference.learn(table, np.zeros(n)))
    group = np.stack([random.integers(-1, 3, n), random.integers(3, 5, n)], axis=1)
    lower = np.stack([np.full(n, -1.6), np.full(n, -0.7)], axis=1)
    lower[::50] = -np.inf
    time = np.sort(random.random(n))
    none = np.zeros(n, dtype=np.uint64)
    rows = PredictedRows(lower, np.zeros(n), -lower, group, codes_of(cells, table, n), time, none, none)
    return rows, random.standard_normal(n) * 1.1, cells


def judged(state, rows, y, own, cells):
    return state.judged(rows, y, own, "both", cells, 0.01)


@pytest.mark.parametrize("name", WATCHED)
def test_it_does_not_matter_how_rows_are_divided_into_updates(name):
    rows, y, cells = rows_of()
    own = Watched(WATCHED[name], 4.0, 0.01)
    whole = judged(State.empty(len(own.statements), 2), rows, y, own, cells)
    parts = State.empty(len(own.statements), 2)
    for part in np.split(np.arange(N), np.sort(np.random.default_rng(1).integers(0, N, 60))):
        parts = judged(parts, rows.take(part), y[part], own, cells)
    for first, second in zip(whole.streams, parts.streams, strict=True):
        for each in fields(Stream):
            np.testing.assert_allclose(getattr(first, each.name), getattr(second, each.name), atol=1e-9)
    for each in fields(History):
        np.testing.assert_allclose(getattr(whole.history, each.name), getattr(parts.history, each.name), atol=1e-9)
    assert np.array_equal(whole.inputs.counts, parts.inputs.counts)
    assert (whole.inputs.look, whole.inputs.moved) == (parts.inputs.look, parts.inputs.moved)
    assert whole.alarm_row == parts.alarm_row
    assert (whole.log_evidence, whole.peak) == pytest.approx((parts.log_evidence, parts.peak), abs=1e-9)


def test_a_group_is_judged_by_its_own_rows_alone():
    rows, y, cells = rows_of()
    own = Watched(WATCHED["groups"], 4.0, 0.01)
    state = judged(State.empty(3, 2), rows, y, own, cells)
    for group, stream in enumerate(state.streams):
        at = np.flatnonzero((rows.group == group).any(axis=1))
        missed = ~rows.inside(y, "both", 0)[at]
        expected, _ = advanced(Stream(), RANK, missed, at)
        np.testing.assert_allclose(stream.bets, expected.bets, atol=1e-9)
        assert (stream.rows, stream.misses, stream.place) == (len(at), missed.sum(), expected.place)


def test_the_alarm_is_at_the_first_row_whose_evidence_reaches_the_limit_and_stays():
    rows, _, cells = rows_of()
    own = Watched(WATCHED["one statement"], np.log(100), 0.01)
    y = np.where(np.arange(N) < 12, 3.0, 0.0)  # outside, and then inside for ever
    _, path = advanced(Stream(), RANK, ~rows.inside(y, "both", 0))
    state = judged(State.empty(1, 2), rows, y, own, cells)
    assert state.alarm_row == np.flatnonzero(path >= np.log(100))[0] + 1
    assert state.log_evidence < np.log(100) < state.peak == pytest.approx(path.max())
    assert (state.rows, state.misses) == (N, (~rows.inside(y, "both", 0)).sum())


def test_infinite_intervals_hold_every_row():
    rows, y, cells = rows_of(500)
    wide = PredictedRows(
        rows.lower - np.inf, rows.point, rows.upper + np.inf, *(getattr(rows, each.name) for each in fields(rows)[3:])
    )
    state = judged(State.empty(1, 2), wide, 1e300 * y, Watched(WATCHED["one statement"], 4.0, 0.01), cells)
    assert state.misses == 0
    assert state.log_evidence < 0
