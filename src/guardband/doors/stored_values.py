"""What single entries of a model file may be: numbers within bounds, lists that end, and objects with known names.

A file may come from a stranger. So every entry has a type, every number is finite, and every list whose length costs
more than reading it has a limit.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal, TypeVar

from msgspec import Meta, Struct

from guardband.data.codes import MOST_RANGES

MOST_LEVELS = 1000
"""Levels, or levels of networks: calibration passes over its rows once for each of the former."""
MOST_TARGETS = 1000
"""Targets of a model: each has a scale of its own."""

Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
NotNegative = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
Robust = Annotated[float, Meta(ge=-MOST_RANGES, le=MOST_RANGES)]
Share = Annotated[float, Meta(ge=0, lt=1)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Width = Annotated[int, Meta(ge=1, le=2**31)]
Column = Literal["number", "boolean", "date"]


class Stored(Struct, forbid_unknown_fields=True):
    """An object of the file: it has these entries and no others."""


class Exact(Stored, omit_defaults=True):
    """A number as it is written in decimal, or as a fraction. Longer ones could take hours to read."""

    fraction: Annotated[str, Meta(pattern=r"^-?[0-9]{1,400}(/[1-9][0-9]{0,400})?\Z")] | None = None
    float32: Annotated[str, Meta(pattern=r"^-?[0-9]{1,60}(\.[0-9]{1,60})?(e[+-]?[0-9]{1,2})?\Z")] | None = None

    def __post_init__(self) -> None:
        if (self.fraction is None) == (self.float32 is None):
            raise ValueError("A number is a fraction or a float32")


T = TypeVar("T")
OfEach = Annotated[list[T], Meta(max_length=MOST_TARGETS)]
"""Something for each of several targets."""
Number = int | Finite | Exact
Levels = Number | Annotated[list[Number], Meta(max_length=MOST_LEVELS)] | None
Plain = bool | int | Finite | str | Exact | list[bool | int | Finite | str | Exact | None] | None
"""An argument, as ``plain`` writes it; what it means is checked where it is used."""
