"""What a fitted ``IntervalRegressor`` knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.each_promise import MISSING_AT_RANDOM
from guardband.bands.placement import Placement
from guardband.bands.predicted import Context, Predicted
from guardband.bands.time_split import TimeSplit
from guardband.calibration.calibrated import Calibrated, OnInsufficient
from guardband.calibration.joint import JointConformal
from guardband.calibration.places import CalibratedPlaces
from guardband.calibration.rule import Rule
from guardband.data.fingerprint import Prints, count_overlap
from guardband.data.grouping import Grouping
from guardband.data.labelled_rows import LabelledRows
from guardband.data.mixed_rows import Mixer, Sources, mixed_groups
from guardband.data.row_numbers import known_as
from guardband.data.table import Table
from guardband.data.times import Times
from guardband.data.tree_groups import TreeGroups
from guardband.data.unlike import Seen
from guardband.data.used_rows import UsedRows
from guardband.doors.calibrated_rows import calibrated_rows
from guardband.doors.weights import Weighting, mixed_weights, refuse_entities, weighted
from guardband.learning.crossed import Crossed
from guardband.learning.learned import Learned
from guardband.learning.shift import KnownRows
from guardband.words import rows_named


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted(UsedRows):
    """All that ``fit`` and ``calibrate`` found: ``model.fitted_``.

    ``held_out_prints`` are fingerprints of the rows that ``fit`` held out, and ``params`` the arguments that the model
    was fitted with. ``seen`` is what the training rows held, None for a model of a file that does not say. ``grouping``
    are the groups that have a promise of their own, if there are any, and ``weighting`` says where the weights of rows
    come from, if they have any. ``source`` are encoded training rows and ``known`` the calibration rows, for
    ``for_target``; both are in memory only. ``trained_until`` is when the last training row came, if rows were split by
    time. ``placement`` says where outcomes lie within predictions, and ``places`` where those of the calibration rows
    do, for quantiles; None if the method has none.
    """

    learned: Learned | Crossed
    rule: Rule
    calibrated: Calibrated | None
    held_out_prints: Prints
    params: Mapping[str, Any]
    seen: Seen | None = None
    grouping: Grouping | TreeGroups | None = None
    weighting: Weighting | None = None
    source: NDArray[np.float32] | None = None
    known: KnownRows | None = None
    trained_until: float | None = None
    placement: Placement | None = None
    places: CalibratedPlaces | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a file may hold: no rows."""
        return vars(self) | {"source": None, "known": None}

    @property
    def used_prints(self) -> Prints:
        """Fingerprints of all rows that the model was made from; by cross-validation they all trained."""
        return self.training_prints if isinstance(self.learned, Crossed) else super().used_prints

    def predict(self, table: Table) -> Predicted:
        """Return what the networks predict in work units, as the rule is to see it."""
        return Predicted.side_by_side([own.predict(table, self.rule.each_copy) for own in self.learned.each])

    def mixer(self, table: Table, X: Any) -> Mixer:
        """Return what the networks predict for rows mixed from a table; ``X`` is what the user gave."""
        every = self.learned.each
        every[0].encoder.encode(table)  # refuses what cannot be encoded
        cells, unlearnt = [own.encoder.rows(table) for own in every], set(every[0].encoder.unlearnt(table.names))

        def predict(sources: Sources) -> Predicted:
            mixed = [
                own.encoder.encode_rows(np.take_along_axis(rows, sources, axis=0), np)
                for own, rows in zip(every, cells, strict=True)
            ]
            pairs = zip(every, mixed, strict=True)
            return Predicted.side_by_side([own.predict_encoded(x, self.rule.each_copy) for own, x in pairs])

        players = [j for j, name in enumerate(table.names) if name not in unlearnt]
        return Mixer(table, predict, np.array(players, dtype=np.intp), self._mixed(table, X))

    def _mixed(self, table: Table, X: Any) -> Callable[[Sources], Context]:
        """Return what is known of rows mixed from a table."""
        return mixed_weights(mixed_groups(self.grouping, table, X), self.weighting, table, X)

    def calibrated_on(
        self, rows: LabelledRows, on_insufficient: OnInsufficient, *notes: str, weighting: Weighting | None = None
    ) -> Fitted:
        """Return the same, calibrated on these rows, with what is to be said of them."""
        assert isinstance(self.learned, Learned)
        refuse_entities(rows.entities, weighting)
        if self.rule.target_names and weighting is not None:
            raise ValueError("Several targets cannot use weights. Remove weights, or fit one target at a time.")
        if isinstance(self.rule, JointConformal):
            rows, notes = complete_rows(rows, notes)
        in_time = None if rows.times is None or self.trained_until is None else self._later(rows.times)
        shared = count_overlap(rows.prints, self.training_prints)
        if shared:
            notes += (
                f"{shared} of {rows.n} calibration rows also occur among the training rows. Natural duplicates do no "
                "harm. If rows were copied before the split, remove the copies and fit again.",
            )
        target = self.learned.target.decided_again(rows.y)
        notes += (*target.notes, *self.doubts)
        encoder, rule = self.learned.encoder, weighted(self.rule, weighting)
        inputs = encoder.encode(rows.table)
        predicted = self.learned.predict_encoded(inputs, rule.each_copy)
        known = KnownRows(encoder, self.source, inputs, predicted, target.to_work(rows.y), rows.entities, self.seen)
        block = (predicted, known.y, rows.table.context)
        calibrated = calibrated_rows(rule, block, rows.entities, notes, on_insufficient, target.to_units)
        return replace(
            self,
            places=self._places(inputs, known, rows, notes, in_time, weighting),
            learned=replace(self.learned, target=target),
            calibrated=replace(calibrated, in_time=in_time),
            weighting=weighting,
            known=known,
            calibration_prints=rows.prints,
            calibration_entities=None if rows.entities is None else rows.entities.every,
        )

    def _places(
        self,
        inputs: NDArray[np.float32],
        known: KnownRows,
        rows: LabelledRows,
        notes: tuple[str, ...],
        in_time: TimeSplit | None,
        weighting: Weighting | None,
    ) -> CalibratedPlaces | None:
        """Return where calibration rows lie within their predictions, unless they count by groups or weights."""
        if self.placement is None or self.grouping is not None or weighting is not None:
            return None
        assert isinstance(self.learned, Learned)
        parts, columns = known.predicted.parts, self.placement.columns
        if known.predicted.copies == known.predicted.candidates == 1 and len(parts) == columns:
            placed = np.stack([part[0, 0] for part in parts], axis=1)
        else:  # the rule sees other columns than the placement: the networks are asked again
            placed = self.learned.columns_encoded(inputs)
        return CalibratedPlaces.of(self.rule.method, self.placement, placed, known.y, rows.entities, notes, in_time)

    def _later(self, times: Times) -> TimeSplit:
        """Return how rows were split by time; calibration rows that are no later than a training row are refused."""
        assert self.trained_until is not None
        times.need_known()
        until, early = times.in_words(self.trained_until), np.flatnonzero(times.values <= self.trained_until)
        if len(early):
            found = f"{len(early):,} of {len(times.values):,} rows are not ({rows_named(known_as(early))})"
            raise ValueError(
                f"With split_by_time, calibration rows must be later than all training rows, which go up to {until} "
                f"({times.name}). {found}. Calibrate on later rows."
            )
        first, last = (times.in_words(float(own)) for own in (times.values.min(), times.values.max()))
        return TimeSplit(times.name, until, first, last)


def complete_rows(rows: LabelledRows, notes: tuple[str, ...]) -> tuple[LabelledRows, tuple[str, ...]]:
    """Return the rows in which all targets are known, and say how many others there are."""
    complete = rows.complete()
    left_out = rows.n - len(complete)
    if not left_out:
        return rows, notes
    if not len(complete):
        raise ValueError(
            'No calibration row has all targets, which targets="joint" needs. Fill them in, or use targets="each".'
        )
    return rows.take(complete), (*notes, lacking_in_words(left_out, rows.n))


def lacking_in_words(left_out: int, n: int) -> str:
    """Return that some of n calibration rows lack one of several targets."""
    words = f"{left_out:,} of {n:,} calibration rows lack a target and are left out of the calibration."
    return f"{words} {MISSING_AT_RANDOM}"
