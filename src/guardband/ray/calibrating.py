"""Calibration on rows that never meet: workers compute scores, and only counts of them travel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from guardband.calibration.calibrated import Unit
from guardband.calibration.conformal import Conformal
from guardband.calibration.counted import Counted, CountedSummary, Remembered, RememberedAt
from guardband.calibration.rejection_cut import RejectionCut, refuse_larger, seed_of
from guardband.calibration.rule import Rule
from guardband.calibration.summary import Array, Summary
from guardband.calibration.weighted_cut import NO_WEIGHT, WeightedCut
from guardband.calibration.weighted_search import FEW, WeightTotals
from guardband.data.entities import refuse_seen
from guardband.data.entities import seed_of as seed_of_entities
from guardband.data.fingerprint import Prints, Twins, count_overlap, repeats_in_words, smallest_prints
from guardband.data.labelled_rows import warn_of_missing
from guardband.doors.bands import BandCalibrator
from guardband.doors.fitted import lacking_in_words
from guardband.doors.table_model import TableModel
from guardband.doors.weights import Weighting
from guardband.exceptions import OverlapError, RepeatedRowsWarning, warn
from guardband.ray.belonging import Belongs, Together
from guardband.ray.cluster import Failed, Shared, connect, in_order, task, workers
from guardband.ray.meeting import Draw, EntityScores, met
from guardband.ray.models import NONE, Asked, RuleAsked, TableAsked
from guardband.ray.pieces import Reader, Source, name_of, names_of, pieces_of, source_of
from guardband.ray.sources import Files
from guardband.ray.spread import Held, Spread, kept, with_weights
from guardband.words import listed

if TYPE_CHECKING:
    from ray.data import Dataset

KEEP_SCORES = 1 << 20
SAMPLE = 1 << 14
"""So many fingerprints are kept of rows that are only counted: an audit knows such rows again."""
MOST_NAMED = 5
HEAVY = (
    "Intervals of rows that are far heavier than most may be wider than on one machine: at most those of rows of twice "
    "their weight."
)
AHEAD = 4
"""So many pieces for each worker are under way at most."""


@dataclass(frozen=True)
class Told:
    """What a worker tells of a piece of calibration rows; scores and fingerprints stay in the object store.

    Parameters
    ----------
    held : Held or None
        Counts of the scores, None if counts are not enough for the rule.
    keeps_rows : bool
        Whether the rule keeps something of each row.
    n : int
        The number of rows that were calibrated on.
    totals : dict of arrays
        What the rule adds up over the rows.
    missing : int
        How many rows have no true value.
    known : int
        How many rows also occur among the training rows.
    is_whole : tuple of bool
        Whether all true values of each target are whole numbers.
    lacking : int
        How many other rows lack one of several targets, and cannot calibrate.
    smallest : array
        The smallest of the rows' fingerprints.
    weights : WeightTotals or None
        What is to be known of their weights, if they have any.
    seed : int
        A hash of their scores and weights, or of what they belong to and their true values.
    """

    held: Held | None
    keeps_rows: bool
    n: int
    totals: dict[str, Array]
    missing: int
    known: int
    is_whole: tuple[bool, ...]
    lacking: int
    smallest: Prints
    weights: WeightTotals | None = None
    seed: int = 0


def calibrate(
    model: Any,
    data: str | Sequence[str] | Files | Dataset,
    *,
    target: str | Sequence[str],
    weights: str | Callable[[Any], Any] | None = None,
    max_weight: float | None = None,
    split_by: str | Sequence[str] | None = None,
    keep_scores: int = KEEP_SCORES,
    skip_corrupt: bool = False,
) -> Any:
    """Return a model calibrated on the rows of many files or of a Ray dataset.

    The thresholds and the promise are those of one machine, to the bit. Scores stay on the workers; only counts travel.

    Parameters
    ----------
    model : IntervalRegressor or BandCalibrator
        A fitted model, or a rule that was calibrated on a few rows of a table, from which it knows its columns. It does
        not change.
    data : str, sequence of str or ray.data.Dataset
        Paths or patterns such as ``"in/*.parquet"`` of calibration rows that did not train the model, or a dataset.
    target : str or sequence of str
        The column of true values, or of several targets their columns. Rows without one are left out.
    weights : str or function, default None
        The column that says how much likelier each row is among the rows to predict than among the calibration rows, up
        to a factor. Or a function of rows that returns this; workers call it with pyarrow tables of the model's
        columns. Use it if the rows to predict come from another population. None means that all rows count alike, or
        as a rule says that was calibrated with a column of weights.
    max_weight : float, default None
        A bound on the weight of any row. ``guarantee="pac"`` needs it, and new rows then need no weights.
    split_by : str or sequence of str, default None
        The columns that say what each row belongs to, such as a patient. The promise is then for a new row of a new
        one. None means that rows stand alone, or belong together as the model knows from ``fit``.
    keep_scores : int, default 2**20
        With so many rows or fewer, the model keeps the score and the fingerprint of each row, as on one machine. With
        more it keeps only the thresholds of its levels, and cannot be asked for others later.
    skip_corrupt : bool, default False
        Whether to go on without files that cannot be read. The certificate counts them.

    Returns
    -------
    IntervalRegressor or BandCalibrator
        The calibrated model.
    """
    connect()
    source = source_of(data, skip_corrupt)
    names = names_of(source)
    weighting = Weighting.of(weights, max_weight)
    if isinstance(model, BandCalibrator):
        asked: Asked = RuleAsked(model, names, weighting, split_by)
    elif isinstance(model, TableModel):
        asked = TableAsked(model, names, weighting, split_by)
    else:
        raise TypeError(f"calibrate takes an IntervalRegressor or a BandCalibrator, found {type(model).__name__}.")
    targets = targets_of(asked.rule, target, names)
    reader = Reader(asked.kinds, targets, source.like if isinstance(source, Files) else None)
    return _Calibration(asked, source, reader, keep_scores, skip_corrupt).model()


def targets_of(rule: Rule, target: str | Sequence[str], names: Sequence[str]) -> str | tuple[str, ...]:
    """Return the columns of true values in the order in which a rule knows them.

    Parameters
    ----------
    rule : Rule
        The rule of a model.
    target : str or sequence of str
        The column of true values, or of several targets their columns.
    names : sequence of str
        The columns that there are.
    """
    given = [target] if isinstance(target, str) else list(target)
    for name in given:
        if name not in names:
            raise ValueError(f"There is no column {name!r}. The columns are {listed(names, 10)}. Name one of them.")
    if rule.target_names and sorted(given) != sorted(rule.target_names):
        raise ValueError(f"The model predicts {listed(rule.target_names)}. Name these targets.")
    if not rule.target_names and len(given) != 1:
        raise ValueError(f"The model predicts one target, found {len(given)}. Name the column of its true values.")
    return rule.target_names or given[0]


def calibrate_on(model: TableModel, source: Source, reader: Reader, keep_scores: int = KEEP_SCORES) -> Any:
    """Return a model calibrated on the rows that a reader gives.

    Parameters
    ----------
    model : IntervalRegressor
        A fitted model.
    source : Files or ray.data.Dataset
        The rows.
    reader : Reader
        Says which columns are read, and which rows are wanted.
    keep_scores : int, default 2**20
        The same as of ``calibrate``.
    """
    return _Calibration(TableAsked(model, names_of(source)), source, reader, keep_scores, skip_corrupt=False).model()


class _Calibration:
    """One calibration: the pieces that were summarised, and what follows."""

    def __init__(self, asked: Asked, source: Any, reader: Reader, keep: int, skip_corrupt: bool) -> None:
        self.asked, self.source, self.keep = asked, source, keep
        self.skipped = [path for path, _ in source.skipped] if isinstance(source, Files) else []
        shared, run = Shared((asked, reader)), task(_summarised, returns=3)
        self.told: list[Told] = []
        self.blocks: list[Any] = []
        self.prints: list[Any] = []
        self.sample: Prints = NONE
        calls = (partial(_begun, run, shared, piece) for piece in pieces_of(source))
        for told, block, prints, piece in in_order(calls, AHEAD * workers()):
            if isinstance(told, Failed):
                if not (skip_corrupt and told.is_corrupt):
                    raise told.error()
                self.skipped.append(name_of(piece))
            elif told.n or told.missing or told.lacking:
                self.told.append(replace(told, smallest=NONE))
                self.sample = smallest_prints(np.concatenate([self.sample, told.smallest]), SAMPLE)
                if told.n:
                    self.blocks.append(block)
                    self.prints.append(prints)
                if self.n > keep and told.held is not None:
                    self.prints.clear()  # which nobody will ask for

    @property
    def n(self) -> int:
        """The number of calibration rows."""
        return sum(own.n for own in self.told)

    def model(self) -> Any:
        """Return the calibrated model."""
        missing = sum(own.missing for own in self.told)
        lacking = sum(own.lacking for own in self.told)
        if not self.n and lacking:
            raise ValueError(
                'No calibration row has all targets, which targets="joint" needs. Fill them in, or use targets="each".'
            )
        if not self.n:
            raise ValueError("There are no calibration rows with a true value. Check the files and the target.")
        warn_of_missing(missing, missing + lacking + self.n)
        shared = sum(own.known for own in self.told)
        allowed = Twins.among(self.asked.training_prints, self.asked.by_chance).most(self.n)
        if shared > allowed:
            raise OverlapError(
                f"{shared:,} of {self.n:,} calibration rows also occur in the training rows. Natural duplicates "
                f"explain at most {allowed:,}. Calibrate on rows that did not train the model."
            )
        notes: tuple[str, ...] = ()
        if lacking:
            notes += (lacking_in_words(lacking, lacking + self.n),)
        if shared:
            notes += (
                f"{shared} of {self.n} calibration rows also occur among the training rows. Natural duplicates do no "
                "harm. If rows were copied before the split, remove the copies and fit again.",
            )
        if self.skipped:
            more = f" and {len(self.skipped) - MOST_NAMED:,} more" if len(self.skipped) > MOST_NAMED else ""
            notes += (
                f"guardband left out what it could not read: {'; '.join(self.skipped[:MOST_NAMED])}{more}. The promise "
                "is about rows like those that it could read.",
            )
        counts = [own for own in self.told if own.n]
        keeps = self.n <= self.keep or not counts[0].keeps_rows
        if not keeps and counts[0].held is None:
            raise ValueError(
                f"method={self.asked.rule.method!r} needs what it keeps of all {self.n:,} calibration rows at once. "
                f"Calibrate on {self.keep:,} rows at most, or raise keep_scores (--keep-scores) if memory allows."
            )
        if not keeps:
            notes += (
                f"The {self.n:,} calibration rows were counted in parts. guardband keeps the fingerprints of "
                f"{len(self.sample):,} of them, and did not look for repeated rows.",
            )
            if self.n > FEW and isinstance(self.asked.rule, Conformal) and isinstance(self.asked.rule.cut, WeightedCut):
                notes += (HEAVY,)
        prints = self._prints() if keeps else self.sample
        if keeps and self.asked.belonging is None and (again := repeats_in_words(prints)) is not None:
            warn(again, RepeatedRowsWarning)
        is_whole = tuple(map(all, zip(*(own.is_whole for own in counts), strict=True)))
        if self.asked.belonging is None:
            return self.asked.finished(self._summary(keeps), notes, prints, is_whole)
        summary, together = self._together(keeps)
        return self.asked.finished(summary, notes, prints, is_whole, together)

    def _together(self, keeps: bool) -> tuple[Summary, Together]:
        """Return what is kept of rows that belong together, and what they belong to."""
        asked, n = self.asked, self.n
        assert asked.belonging is not None
        if not keeps:
            return self._met(asked.belonging)
        (block,) = self._summary(keeps).joined().blocks
        entities = asked.belonging.entities(block["entity"])
        if asked.training_entities is not None:
            refuse_seen(entities, asked.training_entities)
        together = Together(Unit(entities.name, n), entities.every)
        if not asked.draws:
            return Summary(n, {}, ({**block, "entity": entities.labels},)), together
        rows = entities.one_row_each(block["y"])
        own = {name: array[rows] for name, array in block.items() if name not in ("entity", "y")}
        return Summary(len(rows), {}, (own,)), together

    def _met(self, belonging: Belongs) -> tuple[Summary, Together]:
        """Return what is counted of rows that belong together, and what they belong to."""
        if belonging.rule is not None:
            raise ValueError(
                f"method={self.asked.rule.method!r} needs what it keeps of all {self.n:,} calibration rows at once, "
                f"because they belong together. Calibrate on {self.keep:,} rows at most, or raise keep_scores "
                "(--keep-scores) if memory allows."
            )
        told = [own for own in self.told if own.n]
        draw = None
        if self.asked.draws:
            draw = Draw(sum(own.seed for own in told), tuple(own.n for own in told), self.asked.groups)
        found = met(self.blocks, self.n, self.asked.training_entities, draw)
        if found.seen:
            raise OverlapError(
                f"{found.seen:,} of {found.entities:,} values of {belonging.name} in the calibration rows also occur "
                "in the training rows. Calibrate on rows of new ones."
            )
        together = Together(Unit(belonging.name, self.n), found.labels)
        if draw is not None:
            drawn = {name: Remembered(Spread(name, found.blocks, found.held)) for name in found.held[0].number}
            return CountedSummary(found.entities, {}, (), drawn), together
        held = [own.held for own in told if own.held is not None]
        counted = {name: RememberedAt(EntityScores(found, name, held)) for name in held[0].number}
        return CountedSummary(self.n, {}, (), counted), together

    def _summary(self, keeps: bool) -> Summary:
        import ray

        n, told = self.n, [own for own in self.told if own.n]
        totals = {name: np.sum([own.totals[name] for own in told], axis=0) for name in told[0].totals}
        if keeps:
            kept = (ray.get(block) for block in self.blocks)
            return Summary(n, totals, tuple(block for block in kept if block))
        if told[0].weights is not None:
            return CountedSummary(n, totals, (), {"score": self._weighed(told)})
        held = [own.held for own in told if own.held is not None]
        counted = {
            name: Remembered(Spread(name, self.blocks, held, self.asked.rule.countable)) for name in held[0].number
        }
        return CountedSummary(n, totals, (), counted)

    def _weighed(self, told: Sequence[Told]) -> Counted:
        """Return the scores of rows that count by their weights, or of those that are kept by chance."""
        weights = sum((own.weights for own in told if own.weights is not None), WeightTotals())
        if not weights.most:
            raise ValueError(NO_WEIGHT)
        cut = self.asked.rule.cut if isinstance(self.asked.rule, Conformal) else None
        if not isinstance(cut, RejectionCut):
            return RememberedAt(with_weights(self.blocks, weights))
        refuse_larger(weights.most, cut.max_weight)
        sizes, seed = [own.n for own in told], sum(own.seed for own in told)
        blocks, held = kept(self.blocks, sizes, seed, cut.max_weight, self.asked.groups)
        return Remembered(Spread("score", blocks, held), self.n)

    def _prints(self) -> Prints:
        import ray

        return np.concatenate([ray.get(own) for own in self.prints])


def _begun(run: Any, shared: Shared, piece: Any) -> list[Any]:
    told, block, prints = run.remote(shared, piece)
    return [told, block, prints, piece]


def _summarised(shared: Shared, piece: Any) -> tuple[Told | Failed, dict[str, Array], Any]:
    """Return what is told of a piece, what the rule keeps of each of its rows, and their fingerprints."""
    import torch

    torch.set_num_threads(1)
    asked, reader = shared.get()
    total: Summary | None = None
    prints, missing, lacking, known = [], 0, 0, 0
    is_whole: tuple[bool, ...] = ()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for table, y, absent in reader.rows(piece):
                missing += absent
                if asked.needs_all_targets:
                    complete = ~np.isnan(y).any(axis=1)
                    lacking += int((~complete).sum())
                    table, y = table.filter(complete), y[complete]
                if not len(y):
                    continue
                own = asked.summarised(table, y, name_of(piece))
                total = own.summary if total is None else total + own.summary
                prints.append(own.prints)
                known += count_overlap(own.prints, asked.training_prints)
                is_whole = tuple(map(all, zip(is_whole, own.is_whole, strict=True))) if is_whole else own.is_whole
    except ValueError as error:
        return Failed.of(error), {}, None
    if total is None:
        return Told(None, False, 0, {}, missing, 0, (), lacking, NONE), {}, None
    block = dict(total.joined().blocks[0]) if total.blocks else {}
    held = Held.of(asked.rule.countable(block), asked.groups) if asked.can_count and block else None
    every = np.concatenate(prints)
    told = Told(
        held,
        bool(block),
        total.n,
        dict(total.totals),
        missing,
        known,
        is_whole,
        lacking,
        smallest_prints(every, SAMPLE),
    )
    if "weight" in block:
        scores, weights = block["score"], block["weight"]
        told = replace(told, weights=WeightTotals.of(scores, weights), seed=seed_of(scores, weights))
    if "y" in block:
        told = replace(told, seed=seed_of_entities(block["entity"], block["y"]))
    return told, block, every
