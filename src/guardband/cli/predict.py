"""``guardband predict``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardband.cli.console import Speaker
from guardband.cli.options import TABLES, Device, Json, Quiet, SheetName, levels_in
from guardband.cli.paths import need_writable
from guardband.words import listed

if TYPE_CHECKING:
    from guardband.cli.stream import Inputs
    from guardband.data.disk import DiskTable
    from guardband.data.unlike import Unlike
    from guardband.doors.table import IntervalRegressor


def predict(
    model_path: Annotated[Path, typer.Argument(metavar="MODEL", help="What fit wrote.")],
    table_paths: Annotated[list[str], typer.Argument(metavar="TABLE...", help=TABLES)],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="OUT", help="A .csv, .csv.gz, .parquet or .arrow file; - is standard output."
        ),
    ] = "-",
    level: Annotated[
        list[str] | None, typer.Option(metavar="LEVELS", help="Other confidence levels than the model's own: 0.8,0.9.")
    ] = None,
    unlike: Annotated[
        bool,
        typer.Option("--unlike", help="Add a column: in which columns a row is unlike all training rows."),
    ] = False,
    no_formulas: Annotated[
        bool,
        typer.Option(
            "--no-formulas", help="CSV only: put an apostrophe before text that a spreadsheet would run as a formula."
        ),
    ] = False,
    sheet: SheetName = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Add a point, a lower and an upper bound to every row of a table.

    The table keeps its columns and the order of its rows. It is read in batches, so that its size does not matter. The
    output appears whole or not at all. A table needs the columns that the model was fitted on, by name, in any order.
    Columns of text that fit got by --split-by may be absent.

    Rows unlike all training rows are counted: a category or a missing value that training did not have, or a number
    far outside. They get an interval too, but check them first.

    Example: `guardband predict sales.guardband new.csv -o new-with-intervals.csv`

    Several files of one table: `guardband predict sales.guardband part-*.parquet -o out.parquet`

    In a pipe: `zcat new.csv.gz | guardband predict sales.guardband - > out.csv`
    """
    from guardband.cli.stream import Inputs
    from guardband.data.disk import LATIN
    from guardband.data.files import STANDARD
    from guardband.data.several import open_tables, paths_in
    from guardband.data.table_writer import format_of

    speaker = Speaker(quiet, as_json)
    ending = format_of(output)
    if as_json and output == STANDARD:
        raise ValueError("--json and the table cannot both go to standard output: write the table to a file by -o.")
    if no_formulas and not ending.startswith(".csv"):
        raise ValueError(f"--no-formulas is for CSV, and {output} is not: remove the option, or write a .csv file.")
    place = None if output == STANDARD else Path(output)
    paths = paths_in(table_paths)
    need_writable((place,), (model_path, *paths))
    disk = open_tables(paths, sheet)
    from guardband.doors.model_file import load

    model = load(model_path, device=device)
    inputs = Inputs.of(model, disk)
    if disk.dialect is not None and disk.dialect.is_latin:
        speaker.note(f"Some text of {disk.label} is not UTF-8: {LATIN}")
    for remark in disk.remarks:
        speaker.note(remark)
    if inputs.extra:
        some = "1 column is" if len(inputs.extra) == 1 else f"{len(inputs.extra):,} columns are"
        speaker.note(f"{some} no input of the model, and kept: {listed(inputs.extra)}.")
    began = time.monotonic()
    levels = levels_in(level) if level else None
    found, added = _write(model, disk, inputs, levels, unlike, place, ending, no_formulas, speaker)
    seconds = time.monotonic() - began
    if place is not None:
        speaker.note(f"{found.n:,} rows in {seconds:.1f} s: {place} has {', '.join(added)} beside its own columns.")
    if found.count:
        speaker.warn(found.in_words(disk.place))
    speaker.tell_json(
        {
            "output": output,
            "rows": found.n,
            "added": added,
            "extra": list(inputs.extra),
            "unlike": found.to_dict(),
            "seconds": seconds,
        }
    )


def _write(
    model: IntervalRegressor,
    disk: DiskTable,
    inputs: Inputs,
    level: Any,
    marks_unlike: bool,
    place: Path | None,
    ending: str,
    no_formulas: bool,
    speaker: Speaker,
) -> tuple[Unlike, list[str]]:
    """Write the table; return what is known of its rows, and which columns were added."""
    from guardband.cli.standard_streams import need_output
    from guardband.cli.stream import predict_into
    from guardband.data.files import write_whole
    from guardband.data.table_writer import open_writer
    from guardband.data.unlike import Unlike

    separator = disk.dialect.separator if disk.dialect is not None else ","
    found, added = Unlike(), []

    def write(path: Path | None) -> None:
        nonlocal found, added
        with (
            open_writer(path, ending, separator, no_formulas) as writer,
            speaker.progress("Predicting", disk.total, in_bytes=disk.is_text) as advance,
        ):
            for until, done in predict_into(writer, model, disk, inputs, level, marks_unlike):
                found = until
                advance(done)
                if path is None:
                    need_output()
            added = [name for name in writer.names if name not in disk.names]

    if place is None:
        write(None)
    else:
        write_whole(place, write)
    return found, added
