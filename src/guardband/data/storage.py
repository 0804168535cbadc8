"""Files in object storage, such as s3://bucket/folder/part.parquet: found by patterns, read in ranges, written whole.

pyarrow reaches the storage, with the credentials of the machine. An object appears when its upload ends, so it is
whole. But a stream of pyarrow that is abandoned ends its upload too. Therefore only finished files are uploaded.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.data.damage import reason_of

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

ADDRESS = re.compile(r"(?P<root>(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[^/?]*))/?(?P<key>[^?]*)(?P<options>\?.*)?")
MAGIC = "*["
"""Signs of a pattern. A question mark begins the options of an address."""
SECRETS = re.compile(r"[?&][^=&]*(secret|key|token|password|sig)[^=&]*=", re.IGNORECASE)
PROBED, UPLOADED = 1 << 16, 4 << 20
LEAST_BUFFER, MOST_BUFFER, BUFFERS = 1 << 20, 8 << 20, 64 << 20
"""Bytes that one request brings, and what all columns together may hold of them."""
REFUSED = ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE", "TOKEN", "CLIENT", "CREDENTIAL", "401", "403")
ABSENT = ("NO_SUCH_KEY", "RESOURCE_NOT_FOUND")
"""Codes of the storage that say what is wrong."""
AGAIN = "Check the network and the address, and run again."


class StorageError(ValueError):
    """Object storage that cannot be reached, or an object that is no longer what it was; says what to do."""


def is_address(path: str | Path) -> bool:
    """Return whether a path leads to object storage."""
    found = ADDRESS.fullmatch(str(path))
    return found is not None and found["scheme"] != "file"


@dataclass(frozen=True)
class Status:
    """What is asked of a file's status."""

    st_size: int


@dataclass(frozen=True)
class Address:
    """Where an object lies, or a folder of them: a bucket, a key, and options such as ``?region=eu-west-1``."""

    root: str
    key: str
    options: str

    @classmethod
    def of(cls, text: str) -> Address:
        """Return the parts of an address; one that holds credentials is refused, and not repeated."""
        found = ADDRESS.fullmatch(text)
        assert found is not None, "is_address comes before"
        user, _, host = found["host"].rpartition("@")
        is_port = re.fullmatch(r"[^:]*(:\d+)?", host) is not None
        has_user = ":" in user or (found["scheme"] == "s3" and bool(user))
        if has_user or not is_port or SECRETS.search(found["options"] or ""):
            raise ValueError(
                "An address in object storage must not hold credentials, because addresses are written into files. "
                "Remove them, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY on all machines."
            )
        return cls(found["root"], found["key"].rstrip("/"), found["options"] or "")

    def __str__(self) -> str:
        return f"{self.root}/{self.key}{self.options}"

    def inside(self, name: str) -> Address:
        """Return the address of what lies in this folder."""
        return replace(self, key=f"{self.key}/{name}".lstrip("/"))

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]

    def place(self) -> tuple[FileSystem, str]:
        """Return the storage, and what it calls this object."""
        store, base = _store(f"{self.root}{self.options}")
        return store, f"{base.rstrip('/')}/{self.key}"

    @property
    def is_object(self) -> bool:
        """Whether an object is there."""
        store, place = self.place()
        with reaching(self):
            return bool(store.get_file_info(place).is_file)

    @property
    def version(self) -> str:
        """What changes when the object does: its size, and its tag or the time of its last change."""
        store, place = self.place()
        with reaching(self):
            with store.open_input_file(place) as file:
                about, size = file.metadata() or {}, file.size()
            tag = next((about[name].decode() for name in about if name.lower() == "etag"), None)
            return f"{size} {tag or store.get_file_info(place).mtime_ns}"

    def stat(self) -> Status:
        """Return how large the object is."""
        store, place = self.place()
        with reaching(self):
            return Status(store.get_file_info(place).size)

    def sizes(self) -> dict[str, int]:
        """Return the names of the objects and folders in this folder, and their sizes."""
        from pyarrow.fs import FileSelector

        store, place = self.place()
        with reaching(self):
            found = store.get_file_info(FileSelector(place, allow_not_found=True))
        return {own.base_name: own.size or 0 for own in found}

    def read(self) -> bytes:
        """Return the bytes of an object."""
        with ObjectReader(self) as file:
            return file.readall()

    def open(self, mode: str = "rb", buffering: int = PROBED) -> io.BufferedReader:
        """Open the object as a file is opened; so many bytes come with one request."""
        assert mode == "rb"
        return io.BufferedReader(ObjectReader(self), buffering)

    def upload(self, path: Path) -> None:
        """Put a file, which is complete, in the place of the object."""
        store, place = self.place()
        with reaching(self, "written"), path.open("rb") as file:
            # Not by copy_files of pyarrow, which hides an upload that fails at its end.
            stream = store.open_output_stream(place)
            while block := file.read(UPLOADED):
                stream.write(block)
            stream.close()


