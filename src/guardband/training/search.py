"""Each member's own best epoch: when it was, and what the member was then."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from guardband.training.members import State, stacked_state


class Search:
    """Each member's search for its best epoch, which ends ``patience`` epochs after the last improvement."""

    def __init__(self, size: int, patience: int) -> None:
        self._patience = patience
        self._least = torch.full((size,), torch.inf)
        self._best = torch.ones(size, dtype=torch.int)
        self._searching = torch.ones(size, dtype=torch.bool)

    def improved(self, epoch: int, losses: Tensor) -> Tensor:
        """Return which members have a new least loss, ``(M,) -> (M,)``."""
        better = (losses < self._least) & self._searching
        self._least[better], self._best[better] = losses[better], epoch
        self._searching &= epoch - self._best < self._patience
        return better

    @property
    def ended(self) -> Tensor:
        """Which members' searches have ended, ``(M,)``."""
        return ~self._searching

    def best(self) -> tuple[int, ...]:
        """Return each member's best epoch so far; refused where no epoch had a finite loss."""
        if not self._least.isfinite().all():
            raise ValueError("Training diverged: no epoch had a finite loss. Lower the learning rate.")
        return tuple(self._best.tolist())

    def least(self) -> list[float]:
        """Return each member's least loss so far."""
        return [float(loss) for loss in self._least]

    def state(self) -> dict[str, Tensor]:
        """Return where the search is."""
        return {"least": self._least.clone(), "best": self._best.clone(), "searching": self._searching.clone()}

    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from there."""
        self._least, self._best, self._searching = (state[name].clone() for name in ("least", "best", "searching"))


class Keeper:
    """Remembers members as they were at their own best epoch; at first as they are given, at epoch 0."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        self.kept = stacked_state(networks)
        self.epochs = torch.zeros(len(networks), dtype=torch.int)

    def keep(self, which: Tensor, now: State, epoch: int) -> None:
        """Remember the marked members, ``(M,)``, as they are now, in one stroke that Ctrl-C cannot divide."""
        epochs = self.epochs.masked_fill(which, epoch)
        if which.all():
            self.kept, self.epochs = now, epochs
        elif which.any():
            kept = {name: t.clone() for name, t in self.kept.items()}
            for name, t in now.items():
                kept[name][which] = t[which]
            self.kept, self.epochs = kept, epochs

    def load(self, kept: State, epochs: Tensor) -> None:
        """Remember what another keeper did."""
        self.kept = {name: kept[name].to(t.device) for name, t in self.kept.items()}
        self.epochs = epochs
