"""``guardband calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardband.cli.console import Speaker, complain
from guardband.cli.exit_codes import REFUSED
from guardband.cli.fit_options import Delta, Guarantee, IndependentRows, Level, RiskLimit, Side, SplitBy, Tails
from guardband.cli.group_options import GroupBins, GroupColumns, MissingGroup, SmallGroups, check_group_options
from guardband.cli.help import DATA, OUTPUT, PROMISE, WIDTH
from guardband.cli.options import (
    TABLES,
    Json,
    Quiet,
    RiskCap,
    SheetName,
    columns_in,
    levels_in,
    need_roles,
    risk_in,
    tails_in,
)
from guardband.cli.paths import need_writable
from guardband.cli.ray_options import KeepScores, OnRay, SkipCorrupt, need_ray
from guardband.cli.weight_options import MaxWeight, Weights, check_weight_options
from guardband.words import visible

if TYPE_CHECKING:
    from guardband.bands.certificate import Certificate
    from guardband.cli.labelled import Labelled
    from guardband.doors.band_columns import BandColumns
    from guardband.doors.bands import BandCalibrator

METHODS = ("conf-nn", "cqr", "cqr-r", "conf-fw", "qreg-un")
"""Those that take one interval a row, or a point."""


def _methods(incomplete: str) -> list[str]:
    return [name for name in METHODS if name.startswith(incomplete)]


def _column(what: str) -> Any:
    return typer.Option(metavar="COL", help=f"Column of {what}.", rich_help_panel=DATA)


def calibrate(
    table_paths: Annotated[
        list[str],
        typer.Argument(metavar="BANDS...", help=f"Predictions with their true values. {TABLES}", rich_help_panel=DATA),
    ],
    target: Annotated[
        list[str], typer.Option("--target", "-t", metavar="COL", help="Column of true values.", rich_help_panel=DATA)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="RULE", help="Rule file to write.", rich_help_panel=OUTPUT)
    ],
    lower: Annotated[str | None, _column("lower bounds")] = None,
    upper: Annotated[str | None, _column("upper bounds")] = None,
    point: Annotated[str | None, _column("predictions. It may be the only one")] = None,
    crossing: Annotated[
        str,
        typer.Option(
            metavar="raise|sort",
            help="If a lower bound is above an upper one: stop with an error, or sort them.",
            rich_help_panel=DATA,
        ),
    ] = "raise",
    sheet: SheetName = None,
    level: Level = None,
    guarantee: Guarantee = "marginal",
    delta: Delta = None,
    side: Side = "both",
    tails: Tails = None,
    risk: RiskLimit = None,
    risk_cap: RiskCap = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"How to build intervals: {', '.join(METHODS[:-1])} or {METHODS[-1]}.",
            show_default="conf-nn, or conf-fw for predictions alone",
            autocompletion=_methods,
            rich_help_panel=PROMISE,
        ),
    ] = None,
    group: GroupColumns = None,
    training: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Table of the model's training rows, with the columns of --group. It fixes which groups there are, "
            "the ranges of numbers, and which groups are pooled.",
            show_default="the calibration rows say which groups there are",
            rich_help_panel=PROMISE,
        ),
    ] = None,
    small_groups: SmallGroups = None,
    missing_group: MissingGroup = False,
    group_bins: GroupBins = None,
    weights: Weights = None,
    max_weight: MaxWeight = None,
    split_by: SplitBy = None,
    independent_rows: IndependentRows = False,
    ray: OnRay = None,
    skip_corrupt: SkipCorrupt = False,
    keep_scores: KeepScores = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Also show the whole certificate.", rich_help_panel=OUTPUT),
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Turn the predictions of any model into intervals with a promise.

    The table holds predictions from any program: a lower and an upper bound, a prediction, or all three. It also holds
    the true values. Use rows that did not train the model. guardband learns how much wider or narrower
    the bounds must be, and writes that as a rule to one file.

    Use the rule like a model in `predict`, `audit` and `report`. They find the bounds by the names of their columns.
    Rows without a true value are left out.

    The exit code is 0 if the rule was written. It is 2 if the intervals are infinite, or if the input is bad.

    Examples:

    `guardband calibrate bands.csv --lower q05 --upper q95 --target price -o price.rule`

    `guardband calibrate 'bands/*.parquet' --lower q05 --upper q95 --target price -o price.rule --ray local`

    `guardband predict price.rule new.csv -o new-with-intervals.csv`
    """
    from guardband.cli.calibrate_steps import calibrate_rule, read_bands, training_groups
    from guardband.data.several import open_tables, paths_in
    from guardband.doors.bands import BandCalibrator

    speaker = Speaker(quiet, as_json)
    need_ray(ray, skip_corrupt, keep_scores)
    paths = paths_in(table_paths)
    need_writable((output,), paths if training is None else [*paths, *paths_in([training])])
    columns = _columns(lower, point, upper, side)
    method = method or ("conf-fw" if columns.form == "point" else "conf-nn")
    _check_method(method, columns, side)
    if len(target) > 1:
        raise ValueError(
            f"A rule has one target, found --target {' and --target '.join(target)}. Name one of them, or calibrate "
            "several in Python with gb.BandCalibrator."
        )
    if risk is not None and (group or weights):
        one = "--group" if group else "--weights"
        raise ValueError(f"--risk and {one} exclude each other. Remove one of them.")
    if split_by and independent_rows:
        raise ValueError("--split-by and --independent-rows exclude each other: give one of them.")
    check_weight_options(weights, max_weight, guarantee)
    of_groups = check_group_options(group, small_groups, missing_group, group_bins)
    if training is not None and not group:
        raise ValueError("--training is about groups. Name a column with --group, or remove the option.")
    if small_groups == "pool" and training is None:
        raise ValueError(
            "--small-groups pool needs training rows, because counts of calibration rows would break the promise. Name "
            "them with --training TABLE."
        )
    rule = BandCalibrator(
        method,
        confidence_level=None if not level else levels_in(level),
        guarantee=guarantee,  # type: ignore[arg-type]
        delta=delta,
        side=side,  # type: ignore[arg-type]
        tails=tails_in(tails),
        risk=risk_in(risk, risk_cap, level, tails),
        crossing=crossing,  # type: ignore[arg-type]
        **of_groups,
    )
    if ray is not None:
        if sheet is not None:
            raise ValueError("--sheet and --ray exclude each other. Remove one of them.")
        from guardband.ray.calibrating import KEEP_SCORES
        from guardband.ray.sources import Files

        files = Files.of(table_paths, skip_corrupt)
        disk = files.like
    else:
        disk = open_tables(paths, sheet)
    keys = columns_in(split_by or [], disk.names)
    groups = list(dict.fromkeys(columns_in(group or [], disk.names)))
    roles = ((lower, "--lower"), (point, "--point"), (upper, "--upper"), (weights, "--weights"))
    named = [(name, option) for name, option in roles if name]
    named += [(name, "--split-by") for name in keys] + [(name, "--group") for name in groups]
    need_roles(target[0], named, disk.names, disk.label)
    known = None if training is None else training_groups(training, groups, speaker)
    if ray is not None:
        from guardband.cli.calibrate_ray import calibrate_on_ray

        kept = KEEP_SCORES if keep_scores is None else keep_scores
        options = {"weights": weights, "max_weight": max_weight, "split_by": keys or None}
        options |= {"keep_scores": kept, "skip_corrupt": skip_corrupt}
        rule, rows = calibrate_on_ray(rule, files, columns, target[0], groups, known, options, ray, speaker)
        _finish(rule, rows, output, speaker, verbose)
        return
    rows = read_bands(disk, columns, target[0], keys, groups, known, weights, speaker)
    of_weights = {} if weights is None else {"weights": weights, "max_weight": max_weight}
    calibrate_rule(rule, rows, columns, not independent_rows, groups, known, of_weights)
    _finish(rule, rows, output, speaker, verbose)


