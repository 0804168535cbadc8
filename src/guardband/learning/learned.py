"""What the training rows taught: how to encode rows, the scale of the target, and trained networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guardband.bands.predicted import Predicted, PredictedInterval
from guardband.bands.predicted_several import PredictedSeveral
from guardband.data.encoder import Encoder, Reader
from guardband.data.several_targets import SeveralTargets
from guardband.data.table import Table
from guardband.data.target import Target
from guardband.learning.architecture import Architecture
from guardband.nn.each_target import EachTarget
from guardband.nn.heads import Head
from guardband.nn.reading import EachColumn, QuantileColumns, Reading
from guardband.training.members import Members, State
from guardband.training.predict import predict_parts
from guardband.training.stack import Stack


@dataclass(frozen=True)
class Learned:
    """Trained networks, ``copies`` of one for each of ``heads``: all heads of the first copy, of the second, ...

    ``epochs`` are those that each network kept, ``losses`` their losses on held-out training rows, for networks that
    looked for the best epoch, and ``dead`` says which had a side of no width when they were first trained.
    ``left_out`` is the copy that did not see each training row, -1 where all did, for copies trained on folds.
    ``choices`` says in words what was chosen on the training rows.
    """

    encoder: Encoder
    target: Target
    architecture: Architecture
    heads: tuple[Head, ...]
    copies: int
    members: Members
    epochs: tuple[int, ...]
    in_features: int
    device: torch.device
    losses: tuple[float, ...] = ()
    dead: tuple[bool, ...] = ()
    left_out: NDArray[np.intp] | None = None
    choices: str = ""

    @property
    def each(self) -> tuple[Learned, ...]:
        """What was learnt from each set of training rows: there is one."""
        return (self,)

    def predict(self, table: Table, each_copy: bool = False) -> Predicted:
        """Return what the networks predict, in work units; the average of copies unless each is asked for."""
        return self._joined(self.encoder.reader(table), table.n_rows, each_copy)

    def predict_encoded(self, x: NDArray[np.float32], each_copy: bool = False) -> Predicted:
        """Return the same for rows that are encoded already."""
        return self._joined(x.__getitem__, len(x), each_copy)

    def predict_left_out(self, x: NDArray[np.float32]) -> tuple[Predicted, NDArray[np.intp]]:
        """Return what the copy that did not see it predicts for each encoded training row, and for which rows."""
        return self._left_out(x, self.heads)

    def columns(self, table: Table) -> NDArray[np.float64]:
        """Return all that a network predicts of rows, the average of copies, as the placement takes it, ``(n, J)``."""
        return self._columns(self.encoder.reader(table), table.n_rows)

    def columns_encoded(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the same for rows that are encoded already."""
        return self._columns(x.__getitem__, len(x))

    def columns_left_out(self, x: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return the same by the copy that did not see each encoded training row, and for which rows."""
        predicted, rows = self._left_out(x, (columns_of(self.heads[0]),))
        return np.concatenate([part[0] for part in predicted.parts]).T, rows

    def _left_out(self, x: NDArray[np.float32], readings: Sequence[Reading]) -> tuple[Predicted, NDArray[np.intp]]:
        assert self.left_out is not None
        rows = np.flatnonzero(self.left_out >= 0)
        copies = self.left_out[rows]
        if self.architecture.builder is not None or not len(rows):  # a user's networks may only run side by side
            own = x[rows]
            return self._joined(own.__getitem__, len(own), True, readings).of_copy(copies), rows
        state, whole = self.members.snapshot(), None
        for copy in np.unique(copies).tolist():
            at = np.flatnonzero(copies == copy)
            own = x[rows[at]]
            some = self._copy(copy, state)._joined(own.__getitem__, len(own), True, readings)
            if whole is None:
                whole = some.map(lambda part: np.empty((*part.shape[:-1], len(rows))))
            for every, part in zip(whole.parts, some.parts, strict=True):
                every[..., at] = part
        assert whole is not None
        return whole, rows

    def _copy(self, copy: int, state: State) -> Learned:
        """Return what one copy learnt, given the state of all networks."""
        networks = [self.architecture.build(self.in_features, head, 0, self.device) for head in self.heads]
        own, members = slice(copy * len(networks), (copy + 1) * len(networks)), Stack(networks)
        members.restore({name: t[own] for name, t in state.items()})
        return replace(self, members=members, copies=1, target=self.target.of_turn(copy), left_out=None)

    def _columns(self, encoded: Reader, n: int) -> NDArray[np.float64]:
        predicted = self._joined(encoded, n, False, (columns_of(self.heads[0]),))
        return np.ascontiguousarray(np.concatenate([part[0] for part in predicted.parts]).T)

    def _joined(self, encoded: Reader, n: int, each_copy: bool, readings: Sequence[Reading] | None = None) -> Predicted:
        """Return what the networks predict for n encoded rows, a part at a time: outputs of copies would be many."""
        of = self.heads if readings is None else readings
        whole: Predicted | None = None
        done = 0

        def read(outputs: NDArray[np.float32]) -> Predicted:
            return read_outputs(of, outputs.astype(np.float64), self.target, each_copy, np)

        for some, count in predict_parts(self.members, n, encoded, self.device, read):
            if whole is None:
                whole = some.map(lambda part: np.empty((*part.shape[:-1], n)))
            for every, part in zip(whole.parts, some.parts, strict=True):
                every[..., done : done + count] = part[..., :count]
            done += count
        assert whole is not None
        return whole


def read_outputs(heads: Sequence[Reading], outputs: Any, target: Target, each_copy: bool, xp: Any) -> Predicted:
    """Return what outputs of networks say in work units, ``(C * K, n, columns) -> (C, K, n)`` a part."""
    if isinstance(target, SeveralTargets):
        (head,) = heads
        assert isinstance(head, EachTarget)
        pairs = [(outputs[..., head.of_target(j)], own) for j, own in enumerate(target.each)]
        return PredictedSeveral(tuple(read_outputs((head.base,), own, of, each_copy, xp) for own, of in pairs))
    outputs = outputs.reshape(-1, len(heads), *outputs.shape[1:])
    turns = len(target.scales)  # copies take turns with these
    each = [outputs[turn::turns] for turn in range(turns)]
    if not each_copy:
        each = [own.mean(0)[None] for own in each]
    read: list[Predicted] = [
        scale.back(heads[0].read(own, xp), xp) for scale, own in zip(target.scales, each, strict=True)
    ]
    if turns == 1:
        return read[0]
    parts = [xp.stack(part, 1) for part in zip(*(own.parts for own in read), strict=True)]  # (., turns, K, n)
    return type(read[0])(*(part.reshape(-1, *part.shape[2:]) if each_copy else (part / turns).sum(1) for part in parts))


def columns_of(head: Head) -> Reading:
    """Return how to read all columns of a head: quantiles and bounds one by one, others as they are."""
    is_quantiles = isinstance(head, QuantileColumns) or issubclass(head.predicts, PredictedInterval)
    return EachColumn(head.columns) if is_quantiles else head
