"""``gb.ray.train``: many networks of the user's own, spread over workers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from guardband.data.storage import is_address
from guardband.doors.train import fingerprint
from guardband.doors.train import train as train_here
from guardband.nn.mixed import LossFunction
from guardband.ray.cluster import connect
from guardband.ray.copies import Spread
from guardband.training.job import Job, Trained

REFUSED: Mapping[str, str] = {
    "after_epoch": "The networks are on workers until they are trained.",
    "verbose": "Workers show no progress.",
    "trainer": "Ray's workers train.",
}
"""Arguments of ``gb.train`` that training on Ray has no way to use, and why."""


def train(
    networks: Sequence[nn.Module],
    data: tuple[Any, ...],
    loss: LossFunction | Sequence[LossFunction],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Sequence[nn.Module]:
    """Train many networks in place, spread over the workers of Ray, and return them in eval mode.

    The result is that of ``gb.train`` on one machine, but for rounding. If a worker is killed, its networks train
    again, or go on from their checkpoint.

    Parameters
    ----------
    networks : sequence of torch.nn.Module
        The networks. Those of one architecture are divided among workers.
    data : tuple of tensors
        Tensors ``(x, y)`` or ``(x, y, weight)``, as ``gb.train`` takes them. Each machine gets a copy.
    loss : function or sequence of functions
        The loss, or one for each network.
    checkpoint : path, default None
        A folder that all machines see. After an interruption, the same call on networks built anew continues from
        there, if there are as many workers.
    **options : keywords
        The other arguments of ``gb.train``, such as ``rows``, ``seed`` and ``epochs``.

    Returns
    -------
    sequence of torch.nn.Module
        What was given, trained.
    """
    for name in (name for name in REFUSED if name in options):
        raise ValueError(f"{name} cannot be used on Ray. {REFUSED[name]} Remove it, or use gb.train.")
    if not isinstance(data, tuple):
        raise ValueError(f"On Ray, data must be tensors (x, y), found {type(data).__name__}. Pass tensors.")
    folder = None if checkpoint is None else os.fspath(checkpoint)
    if folder is not None and is_address(folder):
        raise ValueError("Checkpoints cannot be in object storage. Name a folder that all machines see.")
    connect()

    def on_workers(job: Job) -> Trained:
        return Spread(folder, "" if folder is None else fingerprint(job))(job)

    return train_here(networks, data, loss, trainer=on_workers, verbose=False, **options)
