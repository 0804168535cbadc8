"""Cells: all parts of an experiment, in the paper's size or a quick one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from guardband.experiments.reproduce import boneage
from guardband.experiments.reproduce.datasets import load
from guardband.experiments.reproduce.problem import N_TEST, Problem, generator, partitioned, simulated
from guardband.experiments.reproduce.setting import CONF_NN, CQR, PAV, PAV_FIXED, QREG_UN, TRIPLES, Setting

EXPERIMENTS = ("simulation", "supplement", "bike", "traffic", "house", "boneage")
REAL = ("bike", "traffic", "house", "boneage")
TOGETHER = 10
"""Repetitions of a cell: as many as train together, and as many as a stopped run loses."""

OURS = (CONF_NN, PAV, PAV_FIXED, QREG_UN)
DECAYS = (0.0, 3e-4, 1e-3, 3e-3)
SIZES = tuple(round(n) for n in np.linspace(5_000, 100_000, 10))


@dataclass(frozen=True)
class Cell:
    """Some repetitions of an experiment in one setting: what is trained together, written whole, then marked done.

    ``n`` is the number of rows: of artificial data to draw, of a table to take at random, None for all.
    """

    experiment: str
    setting: Setting
    repetitions: tuple[int, ...]
    n: int | None = None
    n_test: int = N_TEST

    @property
    def name(self) -> str:
        """What it is called, also as a folder."""
        return "-".join([self.experiment, *re.findall(r"[\w.]+", self.setting.name), str(self.repetitions[0])])

    @property
    def cost(self) -> float:
        """A rough share of the time of all cells."""
        heads = {"conf-nn": 0.1}.get(self.setting.contestants[0].method, 1.0)
        networks = len(self.setting.decays) * self.setting.copies * heads
        return len(self.repetitions) * (self.n or 20_000) * networks * len(self.setting.hidden)

    def problems(self, seed: int, data_dir: Path | None, device: torch.device) -> list[Problem]:
        """Return the rows of each repetition, which depend on the seed, the experiment and the repetition alone."""
        if self.experiment in REAL:
            random = generator(seed, self.experiment, "rows")
            if self.experiment == "boneage":
                table, y = boneage.load(self.setting.encoding, data_dir, device, self.n, random)
            else:
                table, y = load(self.experiment, self.setting.encoding, data_dir)
                some = random.permutation(len(y))[: self.n]
                table, y = (table, y) if self.n is None else (table.take(some), y[some])
            return [partitioned(table, y, self.experiment, r, seed) for r in self.repetitions]
        assert self.n is not None
        return [simulated(self.n, r, seed, self.n_test) for r in self.repetitions]


def cells_of(experiments: Sequence[str], quick: bool = False, repetitions: int | None = None) -> list[Cell]:
    """Return the cells of some experiments; ``repetitions`` sets their number in place of the paper's."""
    cells: list[Cell] = []
    for experiment in experiments:
        if experiment == "simulation":
            cells += _simulation(quick)
        elif experiment == "supplement":
            cells += _supplement(quick)
        elif experiment == "boneage":
            cells += _boneage(quick)
        else:
            cells += _table(experiment, quick)
    if repetitions is not None:
        cells = [replace(cell, repetitions=tuple(range(repetitions))) for cell in cells]
    return [part for cell in cells for part in _parts(cell)]


def _parts(cell: Cell) -> list[Cell]:
    every = cell.repetitions
    return [replace(cell, repetitions=every[i : i + TOGETHER]) for i in range(0, len(every), TOGETHER)]


