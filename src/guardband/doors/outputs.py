"""What a network puts out, by declaration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from guardband.bands.predicted import Predicted, PredictedInterval
from guardband.methods.method import Method, Request
from guardband.nn.each_target import EachColumns
from guardband.nn.heads import Triple
from guardband.nn.quantiles import checked_quantiles
from guardband.nn.reading import (
    BoundColumns,
    DeviationColumns,
    GaussianColumns,
    IntervalColumns,
    PointColumn,
    QuantileColumns,
    Reading,
)
from guardband.training.members import at_least_float32

Outputs = Literal["bands", "bounds", "gaussian", "variance", "point"] | Sequence[float] | Callable[[Any], Tensor]
"""How to read a network: ``"bands"`` (lower, point, upper); ``"bounds"`` (lower, upper), with the point halfway;
``"gaussian"`` (mean, standard deviation); ``"variance"`` (mean, variance); ``"point"``; the levels of quantiles; or a
function of what the network puts out that returns lower, point and upper, ``(n, 3)``."""

READINGS: dict[str, tuple[Reading, str]] = {
    "bands": (IntervalColumns(), "lower, point, upper"),
    "bounds": (BoundColumns(), "lower, upper"),
    "gaussian": (GaussianColumns(), "mean, standard deviation"),
    "variance": (GaussianColumns(is_variance=True), "mean, variance"),
    "point": (PointColumn(), "a point"),
}
DECLARE = (
    'Declare what it puts out by outputs="bands", "bounds", "gaussian", "variance", "point" or quantiles, or end it '
    "with gb.nn.TripleHead or gb.nn.GaussianHead."
)


@dataclass(frozen=True)
class Declared:
    """How one network's outputs are read, for a method and a request; ``function`` is applied to them first."""

    reading: Reading
    what: str
    function: Callable[[Any], Any] | None = None

    @property
    def holds_candidates(self) -> bool:
        """Whether one network puts out all candidates."""
        return isinstance(self.reading, QuantileColumns)

    def read(self, outputs: Sequence[Any]) -> Predicted:
        """Return what networks predict, each a candidate; in single precision at least."""
        read = [self.reading.read(self._columns(out)[None, None], torch) for out in outputs]
        side_by_side: Predicted = Predicted.side_by_side(read, torch)
        return side_by_side

    def _columns(self, out: Any) -> Tensor:
        out = out if self.function is None else self.function(out)
        if isinstance(out, tuple | list) and all(map(_is_column, out)):
            out = torch.stack([one.reshape(-1) for one in out], 1)
        if isinstance(out, Tensor) and out.ndim == 1:
            out = out[:, None]
        if isinstance(self.reading, EachColumns) and isinstance(out, Tensor) and out.ndim == 3:
            out = out.flatten(1)
        found = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        if not isinstance(out, Tensor) or out.ndim != 2 or out.shape[1] != self.reading.columns:
            raise ValueError(
                f"The network must put out (n, {self.reading.columns}) = {self.what}, found {found}. {DECLARE}"
            )
        return at_least_float32(out)

    def of_each(self, targets: int) -> Declared:
        """Return the same for each of several targets, one behind the other, or ``(n, q, columns)``."""
        return replace(
            self, reading=EachColumns(self.reading, targets), what=f"{self.what} for each of {targets} targets"
        )

    def __str__(self) -> str:
        own = "a function" if self.function is not None else self.what
        if not isinstance(self.reading, QuantileColumns):
            return own
        return f"{own} {list(self.reading.quantiles)} at tau {list(self.reading.taus)}"


def declared(outputs: Outputs, method: Method, request: Request) -> tuple[Declared, Request]:
    """Return how to read a network for a method; pav takes all pairs of quantiles as its grid unless it is given."""
    if isinstance(outputs, str):
        if outputs not in READINGS:
            words = ", ".join(READINGS)
            raise ValueError(f"outputs must be one of {words}, quantiles or a function, found {outputs!r}.")
        reading, what = READINGS[outputs]
        if isinstance(reading, GaussianColumns) and method.rule(request).takes is PredictedInterval:
            reading = DeviationColumns(reading.is_variance)
        return Declared(reading, what), request
    if callable(outputs):
        return Declared(*READINGS["bands"], outputs), request
    levels = checked_quantiles(outputs)
    pairs = {round(2 * q, 12) for q in levels if q < 0.5 and _has(levels, 1 - q)}
    is_free = request.is_sided and request.tau is None
    if is_free and _has(levels, 0.5) and len(levels) > 1:
        return Declared(_on_sides(levels, request), "quantiles"), request
    if not _has(levels, 0.5) or not pairs:
        raise ValueError(f"quantiles must hold 0.5 and pairs q, 1 - q about it, found {list(levels)}.")
    if "taus" in method.options and request.taus is None:
        request = replace(request, taus=tuple(sorted(pairs, reverse=True)))
    heads = [spec.head for spec in method.networks(request)]
    taus = tuple(round(head.tau, 12) if isinstance(head, Triple) else max(pairs) for head in heads)
    for tau in taus:
        if tau not in pairs:
            raise ValueError(
                f"{method.name} needs the quantiles {tau / 2:g} and {1 - tau / 2:g}, found {list(levels)}: choose "
                "another pair by tau=... or taus=..."
            )
    return Declared(QuantileColumns(levels, taus), "quantiles"), request


def _on_sides(levels: tuple[float, ...], request: Request) -> QuantileColumns:
    """Return the quantiles that come nearest to the tails; where there is none on a side, the median is its bound."""
    below, above = request.shares_outside
    low = min((q for q in levels if q < 0.5), key=lambda q: abs(q - below), default=0.5)
    high = min((q for q in levels if q > 0.5), key=lambda q: abs(1 - q - above), default=0.5)
    needed = {"lower": (low,), "upper": (high,)}.get(request.side, (low, high))
    if 0.5 in needed:
        raise ValueError(
            f"{'These tails need' if request.tails else f'side={request.side!r} needs'} a quantile on that side of the "
            f"median, found {list(levels)}. Add one near {below:g} or {1 - above:g}."
        )
    return QuantileColumns(levels, (low + 1 - high,), (low,))


def _has(levels: Sequence[float], level: float) -> bool:
    return bool(np.isclose(levels, level, rtol=0, atol=1e-9).any())


def _is_column(out: Any) -> bool:
    """Return whether an output is one number for each row, ``(n,)`` or ``(n, 1)``."""
    return isinstance(out, Tensor) and (out.ndim == 1 or (out.ndim == 2 and out.shape[1] == 1))
