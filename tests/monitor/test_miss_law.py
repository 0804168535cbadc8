"""The law of misses: probabilities that add up, and the largest likelihood that any law below allows."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import binom
from scipy.stats import beta

from guardband.monitor.miss_law import MissLaw

LAWS = [
    MissLaw(rank=(9, 9)),
    MissLaw(rank=(19, 20)),
    MissLaw(rank=(1, 5)),
    MissLaw(rank=(901, 1000)),
    MissLaw(share=0.9),
]


def counts(t):
    return np.arange(t + 1), np.full(t + 1, t)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("t", [0, 1, 7, 60])
def test_what_is_expected_before_a_change_is_a_probability_of_sequences(law, t):
    s, rows = counts(t)
    assert np.sum(binom(t, s) * np.exp(law.before(s, rows))) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("law", LAWS[:4], ids=str)
@pytest.mark.parametrize(("s", "t"), [(0, 0), (0, 3), (3, 3), (2, 10), (1, 50), (30, 60)])
def test_the_largest_likelihood_is_the_integral_that_its_formula_states(law, s, t):
    k, n = law.rank
    share = s / max(t, 1)
    own = beta(n + 1 - k, k)
    below = quad(lambda q: q**s * (1 - q) ** (t - s) * own.pdf(q), 0, share, epsabs=0, epsrel=1e-9, limit=200)[0]
    expected = below + share**s * (1 - share) ** (t - s) * own.sf(share)
    assert float(law.most(np.array([s]), np.array([t]))[0]) == pytest.approx(math.log(expected), abs=1e-7)


def laws_below(law, random):
    """Return laws of the chance of a miss, as atoms and weights, that are stochastically below that of a rank."""
    k, n = law.rank
    own = beta(n + 1 - k, k)
    yield np.array([0.0]), np.array([1.0])
    for atoms in (2, 2, 2, 3, 5):
        # all chances between two quantiles move down to the lower one
        steps = np.sort(np.append(0, random.random(atoms - 1)))
        yield own.ppf(steps), np.diff(np.append(steps, 1))
    steps = (np.arange(400) + 0.5) / 400
    yield own.ppf(steps) * 0.5, np.full(400, 1 / 400)


@pytest.mark.parametrize("law", LAWS[:4], ids=str)
def test_no_law_below_makes_a_sequence_likelier_than_the_largest_likelihood(law):
    random = np.random.default_rng(1)
    s, t = np.array([(s, t) for t in (1, 2, 5, 20) for s in range(t + 1)]).T
    most = law.most(s, t)
    for atoms, weights in laws_below(law, random):
        likelihood = (weights * atoms ** s[:, None] * (1 - atoms) ** (t - s)[:, None]).sum(axis=1)
        assert (np.log(np.maximum(likelihood, 1e-300)) <= most + 1e-9).all()


def test_the_largest_likelihood_is_reached_by_the_law_that_moves_chances_down_to_the_share_of_misses():
    law, s, t = MissLaw(rank=(19, 20)), 1, 20
    steps = (np.arange(200_000) + 0.5) / 200_000
    chances = np.minimum(beta(2, 19).ppf(steps), s / t)
    reached = np.log(np.mean(chances**s * (1 - chances) ** (t - s)))
    assert float(law.most(np.array([s]), np.array([t]))[0]) == pytest.approx(reached, abs=1e-4)


def test_the_chance_of_a_miss_is_that_of_the_rank_on_average():
    assert MissLaw(rank=(901, 1000)).chance == pytest.approx(100 / 1001)
    assert MissLaw(share=0.8).chance == pytest.approx(0.2)
