"""Which calibrated model a monitor watches: its certificate, and what tells it from others."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from guardband.audit.guarded import Guarded
from guardband.bands.certificate import Certificate


def certificate_of(model: Any) -> Certificate:
    """Return the certificate of a calibrated model of any kind, or the certificate itself."""
    if isinstance(model, Certificate):
        return model
    for name in ("certificate_", "certificate"):
        found = getattr(model, name, None)
        if isinstance(found, Certificate):
            return found
    raise TypeError(f"Monitor needs a calibrated model or a certificate, found {type(model).__name__}.")


def guarded_of(model: Any) -> Guarded | None:
    """Return the model if it can predict the rows of tables."""
    return model if hasattr(model, "read_rows") and hasattr(model, "outputs") else None


def digest_of(model: Any) -> str:
    """Return what tells one calibrated model from another: the certificate, the calibration rows and their scores."""
    digest = hashlib.sha256(json.dumps(certificate_of(model).to_dict()["promise"], sort_keys=True).encode())
    guarded = guarded_of(model)
    if guarded is not None:
        digest.update(np.ascontiguousarray(guarded.fitted_.calibration_prints).tobytes())
        kept = guarded.calibration_.summary.to_arrays()
        for name in sorted(kept):
            digest.update(name.encode() + np.ascontiguousarray(kept[name]).tobytes())
    return digest.hexdigest()
