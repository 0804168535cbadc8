"""What a network puts out, by declaration, read as bands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from guardband.methods.method import Method, Wish
from guardband.nn.heads import Triple
from guardband.nn.quantiles import checked_quantiles

Outputs = Literal["bands", "bounds", "gaussian"] | Sequence[float] | Callable[[Any], Tensor]
"""How to read a network: ``"bands"`` (lower, point, upper); ``"bounds"`` (lower, upper), with the point halfway;
``"gaussian"`` (mean, variance), a band of one deviation each side; the levels of quantiles; or a function of what the
network puts out that returns bands ``(n, 3)``."""


class Reading(ABC):
    """Turns what one network puts out into bands, ``(n, ...) -> (k, n, 3)``; ``several`` stand in the rule's order."""

    several: bool = False

    @abstractmethod
    def bands(self, out: Any) -> Tensor:
        """Return the bands."""


@dataclass(frozen=True)
class _Columns(Reading):
    """Outputs of a fixed number of columns, of which ``make`` makes bands."""

    what: str
    columns: int
    hint: str
    make: Callable[[Tensor], Tensor]
    several: bool = False

    def bands(self, out: Any) -> Tensor:
        found = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        if not isinstance(out, Tensor) or out.ndim != 2 or out.shape[1] != self.columns:
            raise ValueError(f"The network must put out (n, {self.columns}) = {self.what}, found {found}: {self.hint}.")
        return self.make(out)


@dataclass(frozen=True)
class _Function(Reading):
    read: Callable[[Any], Tensor]

    def bands(self, out: Any) -> Tensor:
        return BANDS.bands(self.read(out))


DECLARE = 'end it with gb.nn.TripleHead, or declare what it puts out by outputs="bounds", "gaussian" or quantiles'


def _as_they_are(out: Tensor) -> Tensor:
    return out[None]


def _from_bounds(out: Tensor) -> Tensor:
    lower, upper = out.unbind(1)
    return torch.stack([lower, (lower + upper) / 2, upper], -1)[None]


def _from_gaussian(out: Tensor) -> Tensor:
    mean, variance = out.unbind(1)
    return torch.stack([mean - variance.sqrt(), mean, mean + variance.sqrt()], -1)[None]


BANDS = _Columns("lower, point, upper", 3, DECLARE, _as_they_are)
BOUNDS = _Columns("lower, upper", 2, 'as outputs="bounds" declares', _from_bounds)
GAUSSIAN = _Columns("mean, variance", 2, 'as outputs="gaussian" declares', _from_gaussian)
NAMED: dict[str, Reading] = {"bands": BANDS, "bounds": BOUNDS, "gaussian": GAUSSIAN}


def reading(outputs: Outputs, method: Method, wish: Wish) -> tuple[Reading, Wish]:
    """Return how to read a network for a method; pav takes all pairs of quantiles as its grid unless it is given."""
    if isinstance(outputs, str):
        if outputs not in NAMED:
            raise ValueError(f"outputs must be one of {', '.join(NAMED)}, quantiles or a function, found {outputs!r}.")
        return NAMED[outputs], wish
    if callable(outputs):
        return _Function(outputs), wish
    levels = checked_quantiles(outputs)
    pairs = {round(2 * low, 12): i for i, low in enumerate(levels) if low < 0.5 and _place(levels, 1 - low) is not None}
    middle = _place(levels, 0.5)
    if middle is None or not pairs:
        raise ValueError(f"quantiles must hold 0.5 and pairs q, 1 - q about it, found {list(levels)}.")
    if "taus" in method.settings and wish.taus is None:
        wish = replace(wish, taus=tuple(sorted(pairs, reverse=True)))
    places: list[tuple[int, int, int]] = []
    for spec in method.networks(wish):
        tau = round(spec.head.tau, 12) if isinstance(spec.head, Triple) else max(pairs)
        if tau not in pairs:
            raise ValueError(
                f"{method.name} needs the quantiles {tau / 2:g} and {1 - tau / 2:g}, found {list(levels)}: choose "
                "another pair by tau=... or taus=..."
            )
        low = pairs[tau]
        places.append((low, middle, _place(levels, 1 - levels[low]) or 0))

    def pick(out: Tensor) -> Tensor:
        return torch.stack([out[:, list(place)] for place in places])

    return _Columns("quantiles", len(levels), "as outputs declares", pick, several=True), wish


def _place(levels: Sequence[float], level: float) -> int | None:
    return next((i for i, own in enumerate(levels) if abs(own - level) < 1e-9), None)
