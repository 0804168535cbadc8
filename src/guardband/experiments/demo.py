"""The demonstration: the paper's artificial data, small, with both guaranteed methods beside the oracle."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guardband.bands.intervals import Intervals
from guardband.data.artificial import PaperModel
from guardband.doors.table import IntervalRegressor
from guardband.metrics import coverage, mean_length

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DemoRow:
    """One method on the test rows."""

    method: str
    bands: Intervals
    coverage: float
    relative_length: float
    mae: float
    seconds: float


@dataclass(frozen=True)
class Demo:
    """What the demonstration found: the oracle first, then the methods; the model is conf-nn's."""

    rows: tuple[DemoRow, ...]
    model: IntervalRegressor
    X: Array
    signal: Array
    y: Array
    n_train: int
    n_calibration: int


def run_demo(n: int = 20_000, n_test: int = 20_000, seed: int = 0, verbose: bool | None = None) -> Demo:
    """Fit conf-nn and pav to n rows of the artificial data and judge them on new ones."""
    model = PaperModel()
    X, y = model.draw(n, seed)
    X_test, y_test = model.draw(n_test, np.random.default_rng([seed, 1]))
    oracle = model.oracle(X_test)

    def judged(method: str, bands: Intervals, seconds: float) -> DemoRow:
        length = float(mean_length(y_test, bands)) / float(mean_length(y_test, oracle))
        mae = float(np.abs(y_test - bands.point).mean())
        return DemoRow(method, bands, float(coverage(y_test, bands)), length, mae, seconds)

    rows, models = [judged("oracle", oracle, 0.0)], []
    for method in ("conf-nn", "pav"):
        started = time.perf_counter()
        fitted = IntervalRegressor(method, preset="fast", random_state=seed, verbose=verbose).fit(X, y)
        models.append(fitted)
        rows.append(judged(method, fitted.predict_interval(X_test), time.perf_counter() - started))
    certificate = rows[1].bands.certificate
    assert certificate is not None
    n2 = certificate.n_calibration
    return Demo(tuple(rows), models[0], X_test, model.signal(X_test), y_test, n - n2, n2)
