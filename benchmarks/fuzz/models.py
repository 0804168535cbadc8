"""Model files of every kind, and states of online rules: changed as bytes, and as entries with a checksum made good."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from judging import Find, Target, need, refused
from mutate import Raw, changed_entries, changed_tensors
from safetensors.torch import load, save

import forged_models
import guardband as gb
from guardband.doors.file_format import _checksum
from guardband.doors.kept_report import read_certificate, read_report
from guardband.doors.model_file import save as save_model
from guardband.report.document import document
from online_rows import started

KINDS = {
    "models": ("plain", "qreg-un", "neg-ll", "risk", "crossed", "several", "few"),
    "networks": ("network", "network-pav", "network-bayes", "network-risk"),
    "rules": tuple(name for name in forged_models.RULES),
}


def opened(data: bytes) -> tuple[Any, dict[str, Any]]:
    """Return entries and tensors of a file, whatever its checksum."""
    size = int.from_bytes(data[:8], "little")
    return json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["guardband"]), load(data)


def sealed(entries: Any, tensors: dict[str, Any]) -> bytes:
    """Return a file with a checksum that is right."""
    text = json.dumps(entries)
    return save(tensors, {"guardband": text, "sha256": _checksum(text, tensors)})


def changed(data: bytes, most: int, seed: int, raw: Raw) -> bytes:
    """Return a file with other entries or tensors and a checksum made good, or with other bytes."""
    chance = random.Random(seed)
    try:
        entries, tensors = opened(data)
        kind = chance.random()
        if kind < 0.1:
            return raw(data, most)
        if kind < 0.75:
            entries = changed_entries(entries, chance)
        if kind > 0.7:
            tensors = changed_tensors(tensors, chance, raw)
        made = sealed(entries, tensors)
    except Exception:  # whatever the bytes are, they are changed as bytes
        return raw(data, most)
    return made if len(made) <= most else data


def _brought(data: bytes) -> dict[str, Any]:
    """Return what the user brings for a file of this kind."""
    try:
        entries, _ = opened(data)
        kind = entries["kind"]
        if kind == "model":
            return {"model": _Model()}
        if kind != "network":
            return {}
        outputs = entries["arguments"]["outputs"]
    except Exception:  # of damaged files, which need nothing
        return {}
    build = {"gaussian": forged_models.gaussian}.get(str(outputs), forged_models.triple)
    return {"network": forged_models.quantiles() if isinstance(outputs, list) else build()}


class _Model:
    def predict(self, X: Any) -> Any:
        return np.asarray(X).sum(axis=1)


def model(data: bytes) -> None:
    """Load a model and predict: it is refused, or predicts no NaN and promises what the file says."""
    path = Path("model.guardband")
    path.write_bytes(data)
    found: list[Any] = []
    refused(lambda: read_report(path))
    refused(lambda: read_certificate(path))
    if refused(lambda: found.append(gb.load(path, **_brought(data)))):
        return
    own = found[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused(lambda: _use(own))
        found.clear()
        refused(lambda: own.save("again.guardband"))


def _use(own: Any) -> None:
    if isinstance(own, gb.OnlineCalibrator):
        _use_online(own)
        return
    if isinstance(own, gb.BandCalibrator):
        bands = forged_models.new_intervals(own)
        out = [bands.lower, bands.point, bands.upper]
    elif isinstance(own, torch.nn.Module):
        out = [own(torch.from_numpy(forged_models.numbers(20)[0]).float()).numpy()]
    elif hasattr(own, "predict_interval"):
        names = list(getattr(own, "feature_names_in_", ()))
        X, _ = forged_models.rows(5, seed=5)
        X = X.reindex(columns=names) if names else np.ones((5, getattr(own, "n_features_in_", 3)))
        if getattr(own, "certificate_", None) is None:
            need(not np.isnan(own.predict(X)).any(), "it predicts NaN")
            return
        bands = own.predict_interval(X)
        out = [bands.lower, bands.point, bands.upper]
    else:
        out = []
    certificate = getattr(own, "certificate_", None) or getattr(own, "certificate", None)
    need(not any(np.isnan(np.asarray(side)).any() for side in out), "it predicts NaN")
    if certificate is not None:
        json.dumps(certificate.to_dict(), allow_nan=False), str(certificate)


def _use_online(own: Any) -> None:
    for y in (0.5, -3.0):
        bands = own.transform([-1], [0], [1]) if own.arguments["side"] == "both" else own.transform(None, [0], None)
        if np.isnan([*bands.lower, *bands.upper]).any():
            raise Find("it predicts NaN")
        own.update([y], keys=list(bands.index) if bands.index is not None else None)
    str(own.certificate)


def online(data: bytes) -> None:
    """Load the state of an online rule, and go on with it."""
    path = Path("online.guardband")
    path.write_bytes(data)
    found: list[Any] = []
    if not refused(lambda: found.append(gb.OnlineCalibrator.load(path))):
        refused(lambda: _use(found[0]))
        refused(lambda: found[0].save("again.guardband"))


def _states() -> dict[str, bytes]:
    made = {}
    for rule in ("aci", "recent", "tracking", "scale-free"):
        try:
            own = started(rule, confidence_level=0.9, window=40)
        except ValueError:
            continue
        own.transform([-1, -2], [0, 0], [1, 2], keys=["a", "b"])
        own.save("state")
        made[rule] = Path("state").read_bytes()
    return made


def _saved(names: tuple[str, ...]) -> dict[str, bytes]:
    folder = Path("saved")
    folder.mkdir(exist_ok=True)
    made = {name: forged_models.saved(name, folder).read_bytes() for name in names}
    if "plain" in made:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = gb.load(folder / "plain.guardband")
            save_model(own, "with report", report=document(own, None))
        made["report"] = Path("with report").read_bytes()
    return made


TARGETS = {
    kind: Target(model, lambda names=names: _saved(names), changed, longest=200_000) for kind, names in KINDS.items()
} | {"online": Target(online, _states, changed, longest=20_000)}
