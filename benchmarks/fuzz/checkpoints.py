"""Checkpoints: changed as bytes, and as a state of a run with a checksum made good, from which training goes on."""

from __future__ import annotations

import copy
import hashlib
import io
import random
from pathlib import Path
from typing import Any

import torch
from judging import Target, refused
from mutate import Raw, changed_archive, changed_entries, changed_tensors

import guardband as gb
from guardband.training.checkpoint import HEAD, _head

NAME = "fleet-0.checkpoint"


def _train(folder: str, epochs: Any = 2) -> None:
    torch.manual_seed(0)
    x = torch.randn(24, 2, generator=torch.Generator().manual_seed(0))
    gb.train(gb.nn.FullyConnected(2, (2,)), (x, x.sum(1)), gb.nn.IntervalLoss(0.1), epochs=epochs, checkpoint=folder)


def checkpoint(data: bytes) -> None:
    """Go on from a checkpoint; it is refused, or training ends."""
    folder = Path("run")
    folder.mkdir(exist_ok=True)
    (folder / NAME).write_bytes(data)
    refused(lambda: _train("run"))


def _sealed(body: bytes) -> bytes:
    return _head(hashlib.sha256(body).hexdigest()) + body


def _saved(state: Any) -> bytes:
    sink = io.BytesIO()
    torch.save(state, sink)
    return _sealed(sink.getvalue())


def changed(data: bytes, most: int, seed: int, raw: Raw) -> bytes:
    """Return a checkpoint with another state, other members of its archive, or other bytes."""
    chance, start = random.Random(seed), len(_head(""))
    kind, body = chance.random(), data[start + 64 :]
    if kind < 0.05 or not data.startswith(HEAD):
        return raw(data, most)
    if kind < 0.15:
        return _sealed(raw(body, most - start - 64))
    if kind < 0.4:
        return _sealed(changed_archive(body, most - start - 64, chance, raw, packed=False))
    try:
        saved = torch.load(io.BytesIO(body), weights_only=True)
        made = _saved(_changed_state(saved, chance, raw))
    except Exception:  # whatever the bytes are, they are changed as bytes
        return _sealed(raw(body, most - start - 64))
    return made if len(made) <= most else data


def _changed_state(saved: Any, chance: random.Random, raw: Raw) -> Any:
    """Return a state with one of its dictionaries of tensors, or anything else of it, changed."""
    out = copy.deepcopy(saved)
    places = [out["state"], *_dictionaries(out["state"])]
    if chance.random() < 0.5:
        held = [own for own in places if own and all(isinstance(t, torch.Tensor) for t in own.values())]
        if held:
            own = chance.choice(held)
            new = changed_tensors(own, chance, raw)
            own.clear()
            own.update(new)
            return out
    if chance.random() < 0.05:
        return changed_entries(out, chance)
    own = chance.choice(places)
    return out if not own else (own.update(changed_entries(dict(own), chance)), out)[1]


def _dictionaries(value: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for own in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found += ([own] if isinstance(own, dict) else []) + _dictionaries(own)
    return found


def _checkpoints() -> dict[str, bytes]:
    """Return the checkpoint of a run that is done, and of one that is under way."""
    from guardband.training import checkpoint as module

    _train("whole")
    made = {"done": (Path("whole") / NAME).read_bytes()}
    kept: list[bytes] = []
    save, due = module.Checkpoint.save, module.Checkpoint.due
    module.Checkpoint.due = lambda self: True  # type: ignore[method-assign]

    def keep(self: Any, state: Any) -> None:
        save(self, state)
        kept.append(self._path.read_bytes())

    module.Checkpoint.save = keep  # type: ignore[method-assign]
    try:
        _train("part")
    finally:
        module.Checkpoint.save, module.Checkpoint.due = save, due  # type: ignore[method-assign]
    return made | {f"under way {i}": own for i, own in enumerate(kept[:2])}


TARGETS = {"checkpoints": Target(checkpoint, _checkpoints, changed, longest=40_000)}
