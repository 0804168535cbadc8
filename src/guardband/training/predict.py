"""Outputs for new rows, in blocks of one fixed shape."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray

from guardband.training.members import Members
from guardband.training.stack import Stack
from guardband.training.threads import allowed_threads, one_thread_each

BLOCK = 1024
"""Matrix products of one shape treat every row alike, so what a row gets does not depend on its neighbours:
predicted alone, in another order or in another chunk of a file, it is the same to the last bit."""

Matrix = NDArray[np.float32]
Outputs = tuple[NDArray[np.float32], int]
"""Outputs of a block, ``(M, BLOCK, C)``, and how many of its rows, the first, were asked for."""


def predict(members: Members, x: Matrix, device: torch.device) -> NDArray[np.float32]:
    """Return the outputs of all members, ``(n, d) -> (M, n, C)``."""
    return np.concatenate([outputs[:, :n] for outputs, n in predict_blocks(members, x, device)], axis=1)


def predict_blocks(members: Members, x: Matrix, device: torch.device) -> Iterator[Outputs]:
    """Yield the outputs of all members for one block of rows after another; one block if there are no rows.

    On the CPU several blocks run side by side on a thread each, where networks allow it: no operation waits for another
    thread, so that a busy machine slows them in proportion and no more.
    """
    members.train(False)
    blocks = (x[start : start + BLOCK] for start in range(0, max(1, len(x)), BLOCK))
    # what else is a stack may hold memory that its calls share
    apart = device.type == "cpu" and type(members) is Stack and members.broadcasts
    if not apart:
        yield from (_outputs(members, rows, device) for rows in blocks)
        return
    threads = allowed_threads()
    with one_thread_each() as callers:  # for a single block too: products on several threads round otherwise
        threads = max(1, threads // callers)  # predictions that run at the same time share the cores
        if threads == 1 or len(x) <= BLOCK:
            yield from (_outputs(members, rows, device) for rows in blocks)
            return
        with ThreadPoolExecutor(threads, "guardband") as pool:
            ahead: deque[Future[Outputs]] = deque()
            for rows in blocks:
                ahead.append(pool.submit(_outputs, members, rows, device))
                if len(ahead) > 2 * threads:  # more would only wait
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()


@torch.no_grad()
def _outputs(members: Members, rows: Matrix, device: torch.device) -> Outputs:
    block = np.zeros((BLOCK, *rows.shape[1:]), dtype=np.float32)
    block[: len(rows)] = rows
    return members(torch.from_numpy(block).to(device)[None]).cpu().numpy(), len(rows)
