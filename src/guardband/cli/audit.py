"""``guardband audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.console import Speaker, complain
from guardband.cli.exit_codes import CANNOT_JUDGE, REFUSED, exit_code
from guardband.cli.help import DATA, OUTPUT, PROMISE
from guardband.cli.judging_options import BelongingTogether, ShownBy, ShownOverTime, TrueValues
from guardband.cli.options import TABLES, Author, Device, Json, ModelPath, Quiet, SheetName, Title, Trusted, Unit
from guardband.cli.paths import files_of_model, need_model_first, need_writable
from guardband.cli.ray_options import OnRay, SkipCorrupt, need_ray

NOT_AGAIN = "These rows cannot audit the new model. Use other rows."


def audit(
    model_path: ModelPath,
    table_paths: Annotated[
        list[str],
        typer.Argument(metavar="TABLE...", help=f"Rows with known true values. {TABLES}", rich_help_panel=DATA),
    ],
    target: TrueValues = None,
    report_by: ShownBy = None,
    time: ShownOverTime = None,
    split_by: BelongingTogether = None,
    trusted: Trusted = None,
    sheet: SheetName = None,
    significance: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="The promise counts as broken if chance alone would give so few rows inside with a lower probability "
            "than this.",
            rich_help_panel=PROMISE,
        ),
    ] = 0.01,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Show the numbers even if the rows trained or calibrated the model. They still cannot judge it.",
            rich_help_panel=PROMISE,
        ),
    ] = False,
    device: Device = "auto",
    recalibrate: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Write a new model, calibrated on these rows only.", rich_help_panel=OUTPUT),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Write a report page about these rows.", rich_help_panel=OUTPUT)
    ] = None,
    title: Title = None,
    author: Author = None,
    unit: Unit = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            "-a",
            help="Show coverage in all groups and all columns, not only what stands out.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    ray: OnRay = None,
    skip_corrupt: SkipCorrupt = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check the promise of a model on new rows whose true values you know.

    guardband counts how many true values fall inside their intervals, and tests this count exactly. The verdict is one
    of four: consistent with the promise, broken, too few rows to tell, or cannot judge.

    Use rows that are new to the model. Rows that trained or calibrated it cannot judge it.

    Each further audit has its own chance of a false alarm, and these chances add up. To look again and again, use
    `guardband monitor`.

    The exit code is 0 if the rows are consistent with the promise or too few to tell. It is 1 if the promise is broken.
    It is 2 if the rows cannot judge it, or if the input is bad.

    Example:

    `guardband audit sales.guardband later.csv --report-by region --report audit.html`
    """
    speaker = Speaker(quiet, as_json)
    with speaker.doing("Starting"):
        from guardband.data.several import open_tables, paths_in

    need_model_first("audit", model_path, table_paths)
    paths = paths_in(table_paths)
    need_writable((recalibrate, report), (*files_of_model(model_path, trusted), *paths))
    if not 0 < significance < 1:
        raise ValueError(
            f"--significance must lie strictly between 0 and 1, found {significance}. Use a number such as 0.01."
        )
    need_ray(ray, skip_corrupt)
    if ray is not None:
        from guardband.cli.audit_ray import audit_on_ray

        idle: dict[str, object] = {"--report-by": report_by, "--time": time, "--split-by": split_by, "--sheet": sheet}
        idle |= {"--recalibrate": recalibrate, "--report": report, "--force": force, "--all": every}
        odd = next((name for name, own in idle.items() if own), None)
        if odd is not None:
            raise ValueError(f"{odd} needs the rows themselves, and --ray only counts them. Remove one of the two.")
        audit_on_ray((model_path, trusted, device), table_paths, target, significance, skip_corrupt, ray, speaker)
    disk = open_tables(paths, sheet)
    with speaker.loading("Loading PyTorch"):
        from guardband.audit.audit import audit as judge
        from guardband.audit.promised_groups import findings_of_groups, group_lines, promised_groups
        from guardband.audit.verdict import used_before
        from guardband.cli.audit_words import command_to_recalibrate, tell_audit
        from guardband.cli.judged_rows import read_judged
        from guardband.cli.recalibrated import recalibrated
        from guardband.cli.width_change import width_change
        from guardband.doors.model_file import save
        from guardband.doors.signed_file import trusted_file
        from guardband.report.document import document
        from guardband.report.heading import Heading
        from guardband.report.page import write_report

    source = trusted_file(model_path, trusted)
    model, rows = read_judged(source, disk, target, report_by, time, split_by or [], device, speaker)
    if rows.others:
        from guardband.cli.audit_several import audit_several_targets

        heading = Heading(title or "", author or "", unit or "")
        asked_for = None if every else [key for key, own in (("group", report_by), ("time", time)) if own is not None]
        files = (recalibrate, report)
        audit_several_targets(model_path, model, rows, significance, force, *files, heading, speaker, asked_for)
    with speaker.doing(f"Checking the promise on {rows.n:,} rows"):
        evidence = rows.evidence(model)
        used = used_before(evidence)
        if used is not None and not force:
            speaker.tell_json({"verdict": used.kind, "sentence": used.sentence})
            raise ValueError(f"{used.sentence} Add --force to see the numbers anyway.")
        found = judge(evidence, significance)
        certificate = evidence.certificate
        groups = group_lines(promised_groups(certificate), findings_of_groups(certificate, found.parts))
        page = (
            None
            if report is None
            else document(model, evidence, significance, Heading(title or "", author or "", unit or ""))
        )
    if recalibrate is not None:
        with speaker.doing(f"Calibrating on {rows.n:,} rows"):
            model, anew = recalibrated(model, rows, source)
            change = width_change(evidence.intervals, rows.evidence(model).intervals)
    with speaker.doing("Writing"):
        if report is not None and page is not None:
            write_report(page, report)
        if recalibrate is not None:
            save(model, recalibrate, report=anew)
    asked_for = [key for key, column in (("group", report_by), ("time", time)) if column is not None]
    command = command_to_recalibrate(str(model_path), table_paths, target)
    drawn = {"drawn": int(evidence.drawn_from is not None)}
    tell_audit(found.to_dict() | drawn | {"groups": groups}, asked_for, command, speaker, every)
    if report is not None:
        speaker.tell(f"\nPage:  {report}")
    if recalibrate is not None:
        words = str(model.calibration_.certificate)
        words = words if every else words.splitlines()[0]
        speaker.tell(f"\nModel: {recalibrate}, recalibrated on these {rows.n:,} rows.\n{words}")
        speaker.tell(f"{change} {NOT_AGAIN}".lstrip())
    speaker.tell_json(
        found.to_dict()
        | {"groups": groups}
        | {"report": None if report is None else str(report)}
        | {"recalibrated": None if recalibrate is None else str(recalibrate)}
    )
    code = exit_code(found.verdict)
    if code == REFUSED:
        complain(found.sentence if quiet or as_json else CANNOT_JUDGE)
    raise typer.Exit(code)
