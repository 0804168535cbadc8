"""The command line. Heavy packages load inside the commands, so that ``--help`` answers at once."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from guardband import __version__

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Prediction intervals for neural networks that they can be held to.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"guardband {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Prediction intervals for neural networks that they can be held to."""


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the figure.")] = Path("demo-output"),
    rows: Annotated[int, typer.Option(min=100, help="Rows to fit and calibrate on.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and of the training.")] = 0,
) -> None:
    """Fit conf-nn and pav to the paper's artificial data and compare them with the oracle.

    Draws the data, trains on three quarters of the rows, calibrates on the rest, judges on 20,000 new rows,
    says in words what is promised, and writes a figure.
    """
    from guardband.data.packages import need_packages
    from guardband.experiments.figures import draw_demo

    need_packages("plots", "matplotlib")
    output.mkdir(parents=True, exist_ok=True)
    from guardband.experiments.demo import run_demo

    console = Console()
    found = run_demo(rows, seed=seed)
    console.print(
        f"The paper's artificial data: {found.n_train:,} rows trained, {found.n_calibration:,} calibrated, "
        f"{len(found.y):,} new rows judge.\n",
        highlight=False,
    )
    table = Table("method", "coverage", "length / oracle", "MAE", "seconds", title="90% intervals")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in found.rows:
        numbers = (f"{row.coverage:.4f}", f"{row.relative_length:.3f}", f"{row.mae:.3f}", f"{row.seconds:.1f}")
        table.add_row(row.method, *numbers)
    console.print(table)
    for row in found.rows[1:]:
        console.print(f"\n[bold]{row.method}[/bold]")
        console.print(str(row.bands.certificate), highlight=False, markup=False)
    console.print(f"\nFigure: {draw_demo(found, output / 'demo.png')}", highlight=False)


class Experiment(StrEnum):
    """What can be reproduced."""

    simulation = "simulation"
    supplement = "supplement"
    bike = "bike"
    traffic = "traffic"
    house = "house"
    boneage = "boneage"
    all = "all"


@app.command()
def reproduce(
    experiment: Annotated[Experiment, typer.Argument(help="Which of the paper's experiments, or all of them.")],
    quick: Annotated[bool, typer.Option("--quick", help="A small version, in minutes; every figure says so.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of data, splits and training.")] = 0,
    repetitions: Annotated[int | None, typer.Option(min=1, help="Repetitions, in place of 10 or 20.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, or any name that torch knows.")] = "auto",
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of the real data; else $GUARDBAND_DATA, else they are downloaded.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Cells to run at a time, each in a process of its own.")] = 1,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the run.")] = Path("reproduction"),
) -> None:
    """Run the paper's experiments, draw its figures and set our numbers beside the printed ones.

    A run that was stopped goes on where it stopped: give the same command again. Results are written as CSV and
    Parquet, figures as SVG and PNG, and all of it on one page, index.html.
    """
    from guardband.data.packages import need_packages
    from guardband.experiments.reproduce.folder import Folder
    from guardband.experiments.reproduce.plan import EXPERIMENTS, plan
    from guardband.experiments.reproduce.report import report
    from guardband.experiments.reproduce.run import machine, need_data, run

    need_packages("experiments", "matplotlib", "pandas", "pyarrow")
    console = Console()
    about = machine(device)
    cells = []
    for name in EXPERIMENTS if experiment is Experiment.all else (experiment.value,):
        own = plan([name], quick, repetitions)
        try:
            need_data(own, data_dir)
        except (FileNotFoundError, ModuleNotFoundError) as error:
            if experiment is not Experiment.all:
                raise
            console.print(f"Left out: {name}. {error}", highlight=False, markup=False)
        else:
            cells += own
    folder = Folder(output)
    folder.open(
        {"seed": seed, "quick": quick, "repetitions": repetitions or "the paper's"},
        {"command": "guardband " + shlex.join(sys.argv[1:]), **about},
    )
    try:
        run(cells, folder, seed=seed, device=device, data_dir=data_dir, jobs=jobs)
    except KeyboardInterrupt:
        console.print(f"Stopped. The same command goes on from the last finished cell in {output}.", highlight=False)
        raise typer.Exit(130) from None
    page, claims = report(folder)
    for claim in claims:
        if claim.verdict != "not run":
            console.print(f"[bold]{claim.verdict}[/bold]: {claim.text}", highlight=False)
    console.print(f"\nPage: {page}", highlight=False)


def main() -> None:
    """Run the command line: exit code 2, with one line on standard error, for bad input."""
    try:
        sys.exit(app(standalone_mode=False))
    except typer.Abort:
        sys.exit(130)
    except Exception as error:
        usage = getattr(error, "format_message", None)  # the command line's own errors
        if usage is None and not isinstance(error, ValueError | TypeError | OSError | ModuleNotFoundError):
            raise
        typer.echo(f"guardband: {usage() if usage else error}", err=True)
        sys.exit(2)
