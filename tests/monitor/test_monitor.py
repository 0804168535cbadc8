"""The monitor as it is used: late rows, keys, groups, sides, levels, entities, columns, networks, and bad input."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom

import guardband as gb
from guardband.exceptions import OverlapError
from guardband.monitor.intake import Update


def unit(n):
    zero = np.zeros(n)
    return zero - 1, zero, zero + 1


def calibrated(n=400, seed=0, given=None, **options):
    y = np.random.default_rng(seed).standard_normal(n)
    return gb.BandCalibrator(**options).fit(*unit(n), y, **(given or {}))


def values(n, seed=1, spread=1.0):
    return np.random.default_rng(seed).standard_normal(n) * spread


def seen(monitor):
    return monitor.rows, monitor._state.misses, monitor.evidence, monitor.finding().alarm_row


# Late rows and keys.


def test_late_and_out_of_order_is_the_same_as_in_time():
    rule, n = calibrated(), 300
    y, bands, time = values(n, spread=1.4), rule.transform(*unit(n)), np.arange(n)
    in_time, late = gb.Monitor(rule), gb.Monitor(rule)
    in_time.update(y, bands, time=time)
    order = np.random.default_rng(3).permutation(n)
    assert late.expect(order, bands, time=order).waiting == n
    assert (late.rows, late.waiting) == (0, n)
    other = np.random.default_rng(4).permutation(n)
    assert late.update(y[other], keys=other) == Update(counted=n)
    assert seen(late) == seen(in_time)
    assert late.waiting == 0


def test_rows_of_one_update_are_judged_in_the_order_of_time():
    rule, n = calibrated(), 300
    y, bands, time = values(n, spread=1.4), rule.transform(*unit(n)), np.arange(n)
    first, second = gb.Monitor(rule), gb.Monitor(rule)
    first.update(y, bands, time=time)
    order = np.random.default_rng(5).permutation(n)
    second.update(y[order], bands, time=pd.Timestamp("2024-01-01") + pd.to_timedelta(time[order], unit="D"))
    assert seen(first) == seen(second)


def test_each_key_counts_once_whether_number_or_text():
    rule = calibrated()
    bands, monitor = rule.transform(*unit(50)), gb.Monitor(rule)
    assert monitor.update(values(50), bands, keys=np.arange(50)).counted == 50
    before = seen(monitor)
    again = monitor.update(values(50, 9, 5.0), bands, keys=[str(i) for i in range(50)])
    assert (again.counted, again.skipped) == (0, 50)
    assert monitor.expect(np.arange(50), bands).skipped == 50
    assert monitor.update(values(50), keys=np.arange(50)).skipped == 50
    assert seen(monitor) == before
    assert monitor.waiting == 0


def test_a_row_without_a_true_value_waits_if_it_has_a_key_and_is_left_out_otherwise():
    rule = calibrated()
    y, bands = np.array([0.0, np.nan, 0.5]), rule.transform(*unit(3))
    with_key, without = gb.Monitor(rule), gb.Monitor(rule)
    own = with_key.update(y, bands, keys=["a", "b", "c"])
    assert (own.counted, own.waiting, own.left_out) == (2, 1, 0)
    own = without.update(y, bands)
    assert (own.counted, own.waiting, own.left_out) == (2, 0, 1)
    own = with_key.update([0.1, 0.2], keys=["b", "nobody"])
    assert (own.counted, own.left_out) == (1, 1)


def test_a_row_that_waits_is_judged_by_its_first_prediction():
    rule, monitor = calibrated(), gb.Monitor(calibrated())
    narrow, wide = rule.transform(*unit(1)), np.array([[-1e9, 0.0, 1e9]])
    monitor.expect(["a"], narrow)
    monitor.expect(["a"], wide)
    assert monitor.update([50.0], wide, keys=["a"]).counted == 1
    assert monitor._state.misses == 1


# What promises there are.


def test_alarms_of_all_kinds_of_promises_are_at_most_as_frequent_as_is_said():
    random, streams, rows = np.random.default_rng(7), 40, 300
    for options in (
        {},
        {"guarantee": "pac"},
        {"tails": (0.1, 0.1)},
        {"confidence_level": (0.5, 0.8)},
        {"side": "lower"},
    ):
        alarms, said = 0, 0.0
        for _ in range(streams):
            rule = gb.BandCalibrator(**options).fit(*unit(60), random.standard_normal(60))
            monitor = gb.Monitor(rule, significance=0.1)
            monitor.update(random.standard_normal(rows), rule.transform(*unit(rows)))
            alarms, said = alarms + monitor.alarm, monitor.finding().false_alarm
        assert alarms <= binom.isf(1e-6, streams, said)


@pytest.mark.parametrize(
    ("options", "low", "side"),
    [({"side": "upper"}, 3.0, "upper"), ({"side": "lower"}, -3.0, "lower"), ({"tails": (0.05, 0.05)}, -3.0, "lower")],
)
def test_one_bound_is_judged_by_its_own_side(options, low, side):
    rule, n = calibrated(**options), 60
    monitor = gb.Monitor(rule)
    monitor.update(np.full(n, low), rule.transform(*unit(n)))
    assert monitor.alarm
    assert monitor.finding().watched.side == side
    other = gb.Monitor(rule)
    other.update(np.full(n, 0.0 if "tails" in options else -low), rule.transform(*unit(n)))
    assert not other.alarm


def test_the_group_that_breaks_its_promise_is_named():
    groups = np.array(["a", "b", "c"])[np.arange(900) % 3]
    rule = calibrated(900, given={"groups": groups})
    y = np.where(groups == "b", 2.0, 0.9) * values(900)
    monitor = gb.Monitor(rule)
    monitor.update(y, rule.transform(*unit(900), groups=groups), groups=groups)
    found = monitor.finding()
    assert found.alarm
    assert found.watched.name == "group = b"
    assert [own.rows for own in found.statements] == [300, 300, 300]
    assert [own.evidence > 100 for own in found.statements] == [False, True, False]
    # of three statements that were looked at, the worst has a third of the interval's error
    alone = gb.Monitor(calibrated(900))
    b = groups == "b"
    alone.update(y[b], rule.transform(*unit(900), groups=groups).to_pandas().to_numpy()[b][:, [1, 0, 2]])
    assert found.coverage.rows == alone.coverage.rows == 300
    assert found.coverage.high - found.coverage.low > alone.coverage.high - alone.coverage.low


def test_each_level_has_evidence_of_its_own():
    rule, n = calibrated(confidence_level=(0.5, 0.9)), 400
    y = np.where(np.arange(n) % 4 == 0, 3.0, 0.0)  # misses at 0.9 are too many, at 0.5 they are few
    monitor = gb.Monitor(rule)
    monitor.update(y, rule.transform(*unit(n)))
    assert monitor.alarm
    assert [own.evidence > 200 for own in monitor.finding().statements] == [False, True]
    assert monitor.finding().watched.level == 0.9


def test_each_entity_counts_once():
    rule = calibrated(given={"entities": np.arange(400) // 2}, guarantee="pac")
    monitor, who = gb.Monitor(rule), 1_000 + np.arange(90) // 3
    bands = rule.transform(*unit(90))
    own = monitor.update(values(90), bands, entities=who)
    assert (own.counted, own.skipped) == (30, 60)
    own = monitor.update(values(90), bands, entities=who + 29)
    assert (own.counted, own.skipped) == (29, 61)
    with pytest.raises(ValueError, match="do not say what they belong to"):
        monitor.update(values(90), bands)
    assert monitor.rows == 59


def test_a_certificate_is_enough_to_watch_it():
    rule = calibrated()
    first, second = gb.Monitor(rule), gb.Monitor(rule.certificate)
    for own in (first, second):
        own.update(values(100), rule.transform(*unit(100)))
    assert seen(first) == seen(second)


def test_a_torch_network_is_watched_by_its_intervals():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), gb.nn.TripleHead(in_features=4))
    x, y = torch.randn(300, 2), torch.randn(300)
    guarded = gb.calibrate(net, [(x, y)])
    monitor = gb.Monitor(guarded)
    new = torch.randn(200, 2)
    with torch.no_grad():
        bands = guarded(new).numpy()
    assert monitor.update(np.random.default_rng(1).standard_normal(200), bands).counted == 200
    assert not monitor.alarm
    monitor.update(np.full(200, 99.0), bands)
    assert monitor.alarm


@pytest.fixture(scope="module")
def model():
    """A small model of a table with a number, a category, and errors that do not depend on them."""
    return gb.IntervalRegressor(epochs=2, hidden=(8,), random_state=0).fit(*table(600, 0))


def table(n, seed, shift=0.0, spread=1.0):
    random = np.random.default_rng(seed)
    X = pd.DataFrame({"size": random.standard_normal(n) + shift, "kind": random.choice(["a", "b", "c"], n)})
    return X, X["size"].to_numpy() + spread * random.standard_normal(n)


def test_a_change_of_the_inputs_is_told_from_one_of_the_outcomes(model):
    inputs, outcomes, none = (gb.Monitor(model) for _ in range(3))
    X, y = table(400, 1, shift=4.0, spread=3.0)
    inputs.update(y, X=X)
    X, y = table(400, 2, spread=4.0)
    outcomes.update(y, X=X)
    X, y = table(400, 3)
    none.update(y, X=X)
    assert (inputs.finding().changed, outcomes.finding().changed, none.finding().changed) == ("inputs", "outcomes", "")
    assert [own.name for own in inputs.finding().columns] == ["size"]
    assert inputs.alarm
    assert outcomes.alarm
    assert not none.alarm


def test_rows_that_trained_or_calibrated_are_refused_and_nothing_is_counted(model):
    monitor, (X, y) = gb.Monitor(model), table(600, 0)
    with pytest.raises(OverlapError, match="trained or calibrated"):
        monitor.update(y, X=X)
    assert monitor.rows == 0


# Input that is wrong.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": [1.0, 2.0]}, "rows"),
        ({"keys": [1, 2]}, "one entry for each"),
        ({"keys": [1, 1, 2]}, "key of its own"),
        ({"keys": [1, None, 2]}, "key is missing"),
        ({"time": [1, 2]}, "time"),
        ({"time": [1.0, np.nan, 2.0]}, "time is missing"),
        ({"time": ["a", "b", "c"]}, "dates or numbers"),
        ({"groups": ["a", "b", "c"]}, "no groups"),
        ({"y": [1.0, np.inf, 2.0]}, "infinity"),
        ({"bands": np.zeros((3, 2))}, "lower, point and upper"),
    ],
)
def test_bad_input_is_refused_in_a_sentence_and_nothing_is_counted(given, message):
    monitor = gb.Monitor(calibrated())
    own = {"y": np.zeros(3), "bands": np.array([[-1.0, 0.0, 1.0]] * 3)} | given
    with pytest.raises(ValueError, match=message) as caught:
        monitor.update(own.pop("y"), own.pop("bands"), **own)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    assert (monitor.rows, monitor.waiting) == (0, 0)


def test_the_significance_must_be_a_share():
    for wrong in (0, 1, 5, -0.1, math.nan):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            gb.Monitor(calibrated(), significance=wrong)
    with pytest.raises(TypeError, match="needs a calibrated model or a certificate"):
        gb.Monitor("model")


def test_rows_need_intervals_or_keys_that_wait():
    monitor = gb.Monitor(calibrated())
    with pytest.raises(ValueError, match="Pass bands= or X="):
        monitor.update([1.0])
    assert monitor.update([1.0], keys=["a"]).left_out == 1


def test_a_monitor_without_rows_says_so():
    monitor = gb.Monitor(calibrated())
    assert monitor.evidence == 1.0
    assert not monitor.alarm
    assert str(monitor) == "No rows yet: nothing can be said of the promise."


def test_rows_that_made_the_model_are_refused_one_at_a_time_and_after_they_waited():
    X, y = table(600, 0)
    model = gb.IntervalRegressor(epochs=2, hidden=(8,), random_state=0).fit(X, y)
    alone = gb.Monitor(model)
    alone.update(y[:1], X=X[:1])
    with pytest.raises(gb.OverlapError, match="trained or calibrated"):
        alone.update(y[1:2], X=X[1:2])
    assert alone.rows == 1
    late = gb.Monitor(model)
    late.expect(np.arange(100), X=X[:100])
    with pytest.raises(gb.OverlapError, match="trained or calibrated"):
        late.update(y[:100], keys=np.arange(100))
    assert (late.rows, late.waiting) == (0, 100)


def test_of_repeated_rows_each_counts_once_if_the_promise_is_for_distinct_rows():
    X, y = table(300, 0)
    with pytest.warns(gb.RepeatedRowsWarning):
        own = gb.IntervalRegressor(epochs=2, hidden=(8,), random_state=0).fit(pd.concat([X, X]), np.tile(y, 2))
    monitor = gb.Monitor(own)
    X, y = table(50, 1)
    assert monitor.update(y, X=X).counted == 50
    assert monitor.update(y, X=X) == Update(skipped=50)
    assert monitor.update(np.tile(y + 1, 2), X=pd.concat([X, X])) == Update(counted=50, skipped=50)
    assert monitor.rows == 100


def test_a_model_that_was_calibrated_again_needs_a_new_monitor():
    own = gb.IntervalRegressor(epochs=2, hidden=(8,), random_state=0).fit(*table(600, 0))
    monitor = gb.Monitor(own)
    X, y = table(50, 1)
    monitor.update(y, X=X)
    own.calibrate(*table(200, 2))
    with pytest.raises(ValueError, match=r"calibrated again\. Begin a new monitor"):
        monitor.update(y + 1, X=X)
    assert monitor.rows == 50


def test_a_state_is_for_the_networks_that_it_was_begun_with(tmp_path):
    rows = table(600, 0)
    monitor = gb.Monitor(gb.IntervalRegressor(epochs=2, hidden=(8,), random_state=0).fit(*rows))
    monitor.save(tmp_path / "a.monitor")
    other = gb.IntervalRegressor(epochs=3, hidden=(8,), random_state=0).fit(*rows)
    with pytest.raises(ValueError, match="the state of another model"):
        gb.Monitor.load(tmp_path / "a.monitor", other)


def test_intervals_of_another_level_or_promise_or_none_at_all_are_refused():
    rule, other = (plain_rule(n) for n in (200, 300))
    ends, y = (np.full(20, -1.0), np.zeros(20), np.full(20, 1.0)), np.zeros(20)
    monitor = gb.Monitor(rule)
    with pytest.raises(ValueError, match=r"for the level 0\.9, and these intervals are of 0\.5"):
        monitor.update(y, rule.transform(*ends, confidence_level=0.5))
    with pytest.raises(ValueError, match="another promise"):
        monitor.update(y, other.transform(*ends))
    for wrong in (np.full((20, 3), np.nan), np.column_stack(ends[::-1])):
        with pytest.raises(ValueError, match="at most its upper bound"):
            monitor.update(y, wrong)
    assert monitor.rows == 0


def plain_rule(n):
    zero = np.zeros(n)
    return gb.BandCalibrator().fit(zero - 1, zero, zero + 1, np.random.default_rng(n).standard_normal(n))


def test_times_stay_of_one_kind():
    rule = plain_rule(200)
    monitor, y, bands = gb.Monitor(rule), np.zeros(20), np.tile([-2.0, 0.0, 2.0], (20, 1))
    monitor.update(y, bands, time=np.arange(20))
    with pytest.raises(ValueError, match="are numbers, and these are dates"):
        monitor.update(y, bands, time=pd.date_range("2024-01-01", periods=20))


def test_rows_of_an_entity_that_come_later_are_told():
    zero, random = np.zeros(400), np.random.default_rng(0)
    rule = gb.BandCalibrator().fit(zero - 1, zero, zero + 1, random.standard_normal(400), entities=np.arange(400) // 4)
    monitor, bands = gb.Monitor(rule), np.tile([-2.0, 0.0, 2.0], (20, 1))
    monitor.update(np.zeros(20), bands, entities=1000 + np.arange(20) // 2)
    assert not monitor.finding().notes
    monitor.update(np.ones(20), bands, entities=1000 + np.arange(20) // 2)
    (note,) = monitor.finding().notes
    assert note.startswith("20 rows came after another row of their entity was judged")


def test_true_values_that_came_late_are_told():
    monitor, bands = gb.Monitor(plain_rule(200)), np.tile([-2.0, 0.0, 2.0], (20, 1))
    monitor.expect(np.arange(20), bands)
    monitor.update(np.zeros(10), keys=np.arange(10))
    assert monitor.finding().notes[0].startswith("10 true values came late.")


def test_the_statement_that_raised_the_alarm_stays_its_cause():
    random, zero = np.random.default_rng(0), np.zeros(1000)
    labels = np.where(np.arange(1000) % 2, "a", "b")
    rule = gb.BandCalibrator().fit(zero - 1, zero, zero + 1, random.standard_normal(1000), groups=labels)
    monitor = gb.Monitor(rule)
    for spread in ({"a": 1, "b": 1}, {"a": 3, "b": 1}, {"a": 1, "b": 9}):
        y = random.standard_normal(1000) * np.vectorize(spread.get)(labels)
        monitor.update(y, rule.transform(zero - 1, zero, zero + 1, groups=labels), groups=labels)
    found = monitor.finding()
    assert found.watched.name == "group = a"
    assert 950 < found.since < found.alarm_row < 1200
