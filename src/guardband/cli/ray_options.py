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
        help="Work on Ray: local starts it on this machine with all cores, and an address joins one that runs. Tables "
        'may then be in object storage, such as s3://bucket/in/*.parquet. Needs pip install "guardband[ray]".',
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
        help="With --ray: how many calibration scores the file keeps. With more rows, it keeps the thresholds of its "
        "own levels only.",
        show_default="1,048,576",
        rich_help_panel=OUTPUT,
    ),
]
MemoryLimit = Annotated[
    float | None,
    typer.Option(
        "--memory-limit",
        metavar="GIB",
        min=0,
        help="With --ray: how many GiB of rows one process may hold. If they need more, all workers train together.",
        show_default="half of the memory of the machine that has least",
        rich_help_panel=TRAINING,
    ),
]
Checkpoints = Annotated[
    str | None,
    typer.Option(
        "--checkpoints",
        metavar="FOLDER",
        help="With --ray: a folder that all machines see, not in object storage. If you give a stopped command again, "
        "training goes on.",
        rich_help_panel=TRAINING,
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
