"""The Gaussian likelihood of a mean and a variance (Nix & Weigend, 1994)."""

from __future__ import annotations

import math

from torch import Tensor

from guardband.nn.member_loss import MemberLoss


class GaussianLoss(MemberLoss):
    """The negative Gaussian log-likelihood of a mean and a log-variance, ``(..., n, 2), (..., n) -> (...)``.

    (log 2 pi + s + (y - m)^2 exp(-s)) / 2 for outputs m and s, a mean over rows. The logarithm keeps the
    variance positive and its gradient alive.
    """

    columns = 2

    def rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the loss of every row, ``(..., n, 2), (..., n) -> (..., n)``."""
        self._check_shapes(outputs, y)
        mean, log_variance = outputs.unbind(-1)
        return 0.5 * (math.log(2 * math.pi) + log_variance + (y - mean).square() * (-log_variance).exp())
