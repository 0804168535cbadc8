"""Small matrices on one thread: to share them out takes longer than to work on them, much longer on busy cores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

_lock = threading.Lock()
_inside = 0
_limit: Any = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Let linear algebra run on the calling thread, until the last of several that are inside has left."""
    global _inside, _limit
    with _lock:
        if not _inside:
            _limit = _libraries().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limit.restore_original_limits()


@cache
def _libraries() -> Any:
    """Return the libraries of linear algebra that are loaded, which takes long to find out."""
    import_module("scipy.linalg")  # which brings one of its own
    return import_module("threadpoolctl").ThreadpoolController()  # it comes with scikit-learn
