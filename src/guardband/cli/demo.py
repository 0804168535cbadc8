"""``guardband demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.console import Speaker, table
from guardband.cli.help import DATA, OUTPUT, TRAINING
from guardband.cli.options import LARGEST_SEED, Quiet
from guardband.cli.paths import make_folder
from guardband.progress import told_of_steps
from guardband.words import percent


def demo(
    rows: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=100,
            max=10_000_000,
            help="Number of training and calibration rows to draw.",
            rich_help_panel=DATA,
        ),
    ] = 20_000,
    seed: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=0,
            max=LARGEST_SEED,
            help="Seed for the data and the training. The same seed gives the same result.",
            rich_help_panel=TRAINING,
        ),
    ] = 0,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Folder for the figure and the page.", rich_help_panel=OUTPUT
        ),
    ] = Path("demo-output"),
    quiet: Quiet = False,
) -> None:
    """Try guardband on artificial data, for which the best intervals are known.

    guardband draws the data, trains on three quarters of the rows and calibrates on the others. It compares the methods
    conf-nn and pav with the best possible intervals on 20,000 test rows. It prints what each method promises. It writes
    a figure and a report page.

    Example:

    `guardband demo -o demo-output`
    """
    speaker = Speaker(quiet)
    from guardband.data.packages import need_packages
    from guardband.experiments.figures import draw_demo

    need_packages("plots", "matplotlib")
    make_folder(output)
    with speaker.loading("Loading PyTorch"):
        from guardband.audit.evidence import Evidence
        from guardband.experiments.demo import run_demo
        from guardband.report.document import document
        from guardband.report.page import write_report

    with speaker.doing(f"Training on {rows:,} rows"), told_of_steps(speaker.step):
        found = run_demo(rows, seed=seed, verbose=False if quiet else None)
    speaker.tell(
        f"Artificial data: {found.n_train:,} training rows, {found.n_calibration:,} calibration rows and "
        f"{len(found.y):,} test rows.\n"
    )
    columns = ("method", "coverage", "width / best possible", "mean absolute error", "seconds")
    shown = table(*columns, title="90% intervals", right=range(1, len(columns)))
    for row in found.rows:
        numbers = (percent(row.coverage), f"{row.relative_length:.3f}", f"{row.mae:.3f}", f"{row.seconds:.1f}")
        shown.add_row("best possible" if row.method == "oracle" else row.method, *numbers)
    speaker.tell(shown)
    for row in found.rows[1:]:
        speaker.tell(f"{row.method}\n{row.bands.certificate}\n")
    with speaker.doing("Writing the figure and the page"):
        figure = draw_demo(found, output / "demo.png")
        page = write_report(document(found.model, Evidence.of(found.model, found.X, found.y)), output / "demo.html")
    speaker.tell(f"Figure: {figure}")
    speaker.tell(f"Page:   {page}")
