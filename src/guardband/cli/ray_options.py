"""Options of commands that can work on Ray."""

from __future__ import annotations

from typing import Annotated

import typer

from guardband.cli.help import DATA, OUTPUT, TRAINING

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

KeepScores = Annotated[
    int | None,
    typer.Option(
        "--keep-scores",
        metavar="N",
        min=1,
        help="With --ray: with more calibration rows than this, the file keeps the thresholds of its levels only, and "
        "cannot be asked for other levels.",
        show_default="1,048,576",
        rich_help_panel=OUTPUT,
    ),
]


def need_ray(address: str | None, skip_corrupt: bool, keep_scores: int | None = None) -> None:
    """Raise if an option is given that only Ray has."""
    if keep_scores is not None and address is None:
        raise ValueError("--keep-scores works with --ray only. Add --ray local, or remove --keep-scores.")
    if skip_corrupt and address is None:
        raise ValueError("--skip-corrupt works with --ray only. Add --ray local, or remove --skip-corrupt.")
    if address is not None and not address.strip():
        raise ValueError("--ray needs local or the address of a Ray that runs. Write --ray local.")
