"""``guardband demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.console import Speaker, table
from guardband.cli.options import LARGEST_SEED, Quiet
from guardband.cli.paths import make_folder


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for figure and page.")] = Path("demo-output"),
    rows: Annotated[int, typer.Option(min=100, max=10_000_000, help="Rows to fit and calibrate on.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the data and of the training.")] = 0,
    quiet: Quiet = False,
) -> None:
    """See it work: fit the paper's artificial data, for which the best intervals are known.

    Draws the data, trains on three quarters of the rows, calibrates on the rest, judges conf-nn and pav on 20,000 new
    rows beside the oracle, says in words what is promised, and writes a figure and a report page.

    Example: `guardband demo -o demo-output`
    """
    from guardband.data.packages import need_packages
    from guardband.experiments.figures import draw_demo

    need_packages("plots", "matplotlib")
    make_folder(output)
    from guardband.audit.evidence import Evidence
    from guardband.experiments.demo import run_demo
    from guardband.report.document import document
    from guardband.report.page import write_report

    speaker = Speaker(quiet)
    found = run_demo(rows, seed=seed, verbose=False if quiet else None)
    speaker.tell(
        f"The paper's artificial data: {found.n_train:,} rows trained, {found.n_calibration:,} calibrated, "
        f"{len(found.y):,} new rows judge.\n"
    )
    columns = ("method", "coverage", "length / oracle", "MAE", "seconds")
    shown = table(*columns, title="90% intervals", right=range(1, len(columns)))
    for row in found.rows:
        numbers = (f"{row.coverage:.4f}", f"{row.relative_length:.3f}", f"{row.mae:.3f}", f"{row.seconds:.1f}")
        shown.add_row(row.method, *numbers)
    speaker.tell(shown)
    for row in found.rows[1:]:
        speaker.tell(f"{row.method}\n{row.bands.certificate}\n")
    speaker.tell(f"Figure: {draw_demo(found, output / 'demo.png')}")
    evidence = Evidence.of(found.model, found.X, found.y)
    speaker.tell(f"Page: {write_report(document(found.model, evidence), output / 'demo.html')}")
