"""Whether selections hold their false discovery rate: 5,000 repetitions a setting, with few calibration rows and many.

The share of wrong rows of a selection lies between 0 and 1. The limit for its mean over R repetitions is Hoeffding's,
q + sqrt(log(S / 1e-6) / (2 R)) with S settings: all settings together exceed their limits with probability 1e-6 at most
if the rate is held.

    python benchmarks/distributions/fdr.py
"""

from __future__ import annotations

import argparse

import numpy as np

from guardband.bands.placement import ByScale
from guardband.bands.units import Units
from guardband.calibration.places import CalibratedPlaces

NEW = 100


def rows(n: int, rng: np.random.Generator, is_discrete: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return a point, a wrong scale and true values with heavy tails, perhaps rounded to whole numbers."""
    x = rng.normal(size=n)
    y = x + (0.3 + np.abs(x)) * rng.standard_t(3, size=n)
    predictions = np.column_stack([x + 0.3 * rng.normal(size=n), np.exp(rng.normal(size=n))])
    return (predictions.round(), y.round()) if is_discrete else (predictions, y)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5000)
    repetitions = parser.parse_args().repetitions
    settings = [
        (n, q, side, is_discrete)
        for n in (20, 50, 200, 1000)
        for q in (0.1, 0.3)
        for side in ("above", "below")
        for is_discrete in (False, True)
    ]
    slack = np.sqrt(np.log(len(settings) / 1e-6) / (2 * repetitions))
    print(f"{repetitions} repetitions, {NEW} rows to select from. A mean above q + {slack:.4f} refutes the promise.")
    print("rows     q  side   values    false discovery rate  selected  of those that are so")
    for number, (n, q, side, is_discrete) in enumerate(settings):
        rng, wrong, selected, power = np.random.default_rng(number), 0.0, 0, 0.0
        for _ in range(repetitions):
            predictions, y = rows(n, rng, is_discrete)
            predictions[:, 1] = np.maximum(predictions[:, 1], 1) if is_discrete else predictions[:, 1]
            own = CalibratedPlaces.of("simulation", ByScale(), predictions, y)
            new, truth = rows(NEW, rng, is_discrete)
            new[:, 1] = np.maximum(new[:, 1], 1) if is_discrete else new[:, 1]
            found = own.select(new, Units(), **{"above": None, "below": None, side: 0.0}, fdr=q)
            is_so = truth > 0 if side == "above" else truth < 0
            wrong += (found.mask & ~is_so).sum() / max(1, len(found))
            power += (found.mask & is_so).sum() / max(1, is_so.sum())
            selected += len(found)
        words = "whole" if is_discrete else "numbers"
        held = "held" if wrong / repetitions <= q + slack else "BROKEN"
        print(
            f"{n:4d}  {q:4.1f}  {side}  {words:8s}  {wrong / repetitions:.4f} {held:8s}     "
            f"{selected / repetitions:8.2f}  {power / repetitions:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
