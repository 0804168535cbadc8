"""Evidence at every look: the recursion against a sum over all starts, and the law that it must keep."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import beta, binom

from guardband.monitor.evidence_process import (
    ODDS,
    SHARES,
    Stream,
    advanced,
    chances_after,
    log_weight_after,
    log_weights,
)
from guardband.monitor.miss_law import MissLaw

LAWS = [MissLaw(rank=(9, 9)), MissLaw(rank=(19, 20)), MissLaw(rank=(3, 5)), MissLaw(share=0.8)]
DEPTH = 10
FAMILY = 1e-6


def by_all_starts(law, missed):
    """Return the logarithm of the evidence after each row, as a sum over all starts and bets, term by term."""
    out = []
    for t in range(1, len(missed) + 1):
        total = math.exp(log_weight_after(np.array([t - 1]))[0] + _before(law, missed[:t]))
        for start in range(t):
            weight = math.exp(log_weights(np.array([start]))[0] + _before(law, missed[:start]))
            for share, chance in zip(SHARES, chances_after(law), strict=True):
                total += weight * share * math.prod(chance if miss else 1 - chance for miss in missed[start:t])
        out.append(math.log(total) - float(law.most(np.array([sum(missed[:t])]), np.array([t]))[0]))
    return out


def _before(law, missed):
    return float(law.before(np.array([sum(missed)]), np.array([len(missed)]))[0])


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_recursion_is_the_sum_over_all_starts(law):
    missed = np.random.default_rng(2).random(40) < 0.3
    _, evidence = advanced(Stream(), law, missed)
    np.testing.assert_allclose(evidence, by_all_starts(law, missed.tolist()), atol=1e-9)


def test_weights_of_bets_and_starts_add_up_to_one():
    assert len(ODDS) == len(SHARES)
    assert sum(SHARES) == pytest.approx(1, abs=1e-12)
    for last in (1, 999, 10**5, 3 * 10**5):
        first = np.exp(log_weights(np.arange(last + 1))).sum()
        assert first + np.exp(log_weight_after(np.array([last]))[0]) == pytest.approx(1, abs=1e-9)


def test_starts_have_weight_however_late():
    assert np.isfinite(log_weights(np.array([10**7, 10**9]))).all()


# The key law: no rule of when to stop makes the expected evidence larger than 1, under any law that the promise allows.


@cache
def evidence_of_paths(law):
    """Return the evidence after each sequence of misses."""
    evidence = {(): 1.0}
    for missed in product((False, True), repeat=DEPTH):
        for t, own in enumerate(np.exp(advanced(Stream(), law, np.array(missed))[1]), 1):
            evidence[missed[:t]] = float(own)
    return evidence


def best_stopping(law, probability):
    """Return the largest expected evidence over all stopping rules, with ``probability(s, t)`` of a sequence."""
    evidence = evidence_of_paths(law)

    @cache
    def worth(path):
        """Return probability times the largest expected evidence from here on."""
        now = probability(sum(path), len(path)) * evidence[path]
        return now if len(path) == DEPTH else max(now, worth((*path, False)) + worth((*path, True)))

    return worth(())


def of_atoms(atoms, weights):
    return lambda s, t: float(np.sum(np.asarray(weights) * np.asarray(atoms) ** s * (1 - np.asarray(atoms)) ** (t - s)))


def of_rank(k, n):
    return lambda s, t: math.exp(float(_log_beta(n + 1 - k + s, k + t - s) - _log_beta(n + 1 - k, k)))


def _log_beta(a, b):
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@pytest.mark.parametrize("law", LAWS[:3], ids=str)
def test_expected_evidence_is_at_most_one_whenever_one_stops_for_all_laws_below_that_of_the_rank(law):
    k, n = law.rank
    own = beta(n + 1 - k, k)
    half, most = own.ppf(0.5), own.ppf(0.9)
    below = [
        of_rank(k, n),
        of_rank(min(n, k + 1), n),
        of_atoms([0.0], [1.0]),
        of_atoms([0.0, half], [0.5, 0.5]),
        of_atoms([0.0, most], [0.9, 0.1]),
        of_atoms([0.0, own.ppf(0.3), most], [0.3, 0.6, 0.1]),
    ]
    for probability in below:
        assert best_stopping(law, probability) <= 1 + 1e-9


def test_expected_evidence_is_at_most_one_for_all_chances_up_to_what_a_share_allows():
    for chance in (0.0, 0.1, 0.2):
        assert best_stopping(LAWS[3], of_atoms([chance], [1.0])) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("law", "probability"),
    [(MissLaw(rank=(9, 9)), of_rank(8, 9)), (MissLaw(rank=(3, 5)), of_rank(2, 5)), (LAWS[3], of_atoms([0.3], [1.0]))],
    ids=["one of nine", "one of five", "a share"],
)
def test_a_rank_off_by_one_is_refuted_by_expected_evidence(law, probability):
    assert best_stopping(law, probability) > 1.01


# Ville's inequality along longer streams.


def alarms(law, chances, rows, significance, seed):
    random = np.random.default_rng(seed)
    found = 0
    for chance in chances:
        _, evidence = advanced(Stream(), law, random.random(rows) < chance)
        found += bool((evidence >= -math.log(significance)).any())
    return found


@pytest.mark.parametrize("significance", [0.01, 0.2])
def test_alarms_are_at_most_as_frequent_as_the_significance(significance):
    k, n, streams = 19, 20, 1_500
    chances = np.random.default_rng(3).beta(n + 1 - k, k, streams)
    found = alarms(MissLaw(rank=(k, n)), chances, 400, significance, 4)
    assert found <= binom.isf(FAMILY, streams, significance)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_it_does_not_matter_how_rows_are_divided(law):
    random = np.random.default_rng(5)
    missed = random.random(3_000) < 0.15
    whole, evidence = advanced(Stream(), law, missed)
    own, found = Stream(), []
    for part in np.split(missed, np.sort(random.integers(0, 3_000, 40))):
        own, path = advanced(own, law, part)
        found.append(path)
    np.testing.assert_allclose(np.concatenate(found), evidence, atol=1e-9)
    np.testing.assert_allclose(own.bets, whole.bets, atol=1e-9)
    np.testing.assert_allclose(own.best, whole.best, atol=1e-9)
    assert own.start == whole.start
    assert own.misses_before == whole.misses_before


def test_the_likeliest_start_is_near_the_change():
    random = np.random.default_rng(6)
    missed = np.concatenate([random.random(5_000) < 0.1, random.random(1_000) < 0.4])
    stream, evidence = advanced(Stream(), MissLaw(rank=(901, 1000)), missed)
    start, misses, place = stream.likeliest_start
    assert abs(start - 5_000) < 50
    assert place == start
    assert misses == missed[:start].sum()
    assert evidence[-1] == stream.log_evidence > 50


def test_no_rows_change_nothing():
    stream, evidence = advanced(Stream(), LAWS[0], np.empty(0, dtype=bool))
    assert stream == Stream()
    assert evidence.shape == (0,)
