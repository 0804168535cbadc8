"""One file for everything that guardband saves: a safetensors file whose metadata holds the rest as JSON.

No pickle. The checksum covers the JSON and every tensor; a schema version guards against files of other versions.
"""

from __future__ import annotations

import hashlib
import json
import numbers
import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

import guardband
from guardband.data.files import write_whole
from guardband.exceptions import MissingModelFileError, ModelFileError

SCHEMA = 5


def write(path: str | os.PathLike[str], entries: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write entries and tensors; the file appears whole or not at all."""
    place = Path(path)
    if place.is_dir() or not place.parent.is_dir():
        raise OSError(f"A model is saved as a file in a folder that exists, found the path {place}.")
    versions = {"guardband": guardband.__version__, "torch": torch.__version__}
    text = json.dumps({"schema": SCHEMA, "written_by": versions, **entries}, sort_keys=True)
    kept = {name: t.contiguous().cpu().clone() for name, t in tensors.items()}  # tied weights share memory
    body = to_bytes(kept, metadata={"guardband": text, "sha256": _checksum(text, kept)})
    write_whole(place, lambda part: part.write_bytes(body))


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return entries and tensors of a file; what is none of this version, or was changed, is refused."""
    place = Path(path)
    if not place.is_file():
        raise MissingModelFileError(f"There is no model file at {path}.")
    try:
        with safe_open(place, framework="pt") as file:
            metadata, names = file.metadata() or {}, file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(f"{path} is no guardband model, or it is damaged or cut short: {error}.") from error
    text = metadata.get("guardband")
    if text is None:
        raise ModelFileError(f"{path} is a safetensors file, but no guardband model.")
    entries = _entries(text)
    schema = entries.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise ModelFileError(
            f"{path} was written by a newer guardband (schema {schema}; this version reads {SCHEMA}): upgrade."
        )
    if isinstance(schema, int) and schema < SCHEMA:
        raise ModelFileError(f"{path} was written by an older guardband, whose networks differ: fit the model again.")
    if metadata.get("sha256") != _checksum(text, tensors):
        raise ModelFileError(f"{path} has been changed since it was written: its checksum does not match.")
    return entries, tensors


def _entries(text: str) -> dict[str, Any]:
    try:
        entries = json.loads(text)
    except ValueError:
        return {}
    return entries if isinstance(entries, dict) else {}


def _checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        t = tensors[name]
        digest.update(f"{name} {t.dtype} {tuple(t.shape)}".encode())
        if t.numel():
            digest.update(t.contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def plain(value: Any) -> Any:
    """Return an argument for JSON."""
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
        return [plain(entry) for entry in value]
    return value


def rich(value: Any) -> Any:
    """Return the argument that ``plain`` made JSON of."""
    if isinstance(value, dict):
        return Fraction(value["fraction"]) if "fraction" in value else np.float32(value["float32"])
    return tuple(map(rich, value)) if isinstance(value, list) else value
