"""Predictions on Ray: a dataset with three columns more, or a folder of files that are whole and there once."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.bands.levels import Level
from guardband.data.disk import DiskTable, NoRowsError
from guardband.data.storage import StorageError, is_address, name_of_file
from guardband.doors.bands import BandCalibrator
from guardband.doors.table_model import TableModel
from guardband.ray.cluster import Failed, Shared, connect, in_order, task, workers
from guardband.ray.folders import NOTES, Folder, folder_at, write_json
from guardband.ray.models import kinds_of_model
from guardband.ray.pieces import Reader, name_of, names_of
from guardband.ray.sources import FILE, ROW, Files, Named, Part, read
from guardband.ray.weighing import weighting_of_new, with_weight_column

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

PLAN, DONE = f"{NOTES}/plan.json", "DONE"
AHEAD = 4
NOTES_AT_ONCE = 16
LONGEST_NAME = 180
"""So many bytes of an input's name are in that of its output: disks allow 255, of which unfinished files need 60."""

WritePart = Callable[[DiskTable, Path], Mapping[str, Any]]
"""Writes the rows of a table with their intervals to a file, and returns what is to be said of them, for JSON."""


def predict(
    model: Any,
    data: Named | Dataset,
    *,
    confidence_level: Level | Sequence[Level] | None = None,
) -> Dataset:
    """Return a Ray dataset of the rows with their predictions and the ends of their intervals.

    Rows keep their order and their columns. Nothing is computed before the dataset is used.

    Parameters
    ----------
    model : IntervalRegressor or BandCalibrator
        The calibrated model.
    data : str, path, sequence of these or ray.data.Dataset
        Paths or patterns such as ``"in/*.parquet"`` or ``"s3://bucket/in/*.parquet"`` of new rows, or a dataset.
    confidence_level : float or sequence of float, default None
        Other levels than the model's own.

    Returns
    -------
    ray.data.Dataset
        The rows with the columns ``point``, ``lower`` and ``upper``. Of several levels each has its own.
    """
    connect()
    given = read(data)
    calibrated = model.calibration_.at(confidence_level, None)
    names = [name for name in names_of(given) if name not in (FILE, ROW)]
    reader = Reader(kinds_of_any(model, names))
    shared = Shared((model, calibrated, reader))
    made: Dataset = given.map_batches(partial(_with_intervals, shared), batch_size=None, batch_format="pyarrow")
    return made


