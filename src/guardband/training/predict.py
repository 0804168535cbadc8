"""Outputs for new rows, in blocks of one fixed shape."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from guardband.training.members import Members

BLOCK = 1024
"""Matrix products of one shape treat every row alike, so what a row gets does not depend on its neighbours:
predicted alone, in another order or in another chunk of a file, it is the same to the last bit."""


def predict(members: Members, x: NDArray[np.float32], device: torch.device) -> NDArray[np.float32]:
    """Return the outputs of all members, ``(n, d) -> (M, n, C)``."""
    parts = [outputs[:, :n].copy() for outputs, n in predict_blocks(members, x, device)]
    return np.concatenate(parts, axis=1)


@torch.no_grad()
def predict_blocks(
    members: Members, x: NDArray[np.float32], device: torch.device
) -> Iterator[tuple[NDArray[np.float32], int]]:
    """Yield the outputs of all members for one block of rows after another, ``(M, BLOCK, C)``, and how many are rows.

    The last block is filled up. There is one block if there are no rows.
    """
    members.train(False)
    block = np.zeros((BLOCK, *x.shape[1:]), dtype=np.float32)
    for start in range(0, max(1, len(x)), BLOCK):
        rows = x[start : start + BLOCK]
        block[: len(rows)] = rows
        yield members(torch.from_numpy(block).to(device)[None]).cpu().numpy(), len(rows)
