"""Changes to inputs in the terms of their format: entries of JSON, tensors, and members of an archive."""

from __future__ import annotations

import copy
import io
import json
import math
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

Raw = Callable[[bytes, int], bytes]

VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 7, 255, 2**31, 2**53, 2**63, -(2**63) - 1, 10**18, 10**30, 0.5, 3.0, -0.0, 1e-320,
    1e308, -1e308, math.nan, math.inf, -math.inf, "", "x", "custom", "both", "\ud800\x1b[31m", "1e1000000000", "é\n",
    {"fraction": "1/3"}, {"fraction": "1/0"}, {"float32": "0.1"}, {}, {"x": 1}, [], [0.9], [[[]]], [1] * 300,
    [0.1, 0.2], ["a", "a"],
]  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of everything in nested values; of long lists that of the first entries and the last."""
    found = [at] if at else []
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*at, key))
    elif isinstance(value, list):
        for i in sorted({*range(min(4, len(value))), len(value) - 1} - {-1}):
            found += places(value[i], (*at, i))
    return found


def changed_entries(entries: Any, chance: random.Random) -> Any:
    """Return nested values with one to three changes."""
    out = copy.deepcopy(entries)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        every = places(out)
        if not every:
            return copy.deepcopy(chance.choice(VALUES))
        *above, last = chance.choice(every)
        inside = out
        for step in above:
            inside = inside[step]
        now, kind = inside[last], chance.randrange(7)
        if kind == 0:
            del inside[last]
        elif kind == 1 and isinstance(now, list):
            inside[last] = chance.choice([now[:-1], now + now[-1:], now[::-1], now * 3, sorted(now, key=str)])
        elif kind == 2 and isinstance(now, int | float) and not isinstance(now, bool):
            inside[last] = chance.choice(
                [now + 1, now - 1, -now, now * 2, float(now) if abs(now) < 1e300 else 0, 1 - now]
            )
        elif kind == 3 and isinstance(now, str):
            i = chance.randrange(len(now) + 1)
            inside[last] = now[:i] + chance.choice(["", "x", "1", " ", "\u202e", now]) + now[i + chance.randrange(2) :]
        elif kind == 4:
            inside[last] = copy.deepcopy(_at(out, chance.choice(every)))
        else:
            inside[last] = copy.deepcopy(chance.choice(VALUES))
    return out


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    try:
        for step in path:
            value = value[step]
    except (LookupError, TypeError):
        return None
    return value


def changed_json(data: bytes, most: int, chance: random.Random, raw: Raw) -> bytes:
    """Return JSON with other entries, or at times with other bytes."""
    try:
        entries = json.loads(data)
    except (ValueError, RecursionError):
        return raw(data, most)
    if chance.random() < 0.1:
        return raw(data, most)
    return json.dumps(changed_entries(entries, chance)).encode()[:most]


def changed_tensors(tensors: dict[str, Any], chance: random.Random, raw: Raw) -> dict[str, Any]:
    """Return tensors of torch, one of them with other numbers, another shape, another type, or another name."""
    import torch

    out = dict(tensors)
    if not out:
        return {"x": torch.zeros(2)}
    name = chance.choice(sorted(out))
    t, kind = out[name], chance.randrange(8)
    if kind == 0:
        del out[name]
    elif kind == 1:
        out[chance.choice(sorted(tensors))] = t.clone()
    elif kind == 2:
        types = (torch.float32, torch.float64, torch.float16, torch.bool, torch.uint8, torch.int64, torch.int32)
        out[name] = t.to(chance.choice(types))
    elif kind == 3:
        out[name] = chance.choice([t[None], t.reshape(-1), t.reshape(-1)[:1].reshape(()), t[:0] if t.ndim else t])
    elif kind == 4 and t.ndim:
        out[name] = chance.choice([torch.cat([t, t]), t[: len(t) // 2], t.flip(0), t[1:]]).contiguous()
    elif kind == 5 and t.numel():
        body = t.contiguous().flatten().view(torch.uint8).numpy().tobytes()
        made = raw(body, len(body)).ljust(len(body), b"\0")[: len(body)]
        out[name] = torch.frombuffer(bytearray(made), dtype=t.dtype).reshape(t.shape).clone()
    elif t.numel():
        own = t.clone()
        at = chance.randrange(t.numel())
        values = [0, 1, -1, 1e30, math.nan, math.inf, -math.inf] if t.is_floating_point() else [0, 1, -1, 2**62, 5]
        value = chance.choice(values)
        if t.dtype == torch.float16 and abs(value) == 1e30:
            value = 6e4
        own.view(-1)[at] = value if t.is_floating_point() else torch.tensor(value).to(t.dtype)
        out[name] = own
    return out


def changed_archive(data: bytes, most: int, chance: random.Random, raw: Raw, packed: bool = True) -> bytes:
    """Return a zip archive with one member changed, left out or named otherwise; its checksums are right."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(own.filename, archive.read(own)) for own in archive.infolist()]
    except Exception:  # whatever the bytes are, they are changed as bytes
        return raw(data, most)
    if not members or chance.random() < 0.1:
        return raw(data, most)
    i = chance.randrange(len(members))
    name, body = members[i]
    kind = chance.randrange(10)
    if kind == 0:
        del members[i]
    elif kind == 1:
        members.insert(0, (name, body))
    elif kind == 2:
        members[i] = (chance.choice([*(other for other, _ in members), "x", name + "x"]), body)
    else:
        members[i] = (name, raw(body, len(body) + 64))
    sink = io.BytesIO()
    import warnings

    with warnings.catch_warnings(), zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED if packed else 0) as made:
        warnings.simplefilter("ignore")  # of names that come twice
        for name, body in members:
            made.writestr(zipfile.ZipInfo(name), body, zipfile.ZIP_DEFLATED if packed else 0)
    return sink.getvalue() if len(sink.getvalue()) <= most else data


def with_png_checksums(data: bytes) -> bytes:
    """Return a PNG whose chunks have the checksums of what they hold."""
    import zlib

    out, at = bytearray(data[:8]), 8
    while at + 8 <= len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        body = data[at + 4 : at + 8 + size]
        out += data[at : at + 8 + size] + struct.pack(">I", zlib.crc32(body))
        at += 12 + size
    return bytes(out)
