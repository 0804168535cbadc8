"""A monitor's state in one file: arrays by safetensors, everything else as JSON, with a checksum. No pickle.

The file appears whole or not at all. Who writes it says which file it began from: if another process has written since,
nothing is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, ValidationError, convert
from msgspec import field as entry
from msgspec.json import decode
from numpy.typing import NDArray
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from guardband.data.files import locked_folder, place_of, write_whole
from guardband.exceptions import ModelFileError
from guardband.monitor.cells import ColumnCells
from guardband.monitor.evidence_process import Stream
from guardband.monitor.history import History
from guardband.monitor.inputs import Inputs, MovedColumn
from guardband.monitor.key_set import KeySet
from guardband.monitor.rows import PredictedRows
from guardband.monitor.state import State
from guardband.monitor.state_checks import check_columns, check_state, need
from guardband.monitor.tables import KEPT

SCHEMA = 1
KEY_SETS = ("counted", "entities")
AGAIN = "Restore the file from a copy, or begin a new state."
Arrays = dict[str, NDArray[Any]]


class Kept(Struct, frozen=True, forbid_unknown_fields=True):
    """What a file holds beside its arrays."""

    schema: int
    certificate: dict[str, Any]
    model: str
    significance: float
    columns: list[ColumnCells]
    streams: list[Stream]
    history_size: int
    look: int
    moved: list[MovedColumn]
    log_evidence: float
    peak: float
    alarm_row: int | None
    alarm_statement: int | None
    time_is: str
    used_before: int
    came_late: int
    split: int
    chain: list[dict[str, str]]


class _Header(Struct):
    metadata: dict[str, str] = entry(name="__metadata__", default_factory=dict)


def write_state(path: Path, entries: Mapping[str, Any], state: State, base: str) -> str:
    """Write a state and return the checksum of the file.

    ``base`` is the checksum of the file that the state goes on from, empty for none. If another file is there now,
    nothing is written.
    """
    arrays = _arrays(state)
    text = json.dumps({"schema": SCHEMA, **entries, **_entries(state)}, sort_keys=True)
    checksum = _checksum(text, arrays)
    body = to_bytes(arrays, metadata={"guardband-monitor": text, "sha256": checksum})
    place = place_of(path)
    with locked_folder(place.parent):  # nobody may replace the file between the look at it and its replacement
        need_base(path, base)
        write_whole(path, lambda part: part.write_bytes(body))
    return checksum


def need_base(path: Path, base: str) -> None:
    """Raise if a file is there other than the one with the checksum ``base``."""
    place = place_of(path)
    if place.exists() and _read(place)[2] != base:
        raise ValueError(
            f"{path} was written by another process, and nothing was saved here. Load it again, and repeat the update."
        )


def read_state(path: Path) -> tuple[Kept, State, str]:
    """Return what a file holds, its state and its checksum; what was changed or cut short is refused."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no monitor's state at {path}. Check the path.")
    kept, arrays, checksum = _read(path)
    try:
        return kept, _state(kept, arrays), checksum
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise ModelFileError(f"{path} is no valid state of a monitor: {error}. {AGAIN}") from error


def _read(path: Path) -> tuple[Kept, Arrays, str]:
    try:
        body = path.read_bytes()
        arrays = from_bytes(body)
        metadata = decode(body[8 : 8 + int.from_bytes(body[:8], "little")], type=_Header).metadata
    except Exception as error:  # of safetensors and msgspec, whose kinds are theirs to choose
        raise ModelFileError(f"{path} is no state of a monitor, or it is damaged. {AGAIN}") from error
    text = metadata.get("guardband-monitor")
    if text is None:
        raise ModelFileError(f"{path} is no state of a monitor. Check the path.")
    checksum = _checksum(text, arrays)
    if metadata.get("sha256") != checksum:
        raise ModelFileError(f"{path} was changed after it was written: its checksum does not match. {AGAIN}")
    try:
        entries = json.loads(text)
        if entries.get("schema") != SCHEMA:
            raise ModelFileError(f"{path} was written by another version of guardband. Begin a new state.")
        return convert(entries, Kept), arrays, checksum
    except (ValidationError, AttributeError, RecursionError, UnicodeError, json.JSONDecodeError) as error:
        raise ModelFileError(f"{path} is no valid state of a monitor: {str(error)[:200]}. {AGAIN}") from error


