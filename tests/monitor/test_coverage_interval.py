"""The interval for coverage: right at all looks, also while coverage changes, and for a start chosen by looking."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import beta, binom

from guardband.monitor.coverage_interval import CONFIDENCE, SLOPES, coverage_of
from guardband.monitor.evidence_process import log_weights

FAMILY = 1e-6
LIMIT = -math.log(1 - CONFIDENCE)


def excludes(misses, rows, mean, limit=LIMIT):
    """Return which intervals do not hold a mean chance of a miss, by a statement of its own of the mixture."""
    misses, rows, mean = (np.asarray(own, dtype=float)[..., None] for own in (misses, rows, mean))
    each = SLOPES * misses - rows * np.log(1 - mean + mean * np.exp(SLOPES))
    return logsumexp(each, axis=-1) - math.log(len(SLOPES)) >= limit


def test_the_interval_holds_the_means_with_little_evidence_against_them():
    random = np.random.default_rng(0)
    for rows in (1, 7, 100, 20_000):
        misses = int(random.binomial(rows, 0.15))
        own = coverage_of(misses, rows)
        inside = np.linspace(1 - own.high + 1e-9, 1 - own.low - 1e-9, 50)
        assert not excludes(misses, rows, inside).any()
        if own.low > 0:
            assert excludes(misses, rows, 1 - own.low + 1e-9)
        if own.high < 1:
            assert excludes(misses, rows, 1 - own.high - 1e-9)


CHANCES = {
    "one chance": np.full(1_500, 0.1),
    "rare misses": np.full(1_500, 0.01),
    "one jump": np.where(np.arange(1_500) < 700, 0.05, 0.4),
    "waves": 0.3 + 0.29 * np.sin(np.arange(1_500) / 40),
}


@pytest.mark.parametrize("name", CHANCES)
def test_the_mean_chance_lies_inside_at_all_looks_but_for_five_streams_in_a_hundred(name):
    chances, random, streams = CHANCES[name], np.random.default_rng(1), 400
    rows = np.arange(1, len(chances) + 1)
    means = np.cumsum(chances) / rows
    lost = sum(
        bool(excludes(np.cumsum(random.random(len(chances)) < chances), rows, means).any()) for _ in range(streams)
    )
    assert lost <= binom.isf(FAMILY, streams, 1 - CONFIDENCE)


def test_chances_that_depend_on_what_came_before_are_allowed():
    random, streams, rows = np.random.default_rng(2), 400, 400
    missed, chances = np.zeros((rows, streams), bool), np.zeros((rows, streams))
    for i in range(rows):
        recent = missed[max(0, i - 5) : i].sum(axis=0)
        chances[i] = np.where(recent > 0, 0.05, 0.3)  # against the streak
        missed[i] = random.random(streams) < chances[i]
    steps = np.arange(1, rows + 1)[:, None]
    lost = excludes(np.cumsum(missed, axis=0), np.broadcast_to(steps, missed.shape), np.cumsum(chances, axis=0) / steps)
    assert lost.any(axis=0).sum() <= binom.isf(FAMILY, streams, 1 - CONFIDENCE)


def test_all_starts_together_have_one_error():
    random, streams, rows = np.random.default_rng(3), 400, 60
    starts = np.arange(rows)
    limit = LIMIT - log_weights(starts)[:, None]
    length = np.arange(1, rows + 1)[None, :] - starts[:, None]
    lost = 0
    for _ in range(streams):
        counts = np.append(0, np.cumsum(random.random(rows) < 0.3))
        misses = counts[None, 1:] - counts[:-1, None]
        wrong = excludes(np.maximum(misses, 0), np.maximum(length, 1), np.full_like(misses, 0.3, float), limit)
        lost += bool((wrong & (length > 0)).any())
    assert lost <= binom.isf(FAMILY, streams, 1 - CONFIDENCE)


def test_a_start_of_less_weight_has_a_wider_interval():
    plain, chosen = coverage_of(50, 500), coverage_of(50, 500, 100, math.log(0.001))
    assert chosen.low < plain.low < plain.share < plain.high < chosen.high
    assert chosen.since == 100


@pytest.mark.parametrize("rows", [50, 1_000, 100_000])
def test_the_interval_holds_that_of_a_single_look(rows):
    misses = rows // 10
    own = coverage_of(misses, rows)
    assert own.low < 1 - beta.ppf(0.975, misses + 1, rows - misses)
    assert own.high > 1 - beta.ppf(0.025, misses, rows - misses + 1)
    assert own.high - own.low < 8 * math.sqrt(0.09 / rows)


def test_no_rows_and_rows_of_one_kind():
    none = coverage_of(0, 0)
    assert math.isnan(none.share)
    assert (none.low, none.high) == (0.0, 1.0)
    assert coverage_of(0, 200).high == 1.0
    assert coverage_of(200, 200).low == 0.0
    assert coverage_of(200, 200).high < 0.1
