"""Predictions that any rule takes, made without a network."""

import numpy as np

from guardband.bands.predicted import Predicted, PredictedGaussian, PredictedInterval, PredictedPoint


def predictions(kind, n, candidates=1, seed=0):
    """Return predictions of a kind, one copy, whose candidates widen, and outcomes ``(n,)``."""
    rng = np.random.default_rng(seed)
    mean = rng.standard_normal(n) + 0.1 * rng.standard_normal((1, candidates, n))
    width = rng.uniform(0.5, 1.5, (2, 1, candidates, n)) * np.linspace(0.5, 3, candidates)[:, None]
    y = mean[0, 0] + rng.standard_normal(n)
    if kind is PredictedGaussian:
        return PredictedGaussian(mean, width[0]), y
    if kind in (Predicted, PredictedPoint):
        return PredictedPoint(mean), y
    return PredictedInterval(mean - width[0], mean, mean + width[1]), y


def predictions_for(rule, n, seed=0):
    """Return predictions that a rule takes, and outcomes."""
    candidates = rule.candidates or 3 * len(rule.levels)
    return predictions(rule.takes, n, candidates, seed)
