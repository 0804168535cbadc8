"""``guardband report``."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from guardband.cli.console import Speaker
from guardband.cli.help import DATA, OUTPUT
from guardband.cli.judging_options import BelongingTogether, ShownBy, ShownOverTime, TrueValues
from guardband.cli.options import TABLES, Author, Json, Quiet, SheetName, Title, Trusted, Unit
from guardband.cli.paths import files_of_model, make_folder, need_no_link, need_writable


def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL|RUN",
            help="Model or rule that fit, calibrate or Python wrote, or folder that reproduce wrote.",
            rich_help_panel=DATA,
        ),
    ],
    table_paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE...]", help=f"Rows with known true values. {TABLES}", rich_help_panel=DATA),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PAGE",
            help="Page to write.",
            show_default="beside the model, or index.html in the folder",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write the figures as SVG and PNG files.", rich_help_panel=OUTPUT),
    ] = None,
    target: TrueValues = None,
    report_by: ShownBy = None,
    time: ShownOverTime = None,
    split_by: BelongingTogether = None,
    trusted: Trusted = None,
    sheet: SheetName = None,
    title: Title = None,
    author: Author = None,
    unit: Unit = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the report page of a model, of a rule or of a reproduction.

    With a table, the page shows what its rows say about the promise. Without one, it shows the check on the test rows
    that guardband fit set aside. A rule, and a model saved in Python, keep no check. Their page shows only the promise.

    Examples:

    `guardband report sales.guardband -o sales.html --figures figures`

    `guardband report sales.guardband later.csv -o later.html`
    """
    speaker = Speaker(quiet, as_json)
    with speaker.doing(f"Loading {source}"):
        from guardband.cli.model_page import judged_page, kept_page
        from guardband.doors.signed_file import trusted_file
        from guardband.report.heading import units_of

    tables = table_paths or []
    roles: dict[str, Any] = {"target": target, "report_by": report_by, "time": time, "split_by": split_by or []}
    if not tables and (idle := [name for name, value in {**roles, "sheet": sheet}.items() if value]):
        option = idle[0].replace("_", "-")
        raise ValueError(f"--{option} is about a table, and there is none. Name a table, or remove the option.")
    heading = {name: text for name, text in {"title": title, "author": author, "unit": unit}.items() if text}
    if source.is_dir():
        if tables:
            raise ValueError(f"{source} is a folder of a reproduction, and needs no table. Remove {tables[0]}.")
        if trusted is not None:
            raise ValueError(f"--trusted is about a model, and {source} is a folder. Remove --trusted.")
        with speaker.doing(f"Loading {source}"):
            page, drawn = _of_run(source, output, figures)
    else:
        file = trusted_file(source, trusted)
        if tables:
            shown = judged_page(file, tables, sheet, speaker, **roles) | heading
        else:
            with speaker.loading(f"Loading {source}"):
                shown = kept_page(file) | heading
        if shown.get("several"):
            units_of(unit or "", len(shown["several"]))
        with speaker.doing("Writing"):
            page, drawn = _of_model(source, shown, output, figures, [*files_of_model(source, trusted), *tables])
        if tables:
            speaker.tell(shown["sentence"])
    speaker.tell(f"Page: {page}")
    if figures is not None:
        speaker.tell(f"Figures: {len(drawn)} files in {figures}")
    speaker.tell_json({"page": str(page), "figures": [str(path) for path in drawn]})


def _of_model(
    source: Path, document: dict[str, Any], output: Path | None, figures: Path | None, inputs: Sequence[str | Path]
) -> tuple[Path, list[Path]]:
    from guardband.report.page import write_report

    page, drawn = output or source.with_suffix(".html"), []
    if output is None:
        need_no_link(page, "Name the page with -o")
    need_writable((page,), inputs)
    if figures is not None:
        from guardband.report.figures import write_figures

        make_folder(figures)
        drawn = write_figures(document, figures)
    return write_report(document, page), drawn


def _of_run(source: Path, output: Path | None, figures: Path | None) -> tuple[Path, list[Path]]:
    from guardband.data.files import write_whole
    from guardband.data.packages import need_packages
    from guardband.experiments.reproduce.folder import Folder
    from guardband.experiments.reproduce.report import report as draw

    need_packages("experiments", "matplotlib", "pandas", "pyarrow")
    if not (source / "run.json").exists():
        raise ValueError(f"{source} has no run.json. Name a folder that `guardband reproduce` wrote, or a model file.")
    need_writable((output,), (source / "run.json",))
    for path in sorted(source.rglob("*")):
        need_no_link(path, "Replace it with the file itself")
    if figures is not None:
        make_folder(figures)
    Folder(source).about()
    try:
        page, _ = draw(Folder(source))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:  # tables that no run has written
        raise ValueError(
            f"{source} contains damaged tables ({error!r:.200}). Run `guardband reproduce` again in a new folder."
        ) from None
    if output is not None:
        write_whole(output, lambda part: shutil.copyfile(page, part))
    drawn = []
    if figures is not None:
        drawn = [figures / path.name for path in sorted((source / "figures").iterdir())]
        for path in drawn:
            shutil.copyfile(source / "figures" / path.name, path)
    return output or page, drawn
