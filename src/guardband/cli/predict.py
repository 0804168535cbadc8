"""``guardband predict``."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardband.cli.console import Speaker
from guardband.cli.help import DATA, OUTPUT, PROMISE
from guardband.cli.options import TABLES, Device, Json, ModelPath, Quiet, SheetName, Trusted, levels_in
from guardband.cli.paths import need_model_first, need_writable
from guardband.words import listed

if TYPE_CHECKING:
    from guardband.cli.model_columns import Model
    from guardband.cli.stated_columns import StatedColumns
    from guardband.cli.stream import Inputs
    from guardband.data.disk import DiskTable
    from guardband.data.unlike import Unlike


def predict(
    model_path: ModelPath,
    table_paths: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help=f"Rows to predict. {TABLES}", rich_help_panel=DATA)
    ],
    trusted: Trusted = None,
    sheet: SheetName = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVELS",
            help="Other confidence levels: 0.8,0.9.",
            show_default="the model's own",
            rich_help_panel=PROMISE,
        ),
    ] = None,
    quantiles: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVELS",
            help="Add calibrated quantiles at these levels: 0.05,0.5,0.95.",
            rich_help_panel=PROMISE,
        ),
    ] = None,
    above: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER", help="Add the probability that a row exceeds this value.", rich_help_panel=PROMISE
        ),
    ] = None,
    below: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER", help="Add the probability that a row stays below this value.", rich_help_panel=PROMISE
        ),
    ] = None,
    device: Device = "auto",
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="File to write: .csv, .csv.gz, .parquet or .arrow. Use - for CSV on standard output.",
            rich_help_panel=OUTPUT,
        ),
    ] = "-",
    unlike: Annotated[
        bool,
        typer.Option(
            "--unlike",
            help="Add a column that names the columns in which a row is unlike all training rows.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    no_formulas: Annotated[
        bool,
        typer.Option(
            "--no-formulas",
            help="For CSV: put an apostrophe before text that a spreadsheet would run as a formula.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Add a prediction, a lower and an upper bound to each row of a table.

    The table needs the columns that the model learnt from, by name, in any order. It keeps its own columns and the
    order of its rows. guardband reads it in pieces, and it may be larger than memory. The output file appears only when
    it is complete.

    guardband counts rows that are unlike all training rows: a new category, a missing value, or a number far outside.
    They get an interval too. Check these rows first.

    Examples:

    `guardband predict sales.guardband new.csv -o new-with-intervals.csv`

    `guardband predict sales.guardband part-*.parquet -o out.parquet`

    `guardband predict sales.guardband new.csv -o out.csv --quantiles 0.05,0.5,0.95 --above 300000`

    `zcat new.csv.gz | guardband predict sales.guardband - > out.csv`
    """
    speaker = Speaker(quiet, as_json)
    with speaker.doing("Starting"):
        from guardband.cli.stated_columns import StatedColumns
        from guardband.cli.stream import Inputs
        from guardband.data.disk import LATIN
        from guardband.data.files import STANDARD
        from guardband.data.several import open_tables, paths_in
        from guardband.data.table_writer import format_of

    ending = format_of(output)
    if as_json and output == STANDARD:
        raise ValueError("--json and the table cannot both go to standard output. Write the table to a file with -o.")
    if no_formulas and not ending.startswith(".csv"):
        raise ValueError(f"--no-formulas works for CSV only, and {output} is not CSV. Remove --no-formulas.")
    stated = StatedColumns.of(quantiles, above, below)
    place = None if output == STANDARD else Path(output)
    need_model_first("predict", model_path, table_paths)
    paths = paths_in(table_paths)
    need_writable((place,), (model_path, *paths))
    disk = open_tables(paths, sheet)
    with speaker.loading("Loading PyTorch"):
        from guardband.cli.model_columns import load_for_tables
        from guardband.doors.signed_file import trusted_file

        speaker.step(f"Loading {model_path}")
        model = load_for_tables(trusted_file(model_path, trusted), device)
    stated.need(model)
    inputs = Inputs.of(model, disk)
    if disk.dialect is not None and disk.dialect.is_latin:
        reads = LATIN.replace("Latin-1.", "Latin-1 and writes UTF-8.") if ending.startswith(".csv") else LATIN
        speaker.note(f"Some text of {disk.label} is not UTF-8: {reads}")
    for remark in disk.remarks:
        speaker.note(remark)
    if inputs.extra:
        one = len(inputs.extra) == 1
        some, them = ("1 column", "it") if one else (f"{len(inputs.extra):,} columns", "them")
        speaker.note(f"The model does not use {some} of the table: {listed(inputs.extra)}. The output keeps {them}.")
    began = time.monotonic()
    levels = levels_in(level) if level else None
    found, added = _write(model, disk, inputs, levels, unlike, stated, place, ending, no_formulas, speaker)
    seconds = time.monotonic() - began
    if place is not None:
        speaker.note(f"Predicted {found.n:,} rows in {seconds:.1f} s. {place} has the new columns {', '.join(added)}.")
    promises, too_few = stated.promises(model), stated.too_few(model)
    for name, words in promises.items():
        speaker.note(f"{name}: {words}")
    if too_few is not None:
        speaker.warn(too_few)
    if found.count:
        speaker.warn(found.in_words(disk.place))
    speaker.tell_json(
        {
            "output": output,
            "rows": found.n,
            "added": added,
            "promises": promises,
            "extra": list(inputs.extra),
            "unlike": found.to_dict(),
            "seconds": seconds,
        }
    )


def _write(
    model: Model,
    disk: DiskTable,
    inputs: Inputs,
    level: Any,
    marks_unlike: bool,
    stated: StatedColumns,
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

    separator, decimal_comma = ",", False
    if disk.dialect is not None:
        separator, decimal_comma = disk.dialect.separator, disk.dialect.writes_commas
    found, added = Unlike(), []
    # Rows in the terminal are progress enough.
    shown = replace(speaker, quiet=True) if place is None and sys.stdout.isatty() else speaker

    def write(path: Path | None) -> None:
        nonlocal found, added
        with (
            open_writer(path, ending, separator, no_formulas, decimal_comma) as writer,
            shown.progress("Predicting", disk.total, in_bytes=disk.is_text) as advance,
        ):
            for until, done in predict_into(writer, model, disk, inputs, level, marks_unlike, stated):
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
