"""Ten overlapping groups on a million rows: the time of fit and transform beside that of one promise for all rows.

Bar: fit at most 3 times, transform at most 1.5 times. Every round times all cases, one after the other, and what
counts is the median of the ratios within rounds: a busy machine slows a round as a whole.

python benchmarks/groups_speed.py [rows] [rounds]
"""

import sys
import time
from statistics import median

import numpy as np

import guardband as gb


def seconds(work) -> float:
    """Return the time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def labels(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return three columns of whole numbers, ``(n, 3)``: 4 seasons, 2 kinds of day, 4 parts of a day."""
    return np.stack([rng.integers(0, size, n) for size in (4, 2, 4)], axis=1)


def members(own: np.ndarray) -> np.ndarray:
    """Return the values of columns as groups that a row belongs to or not, ``(n, 3) -> (n, 10)``."""
    return np.concatenate([column[:, None] == np.unique(column) for column in own.T], axis=1)


def coins(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return ten groups that a row belongs to or not by the toss of a coin: 1,024 patterns."""
    return rng.random((n, 10)) < 0.5


def main() -> None:
    """Print the ratios."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    rng = np.random.default_rng(0)
    point = rng.standard_normal(n)
    lower, upper = point - 1 - rng.random(n), point + 1 + rng.random(n)
    own = labels(rng, n)
    groups = {
        "three columns of labels (32 patterns)": own,
        "the same as truth values": members(own),
        "ten coins (1,024 patterns)": coins(rng, n),
    }
    noise = rng.standard_normal(n) * (1 + groups["ten coins (1,024 patterns)"][:, 0])
    y = point + noise

    cases = {"plain": ("marginal", None), "plain, pac": ("pac", None)}
    cases |= {f"{name}, {kind}": (kind, own) for name, own in groups.items() for kind in ("marginal", "pac")}
    fits: dict[str, list[float]] = {name: [] for name in cases}
    transforms: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, (guarantee, own) in cases.items():
            rule = gb.BandCalibrator(guarantee=guarantee)
            fits[name].append(seconds(lambda rule=rule, own=own: rule.fit(lower, point, upper, y, groups=own)))
            again = seconds(lambda rule=rule, own=own: rule.transform(lower, point, upper, groups=own))
            transforms[name].append(again)
    print(f"{n:,} rows, median of {rounds} rounds; ratios to the plain rule of the same round and guarantee")
    for name in cases:
        plain = "plain, pac" if name.endswith("pac") else "plain"
        ratios = [
            median(own / base for own, base in zip(times[name], times[plain], strict=True))
            for times in (fits, transforms)
        ]
        print(
            f"{name:48} fit {median(fits[name]):6.3f} s, {ratios[0]:6.2f} times (bar 3)"
            f"   transform {median(transforms[name]):6.3f} s, {ratios[1]:5.2f} times (bar 1.5)"
        )


if __name__ == "__main__":
    main()
