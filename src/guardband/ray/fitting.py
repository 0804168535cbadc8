"""``guardband.ray.fit``: a table of many files, to a fitted and calibrated model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from guardband.data.grouping import group_names
from guardband.data.hash_split import HashSplit
from guardband.data.memory import BYTES_PER_CELL, GIB, memory
from guardband.data.storage import is_address
from guardband.data.tree_groups import AUTO
from guardband.doors.cross_checks import HELD_OUT, check_crossing
from guardband.exceptions import warn
from guardband.learning.options import FitOptions
from guardband.ray.cluster import connect
from guardband.ray.gathered import fit_gathered, noted
from guardband.ray.learning_rows import LearningRows, features_in, kinds_in, over_pieces
from guardband.ray.pieces import Reader, Source, source_of
from guardband.ray.sound import left_out_in_words, without_corrupt
from guardband.ray.sources import Files, Named
from guardband.ray.streamed import fit_streamed
from guardband.words import number

if TYPE_CHECKING:
    from ray.data import Dataset

    from guardband.doors.table import IntervalRegressor

SHARE = 0.5
"""Of the memory of the machine that has least, that one process may fill with rows unless it is told otherwise."""
MIB = 1 << 20
REFUSED: Mapping[str, tuple[Any, str]] = {
    "split_by_time": (False, "Rows are split by their hash. Split by time without Ray, or keep files of later rows."),
    "verbose": (None, "Workers show no progress. Remove it."),
}
"""Arguments that a fit on Ray has no way to use, with their defaults, and what to do instead."""


def fit(
    data: Named | Files | Dataset,
    *,
    target: str | Sequence[str],
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    memory_limit: int | None = None,
    checkpoints: str | os.PathLike[str] | None = None,
    skip_corrupt: bool = False,
    **params: Any,
) -> IntervalRegressor:
    """Return a model fitted to the rows of many files or of a Ray dataset, and calibrated on some of them.

    A hash of each row says whether it trains or calibrates. So the split is the same on any cluster and in any order of
    files. If one worker's memory can hold the rows, guardband gathers them and spreads the copies of the network over
    workers, and with cross-validation those of all folds. The result is that of one machine. Otherwise all workers
    train all copies together, each on its own files. The certificate says which way was taken, and why.

    Parameters
    ----------
    data : str, path, sequence of these or ray.data.Dataset
        Paths or patterns such as ``"in/*.parquet"``, or a dataset.
    target : str or sequence of str
        The column to predict. Rows without a value are left out. With ``targets="joint"`` or ``"each"``, several
        columns.
    columns : sequence of str, default None
        The columns to learn from. None means all others.
    drop : sequence of str, default ()
        Columns to leave out.
    memory_limit : int, default None
        How many bytes of rows one process may hold. None means half of the memory of the machine of the cluster that
        has least. A lower limit makes guardband train without gathering the rows.
    checkpoints : path, default None
        A folder that all machines see. Training goes on from there if a worker or this process dies. Without it, the
        networks of a worker that dies are trained from the start.
    skip_corrupt : bool, default False
        Whether to go on without files, or parts of Parquet files, that cannot be read. All are read once more to find
        them, and the certificate names them.
    **params : keywords
        The arguments of ``IntervalRegressor``. ``calibration_size`` is a share, and ``split_by`` names columns.
        Cross-validation (``calibration="cv+"``) needs rows that one worker's memory can hold.

    Returns
    -------
    IntervalRegressor
        The calibrated model.
    """
    options, split = asked(params)
    folder = None if checkpoints is None else os.fspath(checkpoints)
    if folder is not None and is_address(folder):
        raise ValueError("Checkpoints cannot be in object storage. Name a folder that all machines see.")
    connect()
    source = source_of(data, skip_corrupt)
    targets = _targets(target, params.get("targets"))
    features = features_in(source, targets, columns, drop)
    groups = params.get("groups")
    named = () if groups is None or groups == AUTO else group_names(groups)
    for what, wanted in (("split_by", split.keys), ("groups", named)):
        missing = [name for name in wanted if name not in features]
        if missing:
            raise ValueError(f"{what} names {missing[0]!r}, which is not among the columns to learn from. Add it.")
    if skip_corrupt and isinstance(source, Files):
        source = without_corrupt(source, [*features, *targets])
    like = source.like if isinstance(source, Files) else None
    rows = LearningRows(Reader(kinds_in(source, features), targets if options.targets else targets[0], like), split)
    limit = _limit(memory_limit)
    needed = _rows_in(source, rows) * (len(features) + 1) * BYTES_PER_CELL
    if needed > limit:
        model, way = fit_streamed(source, rows, params, options, folder), "No process held all rows"
    else:
        found = fit_gathered(source, rows, params, folder)
        model, way = found.model, "One process held all rows, and workers trained copies of the network"
        for own in found.warned:
            warn(own.words, own.category)
    why = f"{way}: rows need about {number(needed / MIB)} MiB of memory, and the limit is {number(limit / MIB)} MiB."
    model.fitted_ = noted(model.fitted_, why)
    if like is not None and source.skipped:
        model.fitted_ = noted(model.fitted_, left_out_in_words([name for name, _ in source.skipped]))
    return model


def asked(params: Mapping[str, Any]) -> tuple[FitOptions, HashSplit]:
    """Return what is asked for; what cannot be on Ray is refused, before anything is read.

    Parameters
    ----------
    params : dict
        The arguments of ``IntervalRegressor``.
    """
    from guardband.doors.table import IntervalRegressor

    every = IntervalRegressor(**params).get_params(deep=False)
    for name, (default, instead) in REFUSED.items():
        if every[name] != default:
            raise ValueError(f"{name}={every[name]!r} cannot be used on Ray. {instead}")
    options = FitOptions.of(every)
    check_crossing(every, options, {})
    share, seed, by = params.get("calibration_size", HELD_OUT), every["random_state"], every["split_by"]
    if isinstance(share, bool) or not isinstance(share, float) or not 0 < share < 1:
        raise ValueError(f"On Ray, calibration_size must be a share between 0 and 1, found {share!r}.")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ValueError(f"On Ray, random_state must be a whole number or None, found {seed!r}.")
    if callable(by):
        raise ValueError("On Ray, split_by must name columns, not be a function. Write its labels into a column.")
    keys = (by,) if isinstance(by, str) else tuple(by or ())
    return options, HashSplit(seed or 0, share, keys)


def _targets(target: str | Sequence[str], targets: Any) -> tuple[str, ...]:
    """Return the columns to predict; several must be asked for."""
    names = (target,) if isinstance(target, str) else tuple(target)
    if len(set(names)) < len(names) or not names:
        raise ValueError(f"target must name different columns, found {list(names)}. Name each once.")
    if len(names) > 1 and targets is None:
        raise ValueError('target names several columns. Add targets="joint", or targets="each".')
    if len(names) == 1 and targets is not None:
        raise ValueError(f"targets={targets!r} is for several targets. Name several columns, or remove targets.")
    return names


def _limit(given: int | None) -> float:
    if given is None:
        there = _least_memory()
        return SHARE * (16 * GIB if there is None else there)
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ValueError(f"memory_limit must be a number of bytes, found {given!r}. Give one such as 4 * 2**30.")
    return given


def _least_memory() -> int | None:
    """Return the bytes of memory of the machine that has least: each of them may gather the rows."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    import ray

    ask: Any = ray.remote(num_cpus=0)(memory)
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    there = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=True) for node in nodes if node["Alive"]]
    found = ray.get([ask.options(scheduling_strategy=own).remote() for own in there])
    return min((size for size in found if size is not None), default=None)


def _rows_in(source: Source, rows: LearningRows) -> int:
    """Return how many rows there are; those of CSV are counted."""
    if isinstance(source, Files) and source.rows is not None:
        return source.rows
    if not isinstance(source, Files):
        return int(source.count())
    return sum(over_pieces(source, _count, rows))


def _count(rows: LearningRows, piece: Any) -> int:
    return sum(len(batch) for batch, _ in piece.open(rows.reader.like).sound_batches(rows.reader.targets[:1]))
