"""high-q: bounds by the high-quality loss (Pearce, Zaki, Brintrup & Neely, 2018), its penalty chosen on D2."""

from __future__ import annotations

from guardband.calibration.selection import ShortestCovering
from guardband.methods.method import Method, NetworkSpec, Wish
from guardband.nn.heads import Bounds

PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 15.0)
"""Candidates; 15 is the authors' own. The penalty grows with the batch, and so does what it must outweigh."""


class HighQ(Method):
    """Lower and upper bound for each level and penalty; D2 picks the shortest that covers enough of it."""

    name = "high-q"
    settings = frozenset()
    promises = False

    def networks(self, wish: Wish) -> tuple[NetworkSpec, ...]:
        """Return the candidates of each level."""
        heads = [Bounds(alpha, penalty=penalty) for alpha in wish.levels.alphas for penalty in PENALTIES]
        return tuple(NetworkSpec(head) for head in heads)

    def rule(self, wish: Wish) -> ShortestCovering:
        """Return the choice."""
        return ShortestCovering(self.name, wish.levels, wish.levels, wish.on_insufficient)

    def order(self, wish: Wish, brought: int) -> list[int]:
        """Return all bands as brought: any number of candidates for each level, those of a level together."""
        if not brought or brought % len(wish.levels):
            raise ValueError(f"{self.name} takes as many bands for each of {len(wish.levels)} levels, found {brought}.")
        return list(range(brought))