class ObjectReader(io.RawIOBase):
    """Reads an object by requests for ranges. What goes wrong on the way is no damage of the file, and told apart."""

    def __init__(self, address: Address) -> None:
        self._address = address
        store, place = address.place()
        with reaching(address):
            self._file = store.open_input_file(place)
            self._size = self._file.size()

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def seekable(self) -> bool:
        """Say that this can be read from anywhere."""
        return True

    def tell(self) -> int:
        """Return where the next byte is."""
        return int(self._file.tell())

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a byte."""
        return int(self._file.seek(offset, whence))

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer, and return how much of it is filled: all, or what is left.

        If the object has become shorter since it was opened, pyarrow fills the rest with anything. Who reads must
        compare versions.
        """
        with reaching(self._address):
            return int(self._file.readinto(buffer))

    def readall(self) -> bytes:
        """Return what is left, by one request."""
        return self.read(max(self._size - self.tell(), 0)) or b""

    def close(self) -> None:
        """Close the object."""
        if not self.closed:
            self._file.close()
        super().close()


def addresses_in(pattern: str) -> list[str]:
    """Return the addresses that a pattern stands for, in the order of their names; an address stands for itself."""
    from pyarrow.fs import FileSelector

    address = Address.of(pattern)
    if not any(sign in address.key for sign in MAGIC) or address.is_object:
        return [str(address)]
    parts = address.key.split("/")
    plain = next(i for i, part in enumerate(parts) if any(sign in part for sign in MAGIC))
    folder = replace(address, key="/".join(parts[:plain]))
    store, place = folder.place()
    with reaching(folder):
        selected = FileSelector(place, allow_not_found=True, recursive=plain < len(parts) - 1)
        found = [own.path[len(place.rstrip("/")) + 1 :] for own in store.get_file_info(selected) if own.is_file]
    keys = sorted(name for name in found if _matches(name.split("/"), parts[plain:]))
    if not keys:
        raise FileNotFoundError(f"No object matches {pattern}. Check the bucket and the pattern.")
    return [str(folder.inside(key)) for key in keys]


def version_of(path: str) -> str | None:
    """Return what changes when an object does, None for a file of this machine."""
    return Address.of(path).version if is_address(path) else None


def name_of_file(path: str) -> str:
    """Return the last part of a path or an address."""
    return Address.of(path).name if is_address(path) else Path(path).name


def buffer_bytes(path: str | Path | Address, columns: int) -> int:
    """Return how many bytes of a column of a Parquet file are read at once: of objects more, for requests take long."""
    if isinstance(path, Address) or is_address(path):
        return max(LEAST_BUFFER, min(MOST_BUFFER, BUFFERS // max(1, columns)))
    return LEAST_BUFFER


@contextmanager
def arrow_source(path: str | Path | Address) -> Iterator[Any]:
    """Yield what Arrow reads a file from: its path, or an object as a file."""
    if not isinstance(path, Address) and not is_address(path):
        yield path
        return
    with ObjectReader(path if isinstance(path, Address) else Address.of(str(path))) as file:
        yield file


@contextmanager
def reaching(address: Address, done: str = "read") -> Iterator[None]:
    """Say in one sentence why an object cannot be reached; what a server says is not repeated, but for its code."""
    import pyarrow as pa

    try:
        yield
    except StorageError:
        raise
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, FileNotFoundError) or any(code in str(error) for code in ABSENT):
            raise StorageError(f"There is no object at {address}. Check the bucket and the path.") from None
        raise StorageError(f"{address} cannot be {done}: {_in_words(error, address)}") from None


def _in_words(error: BaseException, address: Address) -> str:
    said = str(error)
    code = re.search(r"AWS Error ([A-Z_]+)( \(HTTP status (\d+)\))?", said)
    if code is None:
        return f"{reason_of(error)}. {AGAIN}"
    name, number = code[1], code[3] or ""
    if name == "NO_SUCH_BUCKET":
        return f"there is no bucket {address.root.partition('://')[2]}. Check the address."
    if name == "NETWORK_CONNECTION":
        return f"the network failed. {AGAIN}"
    if any(sign in f"{name} {number}" for sign in REFUSED):
        return (
            f"the storage refuses the credentials ({name}). Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY on all "
            "machines, and the rights to the bucket."
        )
    return f"the storage answers {name}{f' (status {number})' if number else ''}. {AGAIN}"


def _matches(names: list[str], patterns: list[str]) -> bool:
    """Return whether each part of a key matches that of a pattern, as those of files do."""
    pairs = zip(names, patterns, strict=False)
    return len(names) == len(patterns) and all(
        fnmatchcase(name, pattern) and (pattern.startswith(".") or not name.startswith(".")) for name, pattern in pairs
    )


@cache
def _store(uri: str) -> tuple[FileSystem, str]:
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    try:
        store, base = FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, TypeError) as error:
        raise ValueError(
            f"{uri} is no address of object storage: {reason_of(error)}. Write it as s3://bucket/folder/*.parquet."
        ) from None
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{uri} cannot be reached: {_in_words(error, Address.of(uri))}") from None
    return store, base
