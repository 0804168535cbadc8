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
from guardband.cli.paths import files_of_model, make_folder, need_model_first, need_writable
from guardband.cli.ray_options import OnRay, SkipCorrupt, need_ray
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
            help="File to write: .csv, .csv.gz, .parquet or .arrow. Use - for CSV on standard output. With --ray, a "
            "folder to write files to, also in object storage (s3://bucket/folder). A run that was stopped goes on "
            "there.",
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
    ray: OnRay = None,
    skip_corrupt: SkipCorrupt = False,
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

    `guardband predict sales.guardband 'in/*.parquet' -o out/ --ray local`

    `zcat new.csv.gz | guardband predict sales.guardband - > out.csv`
    """
    speaker = Speaker(quiet, as_json)
    with speaker.doing("Starting"):
        from guardband.cli.stated_columns import StatedColumns
        from guardband.cli.stream import Inputs
        from guardband.data.files import STANDARD
        from guardband.data.several import open_tables, paths_in
        from guardband.data.storage import is_address
        from guardband.data.table_writer import format_of
        from guardband.data.whole_table import LATIN

    need_ray(ray, skip_corrupt)
    if ray is not None:
        how = (level, unlike, no_formulas, StatedColumns.of(quantiles, above, below))
        _predict_on_ray((model_path, trusted, device), (table_paths, sheet), output, how, (ray, skip_corrupt), speaker)
        return
    if is_address(output):
        raise ValueError(f"{output} is in object storage, which only --ray writes to. Add --ray local, or name a file.")
    ending = format_of(output)
    if as_json and output == STANDARD:
        raise ValueError("--json and the table cannot both go to standard output. Write the table to a file with -o.")
    if no_formulas and not ending.startswith(".csv"):
        raise ValueError(f"--no-formulas works for CSV only, and {output} is not CSV. Remove --no-formulas.")
    stated = StatedColumns.of(quantiles, above, below)
    place = None if output == STANDARD else Path(output)
    need_model_first("predict", model_path, table_paths)
    paths = paths_in(table_paths)
    need_writable((place,), (*files_of_model(model_path, trusted), *paths))
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


def _predict_on_ray(
    of_model: tuple[Path, Path | None, str],
    of_table: tuple[list[str], str | None],
    output: str,
    how: tuple[list[str] | None, bool, bool, StatedColumns],
    on: tuple[str, bool],
    speaker: Speaker,
) -> None:
    """Predict files into a folder, and say what came of it."""
    from guardband.cli.model_columns import load_for_tables
    from guardband.cli.predict_ray import PartWriter, ending_of, place_in, predict_on_ray
    from guardband.cli.stream import Inputs
    from guardband.data.files import STANDARD
    from guardband.data.storage import Address, is_address
    from guardband.doors.read_once import ReadFile, bytes_of
    from guardband.doors.signed_file import trusted_file
    from guardband.ray.sources import Files

    (model_path, trusted, device), (table_paths, sheet), (level, unlike, no_formulas, stated) = of_model, of_table, how
    need_model_first("predict", model_path, table_paths)
    if STANDARD in (output, *table_paths) or sheet is not None:
        raise ValueError("--ray reads Parquet and CSV files into a folder. Name files, and a folder with -o OUT/.")
    if is_address(output):
        Address.of(output)  # which must not hold credentials
    files = Files.of(table_paths, on[1])
    ending = ending_of(files.like)
    if no_formulas and ending != ".csv":
        raise ValueError("--no-formulas works for CSV only. Remove --no-formulas.")
    source = trusted_file(model_path, trusted)
    if Path(source).is_file():
        source = ReadFile(Path(source), bytes_of(source))  # the checksum is of the bytes that predict
    with speaker.loading("Loading PyTorch"):
        model = load_for_tables(source, device)
    stated.need(model)
    inputs = Inputs.of(model, files.like)
    if not is_address(output):
        make_folder(Path(output))
    writer = PartWriter(model, inputs, levels_in(level) if level else None, unlike, stated, no_formulas, ending)
    began = time.monotonic()
    done = predict_on_ray(files, bytes_of(source), writer, output, on[1], on[0], speaker)
    seconds = time.monotonic() - began
    before = f" {done.again:,} of them were there before." if done.again else ""
    speaker.note(
        f"Predicted {done.found.n:,} rows in {seconds:.1f} s. {output} has {done.parts:,} files with the new columns "
        f"{', '.join(done.added)}.{before}"
    )
    for words in done.skipped:
        speaker.warn(f"Left out: {words}")
    if done.found.count:
        speaker.warn(done.found.in_words(lambda row: place_in(files, row)))
    speaker.tell_json(
        {
            "output": output,
            "rows": done.found.n,
            "files": done.parts,
            "added": done.added,
            "skipped": list(done.skipped),
            "extra": list(inputs.extra),
            "unlike": {"rows": done.found.count, "of": done.found.n},
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
