"""Options of commands that can work on Ray."""

from __future__ import annotations

from typing import Annotated

import typer

from guardband.cli.help import DATA, TRAINING

OnRay = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="local|ADDRESS",
        help="Work on Ray: local starts it on this machine with all cores, and an address joins one that runs. Needs "
        'pip install "guardband[ray]".',
        show_default="without Ray",
        rich_help_panel=TRAINING,
    ),
]
SkipCorrupt = Annotated[
    bool,
    typer.Option(
        "--skip-corrupt",
        help="With --ray: go on without files that cannot be read, and count them. Otherwise the first one ends the "
        "command.",
        rich_help_panel=DATA,
    ),
]


def need_ray(address: str | None, skip_corrupt: bool) -> None:
    """Raise if an option is given that only Ray has."""
    if skip_corrupt and address is None:
        raise ValueError("--skip-corrupt works with --ray only. Add --ray local, or remove --skip-corrupt.")
    if address is not None and not address.strip():
        raise ValueError("--ray needs local or the address of a Ray that runs. Write --ray local.")
