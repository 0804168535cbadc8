"""How long explanations take: ten rows of twelve columns against 100 others, and what a page explains.

python benchmarks/explain.py [preset]
"""

import sys
import time

import numpy as np

import guardband as gb
from guardband.audit.evidence import Evidence
from guardband.explain.for_page import explained_for_page


def rows(n: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of normal columns: the first moves the target, the second its noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    return X, X[:, 0] + X[:, 2] * X[:, 3] + (1 + np.abs(X[:, 1])) * rng.normal(size=n)


def fitted(columns: int, preset: str) -> gb.IntervalRegressor:
    """Return a model of 2,000 rows."""
    return gb.IntervalRegressor(preset=preset, random_state=0, verbose=False).fit(*rows(2000, columns, 0))


def main() -> None:
    """Print the least of three times each, and how precise the estimates are."""
    preset = sys.argv[1] if len(sys.argv) > 1 else "fast"
    model, (X, _) = fitted(12, preset), rows(1000, 12, 1)
    for evaluations in (1, 100_000, 1_000_000):
        times = []
        for _ in range(3 if evaluations <= 100_000 else 1):
            start = time.perf_counter()
            found = model.explain(X, rows=range(10), evaluations=evaluations)
            times.append(time.perf_counter() - start)
        error = found.width_error.max() / found.base_width
        words = f"{evaluations:,} evaluations" if evaluations > 1 else "fewest evaluations"
        print(f"10 rows, 12 columns, {words}: {min(times):.2f} s, largest error {error:.2%} of the average width")
    model, times = fitted(10, preset), []
    evidence = Evidence.of(model, *rows(1000, 10, 1))
    for _ in range(3):
        start = time.perf_counter()
        part = explained_for_page(model, evidence)
        times.append(time.perf_counter() - start)
    print(f"page, 10 columns, 1,000 rows: {min(times):.2f} s, {part['n_rows']} rows against {part['n_background']}")


if __name__ == "__main__":
    main()
