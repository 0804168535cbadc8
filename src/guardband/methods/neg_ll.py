"""neg-ll: a Gaussian by its likelihood (Nix & Weigend, 1994), its weight decay chosen on D2."""

from __future__ import annotations

from guardband.calibration.selection import MostLikely
from guardband.methods.method import Method, NetworkSpec, Wish
from guardband.nn.heads import Gaussian

DECAYS = (0.0, 3e-4, 1e-3, 3e-3, 1e-2)
"""Candidates."""


class NegLL(Method):
    """Mean and variance for each weight decay; D2 picks the Gaussian under which it is most likely."""

    name = "neg-ll"
    settings = frozenset()
    promises = False

    def networks(self, wish: Wish) -> tuple[NetworkSpec, ...]:
        """Return the candidates."""
        return tuple(NetworkSpec(Gaussian(), decay) for decay in DECAYS)

    def rule(self, wish: Wish) -> MostLikely:
        """Return the choice."""
        return MostLikely(self.name, wish.levels, wish.on_insufficient)

    def order(self, wish: Wish, brought: int) -> list[int]:
        """Return all bands as brought: any number of candidates."""
        return list(range(brought))
