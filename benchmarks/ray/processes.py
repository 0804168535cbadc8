"""The memory and the time of this process and of all that it started, from /proc."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

TICKS = os.sysconf("SC_CLK_TCK")


def family(root: int | None = None) -> list[int]:
    """Return a process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found, left = [], [os.getpid() if root is None else root]
    while left:
        own = left.pop()
        found.append(own)
        left += parents.get(own, [])
    return found


def memory() -> dict[int, int]:
    """Return the bytes of each process; what several share counts once, in parts."""
    out = {}
    for own in family():
        try:
            lines = Path(f"/proc/{own}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        out[own] = sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return out


def seconds() -> float:
    """Return how many seconds of a processor this process and those alive below it have used."""
    total = 0
    for own in family():
        try:
            numbers = Path(f"/proc/{own}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, numbers[11:15]))  # of ended children too
    return total / TICKS


class Peak:
    """Looks at the memory four times a second: ``most`` of all together, ``driver`` of this process alone."""

    def __init__(self) -> None:
        self.most = self.driver = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(0.25):
            found = memory()
            self.most = max(self.most, sum(found.values()))
            self.driver = max(self.driver, found.get(os.getpid(), 0))
