"""What the folds of a table taught: networks for each, trained on all rows but those of the fold."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from guardband.data.encoder import Encoder
from guardband.data.target import Target
from guardband.learning.architecture import Architecture
from guardband.learning.learned import Learned


@dataclass(frozen=True)
class Crossed:
    """What was learnt without each fold, in their order; the ``target`` brings ends to the units of y.

    Each fold has an encoder and a scale of the target of its own: rows of a fold decide nothing about its networks.
    """

    each: tuple[Learned, ...]
    target: Target

    @property
    def encoder(self) -> Encoder:
        """How the networks of the first fold see rows; what each column is, all folds agree on."""
        return self.each[0].encoder

    @property
    def architecture(self) -> Architecture:
        """The shape of the networks of the first fold."""
        return self.each[0].architecture

    @property
    def epochs(self) -> tuple[int, ...]:
        """How many epochs each network kept, fold by fold."""
        return tuple(epochs for own in self.each for epochs in own.epochs)

    @property
    def device(self) -> torch.device:
        """Where the networks compute."""
        return self.each[0].device

    @property
    def choices(self) -> str:
        """What was chosen on the training rows of each fold, in words."""
        every = " or ".join(dict.fromkeys(own.choices for own in self.each if own.choices))
        return f"{every}, in each of {len(self.each):,} folds" if every else ""
