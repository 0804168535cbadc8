"""A calibrated network as one ONNX graph."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from guardband.data.files import write_whole
from guardband.data.packages import need_packages
from guardband.doors.judged import refuse_several
from guardband.doors.network import GuardedNetwork
from guardband.doors.table_model import TableModel
from guardband.learning.table_network import TableNetwork
from guardband.training.inputs import Inputs
from guardband.words import listed

OUTPUTS = ("lower", "point", "upper")


class _Named(nn.Module):
    """A calibrated network that takes its inputs in order, and whose three outputs are apart."""

    def __init__(self, guarded: nn.Module, names: Sequence[str] | None) -> None:
        super().__init__()
        self.guarded, self.names = guarded, names

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        named = dict(zip(self.names, tensors, strict=True)) if self.names else {}
        out = self.guarded(**named) if named else self.guarded(*tensors)
        lower, point, upper = out.unbind(1)
        return lower, point if point.ndim == 1 else point[:, 0], upper


def export_onnx(
    guarded: GuardedNetwork | TableModel,
    example: Inputs,
    path: str | os.PathLike[str],
    *,
    free_axes: Sequence[int] | Mapping[str, Sequence[int]] = (),
    opset_version: int | None = None,
) -> None:
    """Write a calibrated network as an ONNX graph with outputs ``lower``, ``point`` and ``upper``.

    With several levels ``lower`` and ``upper`` are ``(n, L)``. The certificate is in the file's metadata. The file
    appears whole or not at all.

    An ``IntervalRegressor`` takes a table as example; its graph has one input, the matrix that
    ``model.as_network().rows(table)`` makes, and puts out intervals in the target's own units. Its columns and
    their categories are in the metadata as well.

    Parameters
    ----------
    guarded : GuardedNetwork or IntervalRegressor
        What ``gb.calibrate`` returned for a network, or a calibrated model of a table.
    example : tensor, tuple or mapping of tensors, or table
        A batch of inputs. Its first axis becomes the free number of rows.
    path : path
        The ONNX file to write.
    free_axes : sequence of int, or mapping from input names to these, default ()
        Further axes of any size, for a network that takes them: ``(2, 3)`` for images of any height and width, or
        ``(1,)`` for sequences of any length. Several inputs are named as in ``example``, or ``x0``, ``x1`` and so on.
        The example must be longer than 1 along each of them.
    opset_version : int, default None
        The version of ONNX's operations, the exporter's own unless given. Set it if your runtime is older.
    """
    need_packages("onnx", "onnx", "onnxscript")
    metadata = {}
    network: Any = guarded
    if isinstance(guarded, TableModel):
        network = guarded.as_network()
        example, metadata = network.rows(example), {"guardband.table": network.described()}
    if not isinstance(network, GuardedNetwork | TableNetwork):
        raise TypeError(
            f"export_onnx takes what gb.calibrate returns, or an IntervalRegressor, found {type(guarded).__name__}."
        )
    if isinstance(network, GuardedNetwork):
        refuse_several(len(network.rule.target_names), "gb.export_onnx")
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise OSError(f"A graph is written as a file in a folder that exists, found the path {path}.")
    names = list(example) if isinstance(example, Mapping) else None
    tensors = tuple(example.values()) if isinstance(example, Mapping) else example
    tensors = tuple(tensors) if isinstance(tensors, tuple | list) else (tensors,)
    inputs = names or (["x"] if len(tensors) == 1 else [f"x{i}" for i in range(len(tensors))])
    free = _free_axes(free_axes, dict(zip(inputs, tensors, strict=True)))
    if isinstance(network, TableNetwork) and any(free):
        raise ValueError("The graph of a table has one row of fixed columns. Remove free_axes=...")
    with _quietly():
        program = torch.onnx.export(
            _Named(network, names),
            tensors,
            input_names=inputs,
            output_names=list(OUTPUTS),
            dynamic_shapes={"tensors": tuple(dict.fromkeys((0, *own), torch.export.Dim.DYNAMIC) for own in free)},
            opset_version=opset_version,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    found = program.model.opset_imports.get("")
    if opset_version not in (None, found):
        raise ValueError(
            f"This network cannot be written with opset_version={opset_version}, the exporter gives {found}. Use "
            f"opset_version={found}, or leave it out."
        )
    for node in program.model.graph.all_nodes():  # where each came from: lines of source and paths of this machine
        node.metadata_props.clear()
    program.model.graph.metadata_props.clear()
    program.model.metadata_props.update(metadata | {"guardband": str(network.certificate)})
    write_whole(target, lambda part: program.save(str(part)))


def _free_axes(asked: Sequence[int] | Mapping[str, Sequence[int]], inputs: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Return the further free axes of each input, in order."""
    named = asked if isinstance(asked, Mapping) else {next(iter(inputs)): asked} if asked else {}
    if not isinstance(asked, Mapping) and asked and len(inputs) > 1:
        raise ValueError(f"free_axes must name the inputs, such as {{{next(iter(inputs))!r}: {tuple(asked)}}}.")
    unknown = sorted(set(named) - set(inputs))
    if unknown:
        raise ValueError(f"free_axes names the input {unknown[0]!r}, found {listed(list(inputs))}. Use one of these.")
    for name, axes in named.items():
        shape = tuple(inputs[name].shape)
        for axis in axes:
            if not 1 <= axis < len(shape) or shape[axis] < 2:
                raise ValueError(
                    f"free_axes must be axes of {name!r} from 1 to {len(shape) - 1}, along which the example is longer "
                    f"than 1, found {axis} with the shape {shape}."
                )
    return [tuple(named.get(name, ())) for name in inputs]


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep the exporter's own advice, of which a user can do nothing, from the screen."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
