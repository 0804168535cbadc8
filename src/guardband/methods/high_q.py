"""high-q: bounds by the high-quality loss (Pearce, Zaki, Brintrup & Neely, 2018), chosen on calibration rows."""

from __future__ import annotations

from guardband.calibration.selection import ShortestCovering
from guardband.methods.method import Method, NetworkSpec, Request
from guardband.nn.heads import Bounds

CANDIDATES = ((5.0, 0.03), (5.0, 0.1), (5.0, 0.3), (20.0, 0.03), (20.0, 0.1), (20.0, 0.3), (160.0, 15.0))
"""Softness and penalty to choose from. The last are the authors' own, which at a learning rate of 0.01 overshoot."""


class HighQ(Method):
    """Bounds for each level and candidate; the calibration rows pick the shortest that contain enough of them."""

    name = "high-q"
    options = frozenset[str]()

    def networks(self, request: Request) -> tuple[NetworkSpec, ...]:
        """Return the candidates of each level."""
        heads = [Bounds(alpha, *candidate) for alpha in request.levels.alphas for candidate in CANDIDATES]
        return tuple(NetworkSpec(head) for head in heads)

    def rule(self, request: Request) -> ShortestCovering:
        """Return the choice."""
        return ShortestCovering(self.name, request.levels, request.levels)

    def order(self, request: Request, brought: int) -> list[int]:
        """Return all bands as brought: any number of candidates for each level, those of a level together."""
        if not brought or brought % len(request.levels):
            raise ValueError(
                f"{self.name} takes equally many intervals for each of {len(request.levels)} levels, found {brought}."
            )
        return list(range(brought))
