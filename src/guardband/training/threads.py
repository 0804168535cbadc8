"""Threads on the CPU: as many as the caller allows, and none that wait for each other at every operation."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_lock = threading.Lock()
_inside = 0
_outside_threads = 1


def allowed_threads() -> int:
    """Return how many threads the caller lets this process have: torch's number, at most the usable cores."""
    with _lock:
        threads = _outside_threads if _inside else torch.get_num_threads()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(threads, usable))


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let every operation run on the thread that calls it; the caller's number comes back when the last has left."""
    global _inside, _outside_threads
    with _lock:
        if _inside == 0:
            _outside_threads = torch.get_num_threads()
            torch.set_num_threads(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                torch.set_num_threads(_outside_threads)