def _simulation(quick: bool) -> list[Cell]:
    """Figure 1, with the choices that the paper leaves open made in several ways."""
    n, repetitions, n_test = (8_000, 3, 5_000) if quick else (100_000, 10, N_TEST)
    base = Setting("tuned", decays=DECAYS, batch_size=256 if quick else 1024, max_epochs=40 if quick else 100)
    relu = replace(base, contestants=TRIPLES, ordering="relu", decays=(0.0,))
    settings = [
        replace(base, decays=(0.0, 3e-3) if quick else DECAYS),
        replace(base, name="plain", decays=(0.0,)),
        replace(relu, name="relu"),
        replace(relu, name="relu raw response", standardise=False),
    ]
    if not quick:
        settings.append(
            replace(
                base,
                name="ours",
                contestants=OURS,
                schedule="cosine",
                patience=100,
                decays=(1e-3, 3e-3),
                copies=4,
            )
        )
    cells = [Cell("simulation", setting, tuple(range(repetitions)), n, n_test) for setting in settings]
    if not quick:
        for batch_size in (256, 1024, 4096):
            for decay in DECAYS:
                name = f"batch {batch_size} decay {decay:g}"
                setting = replace(base, name=name, batch_size=batch_size, decays=(decay,))
                cells.append(Cell("simulation", setting, tuple(range(3)), n, n_test))
    return cells


def _supplement(quick: bool) -> list[Cell]:
    """Figures S1 and S2: the size of the data. Figure S3: depth and loss. The ReLU ordering on few rows."""
    repetitions = tuple(range(2 if quick else 10))
    n_test = 5_000 if quick else N_TEST
    base = Setting("", decays=(0.0, 3e-3) if quick else DECAYS, batch_size=256 if quick else 1024)
    base = replace(base, max_epochs=30 if quick else 100, patience=10 if quick else 20)
    sizes = (2_000, 5_000, 10_000) if quick else SIZES
    cells = [Cell("supplement", replace(base, name=f"n={n}"), repetitions, n, n_test) for n in sizes]
    for depth in (1, 2):
        for power in (1, 2):
            name, hidden = f"dep{depth} loss_l{power}", (200,) * depth
            setting = replace(base, name=name, hidden=hidden, contestants=(CONF_NN,))
            setting = replace(setting, power=2 if power == 2 else 1)
            cells.append(Cell("supplement", setting, repetitions, 5_000 if quick else 50_000, n_test))
    relu = replace(base, name="relu 5000 rows", contestants=TRIPLES, ordering="relu", decays=(0.0,), batch_size=256)
    raw = replace(relu, name="relu raw response 5000 rows", standardise=False)
    return cells + [Cell("supplement", setting, repetitions, 5_000, n_test) for setting in (relu, raw)]


def _table(name: str, quick: bool) -> list[Cell]:
    """A row of Figure 2: the encoding that comes closest to the paper's, and the full one."""
    repetitions, n = (tuple(range(3)), 5_000) if quick else (tuple(range(20)), None)
    base = Setting("paper", (100,), batch_size=256, encoding="paper", max_epochs=30 if quick else 100)
    settings = [base, replace(base, name="full", encoding="full")]
    if not quick:
        relu = replace(base, contestants=TRIPLES, ordering="relu")
        settings += [
            replace(base, name="100 passes", epochs=100),
            replace(relu, name="relu"),
            replace(relu, name="relu raw response", standardise=False),
        ]
    return [Cell(name, setting, repetitions, n) for setting in settings]


def _boneage(quick: bool) -> list[Cell]:
    """The image row of Figure 2: one hidden layer of 300 on the features, and the same with the patient's sex."""
    repetitions, n = (tuple(range(3)), 2_000) if quick else (tuple(range(20)), None)
    base = Setting("paper", (300,), batch_size=256, encoding="paper", max_epochs=30 if quick else 100)
    settings = [base, replace(base, name="sex", encoding="sex")]
    if not quick:
        ours = replace(base, name="ours", contestants=OURS, schedule="cosine", max_epochs=40, patience=40, copies=2)
        ours = replace(ours, learning_rate=0.003, dropout=0.5, decays=(3e-3, 1e-2, 3e-2))
        tuned = replace(base, name="fine-tuned", encoding="rows", fine_tune=True, batch_size=64, epochs=15)
        settings += [ours, replace(tuned, contestants=(CONF_NN, QREG_UN, *CQR))]
    cells = [Cell("boneage", setting, repetitions, n) for setting in settings]
    return [replace(cell, repetitions=repetitions[:10]) if cell.setting.fine_tune else cell for cell in cells]
