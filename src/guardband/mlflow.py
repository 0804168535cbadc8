"""MLflow: a calibrated model as a pyfunc, whose prediction is a table with named columns and a signature.

What guardband writes holds no code: a table's model is its own file, a network is an ONNX graph with a checksum. The
folder around it is MLflow's, which runs what its ``MLmodel`` file names: load folders only from people whose code you
would run.
"""

from __future__ import annotations

import tempfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from guardband import __version__
from guardband.data.packages import need_packages
from guardband.doors.model_file import load
from guardband.doors.network import GuardedNetwork
from guardband.doors.served_graph import GRAPH, ServedGraph, write_graph
from guardband.doors.table import IntervalRegressor
from guardband.exceptions import MissingModelFileError, ModelFileError

TABLE, OLD_NETWORK = "model.guardband", "network.pt2"
SERVING = ("onnx", "onnxruntime")


def save_model(model: IntervalRegressor | GuardedNetwork, path: str | Path, *, example: Any, **settings: Any) -> None:
    """Write a calibrated model as an MLflow model in a new folder.

    A table's model of one level takes another one as the parameter ``confidence_level`` of MLflow's ``predict``.

    Parameters
    ----------
    model : IntervalRegressor or GuardedNetwork
        The calibrated model.
    path : str or path
        The folder to write. It must not exist yet.
    example : table, tensor, tuple or dict
        A small batch of inputs, which fixes their shapes and types.
    **settings : keywords
        Further arguments for MLflow, such as ``input_example``.
    """
    with tempfile.TemporaryDirectory() as folder:
        mlflow, ready = _ready(model, Path(folder), example, settings)
        mlflow.pyfunc.save_model(path=str(path), **ready)


def log_model(model: IntervalRegressor | GuardedNetwork, name: str, *, example: Any, **settings: Any) -> Any:
    """Log a calibrated model to the active MLflow run, and return what MLflow says of it.

    Parameters
    ----------
    model : IntervalRegressor or GuardedNetwork
        The calibrated model.
    name : str
        The name of the model in the run.
    example : table, tensor, tuple or dict
        A small batch of inputs, which fixes their shapes and types.
    **settings : keywords
        Further arguments for MLflow, such as ``input_example``.
    """
    with tempfile.TemporaryDirectory() as folder:
        mlflow, ready = _ready(model, Path(folder), example, settings)
        return mlflow.pyfunc.log_model(name=name, **ready)


class _Pyfunc:
    """What MLflow calls: ``predict(table) -> table``."""

    def __init__(self, folder: Path) -> None:
        found = [name for name in (TABLE, GRAPH, OLD_NETWORK) if (folder / name).exists()]
        if OLD_NETWORK in found:
            raise ModelFileError(
                f"{folder / OLD_NETWORK} was written by an older guardband, and reading it could run code from it. "
                "Save the network again."
            )
        if not found:
            raise MissingModelFileError(f"There is no {TABLE} and no {GRAPH} in {folder}. Save the model again.")
        if len(found) > 1:
            raise ModelFileError(f"{folder} must hold {TABLE} or {GRAPH}, found both. Save the model again.")
        self._table = load(folder / TABLE) if found == [TABLE] else None
        self._network = ServedGraph(folder) if found == [GRAPH] else None

    def predict(self, model_input: Any, params: Any = None) -> Any:
        """Return point, lower and upper of each row; ``params`` may name a table's ``confidence_level``."""
        import pandas as pd

        if self._table is not None:
            level = None if params is None else params.get("confidence_level")
            return self._table.predict_interval(model_input, confidence_level=level).to_pandas()
        assert self._network is not None
        rows = model_input.to_numpy() if isinstance(model_input, pd.DataFrame) else np.asarray(model_input)
        lower, point, upper = self._network(rows)
        return pd.DataFrame({"point": point, "lower": lower, "upper": upper})


def _load_pyfunc(data_path: str) -> _Pyfunc:
    """Return the model in a folder that ``save_model`` wrote: MLflow's entry."""
    return _Pyfunc(Path(data_path))


def _ready(
    model: IntervalRegressor | GuardedNetwork, folder: Path, example: Any, settings: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Write the model's own file into a folder and return MLflow with what it is to save."""
    need_packages("mlflow", "mlflow")
    mlflow = import_module("mlflow")
    data = folder / "data"
    data.mkdir()
    if isinstance(model, IntervalRegressor):
        certificate = model.certificate_  # a model that is not calibrated says so here
        model.save(data / TABLE)
    elif isinstance(model, GuardedNetwork):
        if isinstance(model.certificate.confidence_level, tuple):
            raise ValueError("A network must be calibrated for one level to become a pyfunc, found several.")
        example = torch.as_tensor(example, dtype=torch.float32)
        write_graph(model, example, data)
        example, certificate = example.cpu().numpy(), model.certificate
    else:
        raise TypeError(f"An IntervalRegressor or a calibrated network can be saved, found {type(model).__name__}.")
    serving = SERVING if isinstance(model, GuardedNetwork) else ()
    needed = [f"torch=={torch.__version__.split('+')[0]}", *(f"{name}=={version(name)}" for name in serving)]
    level = certificate.confidence_level
    params = {"confidence_level": level} if isinstance(model, IntervalRegressor) and isinstance(level, float) else None
    signature = mlflow.models.infer_signature(example, _load_pyfunc(str(data)).predict(example), params)
    return mlflow, {
        "loader_module": "guardband.mlflow",
        "data_path": str(data),
        "signature": signature,
        "metadata": {"certificate": str(certificate)},
        "pip_requirements": [f"guardband[tables]=={__version__}", *needed],
    } | settings
