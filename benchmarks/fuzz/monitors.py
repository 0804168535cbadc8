"""States of monitors: changed as bytes, and as entries and arrays with a checksum made good."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from judging import Target, need, refused
from mutate import Raw, changed_entries, changed_tensors
from safetensors.numpy import load, save

import guardband as gb
from guardband.monitor.state_file import _checksum


def changed(data: bytes, most: int, seed: int, raw: Raw) -> bytes:
    """Return a state with other entries or arrays and a checksum made good, or with other bytes."""
    import torch

    chance, kind = random.Random(seed), random.Random(seed + 1).random()
    try:
        size = int.from_bytes(data[:8], "little")
        entries = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["guardband-monitor"])
        arrays = load(data)
        if kind < 0.1:
            return raw(data, most)
        if kind < 0.7:
            entries = changed_entries(entries, chance)
        if kind > 0.6:
            tensors = {name: torch.from_numpy(own.astype(own.dtype)) for name, own in arrays.items()}
            arrays = {name: own.numpy() for name, own in changed_tensors(tensors, chance, raw).items()}
        arrays = {name: np.ascontiguousarray(own) for name, own in arrays.items()}
        text = json.dumps(entries)
        made = save(arrays, metadata={"guardband-monitor": text, "sha256": _checksum(text, arrays)})
    except Exception:  # whatever the bytes are, they are changed as bytes
        return raw(data, most)
    return made if len(made) <= most else data


def state(data: bytes) -> None:
    """Load a state, hear what it says, draw its page at times, go on with it, and write it again."""
    path = Path("state")
    path.write_bytes(data)
    found: list[Any] = []
    if refused(lambda: found.append(gb.Monitor.load(path))):
        return
    refused(lambda: _use(found[0], len(data) % 7 == 0))


def _use(own: Any, with_page: bool) -> None:
    json.dumps(own.to_dict(), allow_nan=False)
    own.history(), own.blocks(), own.drift(), own.evidence
    if with_page:
        own.report("page.html")
    n = 6
    asked: dict[str, Any] = (
        {"groups": [f"group = {i % 3}" for i in range(n)]} if own.certificate.promise.is_parted else {}
    )
    if own.certificate.promise.entity:
        asked["entities"] = np.arange(n)
    own.update(
        np.linspace(-2, 2, n), np.column_stack([-np.ones(n), np.zeros(n), np.ones(n)]), keys=range(90, 96), **asked
    )
    own.save("state")
    need(str(gb.Monitor.load("state")), "it says nothing")


def _states() -> dict[str, bytes]:
    rng, made = np.random.default_rng(0), {}
    point = rng.standard_normal(300)
    y = point + rng.standard_normal(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rules = {
            "one": gb.BandCalibrator().fit(point - 1, point, point + 1, y),
            "pac": gb.BandCalibrator(guarantee="pac").fit(point - 1, point, point + 1, y),
            "groups": gb.BandCalibrator().fit(point - 1, point, point + 1, y, groups=np.arange(300) % 3),
            "entities": gb.BandCalibrator().fit(point - 1, point, point + 1, y, entities=np.arange(300) // 2),
        }
        for name, rule in rules.items():
            own = gb.Monitor(rule.certificate)
            bands = np.column_stack([point - 1, point, point + 1])[:60]
            sides = {
                "groups": {"groups": [f"group = {i % 3}" for i in range(60)]},
                "entities": {"entities": np.arange(60)},
            }.get(name, {})
            late = np.where(np.arange(60) < 50, y[:60] * (3 if name == "one" else 1), np.nan)
            own.update(late, bands, keys=[f"k{i}" for i in range(60)], **sides)
            own.save(f"{name}.state")
            made[name] = Path(f"{name}.state").read_bytes()
    return made


TARGETS = {"monitors": Target(state, _states, changed, longest=60_000)}
