"""The state of an online rule in a file: it goes on as if nothing had happened, or is refused in one sentence."""

import json
import os
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from safetensors.torch import save as to_bytes
from sklearn.linear_model import LinearRegression

import guardband as gb
from guardband.doors.file_format import _checksum, read, write
from guardband.extend import AdaptiveLevel, Recent, Tracking
from guardband.methods.conf_fw import ConfFW
from online_rows import in_time, rows, started

EVERY = ["aci", "scale-free", "tracking", "recent", AdaptiveLevel(0.02), Tracking(0.3), Recent(40)]


@pytest.mark.parametrize("rule", EVERY, ids=repr)
@pytest.mark.parametrize("options", [{}, {"method": "conf-fw", "side": "upper"}, {"window": None, "alpha": 0.25}])
def test_a_loaded_state_goes_on_as_if_nothing_had_happened(tmp_path, rule, options):
    lower, point, upper, y = rows(90)
    online = started(rule, **options)
    in_time(online, lower[:40], point[:40], upper[:40], y[:40])
    online.transform(lower[40:50], point[40:50], upper[40:50], keys=[*"abcdefghi", 77])
    online.update(y[42:44], keys=["c", "d"])
    online.save(tmp_path / "state")
    again = gb.OnlineCalibrator.load(tmp_path / "state")
    assert again.waiting == online.waiting
    assert again.certificate == online.certificate
    assert repr(again) == repr(online)
    for one in (online, again):
        one.update(y[[49, 40]], keys=[77, "a"])
    rest = [in_time(one, lower[50:], point[50:], upper[50:], y[50:]) for one in (online, again)]
    np.testing.assert_array_equal(*rest)
    assert again.certificate == online.certificate
    again.save(tmp_path / "other")
    online.save(tmp_path / "state")
    (entries, numbers), (others, other_numbers) = read(tmp_path / "state"), read(tmp_path / "other")
    assert entries == others
    assert all(torch.equal(numbers[name], other_numbers[name]) for name in numbers | other_numbers)


def test_a_state_is_saved_and_loaded_before_anything_happened(tmp_path):
    gb.OnlineCalibrator("tracking", window=np.int64(50)).save(tmp_path / "state")
    assert isinstance(gb.load(tmp_path / "state"), gb.OnlineCalibrator)


def test_a_state_of_a_model_needs_the_model_and_takes_a_newer_one(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 1))
    y = X[:, 0] + rng.standard_normal(300)
    models = [gb.calibrate(LinearRegression().fit(X[:n], y[:n]), (X[100:200], y[100:200])) for n in (50, 100)]
    online = gb.OnlineCalibrator("aci", model=models[0])
    online.predict_interval(X[200:250])
    online.update(y[200:240])
    online.save(tmp_path / "state")
    with pytest.raises(gb.ModelFileError, match=r"it was saved with a model: pass model="):
        gb.load(tmp_path / "state")
    for model in models:
        again = gb.load(tmp_path / "state", model=model)
        again.update(y[240:250])
        assert again.certificate.promise.judged == 50
    other = gb.calibrate(LinearRegression().fit(X[:50], y[:50]), (X[100:200], y[100:200]), side="upper")
    with pytest.raises(gb.ModelFileError, match="its scores are of another kind of model: pass a model with the same"):
        gb.load(tmp_path / "state", model=other)
    started("aci").save(tmp_path / "plain")
    with pytest.raises(gb.ModelFileError, match=r"it has no model: remove model="):
        gb.load(tmp_path / "plain", model=models[0])


@dataclass(frozen=True)
class Own(AdaptiveLevel):
    """A rule of the user's own."""

    word = "own"


class Mine(ConfFW):
    """A method of the user's own."""

    name = "mine"


def test_what_is_the_users_own_is_brought_again(tmp_path):
    online = started(Own())
    online.save(tmp_path / "state")
    for load in (gb.load, gb.OnlineCalibrator.load):
        with pytest.raises(
            gb.ModelFileError, match=r"a rule of your own: pass it: gb.OnlineCalibrator.load\(path, rule"
        ):
            load(tmp_path / "state")
    assert gb.OnlineCalibrator.load(tmp_path / "state", rule=Own()).certificate == online.certificate
    mine = started("aci", method=Mine())
    mine.save(tmp_path / "state")
    with pytest.raises(gb.ModelFileError, match="a method of your own: pass it"):
        gb.load(tmp_path / "state")
    for load in (gb.load, gb.OnlineCalibrator.load):
        assert load(tmp_path / "state", method=Mine()).certificate == mine.certificate
    started("aci").save(tmp_path / "state")
    with pytest.raises(gb.ModelFileError, match=r"remove rule=\.\.\."):
        gb.OnlineCalibrator.load(tmp_path / "state", rule=Own())


