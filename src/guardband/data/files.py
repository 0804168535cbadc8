"""Files that appear whole or not at all, and the one that is none."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

STANDARD = "-"
"""The name of standard input and of standard output."""


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file beside its place, then put it there; other processes and threads may do the same."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        write(part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
