"""``guardband fit``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardband.cli.console import Speaker, complain
from guardband.cli.exit_codes import CANNOT_JUDGE, DONE, REFUSED, exit_code
from guardband.cli.options import (
    LARGEST_SEED,
    TABLES,
    Device,
    Json,
    Quiet,
    SheetName,
    columns_in,
    levels_in,
    need_no_copy,
    need_roles,
    preset_in,
)
from guardband.cli.paths import need_writable
from guardband.methods.registry import method_names
from guardband.words import visible

if TYPE_CHECKING:
    from guardband.audit.evidence import Evidence
    from guardband.cli.labelled import Labelled
    from guardband.doors.table import IntervalRegressor

METHODS = (*method_names(), "auto")
ENDING = ".guardband"
CALIBRATION_SHARE = 0.25
IN_TIME = (
    "The promise assumes that new rows are like those of the table. Rows in order of time often are not: "
    "--split-by-time calibrates and checks on the latest rows, and `guardband audit` tells when they have changed."
)
ROWS_TO_LOOK_AT = 10_000
BELOW_ZERO = (
    "No target is negative, but {} of {} intervals begin below 0. If the target cannot be negative, add --y-min 0."
)


def _methods(incomplete: str) -> list[str]:
    return [name for name in METHODS if name.startswith(incomplete)]


def fit(
    table_paths: Annotated[list[str], typer.Argument(metavar="TABLE...", help=TABLES)],
    target: Annotated[str, typer.Option("--target", "-t", metavar="COL", help="The column to predict.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="MODEL",
            help="The model's file; else the table's name with .guardband, in this folder.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLS", help="Columns to leave out: a,b or repeated.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="A column by whose values the report judges. It is also learnt from unless dropped."
        ),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="COL", help="A column that weighs rows in training only; not learnt from.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="A column of moments or numbers in time. It is also learnt from unless dropped."
        ),
    ] = None,
    split_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLS",
            help="Columns that name what rows belong to, such as a patient: a,b or repeated. Rows that belong together "
            "stay on one side of every split, and the promise is for a new patient.",
        ),
    ] = None,
    independent_rows: Annotated[
        bool,
        typer.Option("--independent-rows", help="Rows do not belong together: do not look for repeated rows or keys."),
    ] = False,
    split_by_time: Annotated[
        bool, typer.Option("--split-by-time", help="Calibrate and check on the latest rows, by --time.")
    ] = False,
    method: Annotated[
        str, typer.Option(metavar="NAME", help=f"One of {', '.join(METHODS)}.", autocompletion=_methods)
    ] = "conf-nn",
    level: Annotated[
        list[str] | None, typer.Option(metavar="LEVELS", help="Confidence level, 0.9 unless given; several: 0.8,0.9.")
    ] = None,
    guarantee: Annotated[
        str,
        typer.Option(help="marginal: on average over calibrations; pac: for this one, except with probability delta."),
    ] = "marginal",
    delta: Annotated[
        float | None, typer.Option(help="For pac: the chance that the promise fails, 0.1 unless given.")
    ] = None,
    preset: Annotated[
        str,
        typer.Option(metavar="NAME|SECONDS", help="How long to train: fast, default, best, or a number of seconds."),
    ] = "default",
    log: Annotated[
        bool,
        typer.Option("--log", help="Learn the logarithm of the target. For positive targets that vary by factors."),
    ] = False,
    transform: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Learn the target on another scale: log, log1p (zeros allowed), asinh (negative values too), or sqrt.",
        ),
    ] = None,
    y_min: Annotated[
        float | None, typer.Option("--y-min", metavar="NUMBER", help="The smallest value that the target can have.")
    ] = None,
    y_max: Annotated[
        float | None, typer.Option("--y-max", metavar="NUMBER", help="The largest value that the target can have.")
    ] = None,
    integer: Annotated[
        bool | None,
        typer.Option(
            "--integer/--no-integer",
            help="Give intervals whole-number ends, or do not; else only if all targets are whole numbers.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Same seed, same result.")] = 0,
    device: Device = "auto",
    check: Annotated[
        float,
        typer.Option(
            min=0, max=0.9, help="Share of rows that neither train nor calibrate, for the report; 0 for none."
        ),
    ] = 0.1,
    report: Annotated[Path | None, typer.Option(metavar="PAGE", help="The report page; else beside the model.")] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no page.")] = False,
    sheet: SheetName = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learn to predict a column of a table, with intervals that come with a promise.

    Reads the table, shows what its columns were read as, sets rows aside that neither train nor calibrate, trains,
    calibrates, and writes the model and a page that judges it on the rows set aside. Rows whose target is missing are
    left out. Ctrl-C stops and leaves nothing behind.

    Exit code: 0 if the rows set aside are consistent with the promise, or too few to tell, or if there are none; 1 if
    it is broken; 2 if they cannot judge it, or if the input is bad. The model and the page are written unless the
    input is bad.

    Example: `guardband fit sales.csv --target price --drop id,notes --level 0.8,0.95`
    """
    from guardband.data.files import STANDARD
    from guardband.data.several import open_tables, paths_in
    from guardband.data.transforms import NAMED

    speaker = Speaker(quiet, as_json)
    paths = paths_in(table_paths)
    if output is None:
        if paths[0] == STANDARD:
            raise ValueError("A table from standard input has no name: name the model by -o MODEL.")
        name = Path(paths[0]).name.removesuffix(".gz")
        output = Path(Path(name.removesuffix(".zip") if name.endswith(".csv.zip") else name).stem + ENDING)
    if no_report and report is not None:
        raise ValueError("--no-report and --report exclude each other: give one of them.")
    page = None if no_report else report or output.parent / f"{output.stem}.html"
    need_writable((output, page), paths)
    if split_by and independent_rows:
        raise ValueError("--split-by and --independent-rows exclude each other: give one of them.")
    if split_by_time and time is None:
        raise ValueError("--split-by-time needs to know the column of time: name it by --time.")
    if log and transform not in (None, "log"):
        raise ValueError(f"--log and --transform {transform} exclude each other: give one of them.")
    if transform is not None and transform not in NAMED:
        raise ValueError(f"--transform must be one of {', '.join(NAMED)}, found {transform!r}.")
    levels = None if not level else levels_in(level)
    target_options = {"target_transform": "log" if log else transform, "y_min": y_min, "y_max": y_max}
    target_options["integer"] = integer
    model = _asked(method, levels, guarantee, delta, preset, seed, device, speaker, **target_options)

    disk = open_tables(paths, sheet)
    dropped, keys = columns_in(drop or [], disk.names), columns_in(split_by or [], disk.names)
    model.split_by = keys or ([] if independent_rows else None)
    named = [(group, "--group"), (weight, "--weight"), (time, "--time"), *((name, "--drop") for name in dropped)]
    named += [(name, "--split-by") for name in keys]
    need_roles(target, named, disk.names, disk.label)
    features = [name for name in disk.names if name not in {*dropped, target, weight}]
    need_no_copy(target, features, disk.label)
    if not features:
        raise ValueError(f"{disk.label} has no columns to learn from besides the target.")
    rows = _read(disk, features, target, speaker, group=group, time=time, weight=weight, split_by=keys)
    _check_target(model, rows)
    if weight is not None:
        rows.numbers(weight)  # whichever part a row would fall into, its weight must be one
    if time is not None and not split_by_time:
        speaker.note(IN_TIME)
    parts = _split(rows, model, check, seed, split_by_time)
    started = monotonic()
    _train(model, parts)
    about = {
        "source": visible(disk.label),
        "dropped": dropped,
        "seed": seed,
        "seconds": round(monotonic() - started, 1),
    }
    _finish(model, rows, parts, output, page, speaker, about)