def _columns(lower: str | None, point: str | None, upper: str | None, side: str) -> BandColumns:
    """Return the columns of predictions; a promise for one side does not need the other bound."""
    from guardband.doors.band_columns import BandColumns, Form

    forms: dict[tuple[bool, ...], Form] = {
        (True, True, True): "interval",
        (True, False, True): "bounds",
        (False, True, False): "point",
    }
    if side == "lower":  # a bound alone is a prediction that is moved
        forms |= {(True, True, False): "lower", (True, False, False): "point"}
    if side == "upper":
        forms |= {(False, True, True): "upper", (False, False, True): "point"}
    names = [name for name in (lower, point, upper) if name is not None]
    form = forms.get((lower is not None, point is not None, upper is not None))
    if form is None:
        raise ValueError("Name the columns by --lower and --upper, or a column of predictions alone by --point.")
    if len(set(names)) < len(names):
        raise ValueError(f"--lower, --point and --upper must be different columns, found {', '.join(names)}.")
    return BandColumns(form, tuple(names))


def _check_method(method: str, columns: BandColumns, side: str) -> None:
    from guardband.methods.registry import method_named

    if method_named(method).name not in METHODS:
        raise ValueError(
            f"--method {method} needs more than one interval for each row. Use one of {', '.join(METHODS)}, or in "
            "Python gb.BandCalibrator."
        )
    if columns.form == "point" and method != "conf-fw":
        more = "bounds. Name them by --lower and --upper" if side == "both" else f"--point and --{side}. Add them"
        raise ValueError(f"--method {method} needs {more}, or use --method conf-fw.")


