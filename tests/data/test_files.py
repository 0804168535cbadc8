import os

import pytest

from guardband.data.files import write_whole


def test_a_file_is_on_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    done = []
    sync, put = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("sync"), sync(handle)))
    monkeypatch.setattr(os, "replace", lambda part, path: (done.append("replace"), put(part, path)))
    write_whole(tmp_path / "a", lambda part: part.write_text("all"))
    assert done == ["sync", "replace", "sync"]  # the file, then its name
    assert (tmp_path / "a").read_text() == "all"


def test_a_failure_leaves_what_was_there(tmp_path):
    (tmp_path / "a").write_text("old")

    def fail(part):
        part.write_text("ne")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "a", fail)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
