"""``guardband reproduce``."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.console import Speaker
from guardband.cli.options import LARGEST_SEED


class Experiment(StrEnum):
    """What can be reproduced."""

    simulation = "simulation"
    supplement = "supplement"
    bike = "bike"
    traffic = "traffic"
    house = "house"
    boneage = "boneage"
    all = "all"


def reproduce(
    experiment: Annotated[Experiment, typer.Argument(help="Which of the paper's experiments, or all of them.")],
    quick: Annotated[bool, typer.Option("--quick", help="A small version, in minutes; every figure says so.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of data, splits and training.")] = 0,
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
    from guardband.experiments.reproduce.cells import EXPERIMENTS, cells_of
    from guardband.experiments.reproduce.folder import Folder
    from guardband.experiments.reproduce.report import report
    from guardband.experiments.reproduce.run import machine, need_data, run

    need_packages("experiments", "matplotlib", "pandas", "pyarrow")
    speaker = Speaker()
    about = machine(device)
    cells = []
    for name in EXPERIMENTS if experiment is Experiment.all else (experiment.value,):
        own = cells_of([name], quick, repetitions)
        try:
            need_data(own, data_dir)
        except (FileNotFoundError, ModuleNotFoundError) as error:
            if experiment is not Experiment.all:
                raise
            speaker.tell(f"Left out: {name}. {error}")
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
        speaker.tell(f"Stopped. The same command goes on from the last finished cell in {output}.")
        raise typer.Exit(130) from None
    page, claims = report(folder)
    for claim in claims:
        if claim.verdict != "not run":
            speaker.tell(f"{claim.verdict}: {claim.text}")
    speaker.tell(f"\nPage: {page}")
