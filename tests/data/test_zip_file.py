"""Zip files that say of themselves what cannot be are refused in one sentence."""

import io
import zipfile

import pytest

from guardband.data.disk import open_table


def zipped(name="table.csv"):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as made:
        made.writestr(name, "a,y\n1,2\n")
    return sink.getvalue()


def refused(path, body):
    path.write_bytes(body)
    with pytest.raises(ValueError, match=r"a zip file|damaged zip or Excel file") as found:
        open_table(str(path))
    return str(found.value)


def test_a_zip_file_of_a_version_that_there_is_not_is_refused(tmp_path):
    body = zipped()
    at = body.rindex(b"PK\x01\x02")  # what the list of files says of the first
    made = body[: at + 6] + b"\xf1\0" + body[at + 8 :]
    assert "zip file version 24.1. Copy or download it again." in refused(tmp_path / "a.zip", made)


def test_a_file_without_a_name_is_none(tmp_path):
    body = zipped("x").replace(b"x", b"", 1)
    at = body.rindex(b"PK\x01\x02")
    name = body.index(b"x", at)
    made = bytearray(body[:name] + body[name + 1 :])
    made[at + 28 : at + 30] = made[26:28] = b"\0\0"  # the length of the name
    end = made.rindex(b"PK\x05\x06")
    made[end + 12 : end + 16] = (end - at).to_bytes(4, "little")
    made[end + 16 : end + 20] = at.to_bytes(4, "little")
    assert [own.filename for own in zipfile.ZipFile(io.BytesIO(bytes(made))).infolist()] == [""]
    assert refused(tmp_path / "a.zip", bytes(made)).endswith("with nothing in it: put a CSV file into it.")
