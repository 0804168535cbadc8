"""``guardband fit``."""

from __future__ import annotations

from pathlib import Path

import typer

from guardband.cli.console import Speaker
from guardband.cli.fit_on_ray import fit_on_ray, refuse_on_ray
from guardband.cli.fit_options import (
    Calibration,
    Check,
    Delta,
    Distill,
    Distribution,
    Drop,
    EachTarget,
    Folds,
    ForTarget,
    Guarantee,
    IndependentRows,
    Integer,
    Level,
    Log,
    Method,
    ModelOutput,
    NoReport,
    Preset,
    ReportBy,
    ReportPage,
    RiskLimit,
    Seed,
    Side,
    SplitBy,
    SplitByTime,
    TablePaths,
    Tails,
    Target,
    Time,
    Transform,
    Verbose,
    Weight,
    YMax,
    YMin,
)
from guardband.cli.group_options import Group, GroupBins, MissingGroup, SmallGroups, check_group_options, groups_in
from guardband.cli.options import (
    Author,
    Device,
    Json,
    Quiet,
    RiskCap,
    SheetName,
    Title,
    Unit,
    columns_in,
    levels_in,
    need_no_copy,
    need_roles,
    preset_in,
    risk_in,
    tails_in,
)
from guardband.cli.paths import ENDING, need_writable
from guardband.cli.ray_options import Checkpoints, MemoryLimit, OnRay, SkipCorrupt, need_ray
from guardband.words import visible

CHECK = 0.1
IN_TIME = (
    "Later rows often differ from earlier ones, and the promise does not cover that. "
    "Add --split-by-time to calibrate and test on the latest rows."
)


