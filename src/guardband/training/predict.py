"""Bands of new rows, in blocks of one fixed shape."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from guardband.training.members import Members

BLOCK = 1024
"""Matrix products of one shape treat every row alike, so a row's band does not depend on its neighbours:
predicted alone, in another order or in another chunk of a file, it is the same to the last bit."""


@torch.no_grad()
def predict_bands(members: Members, x: NDArray[np.float32], device: torch.device) -> NDArray[np.float32]:
    """Return the bands of all members, ``(n, d) -> (M, n, 3)``."""
    members.train(False)
    out = np.empty((members.size, len(x), 3), dtype=np.float32)
    block = np.zeros((BLOCK, *x.shape[1:]), dtype=np.float32)
    for start in range(0, len(x), BLOCK):
        rows = x[start : start + BLOCK]
        block[: len(rows)] = rows
        bands = members(torch.from_numpy(block).to(device)[None])
        out[:, start : start + len(rows)] = bands[:, : len(rows)].cpu().numpy()
    return out
