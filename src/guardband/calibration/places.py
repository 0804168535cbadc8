"""Places of calibration rows within their predictions: quantiles, probabilities and selections with a promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from guardband.bands.certificate import Certificate
from guardband.bands.distribution import Distribution
from guardband.bands.distribution_promise import DistributionPromise, FdrPromise, ProbabilityPromise
from guardband.bands.levels import Levels, exact_share
from guardband.bands.placement import Placement
from guardband.bands.promise import Promise
from guardband.bands.ranks import marginal_rank
from guardband.bands.stated import Probabilities, Selection, benjamini_hochberg
from guardband.bands.time_split import TimeSplit
from guardband.bands.units import Units
from guardband.calibration.calibrated import Unit
from guardband.calibration.summary import Array
from guardband.data.entities import Entities
from guardband.words import as_written

SHOWN = Levels.of((0.05, 0.25, 0.5, 0.75, 0.95))
"""Levels whose figures the certificate shows."""
STATED = 0.9
"""The stated probability whose figures the certificate shows."""
ROWS_AT_A_TIME = 2**14
"""Rows are placed in blocks, which stay in the cache and take little memory beside the predictions."""
MOST_KEPT = 50_000
"""Calibration rows whose predictions are kept to select by: more would say little more."""


def event_of(side: str, value: float) -> str:
    """Return in words that rows lie above a value, or below."""
    return f"{side} {as_written(value, 15)}"


@dataclass(frozen=True, eq=False)
class CalibratedPlaces:
    """Where calibration rows lie within their predictions; ``kept`` are predictions of some and ``kept_places`` theirs.

    With them the rows of a selection are compared. ``method`` is what made the predictions, for the certificate.
    """

    method: str
    placement: Placement
    places: Array
    kept: Array
    kept_places: Array
    unit: Unit | None = None
    notes: tuple[str, ...] = ()
    in_time: TimeSplit | None = field(default=None)

    @classmethod
    def of(
        cls,
        method: str,
        placement: Placement,
        predictions: Array,
        work: Array,
        entities: Entities | None = None,
        notes: tuple[str, ...] = (),
        in_time: TimeSplit | None = None,
    ) -> CalibratedPlaces:
        """Return the places of calibration rows, ``(n, J), (n,)``; of rows that belong together one counts."""
        unit = None
        if entities is not None:
            rows = entities.one_row_each(work)
            unit = Unit(entities.name, len(work))
            predictions, work = predictions[rows], work[rows]
        places = np.empty(len(work))
        for first in range(0, len(work), ROWS_AT_A_TIME):
            some = slice(first, first + ROWS_AT_A_TIME)
            places[some] = placement.place(predictions[some], work[some])
        if len(places) > MOST_KEPT:
            chosen = np.sort(np.random.default_rng(0).permutation(len(places))[:MOST_KEPT])
        else:
            chosen = np.arange(len(places))
        return cls(method, placement, np.sort(places), predictions[chosen], places[chosen], unit, notes, in_time)

    @property
    def certificate(self) -> Certificate:
        """What is promised of quantiles."""
        n = len(self.places)
        ranks = tuple(marginal_rank(level, n) for level in SHOWN.values)
        whole = tuple(k > n for k in ranks)
        numbers: dict[str, Any] = {"confidence_level": SHOWN.floats, "whole_line": whole, "rank": ranks}
        return self._certificate(DistributionPromise(**numbers, n_calibration=n), scalar=False)

    def distribution(
        self, predictions: Array, units: Units, index: Any = None, input_names: tuple[str, ...] = ()
    ) -> Distribution:
        """Return the distributions of new rows, from their predictions ``(n, J)``."""
        return Distribution(predictions, self.placement, self.places, units, self.certificate, index, input_names)

    def probability(
        self, predictions: Array, units: Units, above: ArrayLike | None, below: ArrayLike | None, index: Any = None
    ) -> Probabilities:
        """Return the stated probability of each row to lie above a value, or below: one minus a p-value.

        To lie above c: the p-value is (1 + number of places at or below T(x, c)) / (n + 1). If Y <= c, T(x, Y) is at
        most T(x, c), so that the p-value is no smaller than that of Y itself, which is at most u with probability u.
        """
        at, event, is_above = self._asked(predictions, units, above, below)
        n = len(self.places)
        if is_above:
            others = np.searchsorted(self.places, at, side="right")
        else:
            others = n - np.searchsorted(self.places, at, side="left")
        return Probabilities((n - others) / (n + 1), event, self.probability_certificate(event), index)

    def probability_certificate(self, event: str) -> Certificate:
        """Return what is promised of stated probabilities, such as to lie "above 300000"."""
        numbers: dict[str, Any] = {"confidence_level": (STATED,), "whole_line": (False,), "event": event}
        return self._certificate(ProbabilityPromise(**numbers, n_calibration=len(self.places)))

    def select(
        self, predictions: Array, units: Units, above: ArrayLike | None, below: ArrayLike | None, fdr: float
    ) -> Selection:
        """Return the rows that probably lie above a value, or below, with the false discovery rate held.

        Jin & Candès (2023) with their clipped score: of a calibration row that is as selected for it is beyond all,
        and of another T(x_i, c), whatever its outcome is. The p-value of a row is then (1 + number of calibration rows
        with Y_i <= c and T(x_i, c) <= T(x, c)) / (n + 1). These are among the rows that ``probability`` counts, so that
        no p-value is larger. The value c must be one for all rows, as calibration rows are compared with it too.
        """
        share, value = float(exact_share("fdr", fdr)), above if above is not None else below
        if value is not None and np.ndim(value) != 0:
            raise ValueError("select compares all rows with one value. Pass one number as above or below.")
        at, event, is_above = self._asked(predictions, units, above, below)
        known, _, _ = self._asked(self.kept, units, above, below)
        n = len(known)
        if is_above:
            others = np.sort(known[self.kept_places <= known])
            counts = np.searchsorted(others, at, side="right")
        else:
            others = np.sort(known[self.kept_places >= known])
            counts = len(others) - np.searchsorted(others, at, side="left")
        p_values = (1 + counts) / (n + 1)
        mask = benjamini_hochberg(p_values, share)
        promise = FdrPromise(
            confidence_level=(1 - share,),
            n_calibration=n,
            whole_line=(False,),
            event=event,
            n_asked=len(mask),
            n_selected=int(mask.sum()),
        )
        certificate = self._certificate(promise)
        if self.unit is not None:
            certificate = certificate.with_notes(
                f"The rows to select from must not share a {self.unit.entity} with each other."
            )
        return Selection(mask, p_values, event, certificate)

    def _asked(
        self, predictions: Array, units: Units, above: ArrayLike | None, below: ArrayLike | None
    ) -> tuple[Array, str, bool]:
        """Return the places of a value within predictions, the event in words, and whether it is to lie above."""
        if (above is None) == (below is None):
            raise ValueError("Pass above=... or below=..., one of the two: the value that rows are compared with.")
        given: Any = above if above is not None else below
        value, side = np.asarray(given, dtype=np.float64), "above" if above is not None else "below"
        if value.ndim == 0:
            event = event_of(side, float(value))
        elif value.shape == (len(predictions),):
            event = f"{side} a value of each row"
        else:
            raise ValueError(
                f"{side} must be one number, or one for each of {len(predictions)} rows, found shape {value.shape}."
            )
        if np.isnan(value).any():
            raise ValueError(f"{side} must be a number, found NaN.")
        own = Distribution(predictions, self.placement, self.places)
        work = units.to_work(np.broadcast_to(value, (len(predictions),)), strictly=above is None)
        return own.place(work), event, above is not None

    def _certificate(self, promise: Promise, scalar: bool = True) -> Certificate:
        if self.unit is not None:
            promise = promise.of_entities(self.unit.entity, self.unit.n_rows)
        return Certificate(self.method, promise, scalar, self.notes, self.in_time)

    def to_arrays(self) -> dict[str, Array]:
        """Return the places as named arrays, for a file."""
        return {"places": self.places, "kept": self.kept, "kept_places": self.kept_places}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], **fields: Any) -> CalibratedPlaces:
        """Return the places that ``to_arrays`` named; arrays that do not fit each other are refused."""
        places, kept, kept_places = (arrays[name] for name in ("places", "kept", "kept_places"))
        columns, n = fields["placement"].columns, len(places)
        fits = places.ndim == kept_places.ndim == 1 and kept.shape == (len(kept_places), columns)
        fits &= all(own.dtype == np.float64 for own in (places, kept, kept_places))
        fits = fits and 1 <= len(kept_places) <= n and not np.isnan(places).any() and not np.isnan(kept_places).any()
        if not fits or (np.diff(places) < 0).any() or not np.isfinite(kept).all():
            raise ValueError("the places of its calibration rows do not fit")
        if len(kept_places) != min(n, MOST_KEPT) or not np.isin(kept_places, places).all():
            raise ValueError("the places of its calibration rows are not those of the rows that it kept")
        return cls(places=places, kept=kept, kept_places=kept_places, **fields)
