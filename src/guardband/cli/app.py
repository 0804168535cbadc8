"""The application: its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from guardband import __version__
from guardband.cli.audit import audit
from guardband.cli.demo import demo
from guardband.cli.export import export
from guardband.cli.fit import fit
from guardband.cli.plan import plan
from guardband.cli.predict import predict
from guardband.cli.report import report
from guardband.cli.reproduce import reproduce

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, fit, predict, audit, plan, report, export, reproduce):
    app.command()(command)


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
    """Prediction intervals for neural networks, with a guarantee you can check.

    Learn from a table, which writes sales.guardband and the page sales.html:

    `guardband fit sales.csv --target price`

    Add a point, a lower and an upper bound to every row of another:

    `guardband predict sales.guardband new.csv -o out.csv`

    Once you know the true values, check the promise:

    `guardband audit sales.guardband later.csv`

    No data at hand: `guardband demo`. Every command explains itself: `guardband fit --help`.
    """
