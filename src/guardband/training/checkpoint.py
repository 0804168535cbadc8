"""Checkpoints: a killed run goes on from its last one to the same result."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import time
import zipfile
from pathlib import Path
from typing import IO, Any, cast

import torch

from guardband.data.files import write_whole

SECONDS_BETWEEN = 30.0
HEAD = b"guardband checkpoint 2 sha256 "
"""A file begins with this, the checksum of all that follows in hexadecimal digits, and the end of the line."""
DIGITS = 64
OLD = b"PK"
"""How files without a checksum began."""


class Checkpoint:
    """A file with the state of a run, written whole or not at all.

    ``job`` describes the run; a file of another run is refused, and so is one in which a single bit has changed. It
    holds tensors and numbers alone, and is read without running any code in it.
    """

    def __init__(self, path: Path | None = None, job: str = "") -> None:
        self._path = path
        self._job = job
        self._written = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """Return the state that was saved last, None if there is none; the folder must be one to write to."""
        if self._path is None:
            return None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(self._path.parent, os.W_OK):
            raise PermissionError(f"A checkpoint needs a folder that can be written to, found {self._path.parent}.")
        if not self._path.exists():
            return None
        with self._path.open("rb") as file:
            head, body = file.read(len(HEAD) + DIGITS + 1), file.read()
        if head.startswith(OLD):
            raise self.unusable("was written by an older guardband, without a checksum")
        if not head.startswith(HEAD):
            raise self.unusable("is not a file that guardband wrote, or it is damaged")
        if head != _head(hashlib.sha256(body).hexdigest()):
            raise self.unusable("is damaged or cut short: its checksum does not match")
        if _unpacked(body) > len(body):
            raise self.unusable("is not a file that guardband wrote: it is packed, or its archive is damaged")
        try:
            saved = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
            job, state = saved["job"], saved["state"]
        except Exception as error:
            raise self.unusable("is not a file that guardband wrote") from error
        if job != self._job:
            raise self.unusable("is not of the same run: it was written with other networks, data, losses or settings")
        if not isinstance(state, dict):
            raise self.unusable("is not a file that guardband wrote")
        return state

    def unusable(self, why: str) -> ValueError:
        """Return the error that says why the file cannot be used, and what to do."""
        return ValueError(
            f"The checkpoint {self._path} {why}. Remove it to train from the start, or name another folder."
        )

    @property
    def wanted(self) -> bool:
        """Whether there is a file to write."""
        return self._path is not None

    def due(self) -> bool:
        """Whether it is time to save again."""
        return self.wanted and time.monotonic() - self._written >= SECONDS_BETWEEN

    def save(self, state: dict[str, Any]) -> None:
        """Save a state in place of the last one."""
        if self._path is None:
            return
        write_whole(self._path, lambda part: _write(part, {"job": self._job, "state": state}))
        self._written = time.monotonic()


def _unpacked(body: bytes) -> int:
    """Return how many bytes the parts of a state take in memory: torch packs none, but unpacks what others packed."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as parts:
            return sum(part.file_size for part in parts.infolist())
    except zipfile.BadZipFile:
        return 0  # torch says what is wrong
    except Exception:  # of archives as no torch writes them: another version, parts that lie outside
        return sys.maxsize


def _head(digest: str) -> bytes:
    return HEAD + digest.encode() + b"\n"


def _write(path: Path, saved: dict[str, Any]) -> None:
    """Write the checksum and what it is of, which goes to the disk without a copy in memory."""
    with path.open("wb") as file:
        file.write(_head("0" * DIGITS))
        body = _Hashed(file)
        torch.save(saved, cast(IO[bytes], body))
        file.seek(0)
        file.write(_head(body.digest.hexdigest()))


class _Hashed(io.RawIOBase):
    """A file of which the checksum is taken while it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return self._file.write(data)
