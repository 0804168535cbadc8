"""Predictions on Ray: a dataset with three columns more, or a folder of files that are whole and there once."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.bands.levels import Level
from guardband.data.disk import DiskTable
from guardband.data.files import locked_folder, write_whole
from guardband.doors.bands import BandCalibrator
from guardband.doors.table_model import TableModel
from guardband.ray.cluster import Failed, Shared, connect, in_order, task, workers
from guardband.ray.models import kinds_of_model
from guardband.ray.pieces import Reader, name_of, names_of
from guardband.ray.sources import FILE, ROW, Files, Part, read
from guardband.ray.weighing import weighting_of_new, with_weight_column

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

NOTES = ".guardband"
"""The folder inside the output that says what is done."""
PLAN, DONE = "plan.json", "DONE"
AHEAD = 4

WritePart = Callable[[DiskTable, Path], Mapping[str, Any]]
"""Writes the rows of a table with their intervals to a file, and returns what is to be said of them, for JSON."""


def predict(
    model: Any,
    data: str | Sequence[str] | Dataset,
    *,
    confidence_level: Level | Sequence[Level] | None = None,
) -> Dataset:
    """Return a Ray dataset of the rows with their predictions and the ends of their intervals.

    Rows keep their order and their columns. Nothing is computed before the dataset is used.

    Parameters
    ----------
    model : IntervalRegressor or BandCalibrator
        The calibrated model.
    data : str, sequence of str or ray.data.Dataset
        Paths or patterns such as ``"in/*.parquet"`` of new rows, or a dataset.
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
    said : tuple of dicts
        What was said of each part, in order.
    skipped : tuple of str
        What could not be read, in words.
    again : int
        How many parts were there before.
    """

    said: tuple[Mapping[str, Any], ...]
    skipped: tuple[str, ...]
    again: int


def score_files(
    files: Files,
    folder: Path,
    write: WritePart,
    ending: str,
    plan: Mapping[str, Any],
    skip_corrupt: bool = False,
    on_part: Callable[[int, int], object] = lambda done, of: None,
) -> Scored:
    """Write a file for each part of the input; parts that an earlier run finished are left as they are.

    A part's file appears whole, under a name that says which rows it holds and sorts as they do. Beside it stands a
    note with its size, which is written after it. So a part with its note is done, and any other is begun anew.

    Parameters
    ----------
    files : Files
        The rows.
    folder : Path
        The folder to write to. Workers write to it themselves.
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
    notes = folder / NOTES
    notes.mkdir(parents=True, exist_ok=True)
    with locked_folder(notes, waits=False) as is_ours:
        if not is_ours:
            raise ValueError(f"Another run writes to {folder}. Wait until it has ended, or choose another folder.")
        _need_plan(notes / PLAN, folder, plan, files)
        before = {part for part in files.parts if _said(folder, part, ending) is not None}
        shared, run = Shared((write, files.like, folder, ending)), task(_write)
        left = [part for part in files.parts if part not in before]
        calls = (partial(_begun, run, shared, part) for part in left)
        skipped = [f"{path} ({why})" for path, why in files.skipped]
        for count, (failed, part) in enumerate(in_order(calls, AHEAD * workers()), 1):
            if failed is not None:
                if not (skip_corrupt and failed.is_corrupt):
                    raise failed.error()
                skipped.append(f"{name_of(part)} ({failed.why})")
            on_part(len(before) + count, len(files.parts))
        said = [own for part in files.parts if (own := _said(folder, part, ending)) is not None]
        write_whole(folder / DONE, lambda path: path.write_text(json.dumps({"parts": len(said), "skipped": skipped})))
    return Scored(tuple(said), tuple(skipped), len(before))


def file_of(folder: Path, part: Part, ending: str) -> Path:
    """Return the file of a part.

    Parameters
    ----------
    folder : Path
        The folder of the output.
    part : Part
        The part.
    ending : str
        The ending of its name.
    """
    return folder / f"{part.name}-{Path(part.path).name.split('.')[0]}{ending}"


def _begun(run: Any, shared: Shared, part: Part) -> list[Any]:
    return [run.remote(shared, part), part]


def _write(shared: Shared, part: Part) -> Failed | None:
    """Write the file of a part, then its note."""
    import torch

    torch.set_num_threads(1)
    write, like, folder, ending = shared.get()
    place, said = file_of(folder, part, ending), {}

    def make(path: Path) -> None:
        nonlocal said
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = dict(write(part.open(like), path))

    try:
        write_whole(place, make)
        note = {"bytes": place.stat().st_size, "said": said}
        write_whole(_note(folder, part), lambda path: path.write_text(json.dumps(note)))
    except (ValueError, OSError) as error:  # such as a disk that is full
        return Failed.of(error)
    return None


def _note(folder: Path, part: Part) -> Path:
    return folder / NOTES / f"{part.name}.json"


def _said(folder: Path, part: Part, ending: str) -> Mapping[str, Any] | None:
    """Return what was said of a part that is done, None if it is not."""
    try:
        note = json.loads(_note(folder, part).read_text())
        is_whole = file_of(folder, part, ending).stat().st_size == note["bytes"]
    except (OSError, ValueError, KeyError):
        return None
    said: Mapping[str, Any] = note["said"]
    return said if is_whole else None


def _need_plan(path: Path, folder: Path, plan: Mapping[str, Any], files: Files) -> None:
    """Write down what the folder will hold; raise if it holds something else."""
    own = {**plan, "files": sha256(json.dumps(list(_known(files))).encode()).hexdigest()}
    if path.exists():
        try:
            found = json.loads(path.read_text())
        except ValueError:
            found = None
        if found != own:
            raise ValueError(
                f"{folder} holds the result of other files, another model or other options. Choose another folder, or "
                "remove this one."
            )
        return
    others = [name for name in os.listdir(folder) if name != NOTES]
    if others:
        raise ValueError(f"{folder} is not empty: it has {others[0]}. Choose another folder.")
    write_whole(path, lambda part: part.write_text(json.dumps(own)))


def _known(files: Files) -> Iterator[Any]:
    """Yield what says that files are the same: names, sizes, times of change, and how they are cut into parts."""
    for path in files.paths:
        about = os.stat(path)
        yield [path, about.st_size, about.st_mtime_ns]
    for part in files.parts:
        yield asdict(part)
