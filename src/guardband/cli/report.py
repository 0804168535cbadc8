"""``guardband report``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.console import Speaker
from guardband.cli.options import Json, Quiet
from guardband.cli.paths import make_folder, need_writable


def report(
    source: Annotated[
        Path, typer.Argument(metavar="RUN|MODEL", help="What fit wrote, or the folder of a reproduction.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PAGE", help="The page; else the model's name with .html, or the run's."
        ),
    ] = None,
    figures: Annotated[Path | None, typer.Option(help="A folder for the figures as SVG and PNG.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draw the page of a model or of a reproduction again.

    A model keeps what its page shows: the check on rows that were set aside when it was fitted. For other rows see
    guardband audit --report.

    Example: `guardband report sales.guardband -o sales.html --figures figures`
    """
    speaker = Speaker(quiet, as_json)
    page, drawn = (_of_run if source.is_dir() else _of_model)(source, output, figures)
    speaker.tell(f"Page: {page}")
    if figures is not None:
        speaker.tell(f"Figures: {len(drawn)} files in {figures}")
    speaker.tell_json({"page": str(page), "figures": [str(path) for path in drawn]})


def _of_model(source: Path, output: Path | None, figures: Path | None) -> tuple[Path, list[Path]]:
    from guardband.doors.model_file import read_certificate, read_report
    from guardband.exceptions import ModelFileError
    from guardband.report.document import promised
    from guardband.report.page import write_report
    from guardband.report.schema import checked

    stored = read_report(source)
    if stored is None:
        raise ValueError(
            f"{source} keeps no report, since it was not written by `guardband fit`: judge it on labelled rows by "
            "`guardband audit MODEL TABLE --report PAGE`."
        )
    certificate = read_certificate(source)
    # The page promises what the model does, whatever its stored report says.
    own = {} if certificate is None else promised(certificate)
    try:
        document = checked({**checked(stored), **own})
    except ModelFileError as error:
        raise ModelFileError(f"{source}: {error}") from None
    page, drawn = output or source.with_suffix(".html"), []
    if output is None:
        _need_no_link(page, "name the page by -o")
    need_writable((page,), (source,))
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
        raise ValueError(f"{source} is no folder of `guardband reproduce`: it has no run.json.")
    need_writable((output,), (source / "run.json",))
    for path in sorted(source.rglob("*")):
        _need_no_link(path, "replace it by what it leads to")
    if figures is not None:
        make_folder(figures)
    Folder(source).about()
    try:
        page, _ = draw(Folder(source))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:  # tables that no run has written
        raise ValueError(
            f"{source} holds tables that are damaged ({error!r:.200}). Run `guardband reproduce` again in a new folder."
        ) from None
    if output is not None:
        write_whole(output, lambda part: shutil.copyfile(page, part))
    drawn = []
    if figures is not None:
        drawn = [figures / path.name for path in sorted((source / "figures").iterdir())]
        for path in drawn:
            shutil.copyfile(source / "figures" / path.name, path)
    return output or page, drawn


def _need_no_link(path: Path, otherwise: str) -> None:
    """Raise if a file that nobody named is a link: a folder may come from a stranger, and lead to any file of ours."""
    if path.is_symlink():
        raise ValueError(f"{path} is a link, and the file that it leads to could be lost: {otherwise}.")
