"""The state on disk: it comes back as it was, what is damaged is refused, and two writers cannot both write."""

import math
from dataclasses import fields

import numpy as np
import pytest

import guardband as gb
from guardband.exceptions import ModelFileError
from guardband.monitor.evidence_process import Stream
from guardband.monitor.history import History


def calibrated(seed=0, n=300, **options):
    zero, y = np.zeros(n), np.random.default_rng(seed).standard_normal(n)
    return gb.BandCalibrator(**options).fit(zero - 1, zero, zero + 1, y)


def rows(rule, n, seed):
    zero = np.zeros(n)
    return np.random.default_rng(seed).standard_normal(n) * 1.3, rule.transform(zero - 1, zero, zero + 1)


@pytest.fixture
def used(tmp_path):
    """A monitor with rows, keys and rows that wait, and its file."""
    rule = calibrated()
    monitor = gb.Monitor(rule)
    y, bands = rows(rule, 200, 1)
    monitor.update(y, bands, keys=np.arange(200), time=np.arange(200))
    y, bands = rows(rule, 40, 2)
    monitor.expect(np.arange(1000, 1040), bands, time=np.arange(200, 240))
    monitor.save(tmp_path / "a.monitor")
    return rule, monitor, tmp_path / "a.monitor"


def same(first, second):
    for own, other in zip(first._state.streams, second._state.streams, strict=True):
        assert all(getattr(own, each.name) == getattr(other, each.name) for each in fields(Stream))
    for each in fields(History):
        np.testing.assert_array_equal(
            getattr(first._state.history, each.name), getattr(second._state.history, each.name)
        )
    assert first.to_dict() == second.to_dict()
    assert str(first) == str(second)


def test_a_state_comes_back_as_it_was_and_goes_on_alike(used):
    rule, monitor, path = used
    again = gb.Monitor.load(path, rule)
    same(monitor, again)
    y, bands = rows(rule, 300, 3)
    for own in (monitor, again):
        assert own.update(y[:40], keys=np.arange(1000, 1040)).counted == 40
        own.update(y, bands, keys=np.arange(300))
    same(monitor, again)
    assert monitor.rows == 340  # of the last 300 rows, 200 had counted before


def test_a_state_needs_no_model_to_go_on_with_intervals(used):
    rule, monitor, path = used
    again = gb.Monitor.load(path)
    y, bands = rows(rule, 50, 3)
    again.update(y, bands)
    monitor.update(y, bands)
    same(monitor, again)


def test_an_update_in_one_process_is_one_in_many(tmp_path):
    rule, path = calibrated(), tmp_path / "b.monitor"
    y, bands = rows(rule, 500, 4)
    whole = gb.Monitor(rule)
    whole.update(y, bands)
    gb.Monitor(rule).save(path)
    for part in np.array_split(np.arange(500), 9):
        own = gb.Monitor.load(path, rule)
        own.update(y[part], np.stack([bands.lower, bands.point, bands.upper], axis=1)[part])
        own.save(path)
    assert gb.Monitor.load(path).evidence == pytest.approx(whole.evidence, rel=1e-9)
    assert gb.Monitor.load(path).finding().alarm_row == whole.finding().alarm_row


def test_every_damaged_bit_and_every_cut_is_refused(used, tmp_path):
    _, _, path = used
    body, random, other = path.read_bytes(), np.random.default_rng(0), tmp_path / "damaged.monitor"
    for at in random.choice(8 * len(body), 300, replace=False).tolist():
        made = bytearray(body)
        made[at // 8] ^= 1 << at % 8
        other.write_bytes(made)
        with pytest.raises(ModelFileError):
            gb.Monitor.load(other)
    for size in [0, 1, 8, 100, *random.integers(0, len(body), 30).tolist()]:
        other.write_bytes(body[:size])
        with pytest.raises(ModelFileError):
            gb.Monitor.load(other)


def test_the_state_of_another_model_is_refused(used):
    _, _, path = used
    for other in (calibrated(n=301), calibrated(confidence_level=0.8), calibrated(guarantee="pac")):
        with pytest.raises(ValueError, match="state of another model"):
            gb.Monitor.load(path, other)


def test_what_is_no_state_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match="no monitor's state at"):
        gb.Monitor.load(tmp_path / "none.monitor")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ModelFileError, match="no state of a monitor"):
        gb.Monitor.load(tmp_path / "text")


def test_two_writers_cannot_both_write(used):
    rule, _, path = used
    first, second = gb.Monitor.load(path, rule), gb.Monitor.load(path, rule)
    y, bands = rows(rule, 10, 5)
    first.update(y, bands)
    second.update(y, bands)
    first.save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="written by another process"):
        second.save(path)
    assert path.read_bytes() == before
    first.update(y, bands)
    first.save(path)
    assert gb.Monitor.load(path).rows == 220


def test_a_new_monitor_does_not_write_over_another_state(used):
    rule, _, path = used
    with pytest.raises(ValueError, match="written by another process"):
        gb.Monitor(rule).save(path)


def test_the_file_does_not_grow_with_rows_that_have_no_key(tmp_path):
    rule = calibrated()
    sizes = []
    for n in (1_000, 20_000):
        own = gb.Monitor(rule)
        own.update(*rows(rule, n, 6))
        own.save(tmp_path / f"{n}.monitor")
        sizes.append((tmp_path / f"{n}.monitor").stat().st_size)
    assert sizes[1] < 1.05 * sizes[0]
    assert math.isfinite(gb.Monitor.load(tmp_path / "20000.monitor").coverage.share)
