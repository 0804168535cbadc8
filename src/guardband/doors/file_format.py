"""One file for everything that guardband saves: a safetensors file whose metadata holds the rest as JSON.

No pickle. The checksum covers the JSON and every tensor; a schema version guards against files of other versions. A
checksum finds damage. It is no signature: whoever changes a file can also write a new checksum. ``signature.py`` has
signatures.
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
from msgspec import Struct, field
from msgspec.json import decode
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

import guardband
from guardband.data.files import write_whole
from guardband.doors.read_once import ReadFile, bytes_of
from guardband.doors.stored import entries_of, schema_of
from guardband.exceptions import MissingModelFileError, ModelFileError

SCHEMA = 8
READS = (7, SCHEMA)
"""Files of these versions can be read."""
AGAIN = "Get the file again from whoever made it, or fit the model again."
LONGEST_REASON = 300
"""Letters of a reason: it may quote what a file holds, which can be of any length."""


class _Header(Struct):
    """The header of a safetensors file: of its entries only the metadata, as the others are safetensors' own."""

    metadata: dict[str, str] = field(name="__metadata__", default_factory=dict)


def write(path: str | os.PathLike[str], entries: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write entries and tensors; the file appears whole or not at all."""
    place = Path(path)
    if place.is_dir() or not place.parent.is_dir():
        raise OSError(f"guardband cannot write a model to {place}. Name a file in a folder that exists.")
    versions = {"guardband": guardband.__version__, "torch": torch.__version__}
    text = json.dumps({"schema": SCHEMA, "written_by": versions, **entries}, sort_keys=True)
    entries_of(text)  # what could not be loaded is not written
    kept = {name: t.contiguous().cpu().clone() for name, t in tensors.items()}  # tied weights share memory
    body = to_bytes(kept, metadata={"guardband": text, "sha256": _checksum(text, kept)})
    write_whole(place, lambda part: part.write_bytes(body))


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return entries and tensors of a file; what is none of this version, or was changed, is refused.

    The file is read once and whole: who changes or cuts it meanwhile changes nothing that was read.
    """
    if not isinstance(path, ReadFile) and not Path(path).is_file():
        raise MissingModelFileError(f"There is no model file at {path}. Check the path.")
    try:
        body = bytes_of(path)
        tensors = dict(sorted(from_bytes(body).items()))  # safetensors has them in another order each time
        metadata = decode(body[8 : 8 + int.from_bytes(body[:8], "little")], type=_Header).metadata
        checksum = _checksum(metadata.get("guardband", ""), tensors)
    except Exception as error:  # of safetensors, torch and msgspec, whose kinds are theirs to choose
        why = f"{path} is no guardband model, or it is damaged or cut short: {reason(error)}."
        raise ModelFileError(f"{why} {AGAIN}") from error
    if "guardband" not in metadata:
        raise ModelFileError(f"{path} is a safetensors file, but no guardband model. Check the path.")
    try:
        schema = schema_of(metadata["guardband"])
        if schema not in READS:
            raise ModelFileError(_of_another_version(path, schema))
        if metadata.get("sha256") != checksum:
            raise ModelFileError(f"{path} was changed after it was written: its checksum does not match. {AGAIN}")
        return entries_of(metadata["guardband"]), tensors
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(f"{path} is no valid guardband model: {reason(error)}. {AGAIN}") from error


def _of_another_version(path: str | os.PathLike[str], schema: int) -> str:
    if schema > SCHEMA:
        found = f"schema {schema}" if schema < 10**6 else "an unknown schema"
        return f"{path} was written by a newer guardband ({found}; this version reads {SCHEMA}). Upgrade guardband."
    return f"{path} was written by an older guardband, whose networks differ. Fit the model again."


def reason(error: Exception) -> str:
    """Return what an error says, on one line and of limited length, without its full stop."""
    said = " ".join(str(error).split()) or type(error).__name__
    said = "".join(letter if letter.isprintable() else "?" for letter in said[: LONGEST_REASON + 1])
    return f"{said[:LONGEST_REASON]}…" if len(said) > LONGEST_REASON else said.rstrip(".")


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
