"""An audit on Ray: workers count which rows fell inside, and the sum of the counts is judged."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from guardband.audit.audit import Audit
from guardband.audit.counts import Tally, judged
from guardband.audit.drift import Drift
from guardband.audit.evidence import Evidence
from guardband.audit.several import SeveralAudit, judged_several, share_of_each
from guardband.audit.several_counts import SeveralTally
from guardband.audit.verdict import Verdict, used_rows
from guardband.bands.promise import Promise
from guardband.calibration.target_calibrated import target_calibrated
from guardband.data.fingerprint import Twins
from guardband.data.labelled_rows import warn_of_missing
from guardband.ray.calibrating import targets_of
from guardband.ray.cluster import Failed, Shared, connect, in_order, task, workers
from guardband.ray.pieces import Reader, name_of, names_of, pieces_of, source_of
from guardband.ray.scoring import kinds_of_any
from guardband.ray.sources import Files

if TYPE_CHECKING:
    from ray.data import Dataset

AHEAD = 4
COUNTS_ONLY = "The rows were counted in parts: guardband did not look for groups, periods or columns that stand out."


def audit(
    model: Any,
    data: str | Sequence[str] | Files | Dataset,
    *,
    target: str | Sequence[str],
    significance: float = 0.01,
    skip_corrupt: bool = False,
) -> Audit | SeveralAudit:
    """Return what the rows of many files say of a model's promise: the verdict, and the counts that it follows from.

    Of a model of several targets it is a ``SeveralAudit``.

    Parameters
    ----------
    model : IntervalRegressor or BandCalibrator
        The calibrated model.
    data : str, sequence of str or ray.data.Dataset
        Paths or patterns of rows with known true values that are new to the model, or a dataset.
    target : str or sequence of str
        The column of true values, or of several targets their columns. Rows without one are left out.
    significance : float, default 0.01
        How often a model that keeps its promise may be called broken. Lower it if a false alarm is expensive.
    skip_corrupt : bool, default False
        Whether to go on without files that cannot be read. The notes name them.
    """
    if not 0 < significance < 1:
        raise ValueError(f"significance must lie strictly between 0 and 1, found {significance}.")
    connect()
    source = source_of(data, skip_corrupt)
    _need_counts(model)
    names, rule = names_of(source), model.calibration_.rule
    targets = targets_of(rule, target, names)
    reader = Reader(kinds_of_any(model, names), targets, source.like if isinstance(source, Files) else None)
    shared, run = Shared((model, reader)), task(_tallied)
    skipped = [path for path, _ in source.skipped] if isinstance(source, Files) else []
    total: Any = None
    missing = read = 0
    calls = (partial(_begun, run, shared, piece) for piece in pieces_of(source))
    for told, piece in in_order(calls, AHEAD * workers()):
        if isinstance(told, Failed):
            if not (skip_corrupt and told.is_corrupt):
                raise told.error()
            skipped.append(name_of(piece))
            continue
        own, n, absent = told
        missing, read = missing + absent, read + n
        if own is not None:
            total = own if total is None else total + own
    if total is None:
        raise ValueError(f"The target {target!r} is missing in every row. Fill it in.")
    warn_of_missing(missing, read)
    notes = (COUNTS_ONLY, *(f"guardband left out {name}, which it could not read." for name in skipped))
    promise, fitted = model.calibration_.certificate.promise, model.fitted_
    by_chance = Twins.among(fitted.used_prints, fitted.training_entities is None)
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


def _need_counts(model: Any) -> None:
    """Raise if counts do not tell whether the promise is kept."""
    rule = model.calibration_.rule
    if rule.promised_risk is not None:
        raise ValueError("Ray audits promises of coverage. Use `guardband audit` without --ray.")
    if model.belonging.names_entities or model.fitted_.has_labels:
        raise ValueError("The promise is for entities, whose rows must meet. Use `guardband audit` without --ray.")
    if "weight" in rule.uses_of_new:
        raise ValueError("Ray cannot audit models whose rows have weights yet. Use `guardband audit` without --ray.")


def _begun(run: Any, shared: Shared, piece: Any) -> list[Any]:
    return [run.remote(shared, piece), piece]


def _tallied(shared: Shared, piece: Any) -> tuple[Tally | SeveralTally | None, int, int] | Failed:
    """Return what is counted of a piece, None if no true value is known, its rows, and how many have no true value."""
    import torch

    torch.set_num_threads(1)
    model, reader = shared.get()
    several = bool(model.calibration_.rule.target_names)
    total: Any = None
    n = missing = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for table, y, absent in reader.rows(piece):
                missing, n = missing + absent, n + absent + len(y)
                if len(y):
                    own = SeveralTally.of(model, table, y) if several else Tally.of(Evidence.of(model, table, y))
                    total = own if total is None else total + own
    except ValueError as error:
        return Failed.of(error)
    return total, n, missing
