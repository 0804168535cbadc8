"""One network for several targets: the outputs of each, one behind the other, and the sum of their losses."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from guardband.bands.predicted_several import PredictedSeveral
from guardband.nn.heads import Head
from guardband.nn.member_loss import MemberLoss
from guardband.nn.ordering import Ordering
from guardband.nn.reading import Reading


class EachOrder(nn.Module):
    """Applies what ends the network of one target to the outputs of each, ``(..., q C) -> (..., q C)``."""

    def __init__(self, order: nn.Module, targets: int) -> None:
        super().__init__()
        self.order, self.targets = order, targets

    def forward(self, z: Tensor) -> Tensor:
        """Return the outputs, each target's in order."""
        out: Tensor = self.order(z.reshape(*z.shape[:-1], self.targets, -1))
        return out.flatten(-2)


class EachTargetHead(nn.Module):
    """The last layer for several targets: one linear layer and what follows it, ``(..., d) -> (..., q C)``.

    Parameters
    ----------
    lasts : sequence of modules
        The last layer of each target alone: a linear layer, or one and what follows it.
    """

    def __init__(self, lasts: Sequence[nn.Module]) -> None:
        super().__init__()
        pairs = [_taken_apart(last) for last in lasts]
        linear = [own for own, _ in pairs]
        self.linear = nn.Linear(linear[0].in_features, sum(own.out_features for own in linear))
        with torch.no_grad():
            self.linear.weight.copy_(torch.cat([own.weight for own in linear]))
            self.linear.bias.copy_(torch.cat([own.bias for own in linear]))
        self.order = EachOrder(pairs[0][1], len(lasts))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of each target."""
        out: Tensor = self.order(self.linear(x))
        return out


def _taken_apart(last: nn.Module) -> tuple[nn.Linear, nn.Module]:
    if isinstance(last, nn.Linear):
        return last, nn.Identity()
    linear, order = last.children()
    assert isinstance(linear, nn.Linear)
    return linear, order


class EachTargetLoss(MemberLoss):
    """The sum of one loss over several targets, ``(..., n, q C), (..., n, q) -> (...)``: a mean over rows.

    A missing value, NaN, adds nothing.

    Parameters
    ----------
    base : MemberLoss
        The loss of each target.
    targets : int
        The number of targets.
    """

    def __init__(self, base: MemberLoss, targets: int) -> None:
        super().__init__()
        self.base, self.targets = base, targets
        self.columns = targets * base.columns  # type: ignore[misc]

    def rows(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the loss of every row, ``(..., n, q C), (..., n, q) -> (..., n)``."""
        if outputs.shape[-1] != self.columns or y.shape[-2:] != (outputs.shape[-2], self.targets):
            raise ValueError(
                f"EachTargetLoss needs outputs of shape (..., n, {self.columns}) and y of shape (..., n, "
                f"{self.targets}), found {tuple(outputs.shape)} and {tuple(y.shape)}."
            )
        parts = outputs.reshape(*outputs.shape[:-1], self.targets, -1).unbind(-2)
        every = [self._of_target(part, own) for part, own in zip(parts, y.unbind(-1), strict=True)]
        return torch.stack(every).sum(0)

    def _of_target(self, outputs: Tensor, y: Tensor) -> Tensor:
        known = ~y.isnan()
        return self.base.rows(outputs, y.nan_to_num()) * known

    def kind(self) -> object:
        """Return what must be equal for two losses to be put together."""
        return type(self), self.targets, self.base.kind()

    def take(self, members: Sequence[int]) -> EachTargetLoss:
        """Return the loss of some of the networks, in the order given."""
        return self._with(self.base.take(members))

    def together(self, others: Sequence[MemberLoss]) -> EachTargetLoss:
        """Return one loss for several networks."""
        return self._with(self.base.together([own.base for own in others if isinstance(own, EachTargetLoss)]))

    def _with(self, base: MemberLoss) -> EachTargetLoss:
        out = copy.copy(self)
        out._modules = {"base": base}
        return out


@dataclass(frozen=True)
class EachColumns(Reading):
    """The columns of each of several targets, one behind the other.

    Parameters
    ----------
    base : Reading
        What the columns of one target say.
    targets : int
        The number of targets.
    """

    predicts = PredictedSeveral
    base: Any
    targets: int

    @property
    def columns(self) -> int:  # type: ignore[override]
        """The columns of all targets."""
        columns: int = self.base.columns
        return self.targets * columns

    def of_target(self, j: int) -> slice:
        """Return the columns of one target.

        Parameters
        ----------
        j : int
            The position of the target.
        """
        return slice(j * self.base.columns, (j + 1) * self.base.columns)

    def read(self, outputs: Any, xp: Any = np) -> PredictedSeveral:
        """Return a prediction for each target."""
        every = (self.base.read(outputs[..., self.of_target(j)], xp) for j in range(self.targets))
        return PredictedSeveral(tuple(every))


@dataclass(frozen=True)
class EachTarget(EachColumns, Head):
    """The same head for each of several targets.

    Parameters
    ----------
    base : Head
        What the network puts out for one target.
    targets : int
        The number of targets.
    """

    base: Head

    def last(self, in_features: int, ordering: Ordering) -> nn.Module:
        """Return one linear layer, and the ordering of each target."""
        return EachTargetHead([self.base.last(in_features, ordering) for _ in range(self.targets)])

    def loss(self) -> EachTargetLoss:
        """Return the sum of the losses of all targets."""
        return EachTargetLoss(self.base.loss(), self.targets)
