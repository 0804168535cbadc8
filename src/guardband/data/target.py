"""The target: checked at the border, transformed, standardised on the training rows, and brought back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.data.codes import center_and_scale
from guardband.data.few_values import remarks_on_values
from guardband.data.learning_scale import LearningScale
from guardband.data.row_numbers import known_as
from guardband.data.table import as_array, numbers_of_objects
from guardband.data.transforms import NAMED, Own, Transform, instead, learn_slack, work_of
from guardband.data.whole_numbers import LARGEST_WHOLE, WHOLE_ENDS, is_whole, on_whole_numbers
from guardband.exceptions import TargetWarning, warn
from guardband.words import rows_named

Array = NDArray[np.float64]


def read_target(y: Any, n_rows: int, first_row: int = 0, may_miss: bool = False) -> Array:
    """Return the target as ``(n,)`` float64; NaN and infinity are refused with the rows named.

    With ``may_miss`` NaN is left where it is.
    """
    array = as_array(y)
    if array.ndim != 1:
        several = ""
        if array.ndim == 2 and array.shape[1] > 1:
            several = ' For several targets, pass targets="joint" to IntervalRegressor or to BandCalibrator.'
        raise ValueError(f"y must be one column of shape (n,), found shape {array.shape}.{several}")
    if np.iscomplexobj(array):
        raise ValueError("Complex data not supported: y must hold real numbers.")
    try:
        if array.dtype.kind in "mM":
            raise TypeError("dates and durations are not numbers")
        values = numbers_of_objects(array) if array.dtype.kind in "OU" else array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers, found {array.dtype} values: {error}.") from None
    if len(values) != n_rows:
        raise ValueError(f"X and y must have the same number of rows, found {n_rows} and {len(values)}.")
    for holds, what in (
        (np.isnan(values) & (not may_miss), "NaN"),
        (np.isinf(values), "infinity or a value too large for dtype('float64')"),
    ):
        if holds.any():
            raise ValueError(
                f"Input y contains {what} in {rows_named(np.flatnonzero(holds) + first_row)}. Correct or remove it."
            )
    return values


@dataclass(frozen=True)
class Target:
    """The scale on which networks learn a target, and the way back to its own units.

    ``work`` units are those after the transform: intervals are calibrated there, since an increasing
    transform keeps coverage. ``learn`` units are those of ``scales``, which copies of a network take turns with: one,
    which standardises work units on the training rows, and if ``quantiles`` are learnt perhaps a logarithmic one, as
    quantiles keep their meaning on any scale.
    ``integer`` is what was asked for, None to look at the rows given to fit, and ``whole`` what came of it: ends are
    whole numbers. ``slack`` is the error of a transform of the user's own, and ``remarks`` belong into the certificate.
    """

    transform: Transform | None
    y_min: float | None
    y_max: float | None
    quantiles: bool = False
    scales: tuple[LearningScale, ...] = (LearningScale(),)
    integer: bool | None = False
    whole: bool = False
    slack: tuple[float, float] = (0.0, 0.0)
    remarks: tuple[str, ...] = ()

    # ------------------------------------------------------------------------------------- learning

    def decided(self, y: Array) -> Target:
        """Return the target for the rows given to fit; those that cannot be are refused."""
        self.to_work(y)
        if self.integer:
            self._refuse_broken(y)
        small = bool(np.abs(y).min() < LARGEST_WHOLE)  # larger floats are all whole numbers
        return replace(self, whole=bool(self.integer or (self.integer is None and small and is_whole(y).all())))

    def decided_again(self, y: Array) -> Target:
        """Return the target for other calibration rows: without whole numbers if only fit's rows were all whole."""
        if not self.whole or is_whole(y).all():
            return self
        if self.integer:
            self._refuse_broken(y)
        warn(
            f"The targets given to fit are whole numbers, but {_first(y, ~is_whole(y))} is not. guardband no longer "
            "rounds intervals to whole numbers. Fit with integer=False (--no-integer) to avoid this.",
            TargetWarning,
        )
        return replace(self, whole=False)

    def learn(self, y: Array) -> Target:
        """Return the target with the scales of the training rows."""
        work = self.to_work(y)
        if center_and_scale(work)[1] == 0:
            warn(
                f"y is constant on the training rows (n = {len(y)}): there is nothing to learn. Check that you chose "
                "the right target.",
                TargetWarning,
            )
        slack = learn_slack(self.transform, y) if isinstance(self.transform, tuple) else (0.0, 0.0)
        scales = LearningScale.several(work) if self.quantiles else (LearningScale.plain(work),)
        return replace(self, scales=scales, slack=slack, remarks=remarks_on_values(y))

    def to_work(self, y: Array) -> Array:
        """Return values in work units, ``(n,) -> (n,)``; those that cannot be are refused."""
        for possible, needs, hint in self._demands(y):
            if not possible.all():
                rows = np.flatnonzero(~possible)
                named = rows_named(known_as(rows))
                raise ValueError(f"y must be {needs}, found {y[rows[0]]:g}: see {named}. {hint}")
        return self._forward(y)

    def possible(self, y: Array) -> NDArray[np.bool_]:
        """Return which values the model was not told to be impossible, ``(n,)``."""
        out = np.ones(len(y), dtype=bool)
        for possible, _, _ in self._demands(y):
            out &= possible
        return out

    def to_learn(self, y: Array) -> Array:
        """Return values in learn units, on each of S scales, ``(n,) -> (S, n)``."""
        work = self.to_work(y)
        return np.stack([scale.forward(work) for scale in self.scales])

    @property
    def has_long_tail(self) -> bool:
        """Whether some copies learn it on a logarithmic scale."""
        return any(scale.unit is not None for scale in self.scales)

    # ----------------------------------------------------------------------------------- prediction

    def of_turn(self, turn: int) -> Target:
        """Return the target with the one scale that is learnt at this turn."""
        return replace(self, scales=(self.scales[turn % len(self.scales)],))

    def to_units(self, lower: Any, point: Any, upper: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return ends and points in the target's own units, rounded outward; ``xp`` is numpy or torch.

        Where the target is whole, lower ends are then rounded up and upper ends down: no whole number is lost.
        """
        if self.transform is not None:
            back = Own(*self.transform, self.slack) if isinstance(self.transform, tuple) else NAMED[self.transform]
            ends = zip((lower, point, upper), (-1, 0, 1), strict=True)
            lower, point, upper = (back.back(value, sign, xp) for value, sign in ends)
        if self.y_min is not None or self.y_max is not None:
            lower, point, upper = (xp.clip(v, self.y_min, self.y_max) for v in (lower, point, upper))
        if self.whole:
            return on_whole_numbers(lower, point, upper, self.y_min, self.y_max, xp)
        return lower, point, upper

    @property
    def notes(self) -> tuple[str, ...]:
        """What the certificate says of the target."""
        return (*self.remarks, *((WHOLE_ENDS,) if self.whole else ()))

    def to_dict(self) -> dict[str, Any]:
        """Return the target for JSON, without functions of the user's."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        own["scales"] = [asdict(scale) for scale in self.scales]
        return own | {"transform": None} if isinstance(self.transform, tuple) else own

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any], transform: Transform | None) -> Target:
        """Return the target that ``to_dict`` described, with the transform of the model."""
        own: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in entries.items()
        }
        scales = tuple(LearningScale(**scale) for scale in own["scales"])
        return cls(**own | {"transform": transform, "scales": scales})

    # -------------------------------------------------------------------------------------- details

    def _forward(self, y: Array) -> Array:
        if self.transform is None:
            return y
        if isinstance(self.transform, tuple):
            return work_of(self.transform[0], y)
        work: Array = NAMED[self.transform].forward(y)
        return work

    def _demands(self, y: Array) -> Iterator[tuple[NDArray[np.bool_], str, str]]:
        """Return what is asked of values: which fulfil it, what it is, and what to do about others."""
        if self.y_min is not None:
            yield y >= self.y_min, f"at least y_min = {self.y_min}", "Correct these rows, or lower y_min."
        if self.y_max is not None:
            yield y <= self.y_max, f"at most y_max = {self.y_max}", "Correct these rows, or raise y_max."
        if isinstance(self.transform, tuple):
            finite = np.isfinite(work_of(self.transform[0], y))
            yield finite, "finite after your target_transform", "Use one that suits every target."
        elif self.transform is not None:
            named = NAMED[self.transform]
            hint = f'Use the transform "{instead(y)}" instead.'
            yield named.possible(y), f'{named.needs} for target_transform="{self.transform}"', hint

    def _refuse_broken(self, y: Array) -> None:
        if not is_whole(y).all():
            raise ValueError(
                f"With integer=True every target must be a whole number, but {_first(y, ~is_whole(y))} is not. Correct "
                "the row, or use integer=False."
            )


def _first(y: Array, wrong: NDArray[np.bool_]) -> str:
    row = np.flatnonzero(wrong)[:1]
    return f"{y[row[0]]:g} in {rows_named(known_as(row))}"
