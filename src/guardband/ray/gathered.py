"""A fit of rows that one worker's memory holds: the rows are gathered and put in order, and the copies spread."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from guardband.data.hash_split import HashSplit
from guardband.data.labelled_rows import warn_of_missing
from guardband.data.split import FEWEST_ROWS
from guardband.ray.cluster import RETRIES, Shared
from guardband.ray.copies import Spread
from guardband.ray.learning_rows import NO_TARGET, LearningRows, kept_of_pieces
from guardband.ray.pieces import Source

if TYPE_CHECKING:
    from guardband.doors.table import IntervalRegressor

Y, PRINT = "guardband y", "guardband print"


@dataclass(frozen=True)
class Warned:
    """A warning that was given on a worker."""

    category: type[Warning]
    words: str


@dataclass(frozen=True)
class Gathered:
    """What a fit of gathered rows gave.

    Parameters
    ----------
    model : IntervalRegressor
        The model.
    warned : tuple of Warned
        What it warned of.
    """

    model: IntervalRegressor
    warned: tuple[Warned, ...]


def fit_gathered(source: Source, rows: LearningRows, params: Mapping[str, Any], checkpoints: str | None) -> Gathered:
    """Return the model that is fitted on one machine to the same rows, in the order of their hashes.

    Parameters
    ----------
    source : Files or ray.data.Dataset
        The rows.
    rows : LearningRows
        How they are read and split.
    params : dict
        The arguments of ``IntervalRegressor``.
    checkpoints : str or None
        A folder for checkpoints.
    """
    import ray

    known = missing = 0
    references = []
    for (n, absent), reference in kept_of_pieces(source, _kept, rows):
        known, missing = known + n, missing + absent
        references += [reference] if n else []
    if not known:
        raise ValueError(NO_TARGET)
    warn_of_missing(missing, missing + known)
    run = ray.remote(num_cpus=0, max_retries=RETRIES)(_fit)
    found: Gathered = ray.get(run.remote(references, Shared((rows.split, dict(params))), checkpoints))
    return found


def in_order(parts: Sequence[Any], split: HashSplit) -> tuple[Any, Any]:
    """Return training rows and calibration rows, each in the order of their hashes.

    Parameters
    ----------
    parts : sequence of tables
        Rows with their targets and hashes.
    split : HashSplit
        Says which rows calibrate, and their order.
    """
    import pyarrow as pa

    table = pa.concat_tables(parts, promote_options="permissive").unify_dictionaries()
    prints, y = table[PRINT].to_numpy(), table[Y].to_numpy()
    order, calibrates = split.order(prints, y), split.calibrates(prints)
    first, second = order[~calibrates[order]], order[calibrates[order]]
    for part, what in ((first, "train"), (second, "calibrate")):
        if len(part) < FEWEST_ROWS / 2:
            raise ValueError(
                f"Only {len(part):,} of {len(order):,} rows {what}, as their hashes say. Add rows, or change "
                "calibration_size or random_state."
            )
    return tuple(table.take(part) for part in (first, second))


def said_of_split(training: int, calibration: int, split: HashSplit) -> str:
    """Return how rows were split, for the certificate.

    Parameters
    ----------
    training : int
        The number of training rows.
    calibration : int
        The number of calibration rows.
    split : HashSplit
        How they were split.
    """
    by = f"of {', '.join(split.keys)}" if split.keys else "of each row"
    share = f"{calibration:,} of {training + calibration:,} rows"
    return (
        f"Rows were split by a hash {by} with the seed {split.seed}: {share} calibrate. Equal rows stay "
        "together, and the order of rows and files does not matter."
    )


def _kept(rows: LearningRows, piece: Any) -> tuple[tuple[int, int], Any]:
    """Return how many rows of a piece have a target and how many have none, and those that have one."""
    import pyarrow as pa

    tables, missing = [], 0
    for own, absent in rows.blocks_and_missing(piece):
        missing += absent
        if own is not None:
            tables.append(own.X.append_column(Y, pa.array(own.y)).append_column(PRINT, pa.array(own.prints)))
    whole = pa.concat_tables(tables, promote_options="permissive") if tables else None
    return (0 if whole is None else len(whole), missing), whole


def _fit(references: Sequence[Any], shared: Shared, checkpoints: str | None) -> Gathered:
    import ray
    from guardband.doors.table import IntervalRegressor

    split, params = shared.get()
    parts = ray.get(list(references))
    training, calibration = in_order(parts, split)
    about = hashlib.sha256(training[PRINT].to_numpy().tobytes() + repr(sorted(params.items())).encode()).hexdigest()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = IntervalRegressor(**params | {"calibration_size": None})
        own = training.drop_columns([Y, PRINT])
        model._fit(own, np.array(training[Y]), trainer=Spread(checkpoints, about))
        model.calibrate(calibration.drop_columns([Y, PRINT]), np.array(calibration[Y]))
    model.fitted_ = noted(model.fitted_, said_of_split(len(training), len(calibration), split))
    return Gathered(model, tuple(Warned(own.category, str(own.message)) for own in caught))


def noted(fitted: Any, note: str) -> Any:
    """Return what was fitted, with a note in its certificate.

    Parameters
    ----------
    fitted : Fitted
        A calibrated model's.
    note : str
        The sentences.
    """
    calibrated = fitted.calibrated
    return replace(fitted, calibrated=replace(calibrated, notes=(note, *calibrated.notes)))
