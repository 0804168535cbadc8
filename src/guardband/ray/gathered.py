"""A fit of rows that one worker's memory holds: the rows are gathered and put in order, and the copies spread."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.fingerprint import Prints
from guardband.data.hash_split import HashSplit
from guardband.data.labelled_rows import warn_of_missing
from guardband.data.split import FEWEST_ROWS
from guardband.ray.cluster import RETRIES, Shared, fetched
from guardband.ray.copies import Spread
from guardband.ray.learning_rows import NO_TARGET, LearningRows, kept_of_pieces
from guardband.ray.pieces import Source
from guardband.ray.training_entities import labels_of

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
    shared = Shared((rows.split, dict(params), rows.reader.targets))
    found: Gathered = fetched(run.remote(references, shared, checkpoints))
    return deepcopy(found)  # arrays of Ray's store cannot be written to, of which torch warns when the model is saved


def in_order(parts: Sequence[Any], split: HashSplit) -> tuple[Any, Any]:
    """Return training rows and calibration rows, each in the order of their hashes.

    Parameters
    ----------
    parts : sequence of tables
        Rows with their targets and hashes.
    split : HashSplit
        Says which rows calibrate, and their order.
    """
    table, order = together(parts, split)
    calibrates = split.calibrates(table[PRINT].to_numpy())
    first, second = order[~calibrates[order]], order[calibrates[order]]
    for part, what in ((first, "train"), (second, "calibrate")):
        if len(part) < FEWEST_ROWS / 2:
            raise ValueError(
                f"Only {len(part):,} of {len(order):,} rows {what}, as their hashes say. Add rows, or change "
                "calibration_size or random_state."
            )
    return tuple(table.take(part) for part in (first, second))


def together(parts: Sequence[Any], split: HashSplit) -> tuple[Any, NDArray[np.intp]]:
    """Return all rows as one table, and their order, which does not depend on that of the parts.

    Parameters
    ----------
    parts : sequence of tables
        Rows with their targets and hashes.
    split : HashSplit
        Says their order.
    """
    import pyarrow as pa

    table = pa.concat_tables(parts, promote_options="permissive").unify_dictionaries()
    return table, split.order(table[PRINT].to_numpy(), divided(table)[1])


def joined(X: Any, y: NDArray[np.float64], prints: Prints) -> Any:
    """Return a table of rows with their targets, ``(n,)`` or ``(n, q)``, and their hashes.

    Parameters
    ----------
    X : table
        The rows.
    y : array of shape (n,) or (n, q)
        Their targets.
    prints : array of shape (n,)
        Their hashes.
    """
    import pyarrow as pa

    for j, own in enumerate(np.atleast_2d(y.T)):
        X = X.append_column(Y if y.ndim == 1 else f"{Y} {j}", pa.array(own))
    return X.append_column(PRINT, pa.array(prints))


def divided(table: Any) -> tuple[Any, NDArray[np.float64]]:
    """Return the rows and the targets of a table that ``joined`` made.

    Parameters
    ----------
    table : table
        Rows with their targets and hashes.
    """
    names = [name for name in table.column_names if name.startswith(Y)]
    y = np.array(table[Y]) if names == [Y] else np.stack([table[name].to_numpy() for name in names], axis=1)
    return table.drop_columns([*names, PRINT]), y


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


def said_of_folds(split: HashSplit) -> str:
    """Return how rows were divided into folds, for the certificate.

    Parameters
    ----------
    split : HashSplit
        How they were put in order before.
    """
    return (
        f"Rows were put in the order of their hashes with the seed {split.seed} and then divided into folds at random. "
        "The order of rows and files does not matter."
    )


def _kept(rows: LearningRows, piece: Any) -> tuple[tuple[int, int], Any]:
    """Return how many rows of a piece have a target and how many have none, and those that have one."""
    import pyarrow as pa

    tables, missing = [], 0
    for own, absent in rows.blocks_and_missing(piece):
        missing += absent
        if own is not None:
            if rows.split.keys:
                labels_of(rows, own, piece)  # which refuses missing ones, while it is known where they are
            tables.append(joined(own.X, own.y, own.prints))
    whole = pa.concat_tables(tables, promote_options="permissive") if tables else None
    return (0 if whole is None else len(whole), missing), whole


def _fit(references: Sequence[Any], shared: Shared, checkpoints: str | None) -> Gathered:
    import ray
    from guardband.doors.table import IntervalRegressor

    split, params, names = shared.get()
    parts, calibration = ray.get(list(references)), None
    if params.get("calibration", "split") == "split":
        params, (training, calibration) = params | {"calibration_size": None}, in_order(parts, split)
        said = said_of_split(len(training), len(calibration), split)
    else:  # all rows train and calibrate, in folds
        table, order = together(parts, split)
        training, said = table.take(order), said_of_folds(split)
    about = hashlib.sha256(training[PRINT].to_numpy().tobytes() + repr(sorted(params.items())).encode()).hexdigest()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = IntervalRegressor(**params)
        X, y = _named(training, names)
        model._fit(X, y, trainer=Spread(checkpoints, about))
        if calibration is not None:
            model.calibrate(*_named(calibration, names))
    model.fitted_ = noted(model.fitted_, said)
    return Gathered(model, tuple(Warned(own.category, str(own.message)) for own in caught))


def _named(table: Any, names: Sequence[str]) -> tuple[Any, Any]:
    """Return rows and their targets, of several a table with these names."""
    import pyarrow as pa

    X, y = divided(table)
    return (X, y) if y.ndim == 1 else (X, pa.table(dict(zip(names, y.T, strict=True))))


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
