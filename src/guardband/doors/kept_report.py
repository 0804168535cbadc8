"""The document of a page in a model file, and the certificate: both are read without the model."""

from __future__ import annotations

import json
import os
import zlib
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor

from guardband.bands.certificate import Certificate
from guardband.doors.file_format import read, reason
from guardband.exceptions import ModelFileError

MOST_UNPACKED = 4_000_000
"""Bytes of a report: documents are at most 1.5 MB, see ``report/document.py``."""


def packed_report(report: dict[str, Any] | None) -> dict[str, Tensor]:
    """Return a document as a tensor, and not as entries: who loads the model need not read all its numbers."""
    if report is None:
        return {}
    packed = zlib.compress(json.dumps(report, allow_nan=False).encode(), level=6)
    return {"report": torch.from_numpy(np.frombuffer(packed, dtype=np.uint8).copy())}


def read_certificate(path: str | os.PathLike[str]) -> Certificate | None:
    """Return the certificate in a model file; None if there is none, or if its promise is of the user's own kind."""
    entries, _ = read(path)
    with suppress(KeyError, ValueError, TypeError):
        return Certificate.from_dict(entries["certificate"])
    return None


def read_report(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the document of the page that was saved with a model, or None if there is none."""
    _, tensors = read(path)
    if "report" not in tensors:
        return None
    try:
        packed, unpacking = tensors["report"], zlib.decompressobj()
        if packed.dtype != torch.uint8 or packed.ndim != 1:
            raise ValueError("it is no list of bytes")
        text = unpacking.decompress(packed.numpy().tobytes(), MOST_UNPACKED)
        if not unpacking.eof:
            raise ValueError("it is longer than a report can be, or cut short")
        document = json.loads(text)
        if not isinstance(document, dict):
            raise ValueError("it is no JSON object")
    except (ValueError, RecursionError, zlib.error) as error:
        raise ModelFileError(
            f"{path} holds a report that this version of guardband cannot read: {reason(error)}. Make a new one with "
            "`guardband audit MODEL TABLE --report PAGE`."
        ) from error
    return document