def _entries(state: State) -> dict[str, Any]:
    return {
        "streams": [asdict(own) for own in state.streams],
        "history_size": state.history.size,
        "look": state.inputs.look,
        "moved": [asdict(own) for own in state.inputs.moved],
        "log_evidence": state.log_evidence,
        "peak": state.peak,
        "alarm_row": state.alarm_row,
        "alarm_statement": state.alarm_statement,
        "time_is": state.time_is,
        "used_before": state.used_before,
        "came_late": state.came_late,
        "split": state.split,
    }


def _arrays(state: State) -> Arrays:
    out: Arrays = {f"history_{own.name}": getattr(state.history, own.name) for own in fields(History)[1:]}
    out |= {"inputs": state.inputs.counts, "waiting_keys": state.waiting_keys, "tables": state.tables}
    for name in KEY_SETS:
        own = getattr(state, name).in_order()
        out |= {name: own.settled, f"{name}_rows": own.rows}
    if state.waiting is not None:
        out |= {f"waiting_{own.name}": getattr(state.waiting, own.name) for own in fields(PredictedRows)}
    return {name: np.ascontiguousarray(own) for name, own in out.items()}


def _state(kept: Kept, arrays: Arrays) -> State:
    columns = len(kept.columns)
    check_columns(kept.columns)
    need(0 < kept.significance < 1, "its significance is no share")
    history = History(kept.history_size, **{own.name: arrays[f"history_{own.name}"] for own in fields(History)[1:]})
    empty = State.empty(len(kept.streams), columns)
    for own in fields(History)[1:]:
        _need_like(arrays[f"history_{own.name}"], getattr(empty.history, own.name), own.name)
    _need_like(arrays["inputs"], empty.inputs.counts, "inputs")
    digests = {name: arrays[name] for name in ("waiting_keys", "tables", *KEY_SETS)}
    need(len(digests["tables"]) % KEPT == 0, "its tables are cut short")
    need(all(own.dtype == np.uint64 and own.ndim == 1 for own in digests.values()), "its keys are of another kind")
    need(
        all(
            arrays[f"{name}_rows"].dtype == np.int64 and arrays[f"{name}_rows"].shape == digests[name].shape
            for name in KEY_SETS
        ),
        "its keys have no rows",
    )
    need(all((digests[name][1:] > digests[name][:-1]).all() for name in KEY_SETS), "its keys are not in order")
    waiting = None
    if "waiting_point" in arrays:
        waiting = PredictedRows(**{own.name: arrays[f"waiting_{own.name}"] for own in fields(PredictedRows)})
    state = State(
        streams=tuple(kept.streams),
        history=history,
        inputs=Inputs(arrays["inputs"], kept.look, tuple(kept.moved)),
        waiting=waiting,
        log_evidence=kept.log_evidence,
        peak=kept.peak,
        alarm_row=kept.alarm_row,
        alarm_statement=kept.alarm_statement,
        time_is=kept.time_is,
        used_before=kept.used_before,
        came_late=kept.came_late,
        split=kept.split,
        waiting_keys=arrays["waiting_keys"],
        tables=arrays["tables"],
        **{name: KeySet(arrays[name], arrays[f"{name}_rows"]) for name in KEY_SETS},
    )
    check_state(state)
    return state


def _need_like(array: NDArray[Any], like: NDArray[Any], name: str) -> None:
    need(array.dtype == like.dtype and array.shape == like.shape, f"{name} has another shape")


def _checksum(text: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        own = arrays[name]
        digest.update(f"{name} {own.dtype} {own.shape}".encode())
        digest.update(np.ascontiguousarray(own).tobytes())
    return digest.hexdigest()