@dataclass(frozen=True)
class Parts:
    """The rows that fit, those that calibrate where the split is by time, and those that check."""

    fit: Labelled
    calibrate: Labelled | None
    check: Labelled | None


def _asked(
    method: str,
    levels: Any,
    guarantee: str,
    delta: float | None,
    preset: str,
    seed: int,
    device: str,
    speaker: Speaker,
    **target_options: Any,
) -> IntervalRegressor:
    """Return the model to fit; what cannot be is refused before a large table is read."""
    from guardband.doors.table import IntervalRegressor
    from guardband.learning.options import FitOptions

    model = IntervalRegressor(
        method,
        confidence_level=levels,
        guarantee=guarantee,  # type: ignore[arg-type]
        delta=delta,
        preset=preset_in(preset),
        random_state=seed,
        device=device,
        verbose=False if speaker.quiet else None,
        **target_options,
    )
    FitOptions.of(model.get_params(deep=False))
    return model


def _read(disk: Any, features: list[str], target: str, speaker: Speaker, **roles: Any) -> Labelled:
    from guardband.cli.columns import as_table, crowded_in_words, useless_in_words, views_of
    from guardband.cli.labelled import read_labelled

    rows = read_labelled(disk, features, target, speaker, **roles)
    if not speaker.quiet:
        views = views_of(rows)
        speaker.note(as_table(views))
        for words in (useless_in_words(views), crowded_in_words(views)):
            if words:
                speaker.note(words)
    return rows


def _check_target(model: IntervalRegressor, rows: Labelled) -> None:
    """Raise if a target is none that the model can take, whichever part its row would fall into."""
    import warnings

    from guardband.data.labelled_rows import column_target
    from guardband.data.row_numbers import rows_known_as
    from guardband.learning.options import FitOptions

    with rows_known_as(rows.row_numbers), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fit warns
        FitOptions.of(model.get_params(deep=False)).target.decided(column_target(rows.y, rows.n))


