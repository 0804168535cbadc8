"""Checkpoints: one that changed by a single bit is refused, and none runs code."""

import hashlib
import io
import re
import zipfile

import numpy as np
import pytest
import torch

import guardband as gb
from guardband.nn import IntervalLoss
from guardband.training.checkpoint import Checkpoint

X = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
NAME = "fleet-0.checkpoint"
DAMAGED = r" is (damaged or cut short: its checksum|not a file that guardband wrote, or it is damaged)"
AGAIN = r"Remove it to train from the start, or name another folder\.$"


def network():
    torch.manual_seed(1)
    return gb.nn.FullyConnected(3, (8,))


def train(folder, **settings):
    settings = {"epochs": 4, "learning_rate": 0.01, "averaging": 2.0} | settings
    return gb.train([network(), network()], (X, X.sum(1)), IntervalLoss(0.1), checkpoint=folder, **settings)


def stop(epoch):
    if epoch == 2:
        raise KeyboardInterrupt


@pytest.fixture(params=["stopped", "finished"])
def saved(request, tmp_path):
    if request.param == "finished":
        train(tmp_path)
    else:
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path, after_epoch=stop, validation=0.3)
    return tmp_path / NAME


@pytest.fixture
def settings(saved):
    """What the run was started with; a run to its end keeps no search."""
    return {"validation": 0.3} if b"search" in saved.read_bytes() else {}


def refused(folder, why, **settings):
    with pytest.raises(ValueError, match=f"^The checkpoint {re.escape(str(folder / NAME))} {why}.*{AGAIN}"):
        train(folder, **settings)


def test_a_single_bit_is_found(saved, settings):
    whole = saved.read_bytes()
    bits = np.random.default_rng(0).permutation(8 * len(whole))[:200].tolist()
    for bit in [*range(0, 8 * 100, 37), *bits]:  # the first line too
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << (bit % 8)
        saved.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"{DAMAGED}.*{AGAIN}"):
            Checkpoint(saved, "any").load()
    refused(saved.parent, "is damaged or cut short: its checksum does not match", **settings)
    saved.write_bytes(whole)
    train(saved.parent, **settings)


def test_a_file_that_is_cut_short_is_found(saved):
    whole = saved.read_bytes()
    for end in [0, 1, 30, 94, 95, *np.random.default_rng(0).integers(0, len(whole), 60).tolist(), len(whole) - 1]:
        saved.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=f"{DAMAGED}.*{AGAIN}"):
            Checkpoint(saved, "any").load()
    saved.write_bytes(whole + b" ")
    with pytest.raises(ValueError, match="checksum does not match"):
        Checkpoint(saved, "any").load()


def test_other_files_are_refused(tmp_path):
    for body in (b"", b"\n", bytes(1000), b"guardband checkpoint 9 sha256 "):
        (tmp_path / NAME).write_bytes(body)
        refused(tmp_path, "is not a file that guardband wrote, or it is damaged")
    torch.save({"job": "job", "state": {}}, tmp_path / NAME)
    refused(tmp_path, "was written by an older guardband, without a checksum")


def forge(path, saved):
    """Write a file as an intruder would, who makes the checksum good."""
    body = io.BytesIO()
    torch.save(saved, body)
    digest = hashlib.sha256(body.getvalue()).hexdigest().encode()
    path.write_bytes(b"guardband checkpoint 2 sha256 " + digest + b"\n" + body.getvalue())


def test_no_code_runs_from_a_checkpoint(tmp_path):
    class Runs:
        def __reduce__(self):
            return exec, (f"open({str(tmp_path / 'fired')!r}, 'w').close()",)

    forge(tmp_path / NAME, {"job": "job", "state": Runs()})
    refused(tmp_path, "is not a file that guardband wrote")
    assert not (tmp_path / "fired").exists()
    for other in ([1], {"job": "job"}, 3, {"job": "job", "state": [1]}):
        forge(tmp_path / NAME, other)
        with pytest.raises(ValueError, match=f"not a file that guardband wrote.*{AGAIN}"):
            Checkpoint(tmp_path / NAME, "job").load()


def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path):
    plain, packed = io.BytesIO(), io.BytesIO()
    torch.save({"job": "job", "state": {"t": torch.zeros(1_000_000)}}, plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert len(packed.getvalue()) < 10_000
    digest = hashlib.sha256(packed.getvalue()).hexdigest().encode()
    (tmp_path / NAME).write_bytes(b"guardband checkpoint 2 sha256 " + digest + b"\n" + packed.getvalue())
    with pytest.raises(ValueError, match=f"not a file that guardband wrote: it is packed.*{AGAIN}"):
        Checkpoint(tmp_path / NAME, "job").load()


def test_an_archive_of_another_version_is_refused(tmp_path):
    plain = io.BytesIO()
    torch.save({"job": "job", "state": {"t": torch.zeros(4)}}, plain)
    body = plain.getvalue()
    at = body.rindex(b"PK\x01\x02")  # of the last part in the list of parts
    body = body[: at + 6] + b"\xf1\0" + body[at + 8 :]  # says that version 24.1 is needed to unpack it
    digest = hashlib.sha256(body).hexdigest().encode()
    (tmp_path / NAME).write_bytes(b"guardband checkpoint 2 sha256 " + digest + b"\n" + body)
    with pytest.raises(ValueError, match=f"its archive is damaged.*{AGAIN}"):
        Checkpoint(tmp_path / NAME, "job").load()


def places(value, path=()):
    """Yield the way to every entry of a state, at any depth."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))
    yield path


def changed(value, path, change):
    if not path:
        return change(value)
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], change)
    return copy


def test_a_state_of_another_form_is_refused(saved, settings):
    """Every entry in turn is left out, of another shape, kind or type; the checksum is good."""
    body = io.BytesIO(saved.read_bytes().split(b"\n", 1)[1])
    good = torch.load(body, weights_only=True)
    entries = [path for path in places(good["state"]) if path]
    assert len(entries) >= 10
    for path in entries:
        for change in (lambda _: None, lambda _: torch.zeros(1, 1), lambda _: -7):
            value = good["state"]
            for key in path:
                value = value[key]
            if value is None and change(value) is None:
                continue
            forge(saved, good | {"state": changed(good["state"], path, change)})
            refused(saved.parent, "holds networks of other shapes than this run", **settings)
    for key in good["state"]:
        forge(saved, good | {"state": {name: own for name, own in good["state"].items() if name != key}})
        refused(saved.parent, "holds networks of other shapes than this run", **settings)
    forge(saved, good)
    train(saved.parent, **settings)


@pytest.mark.parametrize(
    "state",
    [
        {"phase": None},
        {"best": None},
        {"phase": None, "best": None, "losses": 3},
        {"phase": None, "best": None, "kept": {}},
        {"phase": None, "best": [1, 2]},
        {"phase": None, "best": [1, 2], "losses": [0.5]},
    ],
    ids=str,
)
def test_a_state_between_two_phases_of_another_form_is_refused(saved, settings, state):
    good = torch.load(io.BytesIO(saved.read_bytes().split(b"\n", 1)[1]), weights_only=True)
    forge(saved, good | {"state": state})
    refused(saved.parent, "holds networks of other shapes than this run", **settings)
    for right in ({"phase": None, "best": None}, {"phase": None, "best": [1, 2], "losses": [0.5, 0.5]}):
        forge(saved, good | {"state": right})
        train(saved.parent, **settings)


def test_after_a_kill_no_part_of_a_file_is_taken_for_a_checkpoint(saved):
    assert [path.name for path in saved.parent.iterdir()] == [NAME]
