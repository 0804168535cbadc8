"""pav: a grid of quantile triples, one of which is selected on the calibration rows (paper, section 2.2)."""

from __future__ import annotations

from guardband.calibration.pav import PavSelection
from guardband.methods.method import CUTS, LOSSES, Method, NetworkSpec, Request
from guardband.nn.heads import Triple


class Pav(Method):
    """An interval for each tau of a grid; for each level the calibration rows pick one of them."""

    name = "pav"
    options = CUTS | LOSSES | {"taus", "rule", "average"}

    def networks(self, request: Request) -> tuple[NetworkSpec, ...]:
        """Return a triple for each tau, narrowest first."""
        return tuple(NetworkSpec(Triple(tau, request.power, request.point)) for tau in self._taus(request))

    def rule(self, request: Request) -> PavSelection:
        """Return the selection rule with the aim that was asked for."""
        if request.average is not None and request.guarantee == "pac":
            raise ValueError(f'pav takes average={request.average!r} or guarantee="pac", not both.')
        if request.guarantee not in ("marginal", "pac"):
            raise ValueError(f'pav takes guarantee="marginal" or "pac", and no Cut, found {request.guarantee!r}.')
        return PavSelection(
            self.name,
            request.levels,
            self._taus(request),
            request.rule or "fixed-sequence",
            "average" if request.average else "pac" if request.guarantee == "pac" else "selection",
            request.average or "sharp",
            request.delta_or_default,
            len(request.levels) if request.joint else 1,
        )

    def order(self, request: Request, brought: int) -> list[int]:
        """Return where the bands, one per tau as given, stand from the narrowest to the widest."""
        expected = len(self._taus(request))
        if brought != expected:
            raise ValueError(
                f'method="{self.name}" chooses among {expected} intervals of each row, one for each tau, found '
                f'{brought}. Bring as many, say which taus they are by taus=..., or use method="conf-nn".'
            )
        given = self._taus(request) if request.taus is None else list(request.taus)
        return sorted(range(brought), key=lambda i: -given[i])

    def _taus(self, request: Request) -> tuple[float, ...]:
        """Return the grid as given, otherwise alpha, 0.9 alpha, ..., 0.1 alpha for each level."""
        if request.taus is not None:
            return tuple(sorted((float(tau) for tau in request.taus), reverse=True))
        grid = {(1 - level) * j / 10 for level in request.levels.values for j in range(1, 11)}
        return tuple(float(tau) for tau in sorted(grid, reverse=True))
