"""pav: a grid of quantile triples, one of which is selected on D2 (paper, section 2.2)."""

from __future__ import annotations

from guardband.calibration.pav import PavSelection
from guardband.methods.method import Method, NetworkSpec, Wish
from guardband.nn.heads import Triple


class Pav(Method):
    """A band for each tau of a grid; the rule picks one of them per level."""

    name = "pav"
    settings = frozenset({"taus", "average", "power", "point"})

    def networks(self, wish: Wish) -> tuple[NetworkSpec, ...]:
        """Return a triple for each tau, narrowest first."""
        return tuple(NetworkSpec(Triple(tau, wish.power, wish.point)) for tau in self._taus(wish))

    def rule(self, wish: Wish) -> PavSelection:
        """Return the selection rule with the aim that was asked for."""
        if wish.average is not None and wish.guarantee == "pac":
            raise ValueError(f'pav takes average={wish.average!r} or guarantee="pac", not both.')
        return PavSelection(
            self.name,
            wish.levels,
            self._taus(wish),
            wish.rule,
            "average" if wish.average else "pac" if wish.guarantee == "pac" else "selection",
            wish.average or "sharp",
            wish.delta,
            wish.shares,
            wish.on_insufficient,
        )

    def order(self, wish: Wish, brought: int) -> list[int]:
        """Return where the bands, one per tau as given, stand from the narrowest to the widest."""
        super().order(wish, brought)
        given = self._taus(wish) if wish.taus is None else list(wish.taus)
        return sorted(range(brought), key=lambda i: -given[i])

    def _taus(self, wish: Wish) -> tuple[float, ...]:
        """Return the grid as given, otherwise alpha, 0.9 alpha, ..., 0.1 alpha for each level."""
        if wish.taus is not None:
            return tuple(sorted((float(tau) for tau in wish.taus), reverse=True))
        grid = {(1 - level) * j / 10 for level in wish.levels.values for j in range(1, 11)}
        return tuple(float(tau) for tau in sorted(grid, reverse=True))
