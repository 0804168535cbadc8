"""pav: a grid of quantile triples, one of which is selected on D2 (paper, section 2.2)."""

from __future__ import annotations

from guardband.calibration.pav import PavSelection
from guardband.methods.method import Method, Wish


class Pav(Method):
    """A band for each tau of a grid; the rule picks one of them per level."""

    name = "pav"

    def taus(self, wish: Wish) -> tuple[float, ...]:
        """Return the grid as given, otherwise alpha, 0.9 alpha, ..., 0.1 alpha for each level."""
        if wish.tau is not None:
            raise ValueError(f"pav must be given its grid as taus, found tau = {wish.tau}.")
        if wish.taus is not None:
            return tuple(sorted((float(tau) for tau in wish.taus), reverse=True))
        grid = {(1 - level) * j / 10 for level in wish.levels.values for j in range(1, 11)}
        return tuple(float(tau) for tau in sorted(grid, reverse=True))

    def rule(self, wish: Wish) -> PavSelection:
        """Return the selection rule with the aim that was asked for."""
        if wish.average is not None and wish.guarantee == "pac":
            raise ValueError(f'pav takes average={wish.average!r} or guarantee="pac", not both.')
        return PavSelection(
            self.name,
            wish.levels,
            self.taus(wish),
            wish.rule,
            "average" if wish.average else "pac" if wish.guarantee == "pac" else "selection",
            wish.average or "sharp",
            wish.delta,
            wish.shares,
            wish.on_insufficient,
        )
