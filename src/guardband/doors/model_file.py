"""A fitted model as one file: a safetensors file whose metadata holds everything else as JSON.

No pickle. The checksum covers the JSON and every tensor; a schema version guards against files from later
versions.
"""

from __future__ import annotations

import hashlib
import json
import numbers
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

import guardband
from guardband.bands.certificate import Certificate
from guardband.calibration.calibrated import Calibrated
from guardband.data.encoder import encoder_from_dict
from guardband.data.files import write_whole
from guardband.data.reference import Reference
from guardband.data.target import Target
from guardband.doors.choice import AUTO
from guardband.doors.learning import Builder, Learned, fitting, rebuild
from guardband.doors.settings import Settings, resolve_device
from guardband.exceptions import MissingModelFileError, ModelFileError
from guardband.methods.method import Method
from guardband.methods.registry import METHODS
from guardband.nn.heads import Head

if TYPE_CHECKING:
    from guardband.doors.table import IntervalRegressor

SCHEMA = 3
CUSTOM = "custom"
PRINTS = ("training_prints", "held_out_prints", "calibration_prints")


def save(model: IntervalRegressor, path: str | os.PathLike[str], report: dict[str, Any] | None = None) -> None:
    """Write a fitted model, with the document of its page if there is one; the file appears whole or not at all."""
    place = Path(path)
    if place.is_dir() or not place.parent.is_dir():
        raise OSError(f"A model is saved as a file in a folder that exists, found the path {place}.")
    learned, calibrated, reference = model._learned, model._calibrated, model._reference
    entries = {
        "schema": SCHEMA,
        "written_by": {"guardband": guardband.__version__, "torch": torch.__version__},
        "params": _plain_params(model._fitted_params),
        "features": {
            "names": [str(name) for name in getattr(model, "feature_names_in_", [])],
            "count": model.n_features_in_,
        },
        "encoder": learned.encoder.to_dict(),
        "target": asdict(learned.target),
        "in_features": learned.in_features,
        "hidden": list(learned.architecture.hidden),
        "dropout": learned.architecture.dropout,
        "epochs": list(learned.epochs),
        "choices": learned.choices,
        "score": model._rule.method if model._fitted_params["method"] == AUTO else None,
        "notes": None if calibrated is None else list(calibrated.notes),
        "certificate": None if calibrated is None else model.certificate_.to_dict(),
        "reference": None if reference is None else reference.to_dict(),
    }
    tensors = {f"weights.{name}": t.contiguous().cpu() for name, t in learned.members.snapshot().items()}
    for name in PRINTS:
        tensors[name] = torch.from_numpy(getattr(model, f"_{name}").view(np.int64))
    if calibrated is not None:
        tensors["summary"] = torch.from_numpy(calibrated.summary)
    if report is not None:
        # As a tensor, and not among the entries: who loads the model need not read a page's worth of numbers.
        packed = zlib.compress(json.dumps(report, allow_nan=False).encode(), level=6)
        tensors["report"] = torch.from_numpy(np.frombuffer(packed, dtype=np.uint8).copy())
    text = json.dumps(entries, sort_keys=True)
    body = to_bytes(tensors, metadata={"guardband": text, "sha256": _checksum(text, tensors)})
    write_whole(place, lambda part: part.write_bytes(body))


def load(
    path: str | os.PathLike[str], *, network: Builder | None = None, method: Method | None = None, device: str = "auto"
) -> IntervalRegressor:
    """Return a saved model; what cannot be loaded raises ``ModelFileError`` with the reason.

    A model with a network or a method of the user's own needs that object again: a file holds no code.
    """
    from guardband.doors.table import IntervalRegressor

    resolve_device(device)  # a device that is not here is no fault of the file
    text, tensors = _read(Path(path))
    try:
        entries = json.loads(text)
        model = IntervalRegressor(**_params(entries["params"], network, method) | {"device": device})
        _restore(model, entries, tensors)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except (KeyError, TypeError, IndexError, RuntimeError, ValueError) as error:
        raise ModelFileError(f"{path} does not hold what this version of guardband can use: {error}") from error
    return model


