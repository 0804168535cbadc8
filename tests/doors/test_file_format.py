"""The file that holds a model: its checksum by a second statement, its refusals, arguments that come back exactly."""

import hashlib
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

import guardband as gb
from guardband.doors import file_format
from guardband.doors.file_format import SCHEMA, plain, read, reason, rich, write
from guardband.exceptions import MissingModelFileError

ENTRIES = {"kind": "distribution", "placement": "quantiles", "levels": [0.1, 0.9], "unit": None}
TENSORS = {"b": torch.arange(6.0).reshape(2, 3), "a": torch.tensor([1, -2]), "none": torch.empty(0, 3)}


@pytest.fixture
def saved(tmp_path):
    write(tmp_path / "model.gb", ENTRIES, TENSORS)
    return tmp_path / "model.gb"


def metadata_of(path):
    body = path.read_bytes()
    return json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])["__metadata__"]


def rewritten(path, tensors=None, **changed):
    kept = {name: own for name, own in (metadata_of(path) | changed).items() if own is not None}
    path.write_bytes(save(load(path.read_bytes()) if tensors is None else tensors, metadata=kept))


def test_a_file_comes_back_with_its_entries_and_tensors_in_order(saved):
    entries, tensors = read(saved)
    assert {name: own for name, own in entries.items() if name in ENTRIES} == ENTRIES
    assert entries["schema"] == SCHEMA == 8
    assert entries["written_by"] == {"guardband": gb.__version__, "torch": torch.__version__}
    assert list(tensors) == ["a", "b", "none"]
    for name, own in TENSORS.items():
        assert tensors[name].dtype == own.dtype
        assert torch.equal(tensors[name], own)


def test_the_checksum_is_of_the_entries_and_of_every_tensor_with_its_name_type_and_shape(saved):
    metadata = metadata_of(saved)
    digest = hashlib.sha256(metadata["guardband"].encode())
    digest.update(b"a torch.int64 (2,)" + np.array([1, -2]).tobytes())
    digest.update(b"b torch.float32 (2, 3)" + np.arange(6, dtype=np.float32).tobytes())
    digest.update(b"none torch.float32 (0, 3)")
    assert metadata["sha256"] == digest.hexdigest()
    assert metadata["guardband"] == json.dumps(json.loads(metadata["guardband"]), sort_keys=True)


@pytest.mark.parametrize(
    "tensors",
    [
        TENSORS | {"a": torch.tensor([1, -3])},
        TENSORS | {"a": torch.tensor([1, -2], dtype=torch.int32)},
        TENSORS | {"b": TENSORS["b"].reshape(3, 2)},
        TENSORS | {"c": torch.empty(0)},
        TENSORS | {"none": torch.empty(3, 0)},
    ],
)
def test_a_tensor_that_was_changed_is_refused(saved, tensors):
    rewritten(saved, tensors)
    with pytest.raises(gb.ModelFileError, match=r"checksum does not match\. Get the file again from whoever made it"):
        read(saved)


def test_entries_that_were_changed_are_refused(saved):
    rewritten(saved, guardband=metadata_of(saved)["guardband"].replace("0.9", "0.8"))
    with pytest.raises(gb.ModelFileError, match="was changed after it was written"):
        read(saved)
    rewritten(saved, sha256=None)
    with pytest.raises(gb.ModelFileError, match="was changed after it was written"):
        read(saved)
    rewritten(saved, guardband=None)
    with pytest.raises(gb.ModelFileError, match="is a safetensors file, but no guardband model"):
        read(saved)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (6, "was written by an older guardband, whose networks differ. Fit the model again"),
        (9, r"was written by a newer guardband \(schema 9; this version reads 8\). Upgrade guardband"),
        (10**6 - 1, r"\(schema 999999; "),
        (10**6, r"\(an unknown schema; "),
        (7, "its checksum does not match"),  # it is read, and the checksum is of another text
    ],
)
def test_files_of_other_versions_are_told(saved, schema, words):
    rewritten(saved, guardband=metadata_of(saved)["guardband"].replace('"schema": 8', f'"schema": {schema}'))
    with pytest.raises(gb.ModelFileError, match=words) as refused:
        read(saved)
    assert str(refused.value).startswith(f"{saved} was ")


def test_files_of_the_version_before_are_read(saved):
    text = metadata_of(saved)["guardband"].replace('"schema": 8', '"schema": 7')
    rewritten(saved, guardband=text, sha256=file_format._checksum(text, TENSORS))
    assert read(saved)[0]["schema"] == 7


def test_what_is_no_file_or_no_folder_is_told(tmp_path):
    with pytest.raises(MissingModelFileError, match=r"There is no model file at .*none. Check the path"):
        read(tmp_path / "none")
    for place in (tmp_path, tmp_path / "no" / "model"):
        with pytest.raises(OSError, match="Name a file in a folder that exists"):
            write(place, ENTRIES, {})
    (tmp_path / "text").write_bytes(b"no model")
    with pytest.raises(gb.ModelFileError) as refused:
        read(tmp_path / "text")
    found = str(refused.value)
    assert found.startswith(f"{tmp_path / 'text'} is no guardband model, or it is damaged or cut short: ")
    assert found.removesuffix(f". {file_format.AGAIN}").endswith(reason(refused.value.__cause__))


def test_what_could_not_be_loaded_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="its entries are not what guardband writes"):
        write(tmp_path / "model", ENTRIES | {"levels": [2.0, 3.0]}, {})
    assert not list(tmp_path.iterdir())


def test_tensors_that_share_memory_or_are_views_are_written_whole(tmp_path):
    whole = torch.arange(12.0).reshape(3, 4)
    write(tmp_path / "model", ENTRIES, {"x": whole, "y": whole, "z": whole.T[1:], "w": whole[:, ::2]})
    found = read(tmp_path / "model")[1]
    assert torch.equal(found["y"], whole)
    assert torch.equal(found["z"], whole.T[1:])
    assert torch.equal(found["w"], whole[:, ::2])


@pytest.mark.parametrize(
    "value", [True, False, None, "text", 3, 0.1, 1e-300, Fraction(9, 10), np.float32(0.9), (0.5, None)]
)
def test_arguments_come_back_exactly(value):
    found = rich(json.loads(json.dumps(plain(value))))
    assert found == value
    assert type(found) is type(value)


def test_arguments_of_other_types_come_back_as_python_has_them():
    for value, wanted in (
        (np.bool_(True), True),
        (np.int64(7), 7),
        (np.float64(0.3), 0.3),
        (Decimal("0.3"), 0.3),
        ([0.5, Fraction(1, 3), [np.float32(0.1)]], (0.5, Fraction(1, 3), (np.float32(0.1),))),
        (np.array([0.5, 0.9]), (0.5, 0.9)),
    ):
        found = rich(json.loads(json.dumps(plain(value))))
        assert found == wanted
        assert type(found) is type(wanted)
    own = object()
    assert plain(own) is own


def test_a_reason_is_one_line_of_limited_length():
    assert reason(ValueError("one\n  two\tthree.")) == "one two three"
    assert reason(ValueError()) == "ValueError"
    assert reason(ValueError("a\x00b\x1b")) == "a?b?"
    assert reason(ValueError(300 * "a")) == 300 * "a"
    assert reason(ValueError(301 * "a")) == 300 * "a" + "…"
    assert reason(ValueError(299 * "a" + ".")) == 299 * "a"
