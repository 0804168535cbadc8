"""The contract of a rule: held-out bands and responses in, intervals with a stated guarantee out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from guardband.bands.certificate import Certificate
from guardband.bands.levels import Levels
from guardband.exceptions import InsufficientCalibrationError, InsufficientCalibrationWarning, warn

Array = NDArray[Any]
OnInsufficient = Literal["inf", "raise"]


@dataclass(frozen=True)
class Calibration:
    """What a rule found on the calibration rows: a setting per level, ``(L,)``, and what it promises."""

    setting: Array
    certificate: Certificate


class Rule(ABC):
    """Turns bands into intervals in four steps, so that calibration can stream.

    ``statistic`` reduces each held-out row to what the rule needs of it; ``summarise`` joins the parts;
    ``calibrate`` finds the setting; ``ends`` applies it to new bands. Bands are ``(K, n, 3)``: the member
    axis is always there.
    """

    method: str
    levels: Levels
    on_insufficient: OnInsufficient

    @abstractmethod
    def statistic(self, bands: Array, y: Array) -> Array:
        """Return what the rule needs of each row, ``(K, n, 3), (n,) -> (n, ...)``."""

    @abstractmethod
    def summarise(self, statistics: Sequence[Array]) -> Array:
        """Return all statistics as one array, which is all that ``calibrate`` needs and a model file keeps."""

    @abstractmethod
    def calibrate(self, summary: Array) -> Calibration:
        """Return the setting for each level and the certificate."""

    @abstractmethod
    def ends(self, bands: Any, setting: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return lower ``(n, L)``, point ``(n,)`` and upper ``(n, L)``; ``xp`` is numpy or torch."""

    @abstractmethod
    def at(self, levels: Levels) -> Rule:
        """Return the rule for levels that are chosen after calibration."""

    def whole_line(self, why: str, category: type[Warning] = InsufficientCalibrationWarning) -> None:
        """Say that the interval is the whole line, by a warning or, if asked for, an error."""
        if self.on_insufficient == "raise":
            raise InsufficientCalibrationError(why)
        warn(f"{why} The interval is the whole line.", category)


def picked_ends(picked: Any, xp: Any, allowed: Any = True) -> tuple[Any, Any, Any]:
    """Return the ends of one band for each level, ``(L, n, 3) -> (n, L), (n,), (n, L)``.

    The point is that of the first level; the others are widened to contain it where they do not. A band that is
    not finite, or not ``allowed``, ``(L, 1)``, gives the whole line.
    """
    point = picked[0, :, 1]
    usable = xp.isfinite(picked).all(-1) & xp.isfinite(point) & allowed
    lower = xp.where(usable, xp.minimum(picked[:, :, 0], point), -xp.inf)
    upper = xp.where(usable, xp.maximum(picked[:, :, 2], point), xp.inf)
    return lower.T, point, upper.T


def refuse_other_levels(method: str, own: Levels, asked: Levels) -> None:
    """Raise if a level is asked for that there is no network for."""
    if not own.include(asked):
        raise ValueError(
            f"{method} was calibrated for confidence_level={own.confidence_level}, found {asked.confidence_level}: "
            "name all levels before."
        )
