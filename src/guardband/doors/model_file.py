"""A fitted model as one file: a safetensors file whose metadata holds everything else as JSON.

No pickle. The checksum covers the JSON and every tensor; a schema version guards against files from later
versions.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

import guardband
from guardband.calibration.calibrated import Calibrated
from guardband.data.encoder import encoder_from_dict
from guardband.data.target import Target
from guardband.doors.learning import Builder, Learned, rebuild
from guardband.exceptions import MissingModelFileError, ModelFileError
from guardband.methods.method import Method
from guardband.methods.registry import METHODS

if TYPE_CHECKING:
    from guardband.doors.table import IntervalRegressor

SCHEMA = 1
CUSTOM = "custom"


def save(model: IntervalRegressor, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; the file appears whole or not at all."""
    learned, calibrated = model._learned, model._calibrated
    entries = {
        "schema": SCHEMA,
        "written_by": {"guardband": guardband.__version__, "torch": torch.__version__},
        "params": _plain_params(model),
        "features": {
            "names": [str(name) for name in getattr(model, "feature_names_in_", [])],
            "count": model.n_features_in_,
        },
        "encoder": learned.encoder.to_dict(),
        "target": vars(learned.target),
        "in_features": learned.in_features,
        "epochs": list(learned.epochs),
        "notes": None if calibrated is None else list(calibrated.notes),
        "certificate": None if calibrated is None else model.certificate_.to_dict(),
    }
    tensors = {f"weights.{name}": t.contiguous().cpu() for name, t in learned.members.snapshot().items()}
    tensors["training_prints"] = torch.from_numpy(model._training_prints.view(np.int64))
    if calibrated is not None:
        tensors["summary"] = torch.from_numpy(calibrated.summary)
    text = json.dumps(entries, sort_keys=True)
    body = to_bytes(tensors, metadata={"guardband": text, "sha256": _checksum(text, tensors)})
    _write_whole(Path(path), body)


def load(
    path: str | os.PathLike[str], *, network: Builder | None = None, method: Method | None = None, device: str = "auto"
) -> IntervalRegressor:
    """Return a saved model; what cannot be loaded raises ``ModelFileError`` with the reason.

    A model with a network or a method of the user's own needs that object again: a file holds no code.
    """
    from guardband.doors.table import IntervalRegressor

    text, tensors = _read(Path(path))
    try:
        entries = json.loads(text)
        params = _params(entries["params"], network, method, path)
        model = IntervalRegressor(**params | {"device": device})
        _restore(model, entries, tensors)
    except (KeyError, TypeError, IndexError, RuntimeError) as error:
        raise ModelFileError(f"{path} does not hold what a guardband model holds: {error}.") from error
    return model


def _restore(model: IntervalRegressor, entries: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    from guardband.doors.table import resolve_device

    method, wish, architecture, _, _ = model._settings()
    device = resolve_device(model.device)
    members = rebuild(architecture, len(entries["epochs"]), entries["in_features"], device)
    prefix = "weights."
    members.restore({name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)})
    model.n_features_in_ = entries["features"]["count"]
    if entries["features"]["names"]:
        model.feature_names_in_ = np.array(entries["features"]["names"], dtype=object)
    model._learned = Learned(
        encoder_from_dict(entries["encoder"]),
        Target(**entries["target"]),
        architecture,
        members,
        tuple(entries["epochs"]),
        entries["in_features"],
        device,
    )
    model.n_iter_ = max(entries["epochs"])
    model._training_prints = tensors["training_prints"].numpy().view(np.uint64)
    model._rule = method.rule(wish)
    model._calibrated = None
    if entries["certificate"] is not None:
        model._calibrated = Calibrated.by(model._rule, tensors["summary"].numpy(), tuple(entries["notes"]))


def _read(path: Path) -> tuple[str, dict[str, Tensor]]:
    if not path.is_file():
        raise MissingModelFileError(f"There is no model file at {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(f"{path} is no guardband model, or it is damaged or cut short: {error}.") from error
    text = metadata.get("guardband")
    if text is None:
        raise ModelFileError(f"{path} is a safetensors file, but no guardband model.")
    schema = _schema(text)
    if schema is not None and schema > SCHEMA:
        raise ModelFileError(
            f"{path} was written by a newer guardband (schema {schema}; this version reads up to {SCHEMA}): upgrade."
        )
    if metadata.get("sha256") != _checksum(text, tensors):
        raise ModelFileError(f"{path} has been changed since it was written: its checksum does not match.")
    return text, tensors


def _schema(text: str) -> int | None:
    try:
        schema = json.loads(text)["schema"]
    except (ValueError, KeyError, TypeError):
        return None
    return schema if isinstance(schema, int) else None


def _checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        t = tensors[name]
        digest.update(f"{name} {t.dtype} {tuple(t.shape)}".encode())
        digest.update(t.contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _write_whole(path: Path, body: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _plain_params(model: IntervalRegressor) -> dict[str, Any]:
    params = {name: _plain(value) for name, value in model.get_params(deep=False).items() if name != "device"}
    if callable(model.network):
        params["network"] = CUSTOM
    if isinstance(model.method, Method):
        params["method"] = model.method.name if METHODS.get(model.method.name) is model.method else CUSTOM
    if not isinstance(model.random_state, int | None):
        params["random_state"] = None
    return params


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def _params(saved: Mapping[str, Any], network: Builder | None, method: Method | None, path: Any) -> dict[str, Any]:
    params = {name: tuple(value) if isinstance(value, list) else value for name, value in saved.items()}
    for name in ("confidence_level", "alpha"):
        given = params[name]
        params[name] = tuple(map(_level, given)) if isinstance(given, tuple) else _level(given)
    for name, brought in (("network", network), ("method", method)):
        if params[name] == CUSTOM:
            if brought is None:
                raise ModelFileError(f"{path} was fitted with a {name} of your own: pass it as load(..., {name}=...).")
            params[name] = brought
    return params


def _level(entry: Any) -> Any:
    return Fraction(entry) if isinstance(entry, str) else entry
