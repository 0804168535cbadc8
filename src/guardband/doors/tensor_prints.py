"""Fingerprints of rows that are tensors."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from guardband.data.fingerprint import Prints
from guardband.training.inputs import Inputs, tensors_in


def prints_of(inputs: Inputs, y: Tensor) -> Prints:
    """Return one 64-bit number per row of inputs and y, ``(n,)``: rows equal in single precision have equal ones.

    A sum over cells of their bits times random odd numbers, modulo 2^64: other rows have the same with a probability
    of about 2^-32.
    """
    prints = torch.zeros(len(y), dtype=torch.int64)
    for place, tensor in enumerate([*tensors_in(inputs), y]):
        if len(tensor) == len(y):
            bits = tensor.detach().unsqueeze(-1).flatten(1)
            bits = bits.float() if bits.is_floating_point() else bits
            bits = (bits.double() + 0.0).view(torch.int64)  # 1 has the bits of 1.0, and -0.0 those of 0.0
            weights = _weights(bits.shape[1], place).to(bits.device)
            prints += (bits * weights).sum(1).cpu()
    found: Prints = prints.numpy().view(np.uint64)
    return found


@cache
def _weights(cells: int, place: int) -> Tensor:
    generator = torch.Generator().manual_seed(place)
    return torch.randint(-(2**63), 2**63 - 1, (cells,), generator=generator) | 1
