"""Files that appear whole or not at all, and the one that is none."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there, and so nothing is swept
    fcntl = None  # type: ignore[assignment]

STANDARD = "-"
"""The name of standard input and of standard output."""
SCRATCH = "guardband-scratch-"
MOST_LINKS = 40
LONGEST_NAME = 200
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)

_unfinished: dict[Path, int] = {}  # part files, by the process that writes them


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file beside its place, then put it there; other processes and threads may do the same.

    A link stays, and the file that it leads to is replaced. A file that was there hands on its mode, and its owner and
    group as far as the system lets us; other hard links to it, access lists and attributes are not kept. What stops
    while it writes leaves the old file as it was.

    A process that is killed leaves its part file, and whoever writes to the same place next removes it. That is safe:
    who writes holds a lock on the part file, which the system drops when the process ends, on whichever machine. Where
    files cannot be locked, nothing is removed.
    """
    if path in _unfinished:  # the part file of another call: it is put in its place whole
        write(path)
        return
    try:
        _replace(path, write)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise _no_room(error, path) from None


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    place = place_of(path)
    with _part_of(place) as part:
        old = _status(place)
        mode = _take_over(part, old)
        write(part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        if old is not None:
            os.chmod(part, mode)
        try:
            os.replace(part, place)
        except OSError as error:
            raise OSError(f"{path} cannot be replaced: {error.strerror or error}. Write to another file.") from None
        _sync_folder(place.parent)


def write_new(path: Path, body: bytes, mode: int) -> None:
    """Write a file whole or not at all where there was none, with rights that the umask may lower.

    What is there already, be it a link to nothing, is a ``FileExistsError``.
    """
    with _part_of(path, mode) as part:
        rights = stat.S_IMODE(part.stat().st_mode)
        part.chmod(rights | stat.S_IRUSR | stat.S_IWUSR)
        with part.open("rb+") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(rights)
        os.link(part, path)
        _sync_folder(path.parent)


def need_room(path: Path) -> None:
    """Raise ``OSError`` if no file can be made beside a path; only trying tells, since rights do not say all."""
    with _part_of(place_of(path)):
        pass


@contextmanager
def locked_folder(folder: Path, waits: bool = True) -> Iterator[bool]:
    """Hold a lock on a folder against other processes and threads; the system drops it when the process ends.

    Yields whether it is held. Who does not wait does not hold it while somebody else does. Where folders cannot be
    locked, everybody is let in.
    """
    handle, is_held = None, True
    try:
        try:
            if fcntl is not None:
                handle = os.open(folder, os.O_RDONLY)
                fcntl.flock(handle, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_held = False
        except OSError:  # a folder that may be written and not read, or a disk without locks
            pass
        yield is_held
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder for this process alone, and remove it; those of killed processes of this user are removed too."""
    for left in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        with suppress(OSError):
            _remove_left(left)
    while True:
        with (
            tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as made,
            locked_folder(Path(made), waits=False) as is_held,
        ):
            if is_held and os.path.isdir(made):  # else another process took it for one that was left
                yield Path(made)
                return


def is_part_of(name: str, other: str) -> bool:
    """Return whether a file is one that a file of this name was written to, by a process that may be no more."""
    return re.fullmatch(rf"\.{re.escape(name)}\.[0-9a-f]{{16}}\.part", other) is not None


def remove_unfinished() -> None:
    """Remove the part files of this process: for a program that ends in the middle of its work."""
    for part, process in list(_unfinished.items()):
        if process == os.getpid():
            with suppress(OSError):
                part.unlink(missing_ok=True)
            _unfinished.pop(part, None)


def place_of(path: Path) -> Path:
    """Return where a file is written: at the end of all links, in a folder that exists, and no device."""
    place = Path(path)
    for _ in range(MOST_LINKS):
        if not place.is_symlink():
            break
        _need_own_link(place)
        place = place.parent / os.readlink(place)
    else:
        raise OSError(f"{path} is a link that leads to itself. Remove it, or write to another file.")
    status = _status(place)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(f"{path} is a folder. Write to a file.")
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path} is a device or a pipe, not a file. Write to another file.")
    if place != Path(path) and not place.parent.is_dir():
        raise FileNotFoundError(f"{path} is a link to {place}, whose folder is missing. Make the folder first.")
    return place


def _need_own_link(link: Path) -> None:
    """Raise if somebody else made a link in a folder where everybody may: it could lead to any file of ours."""
    own, folder = link.lstat(), link.parent.stat()
    is_shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    if is_shared and hasattr(os, "geteuid") and own.st_uid not in (os.geteuid(), folder.st_uid):
        raise PermissionError(f"{link} is a link of another user in a shared folder. Write to another file.")


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


@contextmanager
def _part_of(place: Path, rights: int = 0o666) -> Iterator[Path]:
    """Make a locked, empty file beside a place; if a file is there already, nobody else may read the new one yet.

    Its name is text, since other packages write no other names.
    """
    sweep(place)
    name = _name_for(place)
    mode = rights if _status(place) is None else 0o600
    while True:
        part = place.with_name(f".{name}.{os.urandom(8).hex()}.part")
        _unfinished[part] = os.getpid()
        handle = None
        try:
            handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
            _lock(handle)
            if os.fstat(handle).st_nlink == 0:
                continue  # swept before it was locked
            yield part
            return
        finally:
            part.unlink(missing_ok=True)
            if handle is not None:
                os.close(handle)
            _unfinished.pop(part, None)


def _is_text(name: str) -> bool:
    """Return whether a name can be written in UTF-8: bytes that are none stand in it as surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _name_for(place: Path) -> str:
    name = place.name
    if len(os.fsencode(name)) > LONGEST_NAME or not _is_text(name):
        import hashlib

        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return name


def sweep(place: Path) -> None:
    """Remove the part files of a place whose writers are no more: those that nobody holds a lock on."""
    name = _name_for(place)
    with suppress(OSError), os.scandir(place.parent) as entries:
        for entry in entries:
            if is_part_of(name, entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_unlocked(entry.path)


def _remove_unlocked(path: str) -> None:
    handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        if _lock(handle):
            os.unlink(path)
    finally:
        os.close(handle)


def _remove_left(folder: Path) -> None:
    """Remove a folder of this user that nobody holds a lock on."""
    handle = os.open(folder, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    try:
        if _lock(handle) and os.fstat(handle).st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file; return whether that was possible."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody else holds it, or locks are not to be had on this disk
        return False
    return True


def _take_over(part: Path, old: os.stat_result | None) -> int:
    """Give a part file the owner, group and rights of the file that it will replace; return its rights in the end."""
    if old is None:
        return 0
    mode = stat.S_IMODE(old.st_mode) & 0o777
    if hasattr(os, "chown"):
        own = part.stat()
        if own.st_uid != old.st_uid:
            with suppress(OSError):
                os.chown(part, old.st_uid, -1)
        if own.st_gid != old.st_gid:
            try:
                os.chown(part, -1, old.st_gid)
            except OSError:  # our group must not get the rights of another one
                mode = mode & ~0o070 | mode & (mode & 0o007) << 3
    os.chmod(part, mode | stat.S_IRUSR | stat.S_IWUSR)
    return mode


def _sync_folder(folder: Path) -> None:
    """Bring a new name to the disk, where folders can be synced."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _no_room(error: OSError, path: Path) -> OSError:
    said = OSError(f"{path} cannot be written: {error.strerror}. Free some space, or write to another disk.")
    said.errno = error.errno
    return said
