"""Rows with their intervals, from file to file in batches: memory does not grow with the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from guardband.cli.model_columns import ModelColumns
from guardband.cli.options import close_names
from guardband.cli.stated_columns import NOTHING_MORE, StatedColumns
from guardband.data.disk import DiskTable
from guardband.data.kinds import Kind
from guardband.data.row_numbers import rows_known_as
from guardband.data.text_cells import as_text
from guardband.data.typed_columns import typed
from guardband.data.unlike import Unlike
from guardband.words import listed

if TYPE_CHECKING:
    import pyarrow as pa

    from guardband.cli.model_columns import Model
    from guardband.data.table_writer import Writer


@dataclass(frozen=True)
class Inputs:
    """The columns of a table that a model takes, in its order, and what each is; the table's others are extra.

    Columns that the model does not learn from may be absent.
    """

    kinds: dict[str, Kind]
    extra: tuple[str, ...]

    @classmethod
    def of(cls, model: Model, disk: DiskTable) -> Inputs:
        """Return the inputs of a model in a table; columns that are not there are an error that names them."""
        own = ModelColumns.of(model)
        names, kinds = own.names, own.kinds
        if not names and len(disk.names) < len(kinds):
            raise ValueError(
                f"The model needs {len(kinds)} columns in order, found {len(disk.names)} in {disk.label}. Add the rest."
            )
        names = names or list(disk.names[: len(kinds)])
        for name in own.groups:
            _need(name, "says to what group a row belongs", "each group has a promise of its own", names, disk)
        if own.weights is not None:
            _need(own.weights, "holds the weight of each row", "intervals depend on it", names, disk)
        unlearnt = own.may_lack(names)
        missing = [name for name in names if name not in disk.names and name not in unlearnt]
        if missing:
            others = [name for name in disk.names if name not in names]
            raise ValueError(
                f"{disk.label} lacks {len(missing)} of the model's {len(names)} columns: {listed(missing, 10)}. "
                f"{_what_to_do(missing, others, own.otherwise[len(missing) > 1])}"
            )
        known = {name: kind for name, kind in zip(names, kinds, strict=True) if name in disk.names}
        return cls(known, tuple(name for name in disk.names if name not in known))


def _need(name: str, what: str, because: str, names: list[str], disk: DiskTable) -> None:
    """Raise if a table lacks a column that the promise needs."""
    if name not in disk.names:
        others = [own for own in disk.names if own not in names]
        raise ValueError(
            f"{disk.label} has no column {name!r}, which {what}. "
            f"{_what_to_do([name], others, f'Add it, because {because}.')}"
        )


def _what_to_do(missing: list[str], others: list[str], otherwise: str) -> str:
    """Return what to do about columns that are missing; others may have nearly their names."""
    near = list(dict.fromkeys(close for name in missing for close in close_names(name, others)[:1]))
    if not near:
        return otherwise
    asked = "Is it" if len(missing) == 1 else "Is one of them" if len(near) == 1 else "Are some of them"
    those = "that column" if len(near) == 1 else "those columns"
    return f"{asked} {listed(near)}? Then rename {those}. Otherwise {otherwise[0].lower()}{otherwise[1:]}"


def read_rows(model: Model, disk: DiskTable) -> Any:
    """Return all rows of a table, as the model takes them; true values may be absent."""
    import pyarrow as pa

    inputs, made, n = Inputs.of(model, disk), [], 0
    for batch, _ in disk.batches():
        made.append(typed(batch, inputs.kinds, disk, n))
        n += len(batch)
    X = pa.concat_tables(made, promote_options="permissive")
    return X if ModelColumns.of(model).named else matrix(X)


def predict_into(
    writer: Writer,
    model: Model,
    disk: DiskTable,
    inputs: Inputs,
    level: Any,
    marks_unlike: bool = False,
    stated: StatedColumns = NOTHING_MORE,
) -> Iterator[tuple[Unlike, int]]:
    """Write every row with its interval; yield after each batch how unlike the rows so far are, and how much is done.

    Columns keep what they say: those of a CSV are text in every format, as their cells are written.
    ``marks_unlike`` adds a column of what is unlike the training rows, and ``stated`` those of quantiles.
    """
    named = ModelColumns.of(model).named
    calibrated, seen = model.calibration_.at(level, None), getattr(model.fitted_, "seen", None)
    if marks_unlike and seen is None:
        raise ValueError("The model file does not describe its training rows. Remove --unlike, or fit the model again.")
    until = Unlike()
    for batch, done in disk.batches():
        X = typed(batch, inputs.kinds, disk, until.n)
        with rows_known_as(np.arange(until.n + 1, until.n + len(batch) + 1)):
            table = model.read_rows(X if named else matrix(X), to_predict=True)
            bands = model.intervals_of(table, calibrated)
            more = stated.of_rows(model, table)
        found = Unlike(len(batch))
        if seen is not None:
            found, columns = seen.compare(table, until.n + 1)
            bands = replace(bands, unlike_columns=columns)
        until += found
        with disk.reading():
            joined = _joined(batch, bands, disk, marks_unlike, more)
        writer.write(joined)
        yield until, done


def _joined(batch: Any, bands: Any, disk: DiskTable, marks_unlike: bool, more: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    given = [as_text(column) for column in batch.columns] if disk.is_text else batch.columns
    columns = dict(zip(batch.schema.names, given, strict=True))
    added = replace(bands, input_names=tuple(columns)).columns(marks_unlike) | more
    twice = [name for name in added if name in columns]
    if twice:
        raise ValueError(
            f"{disk.label} already has a column {twice[0]!r}, perhaps from an earlier prediction. Rename it."
        )
    return pa.table(columns | {name: pa.array(values) for name, values in added.items()})


def matrix(X: pa.Table) -> Any:
    """Return columns without names, for a model that was fitted on some."""
    return np.column_stack([column.to_numpy() for column in X.columns])
