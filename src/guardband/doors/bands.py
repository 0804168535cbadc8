"""Door 3: bands from anywhere, calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals
from guardband.bands.levels import Level, Levels
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.conformal import Guarantee
from guardband.calibration.pav import Average, PavRule
from guardband.calibration.rule import OnInsufficient, Rule
from guardband.data.table import from_tensor
from guardband.data.target import read_target
from guardband.methods.method import Method, Wish
from guardband.methods.registry import method_named
from guardband.words import rows_named

Array = NDArray[np.float64]

ROWS_AT_A_TIME = 2**15


class BandCalibrator:
    """Turns bands of any model into intervals with a guarantee.

    ``fit`` takes held-out bands ``(n,)`` each and their responses, ``transform`` new bands. For pav, bands are
    ``(K, n)`` with one row per entry of ``taus``; for high-q and neg-ll one row per candidate. neg-ll and bayes take
    mean - deviation, mean and mean + deviation of a Gaussian. Bands that cross, lower > point or point > upper, are
    refused, or with ``crossing="sort"`` put in order, at ``fit`` and at ``transform`` alike.

    >>> rule = BandCalibrator("conf-nn", confidence_level=0.9)
    >>> rng = np.random.default_rng(0)
    >>> held_out = rng.standard_normal(999)
    >>> rule.fit(np.full(999, -1.0), np.zeros(999), np.ones(999), held_out).certificate.rank
    900
    >>> bands = rule.transform([-1.0], [0.0], [1.0])
    >>> bool(bands.lower[0] < -1.5), bool(bands.upper[0] > 1.5)
    (True, True)
    """

    def __init__(
        self,
        method: str | Method = "conf-nn",
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
        guarantee: Guarantee = "marginal",
        delta: float = 0.1,
        joint: bool = False,
        taus: Sequence[float] | None = None,
        rule: PavRule = "fixed-sequence",
        average: Average | None = None,
        on_insufficient: OnInsufficient = "inf",
        crossing: Literal["raise", "sort"] = "raise",
    ) -> None:
        if crossing not in ("raise", "sort"):
            raise ValueError(f"crossing must be 'raise' or 'sort', found {crossing!r}.")
        wish = Wish(
            levels=Levels.of(confidence_level, alpha),
            guarantee=guarantee,
            delta=float(delta),
            joint=joint,
            taus=taus,
            rule=rule,
            average=average,
            on_insufficient=on_insufficient,
        )
        self._method, self._wish = method_named(method), wish
        self._method.check(wish)
        self._rule: Rule = self._method.rule(wish)
        self._crossing = crossing
        self._calibrated: Calibrated | None = None
        self._candidates = 0

    def fit(self, lower: ArrayLike, point: ArrayLike, upper: ArrayLike, y: ArrayLike) -> BandCalibrator:
        """Calibrate on held-out bands and responses that no training has seen."""
        sides = self._sides(lower, point, upper)
        candidates, n = sides[0].shape
        response = read_target(y, n)
        # A part at a time stays in the cache, and only the scores of all rows in memory.
        starts = range(0, n, ROWS_AT_A_TIME)
        parts = [(slice(start, start + ROWS_AT_A_TIME), start) for start in starts]
        statistics = [
            self._rule.statistic(self._bands([side[:, rows] for side in sides], first), response[rows])
            for rows, first in parts
        ]
        self._calibrated = Calibrated.by(self._rule, self._rule.summarise(statistics))
        self._candidates = candidates
        return self

    def transform(
        self,
        lower: ArrayLike,
        point: ArrayLike,
        upper: ArrayLike,
        *,
        confidence_level: Level | Sequence[Level] | None = None,
        alpha: Level | Sequence[Level] | None = None,
    ) -> Intervals:
        """Return the intervals of new bands, at other levels if asked for."""
        calibrated = self._fitted().at(confidence_level, alpha)
        sides = self._sides(lower, point, upper)
        if len(sides[0]) != self._candidates:
            raise ValueError(f"Expected {self._candidates} band(s), as fit was given, found {len(sides[0])}.")
        return calibrated.intervals(*calibrated.ends(self._bands(sides)))

    @property
    def certificate(self) -> Certificate:
        """What is promised."""
        return self._fitted().certificate

    def _fitted(self) -> Calibrated:
        if self._calibrated is None:
            raise NotFittedError("This BandCalibrator is not calibrated yet: call fit first.")
        return self._calibrated

    def _sides(self, lower: ArrayLike, point: ArrayLike, upper: ArrayLike) -> list[Array]:
        """Return lower, point and upper, each ``(K, n)``."""
        sides = [np.asarray(from_tensor(side), dtype=np.float64) for side in (lower, point, upper)]
        shapes = [side.shape for side in sides]
        if len(set(shapes)) > 1 or sides[0].ndim not in (1, 2) or sides[0].size == 0:
            raise ValueError(f"lower, point and upper must have one shape (n,) or (K, n), n > 0, found {shapes}.")
        return [np.atleast_2d(side) for side in sides]

    def _bands(self, sides: list[Array], first_row: int = 0) -> Array:
        """Return the bands ``(K, n, 3)`` in the order that the rule expects."""
        bands = np.stack(sides, axis=-1)[self._method.order(self._wish, len(sides[0]))]
        if self._crossing == "sort":
            return np.where(np.isnan(bands).any(-1, keepdims=True), bands, np.sort(bands, axis=-1))
        refuse_crossing(bands, first_row)
        return bands


def refuse_crossing(bands: NDArray[Any], first_row: int = 0) -> None:
    """Raise if lower <= point <= upper fails in ``(K, n, 3)``; bands with NaN are left to the rule."""
    crosses = (bands[:, :, 1] < bands[:, :, 0]) | (bands[:, :, 2] < bands[:, :, 1])
    if not crosses.any():
        return
    crossing = np.flatnonzero((crosses & ~np.isnan(bands).any(axis=2)).any(axis=0)) + first_row
    if len(crossing):
        raise ValueError(
            f"Bands must satisfy lower <= point <= upper, found {len(crossing)} that cross ({rows_named(crossing)}): "
            'order them (BandCalibrator(crossing="sort"), or a network that ends in gb.nn.TripleHead).'
        )
