"""The command line. Heavy packages load inside the commands, so that ``--help`` answers at once."""

from __future__ import annotations

import sys
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
    from guardband.experiments.figures import draw_demo, need_matplotlib

    need_matplotlib()
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
