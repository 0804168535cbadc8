"""The distance between what a network puts out and what it is to put out."""

from __future__ import annotations

from torch import Tensor

from guardband.nn.member_loss import MemberLoss


class MatchingLoss(MemberLoss):
    """The squared distance of all C outputs, ``(..., n, C), (..., n, C) -> (...)``: a mean over rows.

    Parameters
    ----------
    columns : int
        How many numbers the network puts out.
    """

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns = columns  # type: ignore[misc]

    def rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the loss of every row, ``(..., n, C), (..., n, C) -> (..., n)``."""
        return (outputs - y).square().sum(-1)
