"""Threads on the CPU: as many as the caller allows, and none that wait for each other at every operation."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import torch

_lock = threading.Lock()
_inside = 0
_outside_threads = 1
_own = threading.local()


def _after_fork() -> None:
    """Compute on one thread in a forked process, where OpenMP would wait for threads that were left behind."""
    global _lock, _outside_threads
    _lock, _outside_threads = threading.Lock(), 1
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def allowed_threads() -> int:
    """Return how many threads the caller lets this process have: torch's number, at most the usable cores."""
    with _lock:
        threads = _outside_threads if _inside else torch.get_num_threads()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(threads, usable))


@contextmanager
def one_thread_each() -> Iterator[int]:
    """Let every operation run on the thread that calls it, and give how many threads are in here, this one included.

    torch counts threads for each calling thread: each that enters here gets its number back when it leaves.
    """
    global _inside, _outside_threads
    with _lock:
        if _inside == 0:
            _outside_threads = torch.get_num_threads()
        _inside += 1
        inside = _inside
    _own.depth = getattr(_own, "depth", 0) + 1
    torch.set_num_threads(1)
    try:
        yield inside
    finally:
        _own.depth -= 1
        if _own.depth == 0:
            torch.set_num_threads(_outside_threads)
        with _lock:
            _inside -= 1


@contextmanager
def trees_on_one_thread() -> Iterator[None]:
    """Let scikit-learn's trees compute on one thread, in any copy of OpenMP.

    Small trees take many short steps, at each of which threads wait for each other: on busy cores a second becomes a
    minute. In a forked process they would wait for threads that were left behind.
    """
    with import_module("threadpoolctl").threadpool_limits(1, user_api="openmp"):  # it comes with scikit-learn
        yield