def fit(
    table_paths: TablePaths,
    target: Target,
    drop: Drop = None,
    report_by: ReportBy = None,
    time: Time = None,
    weight: Weight = None,
    sheet: SheetName = None,
    level: Level = None,
    guarantee: Guarantee = "marginal",
    delta: Delta = None,
    side: Side = "both",
    tails: Tails = None,
    risk: RiskLimit = None,
    risk_cap: RiskCap = None,
    distribution: Distribution = False,
    calibration: Calibration = "split",
    folds: Folds = None,
    each_target: EachTarget = False,
    group: Group = None,
    small_groups: SmallGroups = None,
    missing_group: MissingGroup = False,
    group_bins: GroupBins = None,
    for_target: ForTarget = None,
    split_by: SplitBy = None,
    independent_rows: IndependentRows = False,
    split_by_time: SplitByTime = False,
    check: Check = None,
    method: Method = "auto",
    preset: Preset = "default",
    distill: Distill = False,
    log: Log = False,
    transform: Transform = None,
    y_min: YMin = None,
    y_max: YMax = None,
    integer: Integer = None,
    seed: Seed = 0,
    device: Device = "auto",
    ray: OnRay = None,
    memory: MemoryLimit = None,
    checkpoints: Checkpoints = None,
    skip_corrupt: SkipCorrupt = False,
    output: ModelOutput = None,
    report: ReportPage = None,
    no_report: NoReport = False,
    title: Title = None,
    author: Author = None,
    unit: Unit = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a model on a table, and calibrate its intervals.

    guardband splits the rows into training, calibration and test rows. It writes the model and a report page. The test
    rows check the promise. guardband leaves out rows without a target. If you press Ctrl-C, it stops and leaves no
    files behind.

    The exit code is 0 if the test rows are consistent with the promise or too few to tell. It is 1 if the promise is
    broken. It is 2 if the rows cannot judge it, or if the input is bad. With bad input, nothing is written.

    Examples:

    `guardband fit sales.csv --target price`

    `guardband fit sales.csv --target price --drop id,notes --level 0.8,0.95`

    `guardband fit sales.csv --target price --group region`

    `guardband fit sales.csv --target price --target days`
    """
    speaker = Speaker(quiet, as_json, verbose)
    with speaker.doing("Starting"):
        from guardband.data.disk import open_table
        from guardband.data.files import STANDARD
        from guardband.data.several import open_tables, paths_in
        from guardband.data.transforms import NAMED

    paths = paths_in(table_paths)
    if output is None:
        if paths[0] == STANDARD:
            raise ValueError("A table from standard input has no name. Name the model with -o MODEL.")
        output = _model_path(paths[0])
    for one, other in (
        (no_report and "--no-report", report is not None and "--report"),
        (split_by and "--split-by", independent_rows and "--independent-rows"),
        (split_by and "--split-by", split_by_time and "--split-by-time"),
        (log and "--log", transform not in (None, "log") and f"--transform {transform}"),
        (quiet and "--quiet", verbose and "--verbose"),
        (tails and "--tails", level and "--level"),
        (tails and "--tails", side != "both" and "--side"),
        *((risk is not None and "--risk", own) for own in (group and "--group", side != "both" and "--side")),
        *((for_target and "--for-target", own) for own in (group and "--group", split_by and "--split-by")),
        *((for_target and "--for-target", own) for own in (tails and "--tails", side != "both" and "--side")),
        (for_target and "--for-target", guarantee == "pac" and "--guarantee pac"),
        (for_target and "--for-target", risk is not None and "--risk"),
        *((distribution and "--distribution", own) for own in (group and "--group", for_target and "--for-target")),
        *(
            (calibration != "split" and f"--calibration {calibration}", own)
            for own in (
                distill and "--distill",
                weight and "--weight",
                guarantee == "pac" and "--guarantee pac",
                side != "both" and "--side",
                tails and "--tails",
                risk is not None and "--risk",
                distribution and "--distribution",
                group and "--group",
                for_target and "--for-target",
                split_by and "--split-by",
                split_by_time and "--split-by-time",
            )
        ),
        *(
            (len(target) > 1 and "--target more than once", own)
            for own in (
                side != "both" and "--side",
                tails and "--tails",
                risk is not None and "--risk",
                distribution and "--distribution",
                calibration != "split" and f"--calibration {calibration}",
                group and "--group",
                for_target and "--for-target",
                report_by and "--report-by",
            )
        ),
    ):
        if one and other:
            raise ValueError(f"{one} and {other} exclude each other. Remove one of them.")
    if len(set(target)) < len(target):
        raise ValueError(f"--target names {target[0]!r} twice. Name each target once.")
    if each_target and len(target) == 1:
        raise ValueError("--each-target is about several targets. Repeat --target, or remove --each-target.")
    need_ray(ray, skip_corrupt)
    if ray is None:
        for option, given in (("--memory-limit", memory), ("--checkpoints", checkpoints)):
            if given is not None:
                raise ValueError(f"{option} is for a fit on Ray. Add --ray, or remove {option}.")
    else:
        refuse_on_ray(
            **{
                "--report-by": report_by, "--time": time, "--weight": weight, "--sheet": sheet, "--check": check,
                "--for-target": for_target, "--split-by-time": split_by_time, "--report": report, "--title": title,
                "--author": author, "--unit": unit,
            },
        )  # fmt: skip
    page = None if no_report or ray is not None else report or output.parent / f"{output.stem}.html"
    need_writable((output, page), paths if for_target is None else [*paths, *paths_in([for_target])])
    if split_by_time and time is None:
        raise ValueError("--split-by-time needs a column of time. Name it with --time.")
    if transform is not None and transform not in NAMED:
        raise ValueError(f"--transform must be one of {', '.join(NAMED)}, found {transform!r}. Choose one of them.")
    of_groups = check_group_options(group, small_groups, missing_group, group_bins)
    with speaker.loading("Loading PyTorch"):
        from guardband.cli.fit_for_target import for_other_rows, need_possible
        from guardband.cli.fit_result import Result
        from guardband.cli.fit_steps import asked, check_target, read, split, train
        from guardband.report.heading import Heading, units_of

        if len(target) > 1:
            units_of(unit or "", len(target))

        model = asked(
            method,
            confidence_level=None if not level else levels_in(level),
            guarantee=guarantee,
            delta=delta,
            side=side,
            tails=tails_in(tails),
            risk=risk_in(risk, risk_cap, level, tails),
            distribution=distribution,
            preset=preset_in(preset),
            distill=distill,
            random_state=seed,
            device=device,
            verbose=False if quiet else None,
            target_transform="log" if log else transform,
            y_min=y_min,
            y_max=y_max,
            integer=integer,
            calibration=calibration,
            **({} if folds is None else {"folds": folds}),
            targets=None if len(target) == 1 else "each" if each_target else "joint",
            **of_groups,
        )

    if ray is not None:
        model.split_by = split_by or ([] if independent_rows else None)
        groups = groups_in(group or [], open_table(paths[0]).names)
        model.groups = groups.by
        fit_on_ray(model, paths, target, drop or [], ray, memory, checkpoints, skip_corrupt, output, speaker)
        return
    disk = open_tables(paths, sheet)
    dropped, keys = columns_in(drop or [], disk.names), columns_in(split_by or [], disk.names)
    model.split_by = keys or ([] if independent_rows else None)
    groups = groups_in(group or [], disk.names)
    several = {"--drop": dropped, "--split-by": keys, "--group": groups.columns}
    named = [(report_by, "--report-by"), (weight, "--weight"), (time, "--time")]
    named += [(name, option) for option, names in several.items() for name in names]
    for name in target:
        need_roles(name, named, disk.names, disk.label)
    features = [name for name in disk.names if name not in {*dropped, *target, weight}]
    for name in target:
        need_no_copy(name, features, disk.label)
    if not features:
        raise ValueError(f"{disk.label} has no columns besides the target. Add columns to learn from, or drop fewer.")
    groups.need_among(features)
    others = None if for_target is None else open_tables(paths_in([for_target]), None)
    if others is not None:
        need_possible(model, others, features)
    model.groups = groups.by
    rows = read(disk, features, target, speaker, report_by=report_by, time=time, weight=weight, split_by=keys)
    check_target(model, rows)
    if weight is not None:
        rows.numbers(weight)  # whichever part a row would fall into, its weight must be one
    if time is not None and not split_by_time:
        speaker.note(IN_TIME if calibration == "split" else f"{IN_TIME} Also use --calibration split.")
    if split_by_time:  # a column that the model does not see is brought apart
        model.split_by_time = str(time) if time in features else True
    if check is None:  # test rows cannot judge what cross-validation promises
        check = CHECK if calibration == "split" else 0.0
    parts = split(rows, model, check, seed, speaker)
    seconds = train(model, parts, speaker)
    about = {"source": visible(disk.label), "dropped": dropped, "seed": seed, "seconds": seconds}
    elsewhere = None if others is None else for_other_rows(model, parts, others, visible(disk.label), speaker)
    result = Result.of(model, rows, parts, about, Heading(title or "", author or "", unit or ""), speaker, elsewhere)
    result.write(output, page, speaker)
    result.tell(output, page, speaker)
    raise typer.Exit(result.end(speaker))


def _model_path(table_path: str) -> Path:
    from guardband.data.storage import name_of_file

    name = name_of_file(table_path).removesuffix(".gz")
    return Path(Path(name.removesuffix(".zip") if name.endswith(".csv.zip") else name).stem + ENDING)
