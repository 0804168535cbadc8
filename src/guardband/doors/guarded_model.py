"""A fitted model of any library, calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level
from guardband.bands.predicted import Context, Predicted
from guardband.bands.units import Units
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.cross import need_held_out
from guardband.calibration.places import CalibratedPlaces
from guardband.calibration.rule import Rule
from guardband.data.encoder import TableEncoder
from guardband.data.labelled_rows import Belonging
from guardband.data.mixed_rows import Mixer, mix_rows, mixed_groups
from guardband.data.table import Table, is_frame, read_table, take_columns
from guardband.data.target import Target
from guardband.data.used_rows import UsedRows
from guardband.doors.distributed import Distributed, need_places
from guardband.doors.for_target import for_target
from guardband.doors.groups import AnyGroups
from guardband.doors.judged import Judged, refuse_several
from guardband.doors.model_bands import ModelBands, tau_of
from guardband.doors.model_places import placed_columns
from guardband.doors.weights import (
    Weighting,
    mixed_weights,
    weighed,
)
from guardband.learning.shift import KnownRows
from guardband.words import rows_named

if TYPE_CHECKING:
    from guardband.doors.crossed_model import FoldBands

Array = NDArray[np.float64]


class GuardedModel(Distributed, Judged):
    """A calibrated model of any library: intervals, the certificate, and an audit of its promise.

    ``gb.calibrate`` makes one. ``model`` is the model as it was given: if you change it, the promise no longer holds.
    ``arguments`` are those of ``calibrate``, with what was found out about the model.
    """

    python_only = True

    def __init__(
        self,
        model: Any,
        bands: ModelBands | FoldBands,
        calibrated: Calibrated,
        used: UsedRows,
        encoder: TableEncoder,
        names: tuple[str, ...] | None,
        belonging: Belonging,
        arguments: Mapping[str, Any],
        has_residuals: bool,
        declared_outputs: Any,
        grouping: AnyGroups | None = None,
        weighting: Weighting | None = None,
        rule: Rule | None = None,
        known: KnownRows | None = None,
        places: CalibratedPlaces | None = None,
    ) -> None:
        self.model = model
        self.arguments, self.has_residuals, self.declared_outputs = arguments, has_residuals, declared_outputs
        self.calibration_ = calibrated
        self.fitted_ = used
        self.target_ = Target(None, None, None)
        self.belonging = belonging
        self.bands, self.encoder, self.names, self.grouping = bands, encoder, names, grouping
        self.weighting, self._rule, self._known = weighting, rule or calibrated.rule, known
        self.places = places

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy in a file may hold: no rows."""
        return vars(self) | {"_known": None}

    @property
    def certificate(self) -> Certificate:
        """What is promised of the intervals."""
        return self.calibration_.certificate

    def _repr_html_(self) -> str:
        from guardband.doors.shown import guarded_model_html

        return guarded_model_html(self)

    def predict(self, X: Any) -> Array:
        """Return the point predictions, ``(n,)``.

        Parameters
        ----------
        X : table or array of shape (n, d)
            New rows, as the model takes them.
        """
        if self.weighting is None:
            return self.predict_interval(X).point
        point: Array = self._predicted(X, self._read(X)).point[0, 0]
        return point

    def for_target(self, X_target: Any) -> GuardedModel:
        """Return this model for the population of other rows, whose true values nobody needs to know.

        guardband estimates how much likelier each row is in that population than among the training rows, which
        ``gb.calibrate`` must have been given as ``training``. The calibration rows then count by these weights. Because
        weights are estimated, the promise is no longer exact: the certificate says so.

        Parameters
        ----------
        X_target : table or array of shape (n, d)
            Rows like those that you will predict. A few hundred rows are enough for large differences, and more give
            better weights.

        Returns
        -------
        GuardedModel
            A calibration of its own for the same model. This one does not change.

        Raises
        ------
        InsufficientCalibrationError
            If the weights leave too few calibration rows for the confidence level.
        ValueError
            If the training rows are not known, if the guarantee is not "marginal", if there are groups or entities, or
            if most rows of ``X_target`` are unlike anything that was calibrated.
        """
        need_held_out(self._rule, "use for_target")
        refuse_several(len(self._rule.target_names), "for_target")
        if self._known is None:
            raise ValueError(
                "for_target needs training rows and calibration rows, which a file does not hold. Calibrate again with "
                "gb.calibrate(model, (X, y), training=(X_train, y_train))."
            )
        out = copy(self)
        target = self._read(X_target)
        out._known, out._rule = self._known, self._rule
        out.calibration_, out.weighting = for_target(self._known, self._rule, target, self.calibration_)
        return out

    def predict_interval(
        self,
        X: Any,
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        weights: Any = None,
    ) -> Intervals:
        """Return the ``Intervals`` of new rows, at other levels if asked for.

        Parameters
        ----------
        X : table or array of shape (n, d)
            New rows, as the model takes them.
        confidence_level : float or sequence of float, default None
            The share of new rows that should fall inside their intervals, or several such shares. None means 0.9,
            or the model's own level. Raise it if a miss is expensive; intervals become wider.
        alpha : float or sequence of float, default None
            One minus ``confidence_level``, for code that counts misses. Give one of the two.
        weights : array of shape (n,), default None
            The weight of each row, if the model was calibrated with weights as numbers and the guarantee is "marginal".
        """
        calibrated, table = self.calibration_.at(confidence_level, alpha), self.read_rows(X, weights=weights)
        ends = calibrated.ends(self._predicted(X, table), table.context)
        return calibrated.intervals(ends, index=table.index, input_names=(*table.names, *table.extra))

    def _placed(self, X: Any) -> tuple[CalibratedPlaces, Array, Units, Table]:
        """Return what quantiles of new rows are made of; a model that has no such places is refused."""
        refuse_several(len(self._rule.target_names), "A distribution")
        need_held_out(self._rule, "predict distributions")
        places = need_places(self.places, self.calibration_, self.grouping is not None)
        table, bands = self._read(X), self.bands
        assert isinstance(bands, ModelBands)
        own = X if self.names is None else take_columns(X, self.names)
        found = placed_columns(bands, bands.predictor.columns(own, table.n_rows, bands.levels), tau_of(self.arguments))
        assert found is not None
        if not np.isfinite(found[0]).all():
            wrong = np.flatnonzero(~np.isfinite(found[0]).all(axis=1))
            raise ValueError(f"The model predicts no finite numbers for {rows_named(wrong)}. Remove these rows.")
        return places, found[0], Units(), table

    def save(self, path: str | PathLike[str]) -> None:
        """Write the calibration to one file; ``gb.load(path, model=...)`` puts it together with your model again.

        The model itself is not in the file, and neither are the widths learnt from residuals: bring both again.

        Parameters
        ----------
        path : str or path
            The file to write. The model itself is not saved: keep it as you always do.
        """
        from guardband.doors.model_file import save

        save(self, path)

    def made_by(self) -> list[tuple[str, str]]:
        """Return what the model is, for the page."""
        return [("Model", self.bands.in_words(self.model)), ("Columns", f"{len(self.encoder.codes):,}")]

    def settings(self) -> list[tuple[str, str]]:
        """Return the settings of the model itself that guardband knows of: none."""
        return []

    def read_rows(self, X: Any, *, weights: Any = None) -> Table:
        """Return rows with the columns of the calibration rows, as what they were then.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows, as the model takes them.
        weights : array of shape (n,), default None
            The weight of each row, if the model needs them.
        """
        return weighed(self._read(X), X, weights, self.weighting, self.calibration_.rule)

    def _read(self, X: Any) -> Table:
        """Return rows without their weights."""
        table = read_table(X, self.names if is_frame(X) else None)
        if len(table.columns) != len(self.encoder.codes):
            raise ValueError(
                f"X must have {len(self.encoder.codes)} columns, as the calibration rows have, found "
                f"{len(table.columns)}."
            )
        table = table.read_as(self.encoder.kinds)
        if self.grouping is None:
            return table
        return replace(table, context=Context(group=self.grouping.of_rows(table, X)))

    def outputs(self, X: Any, table: Table) -> tuple[Predicted, NDArray[np.float32]]:
        """Return what the model predicts for rows that ``read_rows`` returned, and their columns as numbers.

        Parameters
        ----------
        X : table or array of shape (n, d)
            The same rows, as the model takes them.
        table : Table
            Rows that ``read_rows`` returned.
        """
        inputs = self.encoder.encode(table)
        return self._predicted(X, table), inputs[:, : inputs.shape[1] - len(self.encoder.sizes)]

    @property
    def is_quick(self) -> bool:
        """Whether the model may be asked for many rows: one that is a function may be a service."""
        every = self.model.values() if isinstance(self.model, Mapping) else [self.model]
        parts = [part for own in every for part in (own if isinstance(own, list | tuple) else [own])]
        return all(hasattr(part, "predict") for part in parts)

    def mixer(self, X: Any) -> Mixer:
        """Return rows as the model reads them, and what it predicts for rows mixed from them.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Rows, as the model takes them.
        """
        table, own = self.read_rows(X), X if self.names is None else take_columns(X, self.names)
        players = np.arange(len(table.columns))
        groups = mixed_weights(mixed_groups(self.grouping, table, own), self.weighting, table, own)
        return Mixer(table, lambda sources: self.bands.predict(mix_rows(own, sources), len(sources)), players, groups)

    def _predicted(self, X: Any, table: Table) -> Predicted:
        """Ask the model, which may find columns by their place, with those of the calibration rows in their order."""
        return self.bands.predict(X if self.names is None else take_columns(X, self.names), table.n_rows)
