"""Outputs for new rows, in blocks of one fixed shape."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from guardband.training.members import Members
from guardband.training.stack import Stack
from guardband.training.threads import allowed_threads, one_thread_each

BLOCK = 1024
"""Matrix products of one shape treat every row alike, so what a row gets does not depend on its neighbours:
predicted alone, in another order or in another chunk of a file, it is the same to the last bit."""
LONGEST = 16 * BLOCK
"""Rows that are encoded, predicted and read at a time."""
ROWS_ON_GPU = 2**16
"""Rows of a product on a GPU, of all members together: with fewer it waits for the next call, and more take memory."""
FEEDERS = 4
"""Threads that encode for a GPU: more would wait for Python or for the device."""

T = TypeVar("T")
Matrix = NDArray[np.float32]


def predict(members: Members, x: Matrix, device: torch.device) -> NDArray[np.float32]:
    """Return the outputs of all members, ``(n, d) -> (M, n, C)``."""
    parts = predict_parts(members, len(x), x.__getitem__, device, lambda outputs: outputs)
    return np.concatenate([outputs[:, :n] for outputs, n in parts], axis=1)


def predict_parts(
    members: Members,
    n: int,
    rows: Callable[[slice], Matrix],
    device: torch.device,
    read: Callable[[NDArray[np.float32]], T],
) -> Iterator[tuple[T, int]]:
    """Yield what ``read`` makes of outputs ``(M, m, C)``, and how many of their m rows, the first, are asked for.

    ``rows`` returns some of the n rows. Parts come one after another; one if there are no rows. Several are encoded,
    predicted and read side by side on a thread each, where networks allow it: on a CPU no operation waits for another
    thread, so that a busy machine slows them in proportion and no more; a GPU computes while others are encoded.
    """
    members.train(False)
    block = rows_at_a_time(members, device)
    if device.type == "cuda" and device.index is None:  # another thread may have another one in mind
        device = torch.device("cuda", torch.cuda.current_device())
    # What a GPU computes for one part has memory of its own: of several at the same time it could be too much.
    alone: AbstractContextManager[Any] = Lock() if device.type == "cuda" else nullcontext()
    with _side_by_side(members, device) as threads:
        blocks = max(1, -(-n // block))
        size = block * min(-(-blocks // (2 * threads)), max(1, LONGEST // block))

        def part(start: int) -> tuple[T, int]:
            x = rows(slice(start, min(n, start + size)))
            return read(_outputs(members, x, block, device, alone)), len(x)

        starts = range(0, max(1, n), size)
        if min(threads, len(starts)) == 1:
            yield from map(part, starts)
            return
        with ThreadPoolExecutor(threads, "guardband") as pool:
            ahead: deque[Future[tuple[T, int]]] = deque()
            for start in starts:
                ahead.append(pool.submit(part, start))
                if len(ahead) > 2 * threads:  # more would only wait
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()


def rows_at_a_time(members: Members, device: torch.device) -> int:
    """Return how many rows a product has: a model's and a device's own number, whatever is predicted."""
    if device.type != "cuda" or not _broadcasts(members):
        return BLOCK
    return min(LONGEST, max(BLOCK, ROWS_ON_GPU // members.size // BLOCK * BLOCK))


def _broadcasts(members: Members) -> bool:
    """Whether calls of these networks share no memory."""
    return type(members) is Stack and members.broadcasts


@contextmanager
def _side_by_side(members: Members, device: torch.device) -> Iterator[int]:
    """Give how many parts may be predicted at the same time."""
    if not _broadcasts(members):
        yield 1
    elif device.type == "cuda":
        yield min(FEEDERS, allowed_threads())
    else:
        threads = allowed_threads()
        with one_thread_each() as callers:  # for a single block too: products on several threads round otherwise
            yield max(1, threads // callers)  # predictions that run at the same time share the cores


@torch.no_grad()
def _outputs(
    members: Members, x: Matrix, block: int, device: torch.device, alone: AbstractContextManager[Any]
) -> NDArray[np.float32]:
    """Return the outputs for rows, to which others are added to make whole blocks."""
    each = []
    for start in range(0, max(1, len(x)), block):
        some = x[start : start + block]
        whole = np.zeros((block, *x.shape[1:]), dtype=np.float32)
        whole[: len(some)] = some
        there = torch.from_numpy(whole).to(device)[None]
        with alone:
            outputs = members(there)
        each.append(outputs.cpu().numpy())
    return each[0] if len(each) == 1 else np.concatenate(each, axis=1)
