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
from guardband.audit.verdict import used_rows
from guardband.data.fingerprint import Twins
from guardband.data.labelled_rows import warn_of_missing
from guardband.ray.cluster import Failed, Shared, connect, in_order, task, workers
from guardband.ray.pieces import Reader, name_of, names_of, pieces_of, source_of
from guardband.ray.scoring import kinds_of_any
from guardband.ray.sources import Files
from guardband.words import listed

if TYPE_CHECKING:
    from ray.data import Dataset

AHEAD = 4
COUNTS_ONLY = "The rows were counted in parts: guardband did not look for groups, periods or columns that stand out."


def audit(
    model: Any,
    data: str | Sequence[str] | Files | Dataset,
    *,
    target: str,
    significance: float = 0.01,
    skip_corrupt: bool = False,
) -> Audit:
    """Return what the rows of many files say of a model's promise: the verdict, and the counts that it follows from.

    Parameters
    ----------
    model : IntervalRegressor or BandCalibrator
        The calibrated model.
    data : str, sequence of str or ray.data.Dataset
        Paths or patterns of rows with known true values that are new to the model, or a dataset.
    target : str
        The column of true values. Rows without one are left out.
    significance : float, default 0.01
        How often a model that keeps its promise may be called broken. Lower it if a false alarm is expensive.
    skip_corrupt : bool, default False
        Whether to go on without files that cannot be read. The notes name them.
    """
    if not 0 < significance < 1:
        raise ValueError(f"significance must lie strictly between 0 and 1, found {significance}.")
    connect()
    source = source_of(data, skip_corrupt)
    promise, fitted = model.calibration_.certificate.promise, model.fitted_
    _need_counts(model)
    names = names_of(source)
    if target not in names:
        raise ValueError(f"There is no column {target!r}. The columns are {listed(names, 10)}. Name one of them.")
    reader = Reader(kinds_of_any(model, names), target, source.like if isinstance(source, Files) else None)
    shared, run = Shared((model, reader)), task(_tallied)
    skipped = [path for path, _ in source.skipped] if isinstance(source, Files) else []
    total, missing = None, 0
    calls = (partial(_begun, run, shared, piece) for piece in pieces_of(source))
    for told, piece in in_order(calls, AHEAD * workers()):
        if isinstance(told, Failed):
            if not (skip_corrupt and told.is_corrupt):
                raise told.error()
            skipped.append(name_of(piece))
            continue
        own, absent = told
        missing += absent
        if own is not None:
            total = own if total is None else total + own
    if total is None:
        raise ValueError(f"The target {target!r} is missing in every row. Fill it in.")
    warn_of_missing(missing, missing + total.n)
    by_chance = Twins.among(fitted.used_prints, fitted.training_entities is None)
    used = used_rows(total.used, total.n, by_chance.most(total.n))
    found = judged(promise, total, used, fitted.doubts, significance)
    notes = (COUNTS_ONLY, *(f"guardband left out {name}, which it could not read." for name in skipped))
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
    if rule.promised_risk is not None or rule.target_names:
        raise ValueError("Ray audits promises of coverage for one target. Use `guardband audit` without --ray.")
    if model.belonging.names_entities or model.fitted_.has_labels:
        raise ValueError("The promise is for entities, whose rows must meet. Use `guardband audit` without --ray.")


def _begun(run: Any, shared: Shared, piece: Any) -> list[Any]:
    return [run.remote(shared, piece), piece]


def _tallied(shared: Shared, piece: Any) -> tuple[Tally | None, int] | Failed:
    """Return what is counted of the rows of a piece, None if no true value is known, and how many have none."""
    import torch

    torch.set_num_threads(1)
    model, reader = shared.get()
    total: Tally | None = None
    missing = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for table, y, absent in reader.rows(piece):
                missing += absent
                if len(y):
                    own = Tally.of(Evidence.of(model, table, y))
                    total = own if total is None else total + own
    except ValueError as error:
        return Failed.of(error)
    return total, missing
