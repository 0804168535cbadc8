"""qreg-un: the quantile triple as it is, without calibration (paper, section 3)."""

from __future__ import annotations

from guardband.calibration.unadjusted import Unadjusted
from guardband.methods.method import Method, NetworkSpec, Wish
from guardband.nn.heads import Triple


class QregUn(Method):
    """A band for each level, at tau = alpha."""

    name = "qreg-un"
    settings = frozenset({"power", "point"})
    promises = False

    def networks(self, wish: Wish) -> tuple[NetworkSpec, ...]:
        """Return a triple for each level."""
        return tuple(NetworkSpec(Triple(alpha, wish.power, wish.point)) for alpha in wish.levels.alphas)

    def rule(self, wish: Wish) -> Unadjusted:
        """Return the rule that changes nothing."""
        return Unadjusted(self.name, wish.levels, wish.levels, wish.on_insufficient)
