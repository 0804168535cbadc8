"""No command writes over what it reads, or one result over another, and none begins what it cannot write."""

import os
from pathlib import Path

import pytest

from guardband.cli.paths import make_folder, need_writable
from guardband.doors.model_file import save
from guardband.report.document import document


@pytest.fixture
def here(small_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("s.csv", "t.csv"):
        (tmp_path / name).write_bytes(small_model.path.read_bytes())
    save(small_model.model, tmp_path / "m.guardband", report=document(small_model.model, None))
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


FIT = ["fit", "s.csv", "-t", "price", "--preset", "fast"]
AUDIT = ["audit", "m.guardband", "s.csv"]
CALIBRATE = ["calibrate", "s.csv", "-t", "price", "--point", "size", "--group", "town", "--training"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*FIT, "-o", "a.html"], "Two results would be written to a.html"),
        ([*FIT, "-o", "s.csv"], "s.csv is an input of this command"),
        ([*FIT, "--report", "s.csv"], "s.csv is an input of this command"),
        ([*FIT, "-o", "a", "--report", "./a"], "Two results would be written to a"),
        ([*CALIBRATE, "t.csv", "-o", "t.csv"], "t.csv is an input of this command"),
        ([*CALIBRATE, "t*.csv", "-o", "t.csv"], "t.csv is an input of this command"),
        ([*FIT, "--for-target", "t*.csv", "--report", "t.csv"], "t.csv is an input of this command"),
        ([*AUDIT, "--report", "s.csv"], "s.csv is an input of this command"),
        ([*AUDIT, "--recalibrate", "m.guardband"], "m.guardband is an input of this command"),
        ([*AUDIT, "--recalibrate", "q", "--report", "q"], "Two results would be written to q"),
        (["predict", "m.guardband", "s.csv", "-o", "s.csv"], "s.csv is an input of this command"),
        (["report", "m.guardband", "-o", "m.guardband"], "m.guardband is an input of this command"),
        (["export", "m.guardband", "--onnx", "m.guardband"], "m.guardband is an input of this command"),
        ([*FIT, "--report", "/proc/x.html"], "/proc/x.html cannot be written: "),
        ([*FIT, "-o", "."], ". is not a file in a folder that exists"),
        (["predict", "m.guardband", "s.csv", "-o", "/proc/h.csv"], "/proc/h.csv cannot be written: "),
        (["report", "m.guardband", "-o", "no/x.html"], "no/x.html is not a file in a folder that exists"),
        (["report", "m.guardband", "--figures", "s.csv"], "s.csv cannot be a folder for results: File exists."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_paths_are_refused_in_one_line_and_nothing_changes(command, here, arguments, words):
    before = contents(here)
    assert words in command(*arguments).complaint
    assert contents(here) == before


TRUSTED = [
    [*AUDIT, "--report"],
    [*AUDIT, "--recalibrate"],
    ["monitor", "m.guardband", "s.csv", "--state"],
    ["export", "m.guardband", "--onnx"],
]


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["predict", "m.guardband", "s.csv", "-o"], "k.csv"),  # no table has the name of a signature
        *((arguments, kept) for arguments in TRUSTED for kept in ("k.csv", "m.guardband.sig")),
    ],
)
def test_the_key_and_the_signature_of_a_model_are_inputs(command, here, arguments, kept):
    (here / "k.csv").write_text("a key")
    (here / "m.guardband.sig").write_text("a signature")
    before = contents(here)
    assert f"{kept} is an input of this command" in command(*arguments, kept, "--trusted", "k.csv").complaint
    assert contents(here) == before


def test_one_file_by_two_names_is_one_file(tmp_path):
    file, link = tmp_path / "t.csv", tmp_path / "link"
    link.symlink_to(file)
    with pytest.raises(ValueError, match="Two results"):
        need_writable((file, link), ())  # neither is there yet
    file.write_text("")
    for other in (link, tmp_path / "x" / ".." / "t.csv", Path(os.path.relpath(file))):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(ValueError, match="is an input of this command"):
            need_writable((None, other), (str(file),))
    need_writable((tmp_path / "other",), (str(file), "-"))


def test_a_device_is_no_place_for_a_file():
    with pytest.raises(ValueError, match="is not a file in a folder that exists"):
        need_writable((Path(os.devnull),), ())


def test_a_folder_is_made_with_those_around_it_once(tmp_path):
    for _ in range(2):
        make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
