"""What a cell gives, on whichever machine it runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch

from guardband.experiments.reproduce.cells import Cell
from guardband.experiments.reproduce.contest import Outcome, Share, contest
from guardband.experiments.reproduce.finetune import fine_tune


def outcome(cell: Cell, seed: int, data_dir: Path | None, device: torch.device, done: Share) -> Outcome:
    """Return what a cell gives."""
    trainer = partial(fine_tune, data_dir) if cell.setting.fine_tune else None
    return contest(cell.problems(seed, data_dir, device), cell.setting, device, done, trainer)