def test_a_model_is_no_state(tmp_path):
    gb.BandCalibrator().fit(*rows(50)).save(tmp_path / "rule")
    with pytest.raises(gb.ModelFileError, match=r"it holds a model, not the state of an OnlineCalibrator: use gb.load"):
        gb.OnlineCalibrator.load(tmp_path / "rule")


@pytest.fixture
def saved(tmp_path):
    online = started("tracking")
    online.transform([-1.0] * 3, [0.0] * 3, [1.0] * 3)
    online.update([0.5])
    online.save(tmp_path / "state")
    return tmp_path / "state"


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_a_save_that_is_stopped_leaves_the_state_before(saved, monkeypatch, step):
    class Stopped(BaseException):
        pass

    def stop(*args, **kwargs):
        raise Stopped

    before, online = saved.read_bytes(), gb.OnlineCalibrator.load(saved)
    online.update([0.5])
    with monkeypatch.context() as patch:
        patch.setattr(os, step, stop)
        with pytest.raises(Stopped):
            online.save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["state"]


def test_every_cut_and_every_changed_byte_is_refused(saved):
    body = saved.read_bytes()
    for at in range(0, len(body), 37):
        for damaged in (body[:at], body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]):
            saved.write_bytes(damaged)
            with pytest.raises(gb.ModelFileError):
                gb.OnlineCalibrator.load(saved)


WRONG = [
    ({"tally": {"judged": 1, "misses": 2, "most_waiting": 3}}, {}, "counts contradict"),
    ({"tally": {"judged": 9, "misses": 0, "most_waiting": 3}}, {}, "counts contradict"),
    ({"tally": {"judged": 1, "misses": 0, "most_waiting": 1}}, {}, "counts contradict"),
    ({"keys": [1, 1]}, {}, "counts contradict"),
    ({"keys": [1]}, {}, "do not fit each other"),
    ({"n_calibration": 0}, {}, "more scores than rows"),
    ({"rule": "psychic"}, {}, "psychic"),
    ({"options": {"speed": 3.0}}, {}, "speed"),
    ({"options": {"step_size": 7.0}}, {}, "step_size must lie strictly between 0 and 1"),
    ({"alpha": {"fraction": "3/2"}}, {}, "alpha must lie strictly between 0 and 1"),
    ({}, {"past_scores": torch.tensor([float("nan")], dtype=torch.float64)}, "a number that is none"),
    ({}, {"rule_state": torch.zeros(4, dtype=torch.float64)}, "do not fit each other"),
    ({}, {"rule_state": torch.zeros(1)}, "other numbers than a state has"),
    ({}, {"more": torch.zeros(1, dtype=torch.float64)}, "other numbers than a state has"),
    ({}, {"waiting": torch.zeros(2, 2, dtype=torch.float64)}, "do not fit each other"),
]


@pytest.mark.parametrize(("entries", "tensors", "why"), WRONG)
def test_a_state_that_contradicts_itself_is_refused(saved, entries, tensors, why):
    own, numbers = read(saved)
    write(saved, {name: own[name] for name in own if name not in ("schema", "written_by")} | entries, numbers | tensors)
    with pytest.raises(gb.ModelFileError, match=why):
        gb.OnlineCalibrator.load(saved)


@pytest.mark.parametrize("state", [[0.1, -1.0], [float("inf"), 100.0]])
def test_a_state_in_which_its_rule_has_no_sense_is_refused(tmp_path, state):
    started("scale-free").save(tmp_path / "state")
    own, numbers = read(tmp_path / "state")
    entries = {name: own[name] for name in own if name not in ("schema", "written_by")}
    numbers["rule_state"] = torch.tensor(state, dtype=torch.float64)
    write(tmp_path / "state", entries, numbers)
    with pytest.raises(gb.ModelFileError, match=r"what this version of guardband can use: .*\.$"):
        gb.OnlineCalibrator.load(tmp_path / "state")


def test_entries_that_no_state_has_are_refused(saved):
    own, numbers = read(saved)
    for entries in ({"surprise": 1}, {"given": -1}, {"keys": [1.5, 2]}, {"arguments": {}}):
        text = json.dumps(own | entries, sort_keys=True)
        saved.write_bytes(to_bytes(numbers, metadata={"guardband": text, "sha256": _checksum(text, numbers)}))
        with pytest.raises(gb.ModelFileError, match="no valid guardband model"):
            gb.OnlineCalibrator.load(saved)
