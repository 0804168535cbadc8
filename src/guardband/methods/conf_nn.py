"""conf-nn: one quantile triple, split conformal on the scaled score (paper, section 2.1)."""

from __future__ import annotations

from guardband.calibration.conformal import SplitConformal
from guardband.methods.method import Method, Wish


class ConfNN(Method):
    """One band at tau, scaled by an order statistic of the calibration scores."""

    name = "conf-nn"

    def taus(self, wish: Wish) -> tuple[float, ...]:
        """Return tau as given, otherwise alpha, the smallest of several."""
        if wish.taus is not None or wish.average is not None:
            raise ValueError("conf-nn must be given tau alone: taus and average are pav's.")
        return (min(wish.levels.alphas) if wish.tau is None else wish.tau,)

    def rule(self, wish: Wish) -> SplitConformal:
        """Return split conformal with the guarantee asked for."""
        return SplitConformal(self.name, wish.levels, wish.guarantee, wish.delta, wish.shares, wish.on_insufficient)
