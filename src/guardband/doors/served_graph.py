"""A calibrated network as an ONNX graph in a folder, with its checksum, and its intervals by onnxruntime.

A graph is a list of standard operations and numbers: reading it runs no code from it, and opens no other file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from guardband.data.files import write_whole
from guardband.data.packages import need_packages
from guardband.doors.export import OUTPUTS, export_onnx
from guardband.doors.network import GuardedNetwork
from guardband.exceptions import MissingModelFileError, ModelFileError
from guardband.training.threads import allowed_threads

GRAPH, CHECKSUM = "network.onnx", "network.onnx.sha256"
LARGEST = 3 * 2**29
"""The most bytes of weights: a graph of over two gigabytes cannot be one file."""
STANDARD = ("", "ai.onnx")
"""The names under which ONNX's own operations go. Others may read files, or come from a library."""
LOOP = "Loop"
"""The operation that repeats a part of the graph as often as the graph itself says."""

Numbers = NDArray[np.float32]


def write_graph(guarded: GuardedNetwork, example: Tensor, folder: Path) -> None:
    """Write a calibrated network's graph and its checksum into a folder."""
    need_packages("mlflow", "onnx", "onnxscript", "onnxruntime")
    weights = sum(t.nbytes for t in guarded.state_dict().values())
    if weights > LARGEST:
        raise ValueError(
            f"A network must have at most {LARGEST / 1e9:.1f} GB of weights to become an ONNX graph, found "
            f"{weights / 1e9:.1f} GB. Keep it by its save method."
        )
    try:
        export_onnx(guarded, example, folder / GRAPH)
    except Exception as error:
        raise ValueError(
            f"This network cannot be written as an ONNX graph: {_reason(error)}. Use operations that torch.onnx knows, "
            "or keep the network by its save method."
        ) from error
    if fault := _fault_of((folder / GRAPH).read_bytes()):
        (folder / GRAPH).unlink()
        raise ValueError(f"This network cannot be written as an ONNX graph: it {fault}. Keep it by its save method.")
    text = f"{_digest((folder / GRAPH).read_bytes())}  {GRAPH}\n"  # as the program sha256sum writes and checks it
    write_whole(folder / CHECKSUM, lambda part: part.write_text(text))


class ServedGraph:
    """The graph that ``write_graph`` put into a folder. One that is damaged, or reaches outside its file, is refused.

    A checksum finds damage. It is no signature: who can change the graph can change the checksum.
    """

    def __init__(self, folder: Path) -> None:
        need_packages("mlflow", "onnx", "onnxruntime")
        self._place = folder / GRAPH
        for name in (GRAPH, CHECKSUM):
            if not (folder / name).is_file():
                raise MissingModelFileError(f"There is no file {name} in {folder}. Save the model again.")
        if self._place.stat().st_size > 2**31:
            raise self._unusable("is over two gigabytes")
        body = self._place.read_bytes()
        line = f"{_digest(body)}  {GRAPH}\n".encode()
        with (folder / CHECKSUM).open("rb") as file:
            known = file.read(len(line) + 1)
        if known != line:
            raise self._unusable("is damaged: its checksum does not match")
        if fault := _fault_of(body):
            raise self._unusable(fault)
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.log_severity_level = 4  # what is wrong is raised, not printed
        options.intra_op_num_threads = allowed_threads()
        # Else a graph could pass for onnxruntime's own format by its first bytes, which is not checked here.
        options.add_session_config_entry("session.load_model_format", "ONNX")
        try:
            self._session = runtime.InferenceSession(
                body,
                options,
                providers=["CPUExecutionProvider"],
                enable_fallback=0,  # which would print
            )
        except Exception as error:
            raise self._unusable("holds no graph that onnxruntime can compute") from error
        takes, gives = self._session.get_inputs(), self._session.get_outputs()
        kinds = {port.type for port in (*takes, *gives)}
        if len(takes) != 1 or tuple(port.name for port in gives) != OUTPUTS or kinds != {"tensor(float)"}:
            raise self._unusable("is not a graph of intervals")
        self._input, self._shape = takes[0].name, takes[0].shape

    def __call__(self, rows: NDArray[Any]) -> tuple[Numbers, Numbers, Numbers]:
        """Return lower, point and upper of each row, ``(n, ...) -> (n,)``."""
        rows = np.ascontiguousarray(rows, dtype=np.float32)
        expected = [size if isinstance(size, int) else None for size in self._shape[1:]]
        if rows.ndim != len(self._shape) or any(
            size not in (None, own) for size, own in zip(expected, rows.shape[1:], strict=True)
        ):
            wanted = ", ".join("any" if size is None else str(size) for size in expected)
            raise ValueError(f"The model takes rows of the shape ({wanted}), found {rows.shape[1:]}. Change the rows.")
        if not len(rows):  # which end the process in some of onnxruntime's operations, such as LSTM
            return (np.empty(0, np.float32),) * 3
        try:
            lower, point, upper = self._session.run(list(OUTPUTS), {self._input: rows})
        except Exception as error:
            raise self._unusable("holds a graph that cannot be computed for these rows") from error
        if not all(isinstance(end, np.ndarray) and end.shape == (len(rows),) for end in (lower, point, upper)):
            raise self._unusable("does not give one interval for each row")
        if np.isnan(lower).any() or np.isnan(upper).any():  # guardband's own graphs give infinity there
            raise self._unusable("gives ends of intervals that are no numbers")
        return lower, point, upper

    def _unusable(self, why: str) -> ModelFileError:
        return ModelFileError(f"{self._place} {why}. Save the model again, or get the folder anew.")


def _fault_of(body: bytes) -> str | None:
    """Return what speaks against a graph: other operations than ONNX's own, repetition, numbers in other files."""
    onnx = import_module("onnx")
    try:
        model = onnx.ModelProto.FromString(body)
    except Exception:  # the kind of error differs between versions of protobuf
        return "holds no graph"
    if model.functions:  # which may call themselves
        return "defines operations of its own"
    for message in _messages(model):
        if isinstance(message, onnx.TensorProto) and (
            message.data_location == onnx.TensorProto.EXTERNAL or message.external_data
        ):
            return "refers to numbers in another file"
        if isinstance(message, onnx.NodeProto):
            asked = f"asks for the operation {message.op_type[:40]!r}"
            if message.domain not in STANDARD:
                return f"{asked}, which is not one of ONNX's own"
            if message.op_type == LOOP:
                return f"{asked}, which can run without end"
    return None


def _messages(message: Any) -> Iterator[Any]:
    """Yield a message of protobuf and all those in it, at any depth."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in (value,) if hasattr(value, "ListFields") else value:
                yield from _messages(part)


def _reason(error: BaseException) -> str:
    """Return the first words of what went wrong at the bottom: what lies above it is advice about the exporter."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or type(error).__name__).split("\n")[0].rstrip(".")


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