def read_report(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the document of the page that was saved with a model, or None if there is none."""
    _, tensors = _read(Path(path))
    if "report" not in tensors:
        return None
    try:
        document: dict[str, Any] = json.loads(zlib.decompress(tensors["report"].numpy().tobytes()))
    except (ValueError, zlib.error) as error:
        raise ModelFileError(f"{path} holds a report that this version of guardband cannot read: {error}.") from error
    return document


def _restore(model: IntervalRegressor, entries: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    asked = Settings.of(model.get_params(deep=False))
    heads: tuple[Head, ...] = tuple(spec.head for spec in asked.method.networks(asked.wish))
    if asked.nest is not None:
        heads = (asked.nest,) * len(entries["epochs"])
    encoder = encoder_from_dict(entries["encoder"])
    shape = {"hidden": tuple(entries["hidden"]), "dropout": entries["dropout"]}
    architecture = fitting(replace(asked.architecture, **shape), encoder)
    members = rebuild(architecture, heads, entries["in_features"], asked.device)
    prefix = "weights."
    members.restore({name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)})
    model.n_features_in_ = entries["features"]["count"]
    if entries["features"]["names"]:
        model.feature_names_in_ = np.array(entries["features"]["names"], dtype=object)
    model._learned = Learned(
        encoder,
        Target(**entries["target"]),
        architecture,
        heads,
        members,
        tuple(entries["epochs"]),
        entries["in_features"],
        asked.device,
        choices=entries["choices"],
    )
    model.n_iter_ = max(entries["epochs"])
    for name in PRINTS:
        # Files from before a D2 that calibrate brought was remembered know that of fit alone.
        prints = tensors.get(name, tensors["held_out_prints"].clone())
        setattr(model, f"_{name}", prints.numpy().view(np.uint64))
    # Files from before models kept a summary of D1 have none: their inputs cannot be looked at for drift.
    saved = entries.get("reference")
    model._reference = None if saved is None else Reference.from_dict(saved)
    chosen = entries["score"]
    model._rule = (asked.method if chosen is None else METHODS[chosen]).rule(asked.wish)
    model._fitted_params = model.get_params(deep=False)
    model._calibrated = None
    if entries["certificate"] is not None:
        model._calibrated = Calibrated.by(model._rule, tensors["summary"].numpy(), tuple(entries["notes"]))
        if model.certificate_ != Certificate.from_dict(entries["certificate"]):
            raise ModelFileError("what is calibrated here is not what the saved certificate promises.")


def _read(path: Path) -> tuple[str, dict[str, Tensor]]:
    if not path.is_file():
        raise MissingModelFileError(f"There is no model file at {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            metadata, names = file.metadata() or {}, file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
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
    if schema is not None and schema < SCHEMA:
        raise ModelFileError(f"{path} was written by an older guardband, whose networks differ: fit the model again.")
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
        if t.numel():
            digest.update(t.contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _plain_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for JSON; objects that a file cannot hold are marked as the user's own."""
    network, method, seed = params["network"], params["method"], params["random_state"]
    known = isinstance(method, str) or METHODS.get(method.name) is method
    return {name: _plain(value) for name, value in params.items() if name not in ("network", "method", "device")} | {
        "network": CUSTOM if callable(network) else network,
        "method": (method if isinstance(method, str) else method.name) if known else CUSTOM,
        "random_state": _plain(seed) if isinstance(seed, numbers.Integral) else None,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.float32):
        return {"float32": str(value)}  # levels are taken as they are written in decimal
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real | Decimal):
        return float(value)
    if isinstance(value, Iterable):
        return [_plain(entry) for entry in value]
    return value


def _params(saved: Mapping[str, Any], network: Builder | None, method: Method | None) -> dict[str, Any]:
    params = {name: _rich(value) for name, value in saved.items()}
    for name, brought in (("network", network), ("method", method)):
        if params[name] == CUSTOM:
            if brought is None:
                raise ModelFileError(f"it was fitted with a {name} of your own: pass it as load(..., {name}=...).")
            params[name] = brought
    return params


def _rich(value: Any) -> Any:
    if isinstance(value, dict):
        return Fraction(value["fraction"]) if "fraction" in value else np.float32(value["float32"])
    return tuple(map(_rich, value)) if isinstance(value, list) else value
