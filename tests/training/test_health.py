import warnings
from itertools import count

import numpy as np
import pytest
import torch
from torch import nn

import guardband as gb
from guardband.nn.each_target import EachTarget
from guardband.training.health import dead_shares, mean_leaves, varied_targets


def test_shares_count_rows_with_a_side_of_no_width():
    bands = np.array([[[0, 1, 2], [0, 1, 1], [1, 1, 2], [0, 1, 3]], [[0, 1, 2]] * 4], dtype=np.float32)
    assert dead_shares(bands).tolist() == [0.5, 0]
    alive = np.broadcast_to(np.array([0, 1, 2], dtype=np.float32), bands.shape)
    assert dead_shares(np.stack([alive, bands], axis=2)).tolist() == [0.5, 0]


def test_only_targets_of_different_values_are_looked_at():
    y = np.array([[1.0, np.nan, np.nan], [1.0, 2.0, np.nan], [np.nan, 3.0, np.nan]])
    assert varied_targets(y[None], 3).tolist() == [False, True, False]
    assert varied_targets(y[None, :, 1], 1).tolist() == [True]


def test_a_mean_leaves_where_nearly_all_responses_lie_on_one_side_of_it():
    y = np.random.default_rng(0).permutation(np.arange(2000.0))
    bands = np.array([[[-1, 1000, 3000]], [[-1, 1970, 3000]]], dtype=np.float32).repeat(2000, axis=1)
    assert mean_leaves(bands, y, [0.1, 0.1]).tolist() == [False, True]
    assert mean_leaves(bands, y, [0.1, 0.01]).tolist() == [False, False]


class Networks:
    """Builds networks with the paper's ordering whose first ``dead`` ones have a dead upper side."""

    def __init__(self, dead):
        self.dead = dead
        self.built = 0

    def __call__(self, in_features):
        network = nn.Sequential(nn.Linear(in_features, 8), nn.ReLU(), gb.nn.TripleHead(8, ordering="relu"))
        self.built += 1
        bias = [-1.0, 0.0, 1.0]
        if self.built <= self.dead:
            bias = [-1.0, 0.0, -50.0]
        with torch.no_grad():
            network[-1][0].bias[:] = torch.tensor(bias)
        return network


def fit(dead, small):
    return gb.IntervalRegressor(network=Networks(dead), epochs=20, random_state=0).fit(*small)


def test_a_dead_side_is_noticed_warned_of_and_restarted(small):
    # One network is built to look at its outputs, the next one trains.
    with pytest.warns(
        gb.DegenerateBandWarning, match=r"1 of 1 networks had a side of no width.*1 restart\(s\) none has"
    ):
        model = fit(2, small)
    bands = model.predict_interval(small[0])
    assert np.isfinite(bands.upper).all()


@pytest.mark.filterwarnings("ignore:.*The intervals are infinite")
def test_a_side_that_stays_dead_is_said_to(small):
    with pytest.warns(gb.DegenerateBandWarning, match=r"2 restart\(s\) 1 still have"):
        fit(99, small)


def test_a_live_network_is_left_alone(small):
    fit(0, small)


@pytest.mark.parametrize(("constant", "restarts"), [(False, True), (True, False)])
def test_a_dead_side_of_one_of_several_targets_is_restarted(constant, restarts, small, monkeypatch):
    """The upper side of the second target is dead in the first network; a target without spread has no sides."""
    heads, last = count(), EachTarget.last

    def dead_at_first(head, *asked):
        made = last(head, *asked)
        if not next(heads):
            with torch.no_grad():
                made.linear.bias[5] = -50
                made.linear.weight[5] = 0
        return made

    monkeypatch.setattr(EachTarget, "last", dead_at_first)
    X, y = small
    Y = np.stack([y, np.full(len(y), 3.0) if constant else -y], axis=1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        asked = {"network": "plain", "targets": "joint", "epochs": 3, "random_state": 0}
        model = gb.IntervalRegressor(**asked).fit(X, Y)
    found = [str(own.message) for own in said if own.category is gb.DegenerateBandWarning]
    assert any("had a side of no width" in own and "none has" in own for own in found) is restarts
    assert np.isfinite(model.predict_interval(X).point).all()


def test_a_mean_beyond_the_outer_quantile_is_warned_of():
    rng = np.random.default_rng(0)
    X, noise = rng.random((2000, 2)), rng.standard_normal(2000)
    skewed = np.exp(6 * noise)
    assert (skewed <= skewed.mean()).mean() > 0.98
    with pytest.warns(gb.DegenerateBandWarning, match="mean lies outside its interval"):
        gb.IntervalRegressor(point="mean", network="plain", epochs=150, random_state=0).fit(X, skewed)
    gb.IntervalRegressor(point="mean", network="plain", epochs=60, random_state=0).fit(X, np.exp(0.5 * noise))
    gb.IntervalRegressor(point="mean", network="plain", epochs=20, random_state=0, confidence_level=0.1).fit(X, noise)
