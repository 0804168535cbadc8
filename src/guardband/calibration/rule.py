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
