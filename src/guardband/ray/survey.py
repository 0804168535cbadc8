"""What training rows say that no process holds: counted, sampled and learnt in passes over the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.absurd import asks_absurd
from guardband.data.asking import Asking, added, in_passes
from guardband.data.codes import asks_center_and_scale
from guardband.data.encoder import TableEncoder, asks_code
from guardband.data.few_values import asks_remarks
from guardband.data.fingerprint import Prints, input_prints, with_target
from guardband.data.grouping import BINS, GroupValues, asks_values
from guardband.data.labelled_rows import warn_of_missing
from guardband.data.learning_scale import LearningScale
from guardband.data.questions import AskSpread, Question
from guardband.data.reference import NumberSummary, Reference, asks_summary
from guardband.data.table import Column, read_table, refuse_huge
from guardband.data.target import Target
from guardband.data.unlike import Seen, asks_seen
from guardband.data.whole_numbers import LARGEST_WHOLE, is_whole
from guardband.exceptions import TargetWarning, warn
from guardband.ray.learning_rows import NO_TARGET, Block, LearningRows, kept_of_pieces, over_pieces
from guardband.ray.pieces import Source

Array = NDArray[np.float64]

SAMPLED = 20_000
"""So many training rows, drawn by their hashes, are looked at after training."""
MOST_PRINTS = 1 << 22
"""Of more training rows than this, only some fingerprints are kept."""


@dataclass(frozen=True, eq=False)
class Counted:
    """How many rows train, calibrate and lack a target, and what the targets are."""

    training: int
    calibration: int
    missing: int
    all_whole: bool
    some_small: bool

    def __add__(self, other: Counted) -> Counted:
        return Counted(
            self.training + other.training,
            self.calibration + other.calibration,
            self.missing + other.missing,
            self.all_whole and other.all_whole,
            self.some_small or other.some_small,
        )


NOTHING = Counted(0, 0, 0, all_whole=True, some_small=False)


@dataclass(frozen=True)
class TrainingPart:
    """Training rows as a pass reads them: those with an absurd target are left out, once it is known which are.

    Parameters
    ----------
    rows : LearningRows
        How rows are read and split.
    target : Target
        Its transform makes work units.
    median : float, default 0.0
        Half of the median of the targets in work units.
    furthest : float, default infinity
        From this distance of halves on, targets are absurd.
    """

    rows: LearningRows
    target: Target
    median: float = 0.0
    furthest: float = np.inf

    def blocks(self, piece: Any) -> Any:
        """Yield the training rows of a piece, with their targets in work units.

        Parameters
        ----------
        piece : Part or block
            What to read.
        """
        for own in self.rows.blocks(piece):
            kept = np.flatnonzero(self.trains(own))
            if len(kept):
                yield _taken(own, kept), self.target.to_work(own.y[kept])

    def trains(self, block: Block) -> NDArray[np.bool_]:
        """Return which rows of a block train.

        Parameters
        ----------
        block : Block
            Some rows.
        """
        distance = np.abs(self.target.to_work(block.y) / 2 - self.median)
        return ~self.rows.split.calibrates(block.prints) & (distance < self.furthest)


@dataclass(frozen=True, eq=False)
class Surveyed:
    """What the training rows say.

    Parameters
    ----------
    part : TrainingPart
        How they are read.
    counted : Counted
        How many there are.
    encoder : TableEncoder
        How columns become numbers.
    target : Target
        The target with its scales.
    reference : Reference
        A summary of columns.
    seen : Seen
        The range of columns.
    left_out : int
        How many training rows have an absurd target.
    in_pieces : tuple of int
        How many rows of each piece train.
    groups : tuple of GroupValues
        What the columns that make groups hold.
    """

    part: TrainingPart
    counted: Counted
    encoder: TableEncoder
    target: Target
    reference: Reference
    seen: Seen
    left_out: int
    in_pieces: tuple[int, ...]
    groups: tuple[GroupValues, ...] = ()

    @property
    def n(self) -> int:
        """The number of rows that train."""
        return self.counted.training - self.left_out


def count(source: Source, rows: LearningRows, target: Target) -> tuple[Counted, Target]:
    """Return how many rows there are, and the target as it is decided on all of them.

    Parameters
    ----------
    source : Files or ray.data.Dataset
        The rows.
    rows : LearningRows
        How they are read and split.
    target : Target
        What was asked for.
    """
    found = reduce(lambda a, b: a + b, over_pieces(source, _counted, (rows, target)), NOTHING)
    known = found.training + found.calibration
    if not known:
        raise ValueError(NO_TARGET)
    warn_of_missing(found.missing, found.missing + known)
    if target.integer and not found.all_whole:
        raise ValueError("With integer=True every target must be a whole number. Correct the rows, or remove it.")
    is_it = bool(target.integer or (target.integer is None and found.some_small and found.all_whole))
    return found, replace(target, whole=is_it)


def survey(
    source: Source,
    rows: LearningRows,
    counted: Counted,
    target: Target,
    robust: bool,
    groups: Sequence[str] = (),
    bins: int = BINS,
) -> Surveyed:
    """Return what the training rows say: exactly what one machine learns of them.

    Knots of the reference may be off their quantiles, which any values may serve as.

    Parameters
    ----------
    source : Files or ray.data.Dataset
        The rows.
    rows : LearningRows
        How they are read and split.
    counted : Counted
        How many there are.
    target : Target
        What was decided.
    robust : bool
        Whether numbers are scaled by their quartiles.
    groups : sequence of str, default ()
        The columns that make groups.
    bins : int, default 5
        Into how many ranges numbers of groups are divided.
    """
    part = TrainingPart(rows, target)
    kinds, names = rows.kinds, tuple(rows.reader.kinds)
    y, work = len(kinds), len(kinds) + 1  # the numbers of two more columns

    def askings() -> list[tuple[int, Asking[Any]]]:
        out: list[tuple[int, Asking[Any]]] = []
        for i, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            is_key = name in rows.split.keys
            out += [(i, asks_code(kind, robust, is_key)), (i, asks_summary(name, kind)), (i, asks_seen(kind, is_key))]
        return out

    def of_target() -> list[tuple[int, Asking[Any]]]:
        scales = LearningScale.asks(several=target.quantiles)
        return [(y, NumberSummary.asks("response")), (y, asks_remarks()), (work, scales), (work, _asks_constant())]

    # Absurd targets are rare: all is learnt beside looking for them, and again without them if there are any. Only
    # groups are those of all training rows.
    of_groups = [(i, asks_values(names[i], kinds[i], bins=bins)) for i in map(names.index, groups)]
    passes = _Passes(source, part)
    learnt = in_passes([*askings(), *of_target(), *of_groups, (work, asks_absurd())], passes)
    median, furthest = learnt.pop()
    values = tuple(learnt.pop() for _ in of_groups)[::-1]
    left_out = 0
    if furthest < np.inf:
        part = replace(part, median=median, furthest=furthest)
        passes = _Passes(source, part)
        left_out = counted.training - passes.n
        warn(
            f"{left_out:,} of {counted.training:,} training targets are far beyond all others, and guardband does not "
            "train on them. If they are wrong, correct or remove the rows. If they are right, use a target_transform.",
            TargetWarning,
        )
        learnt = in_passes([*askings(), *of_target()], passes)
    each, (response, remarks, scales, is_constant) = learnt[:-4], learnt[-4:]
    if is_constant:
        warn(
            f"y is constant on the training rows (n = {counted.training:,}): there is nothing to learn. Check that you "
            "chose the right target.",
            TargetWarning,
        )
    return Surveyed(
        part,
        counted,
        TableEncoder(tuple(each[0::3])),
        replace(target, scales=scales, remarks=remarks),
        Reference(tuple(each[1::3]), response),
        Seen(tuple(each[2::3])),
        left_out,
        passes.in_pieces,
        values,
    )


@dataclass(frozen=True, eq=False)
class Sample:
    """Some training rows as networks see them, and fingerprints of the training rows.

    Parameters
    ----------
    x : array of shape (n, d)
        Encoded rows.
    work : array of shape (n,)
        Their targets in work units.
    prints : array of shape (n,)
        What their folds depend on.
    kept : array
        Fingerprints, of all training rows or of a share.
    share : float
        The share of the training rows whose fingerprints were kept.
    """

    x: NDArray[np.float32]
    work: Array
    prints: Prints
    kept: Prints
    share: float


def sample(source: Source, found: Surveyed) -> Sample:
    """Return some training rows in the order of their hashes, which depends on nothing else.

    Parameters
    ----------
    source : Files or ray.data.Dataset
        The rows.
    found : Surveyed
        What the training rows say.
    """
    # A few more than are wanted, by four deviations of a binomial number.
    wanted = min(1.0, (SAMPLED + 4 * SAMPLED**0.5) / found.n)
    share = min(1.0, MOST_PRINTS / found.n)
    parts = list(over_pieces(source, _sampled, (found, wanted, share)))
    x, work, prints, own, kept = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = found.part.rows.split.order(own, work)[:SAMPLED]
    return Sample(x[order], work[order], prints[order], np.sort(kept), share)


class _Passes:
    """Answers rounds of questions by passes over all training rows: after the first, only over columns asked about."""

    def __init__(self, source: Source, part: TrainingPart) -> None:
        self._source, self._part = source, part
        masks = list(kept_of_pieces(source, _masked, part))
        self.in_pieces = tuple(own for own, _ in masks)
        self.n = sum(self.in_pieces)
        if not self.n:
            raise ValueError("No row trains, as their hashes say. Add rows, or lower calibration_size.")
        self._masks = [reference for _, reference in masks]

    def __call__(self, questions: Sequence[tuple[int, Question]]) -> Sequence[Any]:
        total: list[Any] | None = None
        kinds = list(self._part.rows.reader.kinds.items())
        asked = dict(kinds[i] for i in sorted({i for i, _ in questions}) if i < len(kinds))
        given = replace(self._part.rows.reader, kinds=asked), [name for name, _ in kinds], self._part.target, questions
        for own in over_pieces(self._source, _answers, given, self._masks):
            if own is not None:
                total = own if total is None else added(questions, [total, own])
        assert total is not None
        return total


def _asks_constant() -> Asking[bool]:
    spread = yield AskSpread()
    _, scale = yield from asks_center_and_scale(spread)
    return scale == 0


def _taken(own: Block, rows: NDArray[np.intp]) -> Block:
    return replace(own, X=None, table=own.table.take(rows), y=own.y[rows], prints=own.prints[rows])


def _counted(given: Any, piece: Any) -> Counted:
    rows, target = given
    total = NOTHING
    for own, missing in rows.blocks_and_missing(piece):
        total = replace(total, missing=total.missing + missing)
        if own is None:
            continue
        refuse_huge(own.table)
        target.to_work(own.y)
        calibration = int(rows.split.calibrates(own.prints).sum())
        small = bool(np.abs(own.y).min() < LARGEST_WHOLE)
        total += Counted(own.n - calibration, calibration, 0, bool(is_whole(own.y).all()), small)
    return total


def _masked(part: TrainingPart, piece: Any) -> tuple[int, list[NDArray[np.uint8]]]:
    """Return how many rows of a piece train, and which ones do, a bit for each row."""
    n, masks = 0, []
    for own in part.rows.blocks(piece):
        kept = part.trains(own)
        n += int(kept.sum())
        masks.append(np.packbits(kept))
    return n, masks


def _answers(given: Any, piece: Any, masks: Sequence[NDArray[np.uint8]]) -> list[Any] | None:
    reader, names, target, questions = given
    total: list[Any] | None = None
    blocks = ((X, y) for X, y, _ in reader.rows(piece) if len(y))
    for (X, y), bits in zip(blocks, masks, strict=True):
        kept = np.flatnonzero(np.unpackbits(bits, count=len(y)))
        if not len(kept):
            continue
        columns: dict[int, Column] = {len(names): Column("response", y[kept])}
        columns[len(names) + 1] = Column("work", target.to_work(y[kept]))
        if reader.kinds:
            table = read_table(X).read_as(tuple(reader.kinds.values())).take(kept)
            columns |= {names.index(column.name): column for column in table.columns}
        parts = [question.of(columns[i]) for i, question in questions]
        total = parts if total is None else added(questions, [total, parts])
    return total


def _sampled(given: Any, piece: Any) -> tuple[Any, Array, Prints, Prints, Prints]:
    found, wanted, share = given
    split = found.part.rows.split
    x = [np.empty((0, found.encoder.width), dtype=np.float32)]
    targets = [np.empty(0)]
    prints, alone, kept = ([np.empty(0, dtype=np.uint64)] for _ in range(3))
    for own, work in found.part.blocks(piece):
        every = with_target(input_prints(own.table), own.y)
        each = every if split.keys else own.prints  # rows are sampled one by one, also if they belong together
        some = np.flatnonzero(split.sampled(each, wanted))
        x.append(found.encoder.encode(own.table.take(some)) if len(some) else x[0])
        targets.append(work[some])
        prints.append(own.prints[some])
        alone.append(each[some])
        kept.append(every[split.sampled(each, share)])
    return tuple(np.concatenate(own) for own in (x, targets, prints, alone, kept))  # type: ignore[return-value]
