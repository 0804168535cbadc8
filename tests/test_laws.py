"""The two promises, held to over 200 replications from raw rows to intervals, networks and all.

``pytest -s tests/test_laws.py`` prints the counts.
"""

import numpy as np
import pytest
from scipy.stats import binom

import guardband as gb
from guardband.data.artificial import PaperModel
from guardband.planning import pav_epsilon
from laws import total_count_band

MODEL = PaperModel(n_features=8)
REPLICATIONS, N_TEST = 200, 500
DELTA = 0.1
NETWORK = {"network": "plain", "hidden": (16,), "epochs": 10, "learning_rate": 0.02, "batch_size": 100}
X_MANY, _ = MODEL.draw(5000, seed=10**6)


def fitted(method, seed, **asked):
    X, y = MODEL.draw(400, seed)
    return gb.IntervalRegressor(method, random_state=seed, **NETWORK, **asked).fit(X, y)


def test_conf_nn_covers_the_count_of_the_exact_law():
    covered = 0
    for seed in range(REPLICATIONS):
        X_new, y_new = MODEL.draw(N_TEST, seed=10_000 + seed)
        bands = fitted("conf-nn", seed).predict_interval(X_new)
        covered += round(gb.metrics.coverage(y_new, bands) * N_TEST)
    low, high = total_count_band(0.001, REPLICATIONS, N_TEST, k=91, n=100)
    print(f"conf-nn: {covered} of {REPLICATIONS * N_TEST} covered, 99.9% band [{low}, {high}]")
    assert low <= covered <= high


@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
@pytest.mark.parametrize(("rule", "candidates"), [("fixed-sequence", 1), ("nested", 1), ("paper", 10)])
def test_pav_covers_given_the_data_in_all_but_delta_of_the_replications(rule, candidates):
    epsilon = pav_epsilon(0.9, 100, DELTA, candidates)
    below = finite = 0
    for seed in range(REPLICATIONS):
        bands = fitted("pav", seed, rule=rule, taus=np.arange(10, 0, -1) / 100).predict_interval(X_MANY)
        true_coverage = MODEL.coverage(X_MANY, bands.lower, bands.upper).mean()
        below += true_coverage < 0.9 - epsilon
        finite += np.isfinite(bands.upper[0])
    allowed = binom.isf(0.001, REPLICATIONS, DELTA)
    print(
        f"pav, {rule}: below {0.9 - epsilon:.4f} in {below} of {REPLICATIONS}, allowed {allowed:.0f}; {finite} finite"
    )
    assert below <= allowed
    assert finite > REPLICATIONS / 2  # not kept by giving up
