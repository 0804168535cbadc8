"""The two promises, held to over 200 replications from raw rows to intervals, networks and all.

``pytest -s tests/test_laws.py`` prints the counts.
"""

import numpy as np
import pytest
from scipy.stats import binom

import guardband as gb
from guardband.data.artificial import PaperModel
from guardband.planning import pav_epsilon
from guardband.training.predict import predict_parts
from laws import total_count_band

MODEL = PaperModel(n_features=8)
REPLICATIONS, N_TEST = 200, 500
DELTA = 0.1
NETWORK = {"network": "plain", "hidden": (16,), "epochs": 10, "learning_rate": 0.02, "batch_size": 100}
NETWORK |= {"split_by": []}  # rows stand alone: looking for dependence would take most of the time
X_MANY, _ = MODEL.draw(5000, seed=10**6)


@pytest.fixture(autouse=True)
def predicted_once(monkeypatch):
    """Networks that several rules share put out the same numbers for the same rows, so they are asked only once."""
    last, known = [], {}

    def once(members, n, rows, device, read):
        if not last or last[0] is not members:
            last[:] = [members]
            known.clear()
        x = rows(slice(0, n))
        key = x.tobytes()
        if key not in known:
            known[key] = list(predict_parts(members, n, x.__getitem__, device, lambda outputs: outputs))
        return [(read(outputs), count) for outputs, count in known[key]]

    monkeypatch.setattr("guardband.learning.learned.predict_parts", once)


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


GRID = np.arange(10, 0, -1) / 100
RULES = {"fixed-sequence": 1, "nested": 1, "paper": 10}
"""pav's rules, and among how many candidates each divides delta."""


def fitted_by_every_rule(seed, monkeypatch):
    """Return a model for each rule. The networks do not depend on the rule, so that they train once."""
    first, *others = RULES
    models = {first: fitted("pav", seed, rule=first, taus=GRID)}
    with monkeypatch.context() as patch:
        patch.setattr("guardband.doors.fit_rows.learn", lambda *_, **__: [models[first].fitted_.learned])
        return models | {rule: fitted("pav", seed, rule=rule, taus=GRID) for rule in others}


@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_the_networks_do_not_depend_on_the_rule(monkeypatch):
    for rule, model in fitted_by_every_rule(0, monkeypatch).items():
        alone = fitted("pav", 0, rule=rule, taus=GRID)
        np.testing.assert_array_equal(alone.predict_interval(X_MANY).upper, model.predict_interval(X_MANY).upper)


@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_pav_covers_given_the_data_in_all_but_delta_of_the_replications(monkeypatch):
    epsilon = {rule: pav_epsilon(0.9, 100, DELTA, candidates) for rule, candidates in RULES.items()}
    below, finite = dict.fromkeys(RULES, 0), dict.fromkeys(RULES, 0)
    for seed in range(REPLICATIONS):
        for rule, model in fitted_by_every_rule(seed, monkeypatch).items():
            bands = model.predict_interval(X_MANY)
            true_coverage = MODEL.coverage(X_MANY, bands.lower, bands.upper).mean()
            below[rule] += true_coverage < 0.9 - epsilon[rule]
            finite[rule] += np.isfinite(bands.upper[0])
    allowed = binom.isf(0.001, REPLICATIONS, DELTA)
    print(f"pav, {epsilon} below .9 in {below} of {REPLICATIONS}, allowed {allowed:.0f}; finite {finite}")
    assert max(below.values()) <= allowed, below
    assert min(finite.values()) > REPLICATIONS / 2, finite  # not kept by giving up
