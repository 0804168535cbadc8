"""``guardband reproduce``."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.console import Speaker
from guardband.cli.help import DATA, OUTPUT, TRAINING
from guardband.cli.options import LARGEST_SEED, Device
from guardband.cli.ray_options import OnRay, need_ray
from guardband.cli.status import STATUS


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
    experiment: Annotated[
        Experiment,
        typer.Argument(metavar="NAME", help=f"Experiment to run: {', '.join(Experiment)}.", rich_help_panel=DATA),
    ],
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder with the real data sets.",
            show_default="$GUARDBAND_DATA, or a download",
            rich_help_panel=DATA,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Run a small version that takes minutes. Every figure says so.", rich_help_panel=TRAINING
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=0,
            max=LARGEST_SEED,
            help="Seed for data, splits and training.",
            rich_help_panel=TRAINING,
        ),
    ] = 0,
    repetitions: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="How often to repeat each experiment.",
            show_default="10 or 20, as in the paper",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    device: Device = "auto",
    jobs: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", min=1, help="How many processes to run at the same time.", rich_help_panel=TRAINING
        ),
    ] = 1,
    ray: OnRay = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the results.", rich_help_panel=OUTPUT),
    ] = Path("reproduction"),
) -> None:
    """Run the experiments of the paper, and compare the results with its numbers.

    The paper is Kivaranovic, Johnson & Leeb (2020). guardband writes tables as CSV and Parquet, figures as SVG and PNG,
    and one page, index.html. If you stop a run, give the same command again to continue it.

    Example:

    `guardband reproduce simulation --quick -o reproduction`
    """
    speaker = Speaker()
    need_ray(ray, skip_corrupt=False)
    if ray is not None and jobs > 1:
        raise ValueError("--ray and --jobs exclude each other. Remove --jobs.")
    speaker.step("Loading PyTorch")
    from guardband.data.packages import need_packages
    from guardband.experiments.reproduce.cells import EXPERIMENTS, cells_of
    from guardband.experiments.reproduce.folder import Folder
    from guardband.experiments.reproduce.report import report
    from guardband.experiments.reproduce.run import machine, need_data, run

    need_packages("experiments", "matplotlib", "pandas", "pyarrow")
    about = machine(device)
    STATUS.erase()
    cells = []
    for name in EXPERIMENTS if experiment is Experiment.all else (experiment.value,):
        own = cells_of([name], quick, repetitions)
        try:
            need_data(own, data_dir)
        except (FileNotFoundError, ModuleNotFoundError) as error:
            if experiment is not Experiment.all:
                raise
            speaker.tell(f"Skipped {name}: {error}")
        else:
            cells += own
    folder = Folder(output)
    with folder.alone():
        folder.open(
            {"seed": seed, "quick": quick, "repetitions": repetitions or "the paper's"},
            {"command": "guardband " + shlex.join(sys.argv[1:]), **about},
        )
        try:
            run(cells, folder, seed=seed, device=device, data_dir=data_dir, jobs=jobs, cluster=ray)
        except KeyboardInterrupt:
            speaker.tell(f"Stopped. To continue, give the same command again. Finished results are in {output}.")
            raise typer.Exit(130) from None
        page, claims = report(folder)
    for claim in claims:
        if claim.verdict != "not run":
            speaker.tell(f"{claim.verdict}: {claim.text}")
    speaker.tell(f"\nPage: {page}")
