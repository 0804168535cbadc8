"""One step of a squad: gather, forward, backward, clip, decay, optimise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from guardband.nn.mixed import LossFunction
from guardband.training.adam import Adam, along, clip_
from guardband.training.batches import Source
from guardband.training.members import Members
from guardband.training.muon import Muon
from guardband.training.shared import Together


@dataclass(frozen=True)
class Step:
    """All that a step touches. On a GPU it is captured as a whole, so it must not wait for the device.

    ``together`` are the processes that train the same members. ``decay`` and ``clip`` are ``(M,)`` or None; ``half``
    runs the networks' products in 16 bits.
    """

    members: Members
    source: Source
    loss: LossFunction
    optimiser: Adam | Muon
    decay: Tensor | None
    clip: Tensor | None
    device: torch.device
    half: bool
    together: Together | None = None

    def __call__(self, *inputs: Tensor) -> None:
        """Step once: the pieces of a batch, the members' keys if anything is random, then the step's coefficients."""
        *pieces, coefficients = inputs
        if self.members.random:
            self.members.set_keys(pieces.pop())
        gradients = self.gradients(*pieces)
        if self.clip is not None:
            clip_(gradients, self.clip)
        if self.decay is not None:
            matrices = self.members.matrices(self.members.parameters())
            for p, g in zip(matrices, self.members.matrices(gradients), strict=True):
                g.addcmul_(p, along(self.decay, p))
        self.optimiser.step(gradients, coefficients)

    def gradients(self, *pieces: Tensor) -> list[Tensor]:
        """Return the gradients of a batch."""
        batch = self.source.batch(*pieces)
        with self.autocast():
            gradients = self.members.gradients(batch, self.loss)
        return gradients if self.together is None else self.together.gradients(gradients, batch)

    def autocast(self) -> torch.autocast:
        """Return the context that the networks run in."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.half, cache_enabled=False)