def kinds_of_any(model: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the columns that a model or a rule needs, and what each is.

    Parameters
    ----------
    model : TableModel or BandCalibrator
        The model.
    names : sequence of str
        The columns that there are.
    """
    if isinstance(model, TableModel):
        return with_weight_column(kinds_of_model(model, names), weighting_of_new(model), names)
    if not isinstance(model, BandCalibrator):
        raise TypeError(f"predict takes an IntervalRegressor or a BandCalibrator, found {type(model).__name__}.")
    kinds: dict[str, Any] = dict.fromkeys(model.columns.names, "number")
    if model.grouping is not None:
        kinds = {column.name: column.kind for column in model.grouping.columns} | kinds
    missing = [name for name in kinds if name not in names]
    if missing:
        raise ValueError(f"The data lack the column {missing[0]!r}. Write the predictions under this name.")
    return with_weight_column(kinds, weighting_of_new(model), names)


def _with_intervals(shared: Shared, block: pa.Table) -> pa.Table:
    """Return the rows of a block with their intervals."""
    import pyarrow as pa
    import torch

    torch.set_num_threads(1)
    model, calibrated, reader = shared.get()
    given = block.drop_columns([name for name in (FILE, ROW) if name in block.column_names])
    if not len(block):
        return given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ((table, _, _),) = reader.rows(block)
        bands = model.intervals_of(model.read_rows(table, to_predict=True), calibrated)
    added = replace(bands, input_names=tuple(given.column_names)).columns(False)
    for name, values in added.items():
        given = given.append_column(name, pa.array(values))
    return given


@dataclass(frozen=True)
class Scored:
    """What is known of files that were written.

    Parameters
    ----------
    said : dict of int to dicts
        What was said of each part that has rows, by its number.
    skipped : tuple of str
        What could not be read, in words.
    again : int
        How many of these parts were there before.
    """

    said: Mapping[int, Mapping[str, Any]]
    skipped: tuple[str, ...]
    again: int


def score_files(
    files: Files,
    folder: str | Path,
    write: WritePart,
    ending: str,
    plan: Mapping[str, Any],
    skip_corrupt: bool = False,
    on_part: Callable[[int, int], object] = lambda done, of: None,
) -> Scored:
    """Write a file for each part of the input; parts that an earlier run finished are left as they are.

    A part's file appears whole, under a name that says which rows it holds and sorts as they do. Beside it stands a
    note with its size, which is written after it. So a part with its note is done, and any other is begun anew. A part
    without rows has a note alone.

    Parameters
    ----------
    files : Files
        The rows.
    folder : str or Path
        The folder to write to, or its address in object storage. Workers write to it themselves.
    write : function of a DiskTable and a path
        Writes the rows of a part with their intervals.
    ending : str
        The ending of the files, such as ".parquet".
    plan : dict
        What else decides what the files hold, such as a checksum of the model. A folder holds the result of one plan.
    skip_corrupt : bool, default False
        Whether to go on without parts that cannot be read.
    on_part : function of two numbers
        Is told how many parts are done, and of how many.
    """
    out = folder_at(folder)
    with out.locked() as is_ours:
        if not is_ours:
            raise ValueError(f"Another run writes to {out}. Wait until it has ended, or choose another folder.")
        own = {**plan, "files": sha256(json.dumps(list(_known(files))).encode()).hexdigest()}
        sizes = out.sizes()
        if PLAN not in sizes:
            _need_empty(out, sizes)
            write_json(out, PLAN, own)
        _need_plan(out, own)
        said: dict[Part, Mapping[str, Any] | None] = _done(out, files, ending, sizes)
        again, before = len(said), sum(own is not None for own in said.values())
        shared, run = Shared((write, files.like, out, ending)), task(_write)
        calls = (partial(_begun, run, shared, part) for part in files.parts if part not in said)
        skipped = [f"{path} ({why})" for path, why in files.skipped]
        for count, (told, part) in enumerate(in_order(calls, AHEAD * workers()), again + 1):
            if not isinstance(told, Failed):
                said[part] = told
            elif skip_corrupt and told.is_corrupt:
                skipped.append(f"{name_of(part)} ({told.why})")
            else:
                raise told.error()
            on_part(count, len(files.parts))
        with_rows = {i: each for i, each in enumerate(map(said.get, files.parts)) if each is not None}
        if not with_rows and not skipped:
            raise NoRowsError(f"{files.like.label} has column names, but no rows: add rows below them.")
        _need_plan(out, own)  # where nothing can be locked, another run may have begun at nearly the same time
        write_json(out, DONE, {"parts": len(with_rows), "skipped": skipped})
    return Scored(with_rows, tuple(skipped), before)


def _begun(run: Any, shared: Shared, part: Part) -> list[Any]:
    return [run.remote(shared, part), part]


def _write(shared: Shared, part: Part) -> Mapping[str, Any] | None:
    """Write the file of a part, then its note; return what is said of it, which is None if it has no rows."""
    import torch

    torch.set_num_threads(1)
    write, like, folder, ending = shared.get()
    said: Mapping[str, Any] | None = None

    def make(path: Path) -> None:
        nonlocal said
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = dict(write(part.open(like), path))

    try:
        size: int | None = folder.write(_file(part, ending), make)
    except NoRowsError:
        size = None
    write_json(folder, _note(part), {"bytes": size, "said": said})
    return said


def _file(part: Part, ending: str) -> str:
    name = name_of_file(part.path).split(".")[0].encode(errors="surrogateescape")[:LONGEST_NAME]
    return f"{part.name}-{name.decode(errors='ignore')}{ending}"


def _note(part: Part) -> str:
    return f"{NOTES}/{part.name}.json"


def _done(folder: Folder, files: Files, ending: str, sizes: Mapping[str, int]) -> dict[Part, Mapping[str, Any] | None]:
    """Return what was said of the parts that are done: those whose file is as large as their note says, if any."""

    def said(part: Part) -> list[Mapping[str, Any] | None]:
        try:
            note = json.loads(folder.read(_note(part)))
            return [note["said"]] if note["bytes"] == sizes.get(_file(part, ending)) else []
        except (OSError, ValueError, KeyError, TypeError):
            return []

    parts = [part for part in files.parts if _note(part) in sizes]
    with ThreadPoolExecutor(NOTES_AT_ONCE) as pool:
        found = zip(parts, pool.map(said, parts), strict=True)
        return {part: own for part, each in found for own in each}


def _need_empty(folder: Folder, sizes: Mapping[str, int]) -> None:
    others = sorted(name for name in sizes if name.split("/")[0] != NOTES)
    if others:
        raise ValueError(f"{folder} is not empty: it has {others[0]}. Choose another folder.")


def _need_plan(folder: Folder, own: Mapping[str, Any]) -> None:
    """Raise unless the folder is for the result of these files, this model and these options."""
    try:
        found = json.loads(folder.read(PLAN))
    except StorageError:
        raise
    except ValueError:
        found = None
    if found != own:
        raise ValueError(
            f"{folder} holds the result of other files, another model or other options. Choose another folder, or "
            "remove this one."
        )


def _known(files: Files) -> Iterator[Any]:
    """Yield what says that files are the same: names, sizes, times of change, and how they are cut into parts.

    What an object is, its part says.
    """
    for path in files.paths:
        about = None if is_address(path) else os.stat(path)
        yield [path] if about is None else [path, about.st_size, about.st_mtime_ns]
    for part in files.parts:
        yield asdict(part)
