"""Columns of quantiles and probabilities that ``guardband predict`` adds if asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from guardband.cli.options import names_in


@dataclass(frozen=True)
class StatedColumns:
    """Which quantiles, and which values rows are compared with."""

    levels: tuple[float, ...] = ()
    above: float | None = None
    below: float | None = None

    @classmethod
    def of(cls, quantiles: Iterable[str] | None, above: float | None, below: float | None) -> StatedColumns:
        """Return what options ask for; levels that are no numbers between 0 and 1 are refused."""
        texts = names_in(quantiles or ())
        if quantiles and not texts:
            raise ValueError("Name at least one level. Write --quantiles 0.05,0.5,0.95.")
        for option, value in (("--above", above), ("--below", below)):
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{option} must be a finite number, found {value}. Write {option} 100.")
        try:
            levels = tuple(map(float, texts))
        except ValueError:
            raise ValueError(
                f"A quantile is a number such as 0.05, found {','.join(texts)!r}. Write --quantiles 0.05,0.5,0.95."
            ) from None
        if levels:
            from guardband.bands.distribution import quantile_levels

            quantile_levels(levels)
        return cls(levels, above, below)

    @property
    def asked(self) -> bool:
        """Whether there is anything to add."""
        return bool(self.levels) or self.above is not None or self.below is not None

    def need(self, model: Any) -> None:
        """Raise if a model has no quantiles or probabilities."""
        if not self.asked:
            return
        if not hasattr(model, "placed_of"):
            raise ValueError(
                "A rule for bounds in a file has no quantiles or probabilities. Remove --quantiles, --above and "
                "--below, or fit a model with guardband fit."
            )
        model.need_places()

    def promises(self, model: Any) -> dict[str, str]:
        """Return what is promised of the columns, a sentence or two for each kind."""
        if not self.asked:
            return {}
        from guardband.calibration.places import event_of

        places = model.need_places()
        certificates = {"Quantiles": places.certificate} if self.levels else {}
        for side, value in self._sides():
            certificates[self._name(side, value)] = places.probability_certificate(event_of(side, value))
        return {name: own.promise.headline(own.method) for name, own in certificates.items()}

    def too_few(self, model: Any) -> str | None:
        """Return a warning if there are too few calibration rows for a quantile, with how many it needs."""
        if not self.levels:
            return None
        from guardband.planning import marginal_rows

        promise = model.need_places().certificate.promise
        needed = {own: marginal_rows(own) for own in self.levels}
        short = [own for own, rows in needed.items() if rows > promise.n_calibration]
        if not short:
            return None
        y_max = model.fitted_.learned.target.y_max
        at = "infinite" if y_max is None else f"{y_max:g}, the largest possible value"
        return (
            f"{'The quantile' if len(short) == 1 else 'Quantiles'} {', '.join(f'{own:g}' for own in short)} "
            f"{'is' if len(short) == 1 else 'are'} {at} in every row: there are {promise.counted}, and "
            f"{max(short):g} needs at least {needed[max(short)]:,}. Fit on more rows, or ask for a lower quantile."
        )

    def of_rows(self, model: Any, table: Any) -> dict[str, Any]:
        """Return the columns of rows that the model has read."""
        if not self.asked:
            return {}
        places, predictions, units = model.placed_of(table)
        columns: dict[str, Any] = {}
        if self.levels:
            columns |= places.distribution(predictions, units).columns(self.levels)
        for side, value in self._sides():
            asked = {"above": None, "below": None, side: value}
            columns[self._name(side, value)] = places.probability(predictions, units, **asked).values
        return columns

    def _sides(self) -> list[tuple[str, float]]:
        both = (("above", self.above), ("below", self.below))
        return [(side, value) for side, value in both if value is not None]

    @staticmethod
    def _name(side: str, value: float) -> str:
        return f"probability_{side}_{value:.12g}"


NOTHING_MORE = StatedColumns()
