"""Calibration on rows that never meet: workers compute scores, and only counts of them travel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from guardband.calibration.calibrated import Unit
from guardband.calibration.conformal import Conformal
from guardband.calibration.counted import Counted, CountedSummary, Remembered
from guardband.calibration.counted_at import RememberedAt
from guardband.calibration.rejection_cut import RejectionCut, refuse_larger
from guardband.calibration.rule import Rule
from guardband.calibration.summary import Summary
from guardband.calibration.weighted_cut import NO_WEIGHT, WeightedCut
from guardband.calibration.weighted_search import FEW, WeightTotals
from guardband.data.entities import refuse_seen
from guardband.data.fingerprint import Prints, Twins, repeats_in_words, smallest_prints
from guardband.data.labelled_rows import warn_of_missing
from guardband.doors.bands import BandCalibrator
from guardband.doors.fitted import lacking_in_words
from guardband.doors.table_model import TableModel
from guardband.doors.weights import Weighting
from guardband.exceptions import OverlapError, RepeatedRowsWarning, warn
from guardband.ray.belonging import Belongs, Together
from guardband.ray.cluster import Failed, connect, fetched
from guardband.ray.meeting import Draw, EntityScores, met
from guardband.ray.models import NONE, Asked, RuleAsked, TableAsked
from guardband.ray.pieces import Reader, Source, name_of, names_of, source_of
from guardband.ray.sound import left_out_in_words
from guardband.ray.sources import Files, Named
from guardband.ray.spread import Spread, kept, with_weights
from guardband.ray.summarising import SAMPLE, Told, summarised
from guardband.words import listed

if TYPE_CHECKING:
    from ray.data import Dataset

KEEP_SCORES = 1 << 20
HEAVY = (
    "Intervals of rows that are far heavier than most may be wider than on one machine: at most those of rows of twice "
    "their weight."
)


def calibrate(
    model: Any,
    data: Named | Files | Dataset,
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
    data : str, path, sequence of these or ray.data.Dataset
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
        self.told: list[Told] = []
        self.blocks: list[Any] = []
        self.prints: list[Any] = []
        self.sample: Prints = NONE
        for told, block, prints, piece in summarised(asked, reader, source):
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
            notes += (left_out_in_words(self.skipped),)
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
        if belonging.rule is not None or self.asked.rule.target_names:
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
        n, told = self.n, [own for own in self.told if own.n]
        totals = {name: np.sum([own.totals[name] for own in told], axis=0) for name in told[0].totals}
        if keeps:
            kept = (fetched(block) for block in self.blocks)
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
        return np.concatenate([fetched(own) for own in self.prints])
