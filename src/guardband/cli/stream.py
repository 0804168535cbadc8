"""Rows with their intervals, from file to file in batches: memory does not grow with the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from guardband.data.disk import DiskTable, typed
from guardband.data.kinds import Kind
from guardband.data.text_cells import as_text
from guardband.data.unlike import Unlike
from guardband.words import listed

if TYPE_CHECKING:
    import pyarrow as pa

    from guardband.data.table_writer import Writer
    from guardband.doors.table import IntervalRegressor


@dataclass(frozen=True)
class Inputs:
    """The columns of a table that a model takes, in its order, and what each is; the table's others are extra.

    Columns that the model does not learn from may be absent.
    """

    kinds: dict[str, Kind]
    extra: tuple[str, ...]

    @classmethod
    def of(cls, model: IntervalRegressor, disk: DiskTable) -> Inputs:
        """Return the inputs of a model in a table; columns that are not there are an error that names them."""
        from guardband.data.encoder import TableEncoder

        encoder = model.fitted_.learned.encoder
        plain: list[Kind] = ["number"] * model.n_features_in_
        kinds = encoder.kinds if isinstance(encoder, TableEncoder) else plain
        names = list(getattr(model, "feature_names_in_", []))
        if not names and len(disk.names) < len(kinds):
            raise ValueError(f"The model takes {len(kinds)} columns in order, found {len(disk.names)} in {disk.label}.")
        names = names or list(disk.names[: len(kinds)])
        unlearnt = encoder.unlearnt(names)
        missing = [name for name in names if name not in disk.names and name not in unlearnt]
        if missing:
            raise ValueError(
                f"{disk.label} lacks {len(missing)} of the model's {len(names)} columns: {listed(missing, 10)}. "
                "Add them, or fit a model without them."
            )
        known = {name: kind for name, kind in zip(names, kinds, strict=True) if name in disk.names}
        return cls(known, tuple(name for name in disk.names if name not in known))


def predict_into(
    writer: Writer, model: IntervalRegressor, disk: DiskTable, inputs: Inputs, level: Any, marks_unlike: bool = False
) -> Iterator[tuple[Unlike, int]]:
    """Write every row with its interval; yield after each batch how unlike the rows so far are, and how much is done.

    Columns keep what they say: those of a CSV are text in every format, as their cells are written.
    ``marks_unlike`` adds a column of what is unlike the training rows.
    """
    named = hasattr(model, "feature_names_in_")
    calibrated, seen = model.calibration_.at(level, None), model.fitted_.seen
    if marks_unlike and seen is None:
        raise ValueError("The model does not say what its training rows held: remove --unlike, or fit it again.")
    until = Unlike()
    for batch, done in disk.batches():
        X = typed(batch, inputs.kinds, disk, until.n)
        table = model.read_rows(X if named else _matrix(X), to_predict=True)
        bands = model.intervals_of(table, calibrated)
        found = Unlike(len(batch))
        if seen is not None:
            found, columns = seen.compare(table, until.n + 1)
            bands = replace(bands, unlike_columns=columns)
        until += found
        with disk.reading():
            joined = _joined(batch, bands, disk, marks_unlike)
        writer.write(joined)
        yield until, done


def _joined(batch: Any, bands: Any, disk: DiskTable, marks_unlike: bool) -> pa.Table:
    import pyarrow as pa

    given = [as_text(column) for column in batch.columns] if disk.is_text else batch.columns
    columns = dict(zip(batch.schema.names, given, strict=True))
    added = replace(bands, input_names=tuple(columns)).columns(marks_unlike)
    twice = [name for name in added if name in columns]
    if twice:
        raise ValueError(f"{disk.label} has a column {twice[0]!r} already, as if it were predicted before: rename it.")
    return pa.table(columns | {name: pa.array(values) for name, values in added.items()})


def _matrix(X: pa.Table) -> Any:
    """Return columns without names, for a model that was fitted on some."""
    import numpy as np

    return np.column_stack([column.to_numpy() for column in X.columns])
