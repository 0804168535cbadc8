"""Rows in order of time: the limits of online rules on any sequence, and the false alarms of a monitor."""

from __future__ import annotations

from typing import Any

import numpy as np
from findings import Cell, never_cell, share_cell
from networks import setting
from numpy.typing import NDArray
from worlds import Array

import guardband as gb

RULES = ("aci", "scale-free", "tracking")
SEQUENCES = ("same", "drift", "opponent", "waves")
STEP = 0.005
"""The step of aci, as documented."""
SIGNIFICANCE = 0.05


def _next(sequence: str, t: int, y: float, x: int, rng: np.random.Generator, ends: tuple[float, float]) -> float:
    """Return the true value of row t: noise that stays the same, drifts, comes in waves, or is set by an opponent."""
    if sequence == "drift":
        return y * 1.02**t
    if sequence == "waves":
        return 30.0 * y if (t // 40) % 2 else y
    if sequence == "opponent" and np.isfinite(ends).all():  # just outside, as long as there is an outside
        return ends[1] + 1.0 if rng.random() < 0.5 else ends[0] - 1.0
    return y


def in_the_long_run(
    rng: np.random.Generator, noise: str, rule: str, sequence: str, rows: int, streams: int
) -> list[Cell]:
    """Return whether any stream leaves the limits on its certificate, after any row; and for aci Gibbs' & Candès'."""
    world, bands, _ = setting(noise, "good")
    out, published, more = [], [], []
    for _ in range(streams):
        alpha = 0.1
        online = gb.OnlineCalibrator(rule, confidence_level=1 - alpha).fit(
            *bands[:, (x := world.rows(rng, 50))[0]], x[1]
        )
        missed = 0
        bad, outside, silent = False, False, False
        for t in range(1, rows + 1):
            (stratum,), (y,) = world.rows(rng, 1)
            new = online.transform(*bands[:, stratum, None])
            ends = (float(new.lower[0]), float(new.upper[0]))
            y = _next(sequence, t, y, stratum, rng, ends)
            online.update([y])
            missed += not ends[0] <= y <= ends[1]
            promise = online.certificate.promise
            least, most = promise.miss_limits()
            bad |= not least - 1e-12 <= promise.misses / t <= most + 1e-12
            silent |= missed > promise.misses
            outside |= abs(promise.misses / t - alpha) > (max(alpha, 1 - alpha) + STEP) / (STEP * t) + 1e-12
        out.append(bad)
        published.append(outside)
        more.append(silent)
    cells = [never_cell("leaves its limits", out), never_cell("misses that were not counted", more)]
    return [*cells, never_cell("leaves the published limits", published)] if rule == "aci" else cells


def alarms(
    rng: np.random.Generator,
    noise: str,
    network: str,
    n: int,
    streams: int,
    guarantee: str,
    change: bool = False,
    alike: bool = True,
) -> list[Cell]:
    """Return the cell of streams that ever raise an alarm; with ``change`` the control, where the noise triples.

    Where outcomes tie, rows of a stratum would be equal, and a monitor takes them for rows that it has seen. If they
    are not ``alike``, each has a width of its own, larger by a thousandth or less.
    """
    world, bands, _ = setting(noise, network)
    options: dict[str, Any] = {"guarantee": "pac", "delta": 0.1} if guarantee == "pac" else {}
    rule = gb.BandCalibrator("conf-nn", confidence_level=0.9, crossing="sort", **options)
    raised = np.empty(streams, dtype=bool)
    for r in range(streams):
        x, y = world.rows(rng, n)
        rule.fit(*_own(bands, x, rng, alike), y)
        monitor = gb.Monitor(rule, significance=SIGNIFICANCE)
        for _ in range(4):  # an alarm is judged after every row, in however many parts they come
            x, y = world.rows(rng, 150, 3.0 if change else 1.0)
            monitor.update(y, rule.transform(*_own(bands, x, rng, alike)))
        raised[r] = monitor.alarm
    allowed = SIGNIFICANCE + (0.1 if guarantee == "pac" else 0.0)
    return [share_cell("streams with an alarm", raised, allowed, holds=not change)]


def _own(bands: Array, x: NDArray[np.intp], rng: np.random.Generator, alike: bool) -> Array:
    """Return the triples of rows."""
    low, middle, high = bands[:, x]
    more = 0.0 if alike else 1e-3 * rng.random(len(x))
    return np.stack([low, middle, high + more * (high - low)])
