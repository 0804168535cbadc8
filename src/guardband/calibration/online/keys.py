"""What rows are called until their true values arrive."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from guardband.words import listed

Key = int | str
"""What a row is called: its number, or what the user calls it."""


def plain_keys(keys: Iterable[Any]) -> list[Key]:
    """Return keys as whole numbers and text, which a file can hold."""
    own = keys if isinstance(keys, list | tuple) else np.asarray(keys).tolist()
    out: list[Key] = []
    for key in own if isinstance(own, list | tuple) else [own]:
        if isinstance(key, bool) or not isinstance(key, numbers.Integral | str):
            raise TypeError(f"A key must be a whole number or text, found {key!r}. Use str(...) for other kinds.")
        out.append(key if isinstance(key, str) else int(key))
    return out


def refuse_repeated(keys: Sequence[Key]) -> None:
    """Raise if a key occurs twice."""
    if len(set(keys)) < len(keys):
        seen: set[Key] = set()
        twice = [key for key in keys if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
        raise ValueError(f"The key {listed(twice)} occurs more than once. Name each row once.")
