"""``guardband audit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardband.cli.console import Speaker, complain, table
from guardband.cli.exit_codes import CANNOT_JUDGE, REFUSED, exit_code
from guardband.cli.options import TABLES, Device, Json, Quiet, SheetName, columns_in, need_column, need_roles
from guardband.cli.paths import need_writable

if TYPE_CHECKING:
    from guardband.cli.labelled import Labelled
    from guardband.data.disk import DiskTable
    from guardband.doors.table import IntervalRegressor

MOST_COLUMNS, MOST_PLACES = 8, 3
SHOWN = ("group", "time", "size", "width")


def audit(
    model_path: Annotated[Path, typer.Argument(metavar="MODEL", help="What fit wrote.")],
    table_paths: Annotated[list[str], typer.Argument(metavar="TABLE...", help=f"Rows with known outcomes: {TABLES}")],
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="COL", help="The outcomes; else the column that the model was fitted to."
        ),
    ] = None,
    group: Annotated[str | None, typer.Option(metavar="COL", help="A column: coverage for each of its values.")] = None,
    time: Annotated[str | None, typer.Option(metavar="COL", help="A column of moments: coverage over time.")] = None,
    split_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLS", help="Columns that name what rows belong to, if the model was told so in Python only."
        ),
    ] = None,
    significance: Annotated[
        float,
        typer.Option(
            help="The promise is called broken if chance explains the misses with less probability than this."
        ),
    ] = 0.01,
    recalibrate: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write a new model, calibrated on these rows alone.")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="PAGE", help="Write a report page of these rows.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Show the audit of rows that trained or calibrated the model, too.")
    ] = False,
    sheet: SheetName = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check the promise of a model on new rows whose true values you know.

    Counts how many true values lie inside their intervals, and tests that count by its exact law. The verdict is one
    of four: consistent with the promise, broken, too few rows to tell, or cannot judge. Coverage by group, by size of
    the prediction, by width and over time, and changes of the inputs, are shown for information.

    Audit rows that are new to the model. Rows that trained or calibrated it cannot judge it.

    Exit code: 0 if the rows are consistent with the promise, or too few to tell; 1 if it is broken; 2 if the rows
    cannot judge it, or if the input is bad.

    Example: `guardband audit sales.guardband later.csv --group region --time sold_on --report audit.html`
    """
    from guardband.audit.audit import audit as judge
    from guardband.audit.verdict import used_before
    from guardband.data.several import open_tables, paths_in
    from guardband.doors.model_file import save
    from guardband.report.document import document
    from guardband.report.page import write_report

    speaker = Speaker(quiet, as_json)
    paths = paths_in(table_paths)
    need_writable((recalibrate, report), (model_path, *paths))
    if not 0 < significance < 1:
        raise ValueError(f"significance must lie strictly between 0 and 1, found {significance}.")
    disk = open_tables(paths, sheet)
    model, rows = _read(model_path, disk, target, group, time, split_by or [], device, speaker)
    evidence = rows.evidence(model)
    used = used_before(evidence)
    if used is not None and not force:
        speaker.tell_json({"verdict": used.kind, "sentence": used.sentence})
        raise ValueError(f"{used.sentence} Add --force to see the numbers anyway.")
    found = judge(evidence, significance)
    page = None if report is None else document(model, evidence)
    anew = None if recalibrate is None else _recalibrated(model, rows, model_path)
    if report is not None and page is not None:
        write_report(page, report)
    if recalibrate is not None:
        save(model, recalibrate, report=anew)
    _tell(found.to_dict(), speaker)
    if report is not None:
        speaker.tell(f"Report: {report}")
    if recalibrate is not None:
        speaker.tell(f"\nCalibrated anew on these {rows.n:,} rows: {recalibrate}\n{model.certificate_}")
    speaker.tell_json(
        found.to_dict()
        | {"report": None if report is None else str(report)}
        | {"recalibrated": None if recalibrate is None else str(recalibrate)}
    )
    code = exit_code(found.verdict)
    if code == REFUSED:
        complain(found.sentence if quiet or as_json else CANNOT_JUDGE)
    raise typer.Exit(code)


def _read(
    model_path: Path,
    disk: DiskTable,
    target: str | None,
    group: str | None,
    time: str | None,
    split_by: list[str],
    device: str,
    speaker: Speaker,
) -> tuple[IntervalRegressor, Labelled]:
    from guardband.cli.labelled import read_labelled
    from guardband.cli.provenance import target_of
    from guardband.cli.stream import Inputs
    from guardband.doors.model_file import load

    model = load(model_path, device=device)
    inputs = Inputs.of(model, disk)
    own = target_of(model_path, target, list(inputs.kinds), disk.names)
    need_roles(own, ((group, "--group"), (time, "--time")), disk.names, disk.label)
    fixed = model.belonging.keys
    keys = fixed or tuple(columns_in(split_by, disk.names))
    for name in keys:
        need_column(name, disk.names, "split_by, as the model was fitted" if fixed else "--split-by", disk.label)
    rows = read_labelled(
        disk, list(inputs.kinds), own, speaker, group=group, time=time, split_by=keys, kinds=inputs.kinds
    )
    return model, rows


