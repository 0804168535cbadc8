"""Zip files: which of them are workbooks, and the one table in any other."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import IO

from guardband.data.damage import UnreadableError
from guardband.words import listed

ZIP = (b"PK\x03\x04", b"PK\x05\x06")
WORKBOOKS = ("xl/workbook.xml", "xl/workbook.bin", "content.xml")
ENCRYPTED = 1
DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError)


def is_workbook(file: IO[bytes], label: str) -> bool:
    """Return whether a zip file is a workbook of Excel or OpenOffice."""
    return not set(WORKBOOKS).isdisjoint(_opened(file, label).namelist())


def only_member(file: IO[bytes], label: str) -> IO[bytes]:
    """Return the one file in a zip file, to be read from its beginning; it is unpacked a little at a time."""
    if not file.seekable():
        raise ValueError(f"{label} is a zip file, which cannot be read from a pipe: unzip it first.")
    packed = _opened(file, label)
    members = [member for member in packed.infolist() if not _is_no_file(member)]
    if not members:
        raise ValueError(f"{label} is a zip file with nothing in it: put a CSV file into it.")
    if len(members) > 1:
        names = listed([member.filename for member in members])
        raise ValueError(f"{label} holds {len(members):,} files, {names}: unzip it, and name those of one table.")
    (member,) = members
    if member.flag_bits & ENCRYPTED:
        raise ValueError(f"{label} is locked by a password: unzip it first.")
    try:
        return packed.open(member)
    except NotImplementedError as error:
        raise ValueError(
            f"{label} is packed in a way that guardband cannot unpack ({error}): unzip it first."
        ) from None
    except DAMAGED as error:
        raise damaged(label, error) from None


def damaged(label: str, error: Exception) -> ValueError:
    """Return what to say of a zip file that cannot be unpacked."""
    reason = str(error).split("\n")[0].rstrip(".") or "it ends too early"
    return UnreadableError(
        f"{label} is a damaged zip or Excel file, or cut short: {reason}. Copy or download it again."
    )


def _opened(file: IO[bytes], label: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except Exception as error:  # of zipfile, which follows what the file says of itself
        raise damaged(label, error) from None


def _is_no_file(member: zipfile.ZipInfo) -> bool:
    """Return whether a member is a folder, has no name, or was added by a system: .DS_Store, or __MACOSX of a Mac."""
    if not member.filename or member.is_dir():
        return True
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(member.filename).parts)
