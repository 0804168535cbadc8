"""Where predictions are written: a folder that all machines see, or one in object storage."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from guardband.data.files import locked_folder, scratch_folder, write_whole
from guardband.data.storage import Address, is_address

NOTES = ".guardband"
"""The folder inside the output that says what is done."""


class Folder(Protocol):
    """A folder whose files appear whole. Names are relative to it."""

    def locked(self) -> AbstractContextManager[bool]:
        """Keep other runs out, and say whether that was possible."""

    def sizes(self) -> dict[str, int]:
        """Return what the folder and its notes hold, with the sizes in bytes."""

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""

    def write(self, name: str, make: Callable[[Path], object]) -> int:
        """Let a function make a file, put it in its place, and return its size."""


def folder_at(path: str | Path) -> Folder:
    """Return the folder at a path or at an address in object storage.

    Parameters
    ----------
    path : str or Path
        Where it is.
    """
    return StoredFolder(Address.of(str(path))) if is_address(path) else LocalFolder(Path(path))


def write_json(folder: Folder, name: str, value: Any) -> None:
    """Write a small file.

    Parameters
    ----------
    folder : Folder
        Where to.
    name : str
        Its name.
    value : object
        What it says.
    """
    folder.write(name, lambda path: path.write_text(json.dumps(value)))


@dataclass(frozen=True)
class LocalFolder:
    """A folder on a disk: two runs exclude each other by a lock."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def locked(self) -> AbstractContextManager[bool]:
        """Hold a lock on the folder, if nobody else does."""
        self.path.mkdir(parents=True, exist_ok=True)
        return locked_folder(self.path, waits=False)

    def sizes(self) -> dict[str, int]:
        """Return what the folder and its notes hold."""
        found = {}
        for path in (*self.path.glob("*"), *self.path.glob(f"{NOTES}/*")):
            with suppress(FileNotFoundError):  # of a worker of an ended run that still goes on
                found[path.relative_to(self.path).as_posix()] = path.lstat().st_size
        return found

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        return (self.path / name).read_bytes()

    def write(self, name: str, make: Callable[[Path], object]) -> int:
        """Make a file beside its place, and rename it."""
        place = self.path / name
        place.parent.mkdir(exist_ok=True)
        write_whole(place, make)
        return os.stat(place).st_size


@dataclass(frozen=True)
class StoredFolder:
    """A folder in object storage. There are no locks: two runs do the same work, and write the same objects."""

    address: Address

    def __str__(self) -> str:
        return str(self.address)

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Let everybody in."""
        yield True

    def sizes(self) -> dict[str, int]:
        """Return what the folder and its notes hold."""
        notes = self.address.inside(NOTES).sizes()
        return {**self.address.sizes(), **{f"{NOTES}/{name}": size for name, size in notes.items()}}

    def read(self, name: str) -> bytes:
        """Return the bytes of an object."""
        return self.address.inside(name).read()

    def write(self, name: str, make: Callable[[Path], object]) -> int:
        """Make a file on this machine, and upload it when it is complete."""
        place = self.address.inside(name)
        with scratch_folder() as scratch:
            path = scratch / place.name
            make(path)
            place.upload(path)
            return path.stat().st_size
