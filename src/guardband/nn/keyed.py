"""Random numbers that depend on a key and a position alone, not on what else is drawn, where, or in which order.

A generator has a state, and who draws first gets other numbers. These are a hash of a counter, as Salmon et al. (2011),
"Parallel random numbers: as easy as 1, 2, 3", have it, in operations that run alike on a CPU, on a GPU, in a CUDA
graph, for stacked keys and under ``vmap``. The rounds are those of C. Wellons' 32-bit hash "lowbias32", with half of
the key before and half between them. torch's shifts keep the sign, which is masked away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

GOLDEN, FIRST, SECOND = -0x61C88647, 0x7FEB352D, -0x7B935975
"""Odd 32-bit factors: 2**32 over the golden ratio, and those of lowbias32."""


class Keyed(nn.Module):
    """A module that is random in training: by its key if it has one, else by torch's own generator.

    ``key`` is ``()``, or ``(M,)`` for M stacked networks, and changes from step to step. ``number`` tells the modules
    of one network apart, ``calls`` counts the uses of this one since the key was set.
    """

    key: Tensor | None
    number: int
    calls: int

    def keep_keys(self, key: Tensor | None = None, number: int = 0) -> None:
        """Take the randomness from this key; it is not saved with the network."""
        self.register_buffer("key", key, persistent=False)
        self.number, self.calls = number, 0

    def random_numbers(self, shape: Sequence[int], kind: torch.dtype, device: torch.device) -> Tensor:
        """Return whole numbers, uniform over all that there are of a kind of at most 32 bits.

        Of this shape; its first axis is that of the key, if that has one.
        """
        if self.key is None:
            words = torch.empty(-(-math.prod(shape) * kind.itemsize // 8), dtype=torch.int64, device=device)
            words.random_(-(2**63), 2**63 - 1)
            return words.view(kind)[: math.prod(shape)].view(*shape)
        self.calls += 1
        return keyed_numbers(self.key, (self.number << 32) + self.calls, shape[self.key.ndim :], kind)


def keyed_numbers(key: Tensor, stream: int, shape: Sequence[int], kind: torch.dtype) -> Tensor:
    """Return whole numbers of a kind, ``(*key.shape, *shape)``: other keys and other streams give unrelated ones.

    Those of 16 bits come as 32-bit numbers.
    """
    n = math.prod(shape)
    words = hashed(key, *counters(stream, -(-n * kind.itemsize // 4), key.device))
    # In halves where vmap may be at work: that of torch 2.11 has no rule for views of bytes.
    halves = torch.stack([words << 16 >> 16, words >> 16], -1).flatten(-2) if kind is torch.int16 else words.view(kind)
    return halves[..., :n].reshape(*key.shape, *shape)


def counters(stream: int, words: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return what numbers so many words of a stream, ``(words,)``, and what tells it from others between the rounds."""
    low, high = np.frombuffer(mixed(np.array([stream], dtype=np.uint64)).tobytes(), dtype=np.int32).tolist()
    numbers = torch.arange(words, dtype=torch.int32, device=device) * GOLDEN + low
    return numbers, torch.full_like(numbers, high)


def hashed(key: Tensor, numbers: Tensor, high: Tensor) -> Tensor:
    """Return a random word for each key and each of the counters, ``(*key.shape, words)`` of 32 bits."""
    words = numbers + key.to(torch.int32).unsqueeze(-1)
    words ^= (words >> 16).bitwise_and_(0xFFFF)
    words *= FIRST
    words += (key >> 32).to(torch.int32).unsqueeze(-1)
    words += high
    words ^= (words >> 15).bitwise_and_(0x1FFFF)
    words *= SECOND
    words ^= (words >> 16).bitwise_and_(0xFFFF)
    return words


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a number for each, unrelated to those of its neighbours: the end of splitmix64 (Steele et al., 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
