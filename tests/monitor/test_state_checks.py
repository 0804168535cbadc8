"""States as a stranger could write them, each with one thing wrong and a good checksum, are refused when loaded."""

import json

import numpy as np
import pytest
from safetensors.numpy import load, save

import guardband as gb
from guardband.exceptions import ModelFileError
from guardband.monitor.state_file import _checksum


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Entries and arrays of a state with rows that wait and a column that is watched."""
    zero, y = np.zeros(300), np.random.default_rng(0).standard_normal(300)
    rule = gb.BandCalibrator().fit(zero - 1, zero, zero + 1, y)
    monitor = gb.Monitor(rule)
    bands = np.column_stack([zero - 1, zero, zero + 1])
    monitor.update(3 * y[:200], bands[:200], keys=np.arange(200))
    monitor.expect(np.arange(200, 210), bands[:10])
    path = tmp_path_factory.mktemp("state") / "a.monitor"
    monitor.save(path)
    return parts_of(path)


def parts_of(path):
    """Return the entries and the arrays of a state."""
    body = path.read_bytes()
    header = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
    return json.loads(header["__metadata__"]["guardband-monitor"]), load(body)


def loaded(folder, entries, arrays):
    text = json.dumps(entries)
    body = save(arrays, metadata={"guardband-monitor": text, "sha256": _checksum(text, arrays)})
    (folder / "a.monitor").write_bytes(body)
    return gb.Monitor.load(folder / "a.monitor")


def changed(value, path, new):
    if not path:
        return new(value) if callable(new) else new
    out = dict(value) if isinstance(value, dict) else list(value)
    out[path[0]] = changed(out[path[0]], path[1:], new)
    return out


COLUMN = {"name": "x", "kind": "number", "edges": [0.5], "categories": [], "names": ["a"] * 11, "before": [5] * 11}


def test_the_state_itself_is_loaded(own, tmp_path):
    assert loaded(tmp_path, *own).rows == 200


@pytest.mark.parametrize(
    ("path", "new"),
    [
        (("streams", 0, "best"), lambda old: old[:-1]),
        (("streams", 0, "start"), lambda old: [-1, *old[1:]]),
        (("streams", 0, "bets"), lambda old: [float("nan"), *old[1:]]),
        (("streams", 0, "rows"), 201),
        (("log_evidence",), float("nan")),
        (("peak",), float("inf")),
        (("look",), 10**9),
        (("look",), 0),
        (("history_size",), 96),
        (("significance",), 2.0),
        (("alarm_row",), 500),
        (("time_is",), "x"),
        (("split",), -1),
        ((), lambda old: old | {"\ud800": 1}),
        (("columns",), [COLUMN | {"before": [0] * 11}]),
        (("columns",), [COLUMN | {"names": ["a"]}]),
        (("columns",), [COLUMN | {"kind": "x"}]),
        (("columns",), [COLUMN | {"edges": [2.0, 1.0]}]),
        (("moved",), [{"name": "x", "gap": 5.0, "p_value": 0.5, "detail": "", "row": 1}]),
        (("certificate",), {}),
        (("certificate", "promise"), {}),
        (("certificate", "promise", "kind"), "x"),
        (("certificate", "promise", "confidence_level"), 5),
        (("certificate", "promise", "whole_line"), []),
        (("certificate", "promise", "n_calibration"), {}),
        (("certificate", "promise", "n_calibration"), 10**30),
    ],
)
def test_entries_that_no_state_has_are_refused_in_one_sentence(own, tmp_path, path, new):
    entries, arrays = own
    with pytest.raises(ModelFileError, match=r"a\.monitor is no valid state of a monitor: .*\.$"):
        loaded(tmp_path, changed(entries, path, new), arrays)


@pytest.fixture(scope="module")
def of_groups(tmp_path_factory):
    """Entries and arrays of a state whose promise is one for each of three groups."""
    zero, y = np.zeros(300), np.random.default_rng(0).standard_normal(300)
    rule = gb.BandCalibrator().fit(zero - 1, zero, zero + 1, y, groups=np.arange(300) % 3)
    path = tmp_path_factory.mktemp("state") / "a.monitor"
    gb.Monitor(rule).save(path)
    return parts_of(path)


@pytest.mark.parametrize(
    ("key", "new"),
    [("group", "custom"), ("group", -1), ("group", 1.5), ("group", 10**10), ("side", "x"), ("name", 3), ("name", None)],
)
def test_parts_of_a_promise_that_cannot_be_are_refused_in_one_sentence(of_groups, tmp_path, key, new):
    entries, arrays = of_groups
    assert loaded(tmp_path, entries, arrays).rows == 0
    wrong = changed(entries, ("certificate", "promise", "parts", 2, key), new)
    with pytest.raises(ModelFileError, match=r"a\.monitor is no valid state of a monitor: a part of a promise .*\.$"):
        loaded(tmp_path, wrong, arrays)


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("history_rows", lambda old: old[::-1]),
        ("history_misses", lambda old: old + 100),
        ("history_width", lambda old: old * np.nan),
        ("history_peak", lambda old: np.full_like(old, np.inf)),
        ("history_seen", lambda old: np.concatenate([old, old], axis=1)),
        ("inputs", lambda old: old - 1 if old.size else np.zeros((1, 11), np.int64)),
        ("waiting_lower", lambda old: old[:, :0]),
        ("waiting_lower", lambda old: old[:, 0]),
        ("waiting_upper", lambda old: old - 9),
        ("waiting_prints", lambda old: old.astype(np.float64)),
        ("waiting_group", lambda old: old[:, 0]),
        ("waiting_cells", lambda old: np.full((len(old), 1), 3, np.int16)),
        ("waiting_keys", lambda old: old[1:]),
    ],
)
def test_arrays_that_no_state_has_are_refused_in_one_sentence(own, tmp_path, name, new):
    entries, arrays = own
    with pytest.raises(ModelFileError, match=r"a\.monitor is no valid state of a monitor: .*\.$"):
        loaded(tmp_path, entries, arrays | {name: np.ascontiguousarray(new(arrays[name]))})


def test_rows_of_another_kind_than_those_that_wait_are_refused(own, tmp_path):
    entries, arrays = own
    wide = np.repeat(arrays["waiting_group"], 2, axis=1)
    monitor = loaded(tmp_path, entries, arrays | {"waiting_group": wide})
    with pytest.raises(ValueError, match=r"another number of levels, groups or columns than those that wait.*\.$"):
        monitor.expect([999], [[-1.0, 0.0, 1.0]])
