"""What the page of a saved model shows: the check that its file keeps, its promise alone, or the audit of a table."""

from __future__ import annotations

from typing import Any, cast

from guardband.audit.guarded import Guarded
from guardband.bands.certificate import Certificate
from guardband.cli.console import Speaker
from guardband.doors.read_once import AnyPath


def kept_page(source: AnyPath) -> dict[str, Any]:
    """Return the document that a file keeps, or one of the promise alone; the promise is always the model's own."""
    from guardband.doors.kept_report import read_certificate, read_report
    from guardband.exceptions import ModelFileError
    from guardband.report.document import document, promised
    from guardband.report.schema import checked

    stored, certificate = read_report(source), read_certificate(source)
    if stored is None:
        return document(_guarded(source, certificate), None)
    # The page promises what the model does, whatever its stored report says.
    own = {} if certificate is None else promised(certificate)
    try:
        return dict(checked({**checked(stored), **own}))
    except ModelFileError as error:
        raise ModelFileError(f"{source}: {error}") from None


def judged_page(
    source: AnyPath,
    tables: list[str],
    sheet: str | None,
    speaker: Speaker,
    *,
    target: str | None,
    report_by: str | None,
    time: str | None,
    split_by: list[str],
) -> dict[str, Any]:
    """Return the document of a model that the rows of tables judge."""
    from guardband.cli.judged_rows import read_judged
    from guardband.data.several import open_tables, paths_in
    from guardband.report.document import document

    disk = open_tables(paths_in(tables), sheet)
    model, rows = read_judged(source, disk, target, report_by, time, split_by, "auto", speaker)
    if rows.others and (option := "--report-by" if report_by else "--time" if time else ""):
        raise ValueError(
            f"The page of several targets shows no groups. Remove {option}, or use guardband audit {option}, which "
            "shows them in the terminal."
        )
    return document(model, rows.evidence(model))


def _guarded(source: AnyPath, certificate: Certificate | None) -> Guarded:
    """Return the model of a file, or as much of it as a page of its promise needs."""
    from guardband.cli.model_columns import PYTHON_ONLY
    from guardband.doors.described import described_model
    from guardband.doors.file_format import read
    from guardband.doors.model_file import load

    kind = read(source)[0]["kind"]
    if certificate is not None and kind in PYTHON_ONLY:
        return described_model(certificate)
    if kind == "online":
        raise ValueError(PYTHON_ONLY[kind].format(path=source))
    return cast(Guarded, load(source))
