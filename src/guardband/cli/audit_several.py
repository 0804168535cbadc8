"""``guardband audit`` of a model with several targets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from guardband.cli.audit_words import IN_ORDER, family_table
from guardband.cli.console import Speaker, complain
from guardband.cli.exit_codes import CANNOT_JUDGE, REFUSED, exit_code
from guardband.cli.several_words import tell_several

if TYPE_CHECKING:
    from guardband.audit.several import SeveralAudit
    from guardband.cli.labelled import Labelled
    from guardband.cli.model_columns import Model
    from guardband.report.heading import Heading

INFORM = "Nothing is promised of groups. They are shown for information."
NOT_ON_PAGE = "The page of several targets shows no groups. Read them above, or in the JSON of --json."


def audit_several_targets(
    model_path: Path,
    model: Model,
    rows: Labelled,
    significance: float,
    force: bool,
    recalibrate: Path | None,
    report: Path | None,
    heading: Heading,
    speaker: Speaker,
    asked_for: Sequence[str] | None,
) -> NoReturn:
    """Judge the promise, say what was found, write what was asked for, and end with the exit code.

    ``asked_for`` are the groupings that the user named; None means all of them.
    """
    from guardband.audit.several import audit_several
    from guardband.audit.verdict import used_before
    from guardband.cli.recalibrated import recalibrated
    from guardband.doors.model_file import save
    from guardband.report.document import document
    from guardband.report.heading import units_of
    from guardband.report.page import write_report

    units_of(heading.unit, len(rows.targets))
    with speaker.doing(f"Checking the promise on {rows.n:,} rows"):
        evidence: Any = rows.evidence(model)
        used = used_before(evidence)
        if used is not None and not force:
            speaker.tell_json({"verdict": used.kind, "sentence": used.sentence})
            raise ValueError(f"{used.sentence} Add --force to see the numbers anyway.")
        found = audit_several(evidence, significance)
    with speaker.doing("Writing"):
        if report is not None:
            write_report(document(model, evidence, significance, heading), report)
        if recalibrate is not None:
            model, anew = recalibrated(model, rows, model_path)
            save(model, recalibrate, report=anew)
    tell_several(found, speaker)
    _tell_groups(found, asked_for, speaker)
    if report is not None:
        speaker.tell(f"\nPage:  {report}")
        if asked_for:
            speaker.note(NOT_ON_PAGE)
    if recalibrate is not None:
        words = str(model.calibration_.certificate).splitlines()[0]
        speaker.tell(f"\nModel: {recalibrate}, recalibrated on these {rows.n:,} rows.\n{words}")
    speaker.tell_json(
        found.to_dict()
        | {"report": None if report is None else str(report)}
        | {"recalibrated": None if recalibrate is None else str(recalibrate)}
    )
    code = exit_code(found.verdict)
    if code == REFUSED:
        complain(found.sentence if speaker.quiet or speaker.as_json else CANNOT_JUDGE)
    raise typer.Exit(code)


def _tell_groups(found: SeveralAudit, asked_for: Sequence[str] | None, speaker: Speaker) -> None:
    """Show the coverage of each target in groups."""
    for name, own in zip(found.names, found.targets, strict=True):
        families = own.to_dict()["families"]
        for family in sorted(families, key=lambda family: [*IN_ORDER, family["key"]].index(family["key"])):
            if asked_for is None or family["key"] in asked_for:
                speaker.tell(f"Target {name!r}:")
                speaker.tell(family_table(family))
    if asked_for is None or asked_for:
        speaker.tell(INFORM)
