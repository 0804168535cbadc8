"""The absolute error of a point."""

from __future__ import annotations

from torch import Tensor

from guardband.nn.member_loss import MemberLoss


class AbsoluteLoss(MemberLoss):
    """The mean absolute error of a point, ``(..., n, 1), (..., n) -> (...)``: its minimiser is the median."""

    columns = 1

    def rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the loss of every row, ``(..., n, 1), (..., n) -> (..., n)``."""
        self._check_shapes(outputs, y)
        return (y - outputs.squeeze(-1)).abs()
