"""The latest rows: exact if time does not matter, and seen if it does."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from guardband.data.table import read_table
from guardband.learning.dependence import FALSE_DOUBTS, Suspects
from guardband.learning.latest import LEAST_LOSS, compare_latest, look_at_latest
from guardband.learning.order import Order, possible_orders
from laws import SIGNIFICANCE


def rows(seed, n=400):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return rng, pd.DataFrame(x, columns=list("ab")), x[:, 0] + rng.normal(size=n)


def order_by(time):
    at = np.argsort(time, kind="stable")
    return Order("time", None, at, np.asarray(time, float)[at])


def test_the_p_value_is_exact_if_time_does_not_matter():
    """No input knows the time here, so rows drawn at random and the latest ones are exchangeable."""
    reached, limit, times = 0, 0.05, 200
    for seed in range(times):
        rng, X, y = rows(seed, 200)
        reached += compare_latest(read_table(X), y, order_by(rng.random(200)), 0.9, seed).p_value <= limit
    assert reached <= binom.isf(SIGNIFICANCE, times, limit)


def test_a_change_is_seen_with_both_shares():
    rng, X, y = rows(1, 1000)
    time = np.arange(1000.0)
    y = y * np.where(time > 750, 3, 1)
    shuffled = rng.permutation(1000)
    table, order = read_table(X.iloc[shuffled]), order_by(time[shuffled])
    found = look_at_latest(table, y[shuffled], order, 0.9, 0.001, 0)
    assert found.at_random == pytest.approx(0.9, abs=0.005)
    assert 0.3 < found.coverage < 0.65  # 1.645 of three standard deviations cover 42%
    assert found.in_words(" by 'day'") == (
        "A random split flatters: intervals of a small model that contain 90% of rows drawn at random contain "
        f"{100 * found.coverage:.0f}% of the latest rows by 'day'."
    )


def test_rows_that_become_easier_do_not_flatter():
    _, X, y = rows(2, 1000)
    y = y * np.where(np.arange(1000) > 750, 0.2, 1)
    found = compare_latest(read_table(X), y, order_by(np.arange(1000)), 0.9, 0)
    assert found.coverage > found.at_random
    assert look_at_latest(read_table(X), y, order_by(np.arange(1000)), 0.9, 0.001, 0) is None


def test_a_difference_that_is_small_or_due_to_chance_is_not_mentioned(monkeypatch):
    _, X, y = rows(3, 1000)
    order, y = order_by(np.arange(1000)), y * np.where(np.arange(1000) > 750, 1.5, 1)
    found = compare_latest(read_table(X), y, order, 0.9, 0)
    loss = found.at_random - found.coverage
    assert loss > LEAST_LOSS
    assert look_at_latest(read_table(X), y, order, 0.9, found.p_value, 0) == found
    assert look_at_latest(read_table(X), y, order, 0.9, found.p_value / 2, 0) is None
    monkeypatch.setattr("guardband.learning.latest.LEAST_LOSS", loss + 0.001)
    assert look_at_latest(read_table(X), y, order, 0.9, found.p_value, 0) is None


def test_the_order_of_a_file_is_no_time_and_few_rows_tell_nothing():
    _, X, y = rows(4)
    table = read_table(X)
    (file,) = possible_orders(table, y, None)
    assert look_at_latest(table, y, file, 0.9, 1.0, 0) is None
    assert compare_latest(table, y, order_by(np.ones(400)), 0.9, 0) is None  # one time
    assert compare_latest(table, y, order_by(np.arange(60)), 0.9, 0) is None
    assert compare_latest(table, y, order_by(np.arange(400)), 0.999, 0) is None  # more rows than there are


def test_rows_of_one_time_are_all_among_the_latest_or_none_is():
    """With two years of 200 rows, the second is the latest: a third of the first, 67 rows, is drawn at random."""
    _, X, y = rows(5)
    found = compare_latest(read_table(X), y, order_by(np.repeat([2023, 2024], 200)), 0.9, 0)
    assert found.at_random == 62 / 67
    assert round(200 * found.coverage, 9) == round(200 * found.coverage)


def test_inputs_that_know_the_time_cannot_raise_a_suspicion_but_may_explain_a_trend():
    _, X, y = rows(7, 1000)
    order = order_by(np.arange(1000))
    knows = read_table(X.assign(row=np.arange(1000), back=-np.arange(1000.0)))
    plain = compare_latest(read_table(X), y, order, 0.9, 0)
    assert compare_latest(knows, y, order, 0.9, 0).p_value >= plain.p_value  # the larger of both
    trend = y + 0.003 * np.arange(1000)
    unknown, known = (compare_latest(table, trend, order, 0.9, 0) for table in (read_table(X), knows))
    assert known.coverage > unknown.coverage
    assert known.p_value > 1000 * unknown.p_value
    alone = read_table(pd.DataFrame({"row": np.arange(1000.0)}))
    assert compare_latest(alone, y, order, 0.9, 0) is not None  # without it, no input is left


def test_it_is_one_doubt_in_one_sentence():
    _, X, y = rows(6, 1000)
    X["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(1000), unit="h")
    y = y * np.where(np.arange(1000) > 750, 3, 1)
    shuffled = np.random.default_rng(0).permutation(1000)  # else the order of the file is one more look
    table = read_table(X.iloc[shuffled])
    (doubt,) = Suspects.of(table, y[shuffled]).doubts(table, y[shuffled], None, 0.9, 0)
    assert (doubt.kind, doubt.columns) == ("order", ("when",))
    assert doubt.p_value <= FALSE_DOUBTS / 3  # by the date twice, and by the file
    assert doubt.sentence.startswith(
        "A random split flatters: intervals of a small model that contain 90% of rows drawn at random contain "
    )
    assert doubt.sentence.endswith(
        " of the latest rows by 'when'. Add --time when --split-by-time (split_by_time=\"when\")."
    )
    assert doubt.expected_coverage < 0.65
