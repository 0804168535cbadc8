"""The steps of ``guardband calibrate``: read predictions and groups, and calibrate on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guardband.cli.console import Speaker
from guardband.cli.options import need_column

if TYPE_CHECKING:
    import pyarrow as pa

    from guardband.cli.labelled import Labelled
    from guardband.data.disk import DiskTable
    from guardband.data.entities import Entities
    from guardband.doors.band_columns import BandColumns
    from guardband.doors.bands import BandCalibrator


def training_groups(path: str, groups: list[str], speaker: Speaker) -> pa.Table:
    """Return the columns that make groups, of the rows that trained the model."""
    from guardband.data.several import open_tables, paths_in
    from guardband.data.whole_table import read_whole

    disk = open_tables(paths_in([path]), None)
    for name in groups:
        need_column(name, disk.names, "--group", disk.label)
    with speaker.progress(f"Reading {disk.label}", disk.total, in_bytes=disk.is_text) as advance:
        return read_whole(disk, groups, advance).table


def read_bands(
    disk: DiskTable,
    columns: BandColumns,
    target: str,
    keys: list[str],
    groups: list[str],
    known: pa.Table | None,
    weights: str | None,
    speaker: Speaker,
) -> Labelled:
    """Return the rows whose true value is known, with predictions that are numbers, and groups as in ``known``.

    ``weights`` is the column of weights, if there is one.
    """
    from guardband.cli.labelled import kinds_of, read_labelled

    numbers = [*columns.names] if weights is None else [*columns.names, weights]

    def check(table: pa.Table) -> None:
        for name in numbers:
            _need_numbers(name, table[name], disk)

    features = list(dict.fromkeys([*numbers, *groups]))
    kinds = None if known is None else kinds_of(known)
    return read_labelled(disk, features, target, speaker, split_by=keys, kinds=kinds, check=check)


def _need_numbers(name: str, cells: pa.ChunkedArray, disk: DiskTable) -> None:
    """Raise with the first cell that is no number, if a column of predictions holds text."""
    import pyarrow as pa

    from guardband.data.kinds import column_of
    from guardband.data.text_cells import CellError

    if not pa.types.is_string(cells.type):
        return
    try:
        column_of(cells.combine_chunks(), "number", disk.decimal_comma)
    except CellError as error:
        raise ValueError(
            f"Column {name!r} must hold numbers, found {error.text!r} in {disk.place(error.index + 1)}. Correct it, or "
            "name another column."
        ) from None


def calibrate_rule(
    rule: BandCalibrator,
    rows: Labelled,
    columns: BandColumns,
    looks_for_repeats: bool,
    groups: list[str],
    known: pa.Table | None,
    of_weights: dict[str, Any],
) -> None:
    """Calibrate a rule on rows; ``groups`` are the columns that make groups, ``known`` those of training rows.

    ``of_weights`` are the arguments that say where weights come from.
    """
    from guardband.data.row_numbers import rows_known_as

    with rows_known_as(rows.row_numbers):
        together = rows.entities
        if together is None and looks_for_repeats:
            together = _repeated(rows, columns)
        of_groups: dict[str, Any] = {"groups": groups, "training": known} if groups else {}
        rule.fit_table(rows.X, rows.y, columns, entities=together, split_by=rows.split_by, **of_groups, **of_weights)


def _repeated(rows: Labelled, columns: BandColumns) -> Entities | None:
    """Return which rows are the same, with a warning, if a join or a second upload repeated some."""
    from guardband.data.labelled_rows import Belonging, column_target

    table = columns.table(columns.numbers_in(rows.X))
    return Belonging().entities(table, rows.X, column_target(rows.y, rows.n))
