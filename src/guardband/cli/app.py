"""The application: its commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from guardband import __version__
from guardband.cli.audit import audit
from guardband.cli.calibrate import calibrate
from guardband.cli.demo import demo
from guardband.cli.explain import explain
from guardband.cli.export import export
from guardband.cli.fit import fit
from guardband.cli.help import Command, Commands
from guardband.cli.keys import keys
from guardband.cli.monitor import monitor
from guardband.cli.plan import plan
from guardband.cli.predict import predict
from guardband.cli.report import report
from guardband.cli.reproduce import reproduce
from guardband.cli.sign import sign
from guardband.cli.verify import verify

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    *(demo, fit, calibrate, predict, audit, monitor, explain, plan, report, export),
    *(keys, sign, verify, reproduce),
):
    app.command(cls=Command)(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"guardband {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            callback=_show_version,
            is_eager=True,
            rich_help_panel="Options",
        ),
    ] = False,
) -> None:
    """Prediction intervals for neural networks, with a guarantee you can check.

    Train a model on a table. This writes sales.guardband and the page sales.html:

    `guardband fit sales.csv --target price`

    Add a prediction, a lower and an upper bound to each row of another table:

    `guardband predict sales.guardband new.csv -o out.csv`

    Check the promise when you know the true values:

    `guardband audit sales.guardband later.csv`

    If you have no data at hand, try `guardband demo`. Each command explains its options: `guardband fit --help`.
    """


@cache
def commands() -> Callable[..., Any]:
    """Return the application with the options of its commands, which Typer reads from their signatures."""
    return get_command(app)
