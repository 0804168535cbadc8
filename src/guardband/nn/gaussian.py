"""The Gaussian likelihood of a mean and a deviation (Nix & Weigend, 1994)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from guardband.nn.member_loss import MemberLoss

LEAST_DEVIATION = 1e-3
"""Of a response whose own deviation is about 1."""


def deviation_of(s: Any, xp: Any = torch) -> Any:
    """Return the deviation that an output stands for: softplus, so that a far-off row's is not exponentially large."""
    return LEAST_DEVIATION + (np.logaddexp(0, s) if xp is np else torch.nn.functional.softplus(s))


class GaussianLoss(MemberLoss):
    """The negative Gaussian log-likelihood of a mean and a deviation, ``(..., n, 2), (..., n) -> (...)``.

    log(2 pi)/2 + log d + ((y - m) / d)^2 / 2 for outputs m and s, a mean over rows, where d is 0.001 plus the
    softplus of s. The response must be of the order of 1. Gradients are huge where d is small: train with ``clip=1``.
    """

    columns = 2

    def rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the loss of every row, ``(..., n, 2), (..., n) -> (..., n)``."""
        self._check_shapes(outputs, y)
        mean, s = outputs.unbind(-1)
        deviation: Tensor = deviation_of(s)
        return 0.5 * math.log(2 * math.pi) + deviation.log() + 0.5 * ((y - mean) / deviation).square()
