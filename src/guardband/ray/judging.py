"""An audit on Ray: workers count which rows fell inside, and the sum of the counts is judged."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.audit.audit import Audit
from guardband.audit.counts import Tally, judged
from guardband.audit.drift import Drift
from guardband.audit.evidence import Evidence
from guardband.audit.several import SeveralAudit, judged_several, share_of_each
from guardband.audit.several_counts import SeveralTally
from guardband.audit.verdict import Verdict, used_rows
from guardband.bands.promise import Promise
from guardband.calibration.rule import Rule
from guardband.calibration.target_calibrated import target_calibrated
from guardband.data.entities import Entities
from guardband.data.fingerprint import Twins
from guardband.data.labelled_rows import warn_of_missing
from guardband.doors.bands import BandCalibrator
from guardband.ray.belonging import Belongs
from guardband.ray.calibrating import targets_of
from guardband.ray.cluster import Failed, Shared, connect, in_order, task, workers
from guardband.ray.pieces import Reader, name_of, names_of, pieces_of, source_of
from guardband.ray.scoring import kinds_of_any
from guardband.ray.sources import Files, Named

if TYPE_CHECKING:
    from ray.data import Dataset

AHEAD = 4
MOST_MET = 1 << 22
"""Of so many rows this process can hold what they belong to, to draw one row of each entity."""
COUNTS_ONLY = "The rows were counted in parts: guardband did not look for groups, periods or columns that stand out."


def audit(
    model: Any,
    data: Named | Files | Dataset,
    *,
    target: str | Sequence[str],
    split_by: str | Sequence[str] | None = None,
    significance: float = 0.01,
    skip_corrupt: bool = False,
) -> Audit | SeveralAudit:
    """Return what the rows of many files say of a model's promise: the verdict, and the counts that it follows from.

    Of rows that belong together one is drawn at random, as on one machine. Of a model of several targets it is a
    ``SeveralAudit``.

    Parameters
    ----------
    model : IntervalRegressor or BandCalibrator
        The calibrated model.
    data : str, path, sequence of these or ray.data.Dataset
        Paths or patterns of rows with known true values that are new to the model, or a dataset.
    target : str or sequence of str
        The column of true values, or of several targets their columns. Rows without one are left out.
    split_by : str or sequence of str, default None
        The columns that say what each row belongs to, if the model was told so by labels. None means that the model
        knows them, or that rows stand alone.
    significance : float, default 0.01
        How often a model that keeps its promise may be called broken. Lower it if a false alarm is expensive.
    skip_corrupt : bool, default False
        Whether to go on without files that cannot be read. The notes name them.
    """
    if not 0 < significance < 1:
        raise ValueError(f"significance must lie strictly between 0 and 1, found {significance}.")
    connect()
    source = source_of(data, skip_corrupt)
    promise, fitted, rule = model.calibration_.certificate.promise, model.fitted_, model.calibration_.rule
    names = names_of(source)
    targets = targets_of(rule, target, names)
    is_rule = isinstance(model, BandCalibrator)
    belonging = Belongs.of(model.belonging, fitted.has_labels, split_by, names, are_apart=is_rule)
    _need_counts(rule, belonging)
    kinds = kinds_of_any(model, names)
    kinds = kinds if belonging is None else belonging.with_columns(kinds)
    reader = Reader(kinds, targets, source.like if isinstance(source, Files) else None)
    shared, run = Shared((model, reader, belonging)), task(_tallied)
    skipped = [path for path, _ in source.skipped] if isinstance(source, Files) else []
    pieces: Iterable[tuple[Any, Any]] = ((piece, None) for piece in pieces_of(source))
    notes: tuple[str, ...] = ()
    if belonging is not None:
        pieces, notes = _drawn(shared, belonging, source, skip_corrupt, skipped)
    total: Any = None
    missing = read = 0
    calls = (partial(_begun, run, shared, *each) for each in pieces)
    for told, piece in in_order(calls, AHEAD * workers()):
        if isinstance(told, Failed):
            _need_skipped(told, piece, skip_corrupt, skipped)
            continue
        own, n, absent = told
        missing, read = missing + absent, read + n
        if own is not None:
            total = own if total is None else total + own
    if total is None:
        raise ValueError(f"The target {target!r} is missing in every row. Fill it in.")
    warn_of_missing(missing, read)
    notes += (COUNTS_ONLY, *(f"guardband left out {name}, which it could not read." for name in skipped))
    by_chance = Twins.among(fitted.used_prints, belonging is None and fitted.training_entities is None)
    used = used_rows(total.used, total.n, by_chance.most(total.n))
    if isinstance(total, Tally):
        return _audit(promise, total, used, fitted.doubts, notes, significance)
    share, each = share_of_each(promise, rule.target_names, significance), []
    for j, (name, own) in enumerate(zip(rule.target_names, total.targets, strict=True)):
        if own is None:
            raise ValueError(f"The target {name!r} is missing in every row. Bring rows with true values.")
        own_promise = target_calibrated(model.calibration_, j).certificate.promise
        each.append(_audit(own_promise, own, None, fitted.doubts, notes, share))
    return judged_several(
        promise, rule.target_names, tuple(each), total.n, total.inside, used, fitted.doubts, significance
    )


def _audit(
    promise: Promise,
    counted: Tally,
    used: Verdict | None,
    doubts: tuple[str, ...],
    notes: tuple[str, ...],
    significance: float,
) -> Audit:
    """Return what counts say of one promise."""
    found = judged(promise, counted, used, doubts, significance)
    return Audit(
        verdict=found.verdict.kind,
        sentence=found.verdict.sentence,
        p_value=found.p_value,
        significance=significance,
        levels=found.levels,
        families=(),
        region=None,
        drift=Drift((), None, None),
        curve=None,
        notes=notes,
        reason=found.verdict.reason,
        more_rows=found.verdict.more_rows,
        parts=found.parts,
    )


def _need_counts(rule: Rule, belonging: Belongs | None) -> None:
    """Raise if counts do not tell whether the promise is kept."""
    if rule.promised_risk is not None:
        raise ValueError("Ray audits promises of coverage. Use `guardband audit` without --ray.")
    if rule.target_names and belonging is not None:
        raise ValueError(
            "Ray cannot audit several targets of rows that belong together. Use `guardband audit` without --ray."
        )


def _need_skipped(failed: Failed, piece: Any, skip_corrupt: bool, skipped: list[str]) -> None:
    """Raise unless what cannot be read may be left out."""
    if not (skip_corrupt and failed.is_corrupt):
        raise failed.error()
    skipped.append(name_of(piece))


def _drawn(
    shared: Shared, belonging: Belongs, source: Any, skip_corrupt: bool, skipped: list[str]
) -> tuple[list[tuple[Any, Any]], tuple[str, ...]]:
    """Return of each piece the one row of each entity that is judged, with its label, and a note."""
    run, n = task(_labelled), 0
    read, labels, targets = [], [], []
    calls = (partial(_begun, run, shared, piece) for piece in pieces_of(source))
    for told, piece in in_order(calls, AHEAD * workers()):
        if isinstance(told, Failed):
            _need_skipped(told, piece, skip_corrupt, skipped)
            continue
        n += len(told[0])
        if n > MOST_MET:
            raise ValueError(
                f"Rows that belong together must meet, and there are more than {MOST_MET:,}. Audit a sample of the "
                "entities, with all of their rows."
            )
        read.append(piece)
        labels.append(told[0])
        targets.append(told[1])
    if not n:
        return [], ()
    entities = belonging.entities(np.concatenate(labels))
    chosen = np.zeros(n, dtype=bool)
    chosen[entities.one_row_each(np.concatenate(targets))] = True
    ends = np.cumsum([len(own) for own in labels])[:-1]
    pairs = zip(np.split(chosen, ends), np.split(entities.labels, ends), strict=True)
    drawn = [(piece, (rows, own[rows])) for piece, (rows, own) in zip(read, pairs, strict=True)]
    return drawn, (f"One row of each {entities.name} was drawn at random: {len(entities.every):,} of {n:,} rows.",)


def _labelled(shared: Shared, piece: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return what the rows of a piece belong to, and their true values."""
    model, reader, belonging = shared.get()
    labels, targets = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for table, y, _ in reader.rows(piece):
        if len(y):
            labels.append(belonging.labels(model.read_rows(table), table, y, name_of(piece)))
            targets.append(y)
    return np.concatenate(labels), np.concatenate(targets)


def _begun(run: Any, shared: Shared, piece: Any, *more: Any) -> list[Any]:
    return [run.remote(shared, piece, *more), piece]


def _tallied(shared: Shared, piece: Any, drawn: Any = None) -> tuple[Tally | SeveralTally | None, int, int]:
    """Return what is counted of a piece, None if no true value is known, its rows, and how many have no true value.

    ``drawn`` says which rows are judged, and what these belong to; None if all of them are.
    """
    import torch

    torch.set_num_threads(1)
    model, reader, belonging = shared.get()
    several = bool(model.calibration_.rule.target_names)
    total: Any = None
    n = missing = first = given = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table, y, absent in reader.rows(piece):
            missing, n = missing + absent, n + absent + len(y)
            entities = None
            if drawn is not None:
                rows = drawn[0][first : first + len(y)]
                first += len(y)
                table, y = table.filter(rows), y[rows]
                entities = Entities(drawn[1][given : given + len(y)], belonging.name, belonging.rule)
                given += len(y)
            if len(y):
                if several:
                    own: Any = SeveralTally.of(model, table, y)
                else:
                    own = Tally.of(Evidence.of(model, table, y, entities=entities))
                total = own if total is None else total + own
    return total, n, missing
