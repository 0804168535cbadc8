"""Files that are opened once and read whole: the bytes that are checked are those that are used.

A pipe or a device in the place of a file is refused before a byte is read, and so is what is too long.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

from guardband.exceptions import SignatureError

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True)
class ReadFile(os.PathLike[str]):
    """A file that was read: it stands for its path wherever a path is taken, and is not read again."""

    path: Path
    body: bytes = field(repr=False)

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)


def bytes_of(path: AnyPath) -> bytes:
    """Return the bytes of a file as they were read, or else as they are now."""
    return path.body if isinstance(path, ReadFile) else Path(path).read_bytes()


def read_once(
    path: Path,
    what: str,
    largest: int | None = None,
    check: Callable[[os.stat_result], object] = lambda status: None,
) -> bytes:
    """Return all bytes of a file; ``check`` sees the status of the very file that is read."""
    with _opened(path, what, check) as file:
        body = file.read(-1 if largest is None else largest + 1)
    if largest is not None and len(body) > largest:
        raise SignatureError(f"{path} has more than {largest:,} bytes, and is no {what}. Check the path.")
    return body


def read_known(path: Path, what: str, sha512: str) -> bytes | None:
    """Return all bytes of a file that has this SHA-512, None of any other: that one is never in memory as a whole."""
    with _opened(path, what) as file:
        if hashlib.file_digest(file, "sha512").hexdigest() != sha512:
            return None
        size = file.tell()
        file.seek(0)
        body = file.read(size)
    # It may have been changed since it was read for the first time.
    return body if hashlib.sha512(body).hexdigest() == sha512 else None


@contextmanager
def _opened(
    path: Path, what: str, check: Callable[[os.stat_result], object] = lambda status: None
) -> Iterator[BufferedReader]:
    try:
        # A pipe that nobody writes to would keep us waiting: it is opened without, and refused.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise SignatureError(
            f"The {what} {path} cannot be read: {why}. Check the path and your rights to it."
        ) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise SignatureError(f"{path} is no file, and cannot be a {what}. Check the path.")
        check(status)
        with open(handle, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(handle)