def _why_infinite(certificate: Certificate) -> str:
    """Return why intervals are infinite, and what to do about it."""
    promise, ranks = certificate.promise, certificate.promise.rank
    if ranks is not None and all(rank <= promise.n_calibration for rank in ranks):
        return "No usable intervals: too many true values lie beyond bounds of no width. Use --method cqr or conf-fw."
    what = "level" if promise.is_of_coverage else "risk"
    return f"No usable intervals: found {promise.counted}, too few for this {what}. Bring more rows."


def _finish(rule: BandCalibrator, rows: Labelled, output: Path, speaker: Speaker, verbose: bool) -> None:
    """Write the rule, and say what it promises and what to do next."""
    from guardband.audit.promised_groups import group_lines, promised_groups
    from guardband.cli.group_table import tell_groups
    from guardband.cli.provenance import ORIGIN
    from guardband.cli.sample import sample_of, sample_table
    from guardband.doors.model_file import save
    from guardband.report.document import document

    assert rows.disk is not None
    certificate, source = rule.certificate, visible(rows.disk.label)
    made = document(rule, None)
    origin = {"target": rows.target, "source": source, "split_by": list(rows.split_by)}
    save(rule, output, report=made | {"fitted": [["Table", source], *made["fitted"]], ORIGIN: origin})
    sample = sample_of(rule, rows, rows.features)
    speaker.tell(f"{certificate}\n" if verbose else f"{str(certificate).splitlines()[0]}\n")
    groups = group_lines(promised_groups(certificate), [])
    tell_groups(groups, speaker, None if verbose else "Add --verbose to see them.")
    speaker.tell(f"{len(sample)} of the calibration rows, with their intervals:")
    speaker.tell(sample_table(sample, speaker.out.width if speaker.out.is_terminal else WIDTH))
    calibrated = certificate.n_calibration
    own = rule.calibration_  # on Ray, rows are only the first of the files
    read = max(rows.n, own.summary.n, 0 if own.unit is None else own.unit.n_rows)
    speaker.tell(f"Rule: {output}, from {read:,} calibration rows of {source}")
    speaker.tell(f"Next: guardband predict {output} NEW.csv -o OUT.csv")
    speaker.tell_json(
        {
            "rule": str(output),
            "target": rows.target,
            "columns": list(rule.columns.names),
            "groups": groups,
            "rows": {"read": read, "calibrated": calibrated},
            "certificate": certificate.to_dict(),
            "certificate_in_words": str(certificate),
            "sample": [row.to_dict() for row in sample],
        }
    )
    if any(certificate.promise.whole_line):
        complain(_why_infinite(certificate))
        raise typer.Exit(REFUSED)
