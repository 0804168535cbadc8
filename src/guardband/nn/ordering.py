"""Three outputs in order: lower bound, point, upper bound."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

Ordering = Literal["softplus", "relu"]

GAUSSIAN_90 = 1.6448536269514722
"""Half the length of a Gaussian's central 90% interval: where untrained widths start."""


class OrderedTriple(nn.Module):
    """Maps any three numbers to lower bound, prediction and upper bound in order, ``(..., 3) -> (..., 3)``.

    ``"softplus"``: point z2, lower z2 - softplus(z1), upper z2 + softplus(z3). Both widths are positive and
    always have a gradient. ``"relu"`` is the paper's (section 1.2): lower z1, point z1 + ReLU(z2 - z1), upper
    point + ReLU(z3 - point), a running maximum. If z3 stays below the point for all x its gradient is
    zero, and that side never learns; hence it is not the default.

    Parameters
    ----------
    ordering : {"softplus", "relu"}, default "softplus"
        How the three numbers are kept in order.
    """

    ends_network = True

    def __init__(self, ordering: Ordering = "softplus") -> None:
        super().__init__()
        if ordering not in get_args(Ordering):
            raise ValueError(f'ordering must be "softplus" or "relu", found {ordering!r}.')
        self.ordering = ordering

    def forward(self, z: Tensor) -> Tensor:
        """Return the band of raw outputs."""
        z1, z2, z3 = z.unbind(-1)
        if self.ordering == "softplus":
            softplus = nn.functional.softplus
            return torch.stack([z2 - softplus(z1), z2, z2 + softplus(z3)], dim=-1)
        point = z1 + torch.relu(z2 - z1)
        return torch.stack([z1, point, point + torch.relu(z3 - point)], dim=-1)

    def extra_repr(self) -> str:
        """Return the arguments, for ``repr``."""
        return f"ordering={self.ordering!r}"


class TripleHead(nn.Sequential):
    """The last layer of an interval network: a linear layer and the ordering, ``(..., d) -> (..., 3)``.

    With softplus the widths start near 1.645, those of a 90% interval for a standardised Gaussian
    target. Standardise the target, or expect the first epochs to learn its scale.

    Parameters
    ----------
    in_features : int
        The number of inputs of the layer.
    ordering : {"softplus", "relu"}, default "softplus"
        How the three outputs are kept in order. "softplus" always has a gradient; "relu" is the paper's, and
        one side can stop learning.
    """

    def __init__(self, in_features: int, ordering: Ordering = "softplus") -> None:
        linear = nn.Linear(in_features, 3)
        super().__init__(linear, OrderedTriple(ordering))
        if ordering == "softplus":
            with torch.no_grad():
                linear.bias[[0, 2]] = math.log(math.expm1(GAUSSIAN_90))
