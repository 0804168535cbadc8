"""The training loop: the only one."""

from __future__ import annotations

from collections.abc import Callable

from guardband.training.fleet import Fleet

EpochEnd = Callable[[int], bool]


def train_loop(fleet: Fleet, *, first: int, epochs: int, after_epoch: EpochEnd) -> None:
    """Train a fleet from the epoch ``first`` on, until ``after_epoch`` says stop, or epochs or time are over."""
    with fleet.at_work():
        for epoch in range(first, epochs + 1):
            fleet.epoch(epoch)
            if after_epoch(epoch) or fleet.is_over:
                break
