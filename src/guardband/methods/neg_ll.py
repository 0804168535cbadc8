"""neg-ll: a Gaussian by its likelihood (Nix & Weigend, 1994), its weight decay chosen on the calibration rows."""

from __future__ import annotations

from guardband.calibration.selection import MostLikely
from guardband.methods.method import Method, NetworkSpec, Request
from guardband.nn.heads import Gaussian

DECAYS = (0.0, 3e-4, 1e-3, 3e-3, 1e-2)
"""Candidates."""


class NegLL(Method):
    """A Gaussian for each weight decay; the calibration rows pick the one under which they are most likely."""

    name = "neg-ll"
    options = frozenset[str]()

    def networks(self, request: Request) -> tuple[NetworkSpec, ...]:
        """Return the candidates."""
        return tuple(NetworkSpec(Gaussian(), decay) for decay in DECAYS)

    def rule(self, request: Request) -> MostLikely:
        """Return the choice."""
        return MostLikely(self.name, request.levels)

    def order(self, request: Request, brought: int) -> list[int]:
        """Return all bands as brought: any number of candidates."""
        return list(range(brought))