def _recalibrated(model: IntervalRegressor, rows: Labelled, source: Path) -> dict[str, Any]:
    """Make these rows the model's D2, and return the document to save it with: unchecked, of the same origin."""
    from guardband.cli.provenance import ORIGIN, origin_of
    from guardband.report.document import document

    origin = origin_of(source)
    model.calibrate(rows.X, rows.y, entities=rows.entities)
    made: dict[str, Any] = document(model, None)
    return made | {ORIGIN: origin} if origin else made


def _tell(found: dict[str, Any], speaker: Speaker) -> None:
    from guardband.words import chance

    speaker.tell(found["sentence"])
    columns = ("level", "rows", "inside", "share", "expected", "exact test", "mean width")
    shown = table(*columns, right=range(1, 7))
    for level in found["levels"]:
        shown.add_row(
            f"{100 * level['level']:.10g}%",
            f"{level['n']:,}",
            f"{level['covered']:,}",
            f"{level['share']:.2%}",
            f"{level['low']:,} to {level['high']:,}",
            chance(level["p_value"]),
            "infinite" if level["mean_width"] is None else f"{level['mean_width']:.4g}",
        )
    speaker.tell(shown)
    families = found["families"]
    for key in SHOWN:
        for family in families:
            if family["key"] == key:
                speaker.tell(_family(family))
    low = [
        (
            stratum["share"],
            f"{family['title']!r} at {stratum['label']} ({stratum['share']:.1%} of {stratum['n']:,} rows)",
        )
        for family in families
        if family["key"].startswith("column")
        for stratum in family["strata"]
        if stratum["flag"] == "low"
    ]
    if low:
        worst = "; ".join(words for _, words in sorted(low)[:MOST_PLACES])
        more = f"; and in {len(low) - MOST_PLACES} more ranges" if len(low) > MOST_PLACES else ""
        compared = next(family["compared"] for family in families if family["key"].startswith("column"))
        speaker.tell(f"Lower coverage than expected, allowing for {compared:,} groups: {worst}{more}.")
    region = found["searched_region"]
    if region is not None:
        speaker.tell(
            "A region of the inputs where coverage looked lowest on a quarter of the rows. On the other rows: "
            f"{region['covered']:,} of {region['n']:,} inside ({region['share']:.1%}), expected {region['low']:,} to "
            f"{region['high']:,}."
        )
    _tell_drift(found["drift"], speaker)
    for note in found["notes"]:
        speaker.tell(f"Note: {note}")


def _family(family: dict[str, Any]) -> Any:
    n = family["compared"]
    expected = "expected" if n == 1 else f"expected, allowing for {n:,} groups"
    shown = table(family["title"], "rows", "inside", "share", expected, "", right=(1, 2, 3, 4))
    for stratum in family["strata"]:
        if stratum["n"]:
            words = {"low": "low", "high": "high", None: ""}[stratum["flag"]]
            band = f"{stratum['low']:,} to {stratum['high']:,}"
            share = f"{stratum['share']:.1%}"
            shown.add_row(stratum["label"], f"{stratum['n']:,}", f"{stratum['covered']:,}", share, band, words)
    return shown


def _tell_drift(drift: dict[str, Any], speaker: Speaker) -> None:
    from guardband.words import chance

    columns = drift["columns"]
    if columns is None:
        speaker.tell("Drift of the inputs cannot be told: the model keeps no summary of the rows that trained it.")
        return
    moved = [shift for shift in columns if shift["drifted"]]
    if not moved:
        speaker.tell(f"Drift: none of {len(columns)} columns looks different from the rows that trained.")
    else:
        shown = table(f"drifted, {len(moved)} of {len(columns)} columns", "gap", "test", "", right=(1, 2))
        for shift in moved[:MOST_COLUMNS]:
            shown.add_row(shift["name"], f"{shift['gap']:.2f}", chance(shift["p_value"]), shift["detail"])
        speaker.tell(shown)
    for what in ("response", "scores"):
        shift = drift[what]
        if shift is not None and shift["drifted"]:
            speaker.tell(f"The {what} drifted: {shift['detail']} ({chance(shift['p_value'])}).")
