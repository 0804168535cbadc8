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
from guardband.doors.network import GuardedNetwork
from guardband.doors.table import IntervalRegressor
from guardband.learning.table_network import TableNetwork
from guardband.training.inputs import Inputs

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


def export_onnx(guarded: GuardedNetwork | IntervalRegressor, example: Inputs, path: str | os.PathLike[str]) -> None:
    """Write a calibrated network as an ONNX graph with outputs ``lower``, ``point`` and ``upper``.

    ``example`` is a batch of inputs: a tensor, a tuple or a mapping, whose first axis becomes free. With several
    levels ``lower`` and ``upper`` are ``(n, L)``. The certificate is in the file's metadata. The file appears whole
    or not at all.

    An ``IntervalRegressor`` takes a table as example; its graph has one input, the matrix that
    ``model.as_network().rows(table)`` makes, and puts out intervals in the response's own units. Its columns and
    their categories are in the metadata as well.
    """
    need_packages("onnx", "onnx", "onnxscript")
    metadata = {}
    network: Any = guarded
    if isinstance(guarded, IntervalRegressor):
        network = guarded.as_network()
        example, metadata = network.rows(example), {"guardband.table": network.described()}
    if not isinstance(network, GuardedNetwork | TableNetwork):
        raise TypeError(
            f"export_onnx takes what gb.calibrate returns, or an IntervalRegressor, found {type(guarded).__name__}."
        )
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise OSError(f"A graph is written as a file in a folder that exists, found the path {path}.")
    names = list(example) if isinstance(example, Mapping) else None
    tensors = tuple(example.values()) if isinstance(example, Mapping) else example
    tensors = tuple(tensors) if isinstance(tensors, tuple | list) else (tensors,)
    plain = ["x"] if len(tensors) == 1 else [f"x{i}" for i in range(len(tensors))]
    with _quietly():
        program = torch.onnx.export(
            _Named(network, names),
            tensors,
            input_names=names or plain,
            output_names=list(OUTPUTS),
            dynamic_shapes={"tensors": tuple({0: torch.export.Dim.DYNAMIC} for _ in tensors)},
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    for node in program.model.graph.all_nodes():  # where each came from: lines of source and paths of this machine
        node.metadata_props.clear()
    program.model.graph.metadata_props.clear()
    program.model.metadata_props.update(metadata | {"guardband": str(network.certificate)})
    write_whole(target, lambda part: program.save(str(part)))


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
