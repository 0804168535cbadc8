"""``guardband predict``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardband.cli.console import Speaker
from guardband.cli.options import Device, Json, Quiet, levels_in
from guardband.cli.paths import need_writable
from guardband.words import listed

if TYPE_CHECKING:
    from guardband.cli.stream import Inputs
    from guardband.data.disk import DiskTable
    from guardband.doors.table import IntervalRegressor


def predict(
    model_path: Annotated[Path, typer.Argument(metavar="MODEL", help="What fit wrote.")],
    table_path: Annotated[
        str, typer.Argument(metavar="TABLE", help="CSV (also .gz), Parquet, Arrow; - for CSV on standard input.")
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="OUT", help="A .csv, .csv.gz, .parquet or .arrow file; - is standard output."
        ),
    ] = "-",
    level: Annotated[
        list[str] | None, typer.Option(metavar="LEVELS", help="Other confidence levels than the model's own: 0.8,0.9.")
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Add a point, a lower and an upper bound to every row of a table.

    The table keeps its columns and the order of its rows. It is read in batches, so that its size does not matter. The
    output appears whole or not at all. A table needs the columns that the model was fitted on, by name, in any order.

    Example: `guardband predict sales.guardband new.csv -o new-with-intervals.csv`

    In a pipe: `zcat new.csv.gz | guardband predict sales.guardband - > out.csv`
    """
    from guardband.cli.stream import Inputs
    from guardband.data.disk import LATIN, open_table
    from guardband.data.files import STANDARD
    from guardband.data.table_writer import format_of

    speaker = Speaker(quiet, as_json)
    ending = format_of(output)
    if as_json and output == STANDARD:
        raise ValueError("--json and the table cannot both go to standard output: write the table to a file by -o.")
    place = None if output == STANDARD else Path(output)
    need_writable((place,), (model_path, table_path))
    disk = open_table(table_path)
    from guardband.doors.model_file import load

    model = load(model_path, device=device)
    inputs = Inputs.of(model, disk)
    if disk.dialect is not None and disk.dialect.is_latin:
        speaker.note(f"Some text of {disk.label} is not UTF-8: {LATIN}")
    if inputs.extra:
        some = "1 column is" if len(inputs.extra) == 1 else f"{len(inputs.extra):,} columns are"
        speaker.note(f"{some} no input of the model, and kept: {listed(inputs.extra)}.")
    began = time.monotonic()
    rows, added = _write(model, disk, inputs, levels_in(level) if level else None, place, ending, speaker)
    seconds = time.monotonic() - began
    if place is not None:
        speaker.note(f"{rows:,} rows in {seconds:.1f} s: {place} has {', '.join(added)} beside its own columns.")
    speaker.tell_json({"output": output, "rows": rows, "added": added, "extra": list(inputs.extra), "seconds": seconds})


def _write(
    model: IntervalRegressor,
    disk: DiskTable,
    inputs: Inputs,
    level: Any,
    place: Path | None,
    ending: str,
    speaker: Speaker,
) -> tuple[int, list[str]]:
    """Write the table; return how many rows it has, and which columns were added."""
    from guardband.cli.stream import predict_into
    from guardband.data.files import write_whole
    from guardband.data.table_writer import open_writer

    separator = disk.dialect.separator if disk.dialect is not None else ","
    rows, added = 0, []

    def write(path: Path | None) -> None:
        nonlocal rows, added
        with (
            open_writer(path, ending, separator) as writer,
            speaker.progress("Predicting", disk.total, in_bytes=disk.is_text) as advance,
        ):
            for written, done in predict_into(writer, model, disk, inputs, level):
                rows = written
                advance(done)
            added = [name for name in writer.names if name not in disk.names]

    if place is None:
        write(None)
    else:
        write_whole(place, write)
    return rows, added
