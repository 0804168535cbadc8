"""MLflow: a calibrated model as a pyfunc, whose prediction is a table with named columns and a signature.

A saved model holds no pickle: a table's model is its own file, a network is a graph of ``torch.export``.
"""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from guardband import __version__
from guardband.data.packages import need_packages
from guardband.doors.model_file import load
from guardband.doors.network import GuardedNetwork
from guardband.doors.table import IntervalRegressor

TABLE, NETWORK = "model.guardband", "network.pt2"


def save_model(model: IntervalRegressor | GuardedNetwork, path: str | Path, *, example: Any, **settings: Any) -> None:
    """Write a calibrated model as an MLflow model in a new folder.

    ``example`` is a small table for an ``IntervalRegressor``, a tensor for a calibrated network; it gives the
    signature. ``settings`` go to ``mlflow.pyfunc.save_model``.
    """
    with tempfile.TemporaryDirectory() as folder:
        mlflow, ready = _ready(model, Path(folder), example, settings)
        mlflow.pyfunc.save_model(path=str(path), **ready)


def log_model(model: IntervalRegressor | GuardedNetwork, name: str, *, example: Any, **settings: Any) -> Any:
    """Log a calibrated model to the active MLflow run, and return what MLflow says of it."""
    with tempfile.TemporaryDirectory() as folder:
        mlflow, ready = _ready(model, Path(folder), example, settings)
        return mlflow.pyfunc.log_model(name=name, **ready)


class _Pyfunc:
    """What MLflow calls: ``predict(table) -> table``."""

    def __init__(self, file: Path) -> None:
        self._table = load(file) if file.name == TABLE else None
        self._network = None if self._table else torch.export.load(file).module()

    def predict(self, model_input: Any, params: Any = None) -> Any:
        """Return point, lower and upper of each row."""
        import pandas as pd

        if self._table is not None:
            return self._table.predict_interval(model_input).to_pandas()
        assert self._network is not None
        rows = model_input.to_numpy() if isinstance(model_input, pd.DataFrame) else np.asarray(model_input)
        with torch.no_grad():
            out = self._network(torch.tensor(rows, dtype=torch.float32)).numpy()
        return pd.DataFrame({"point": out[:, 1], "lower": out[:, 0], "upper": out[:, 2]})


def _load_pyfunc(data_path: str) -> _Pyfunc:
    """Return the model in a folder that ``save_model`` wrote: MLflow's entry."""
    (file,) = [found for name in (TABLE, NETWORK) if (found := Path(data_path) / name).exists()]
    return _Pyfunc(file)


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
        rows = {0: torch.export.Dim.AUTO}
        torch.export.save(torch.export.export(model, (example,), dynamic_shapes={"args": (rows,)}), data / NETWORK)
        example, certificate = example.numpy(), model.certificate
    else:
        raise TypeError(f"An IntervalRegressor or a calibrated network can be saved, found {type(model).__name__}.")
    signature = mlflow.models.infer_signature(example, _load_pyfunc(str(data)).predict(example))
    return mlflow, {
        "loader_module": "guardband.mlflow",
        "data_path": str(data),
        "signature": signature,
        "metadata": {"certificate": str(certificate)},
        "pip_requirements": [f"guardband[tables]=={__version__}", f"torch=={torch.__version__.split('+')[0]}"],
    } | settings