def _split(rows: Labelled, model: IntervalRegressor, check: float, seed: int, by_time: bool) -> Parts:
    """Return the parts; rows that belong together are in one of them."""
    import numpy as np

    from guardband.data.labelled_rows import column_target
    from guardband.data.table import read_table

    if by_time:
        assert rows.time is not None
        if rows.split_by:
            raise ValueError("--split-by and --split-by-time exclude each other: give one of them.")
        aside = math.floor(check * rows.n)
        order = np.argsort(rows.numbers(rows.time), kind="stable")
        later = order[: rows.n - aside]
        held_out = math.ceil(CALIBRATION_SHARE * len(later))
        calibration = rows.take(np.sort(later[len(later) - held_out :]))
        checked = rows.take(np.sort(order[rows.n - aside :])) if aside else None
        return Parts(rows.take(np.sort(later[: len(later) - held_out])), calibration, checked)
    response = column_target(rows.y, rows.n)
    together = model.belonging.entities(read_table(rows.X), rows.X, response, rows.entities)
    rows = replace(rows, entities=together)
    count = rows.n if together is None else len(together.every)
    aside = math.floor(check * count)
    order = np.random.default_rng(seed).permutation(count)
    fitted, checked_ones = order[: count - aside], order[count - aside :]
    if together is not None:
        fitted, checked_ones = together.rows_of(fitted), together.rows_of(checked_ones)
    return Parts(rows.take(np.sort(fitted)), None, rows.take(np.sort(checked_ones)) if aside else None)


def _train(model: IntervalRegressor, parts: Parts) -> None:
    import warnings

    from guardband.data.row_numbers import rows_known_as
    from guardband.exceptions import DependentRowsWarning

    rows = parts.fit
    weight = None if rows.weight is None else rows.numbers(rows.weight)
    model.calibration_size = CALIBRATION_SHARE if parts.calibrate is None else None
    with rows_known_as(rows.row_numbers), warnings.catch_warnings():
        if parts.check is not None:  # the verdict says so
            warnings.simplefilter("ignore", DependentRowsWarning)
        model.fit(rows.X, rows.y, sample_weight=weight, entities=rows.entities)
    if parts.calibrate is not None:
        with rows_known_as(parts.calibrate.row_numbers):
            model.calibrate(parts.calibrate.X, parts.calibrate.y)


def _below_zero(model: IntervalRegressor, rows: Labelled, evidence: Evidence | None) -> str | None:
    """Return a proposal if no target is negative and some intervals nevertheless begin below zero."""
    if model.y_min is not None or rows.y.min() < 0:
        return None
    some = rows.X.slice(0, ROWS_TO_LOOK_AT)
    lower, _ = (model.intervals_of(model.read_rows(some)) if evidence is None else evidence.intervals).per_level()
    below = int(((lower < 0) & (lower > -math.inf)).any(axis=1).sum())
    return BELOW_ZERO.format(f"{below:,}", f"{len(lower):,}") if below else None


def _finish(
    model: IntervalRegressor,
    rows: Labelled,
    parts: Parts,
    output: Path,
    page: Path | None,
    speaker: Speaker,
    about: dict[str, Any],
) -> None:
    """Write model and page, and say what was found."""
    from guardband.cli.provenance import with_origin
    from guardband.cli.sample import sample_of, sample_table
    from guardband.doors.model_file import save
    from guardband.report.document import document
    from guardband.report.page import write_report

    checked = parts.check
    evidence = None
    if checked is not None:
        evidence = checked.evidence(model)
    certificate = model.certificate_
    counts = {
        "read": rows.n,
        "trained": len(model.fitted_.training_prints),
        "calibrated": len(model.fitted_.calibration_prints),
        "checked": 0 if checked is None else checked.n,
    }
    made = with_origin(document(model, evidence), rows, counts, parts.calibrate is not None, about)
    save(model, output, report=made)
    if page is not None:
        write_report(made, page)
    sample = sample_of(model, checked or parts.fit)
    speaker.tell(
        f"{counts['trained']:,} rows trained, {counts['calibrated']:,} calibrated, and {counts['checked']:,} were set "
        "aside to check.\n"
    )
    speaker.tell(f"{certificate}\n")
    if checked is not None:
        speaker.tell(f"Check: {made['sentence']}\n")
    proposal = _below_zero(model, parts.fit, evidence)
    if proposal is not None:
        speaker.note(f"{proposal}\n")
    speaker.tell(sample_table(sample, rows.target, "new rows" if checked is not None else "rows it has seen"))
    speaker.tell(f"Model: {output}")
    if page is not None:
        speaker.tell(f"Report: {page}")
    speaker.tell_json(
        {
            "model": str(output),
            "report": None if page is None else str(page),
            "target": rows.target,
            "features": list(rows.features),
            "rows": counts,
            "certificate": certificate.to_dict(),
            "certificate_in_words": str(certificate),
            "verdict": None if checked is None else made["status"],
            "sentence": made["sentence"],
            "doubts": list(model.fitted_.doubts),
            "sample": sample,
        }
    )
    asked = checked is not None and certificate.promise.binding
    code = exit_code(made["status"]) if asked else DONE
    if checked is None and any(certificate.promise.whole_line):
        complain(f"No usable intervals: {certificate.promise.counted} are too few for this level. Bring more rows.")
        raise typer.Exit(REFUSED)
    if code == REFUSED:
        complain(made["sentence"] if speaker.quiet or speaker.as_json else CANNOT_JUDGE)
    raise typer.Exit(code)
