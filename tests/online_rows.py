"""Predictions in order of time, and an online rule that takes them one at a time."""

import numpy as np

import guardband as gb


def rows(n=600, seed=0):
    """Return lower, point, upper and y; y scatters three times as much in the second half."""
    rng = np.random.default_rng(seed)
    point = rng.standard_normal(n)
    width = rng.uniform(0.5, 1.5, n)
    y = point + width * rng.standard_normal(n) * np.where(np.arange(n) < n // 2, 1, 3)
    return point - width, point, point + width, y


def in_time(online, lower, point, upper, y):
    """Return the intervals of rows that are given one at a time, each updated before the next."""
    found = []
    for i in range(len(y)):
        bands = online.transform(lower[i : i + 1], point[i : i + 1], upper[i : i + 1])
        online.update(y[i : i + 1])
        found.append((bands.lower[0], bands.upper[0]))
    return np.array(found)


def started(*args, **options):
    lower, point, upper, y = rows(200, seed=9)
    return gb.OnlineCalibrator(*args, **options).fit(lower, point, upper, y)
