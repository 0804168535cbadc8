"""Quantiles, distributions, probabilities and selections of a calibrated model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guardband.bands.distribution import Distribution, quantile_levels
from guardband.bands.levels import Level
from guardband.bands.stated import Probabilities, Selection
from guardband.bands.units import Units
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.places import CalibratedPlaces
from guardband.data.table import Table

Array = NDArray[np.float64]


class Distributed:
    """What a calibrated model says of outcomes beyond intervals. A subclass says where its places come from."""

    @abstractmethod
    def _placed(self, X: Any) -> tuple[CalibratedPlaces, Array, Units, Table]:
        """Return the calibrated places, the predictions of new rows ``(n, J)``, the units of the target, and the rows.

        Raise if the model has no such places.
        """

    def predict_quantiles(self, X: Any, levels: Sequence[Level]) -> Array:
        """Return calibrated quantiles of new rows, ``(n, L)``; they increase with the level.

        At least the level's share of new rows lies at or below its quantile, on average over calibration sets. A level
        that has too few calibration rows gives infinity. ``predict_distribution`` returns more, with a certificate.

        Parameters
        ----------
        X : table or array of shape (n, d)
            New rows, as the model takes them.
        levels : sequence of float
            The levels, strictly between 0 and 1, such as ``[0.05, 0.5, 0.95]``.
        """
        quantile_levels(levels)
        return self.predict_distribution(X).quantile(levels)

    def predict_distribution(self, X: Any) -> Distribution:
        """Return a calibrated distribution for each new row, with its certificate.

        Parameters
        ----------
        X : table or array of shape (n, d)
            New rows, as the model takes them.
        """
        places, predictions, units, table = self._placed(X)
        return places.distribution(predictions, units, table.index, (*table.names, *table.extra))

    def predict_probability(
        self, X: Any, *, above: ArrayLike | None = None, below: ArrayLike | None = None
    ) -> Probabilities:
        """Return how probable it is that each new row lies above a value, or below it.

        For every share u, at most u of new rows have a stated probability of 1 - u or more and do not lie there, on
        average over calibration sets. The certificate says so, and what is not promised.

        Parameters
        ----------
        X : table or array of shape (n, d)
            New rows, as the model takes them.
        above : float or array of shape (n,), default None
            The value that rows are to exceed.
        below : float or array of shape (n,), default None
            The value that rows are to stay below, in place of ``above``.

        Returns
        -------
        Probabilities
            The numbers as ``values``, and the certificate. ``np.asarray`` returns the numbers.
        """
        places, predictions, units, table = self._placed(X)
        return places.probability(predictions, units, above, below, table.index)

    def select(self, X: Any, *, above: float | None = None, below: float | None = None, fdr: float = 0.1) -> Selection:
        """Return the new rows that lie above a value, or below it, with few wrong ones among them.

        On average over calibration sets and rows, at most the share ``fdr`` of the selected rows does not lie there.

        Parameters
        ----------
        X : table or array of shape (n, d)
            The rows to select from, as the model takes them. Pass all of them at once.
        above : float, default None
            The value that rows are to exceed.
        below : float, default None
            The value that rows are to stay below, in place of ``above``.
        fdr : float, default 0.1
            The share of the selected rows that may be wrong, on average (false discovery rate). Lower it if a wrong
            row is expensive; fewer rows are then selected.

        Returns
        -------
        Selection
            Which rows were selected, their p-values, and the certificate.
        """
        places, predictions, units, _ = self._placed(X)
        return places.select(predictions, units, above, below, fdr)


def need_places(places: CalibratedPlaces | None, calibrated: Calibrated, has_groups: bool) -> CalibratedPlaces:
    """Return the places of a calibrated model; raise if nothing could be promised of them, with what to do."""
    rule, method = calibrated.rule, calibrated.rule.method
    if has_groups:
        why = "Quantiles and probabilities have one promise for all rows, not one for each group. Fit without groups."
    elif "weight" in rule.uses:
        why = "Quantiles and probabilities have no promise for weighted rows. Calibrate without weights."
    elif calibrated.chosen is not None:
        why = (
            "This model was chosen by its calibration rows, and only its intervals allow for that. Calibrate it on "
            "other rows for quantiles and probabilities."
        )
    elif places is not None:
        return places
    elif method in ("high-q", "neg-ll", "pav", "qreg-un"):
        why = (
            f'method="{method}" has several networks, among which it chooses. Quantiles and probabilities need one '
            'network. Use method="conf-nn", "cqr" or "cqr-r".'
        )
    else:
        why = (
            "This model holds no places of its calibration rows: its file is of an earlier version, or predictions "
            "were not finite. Calibrate it again on rows with finite predictions."
        )
    raise ValueError(why)
