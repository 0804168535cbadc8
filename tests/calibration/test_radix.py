"""The k-th smallest of scores that lie apart is that of all together, to the bit, in answers that stay small."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardband.bands.ranks import order_statistic
from guardband.calibration.radix import FEW, MOST_BYTES, keys_of, order_statistics, scores_of

KINDS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "few values": lambda rng, n: rng.integers(-3, 3, n) * 1.0,
    "all sizes": lambda rng, n: rng.standard_normal(n) * 10.0 ** rng.integers(-320, 300, n),
    "some infinite": lambda rng, n: np.where(rng.random(n) < 0.3, np.inf, rng.exponential(size=n)),
    "close": lambda rng, n: 1 + rng.random(n) * 1e-12,
    "zeros of both signs": lambda rng, n: np.copysign(0.0, rng.standard_normal(n)),
}


def asked_in_parts(scores, codes, parts):
    """Return a function that asks every part, and the sizes of the answers so far."""
    rows, sizes = np.array_split(np.random.default_rng(1).permutation(len(scores)), parts), []

    def ask(question):
        answers = [question.answer(scores[own], None if codes is None else codes[own]) for own in rows]
        sizes.extend(answer.nbytes for answer in answers)
        return question.together(answers)

    return ask, sizes


def bits(values):
    return np.asarray(values, dtype=np.float64).view(np.uint64).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 10, FEW + 1, 200_000])
def test_an_order_statistic_of_parts_is_that_of_all_rows_to_the_bit(kind, n):
    scores = KINDS[kind](np.random.default_rng(0), n)
    ranks = np.array([[1, (n + 1) // 2, n, n + 1]])
    ask, sizes = asked_in_parts(scores, None, 5)
    found = order_statistics(ranks, np.array([n]), ask)
    assert bits(found[0]) == bits([order_statistic(scores, int(k)) for k in ranks[0]])
    assert max(sizes) <= MOST_BYTES


@pytest.mark.parametrize("kind", KINDS)
def test_groups_that_overlap_have_their_own_ranks(kind):
    rng = np.random.default_rng(2)
    scores = KINDS[kind](rng, 60_000)
    codes = np.stack([rng.integers(-2, 4, 60_000), rng.integers(4, 6, 60_000)], axis=1)
    each = [scores[(codes == group).any(axis=1)] for group in range(6)]
    number = np.array(list(map(len, each)))
    ranks = np.stack([[1, int(0.9 * n), n, n + 1] for n in number])
    ask, sizes = asked_in_parts(scores, codes, 3)
    found = order_statistics(ranks, number, ask)
    for own, wanted, values in zip(each, ranks, found, strict=True):
        assert bits(values) == bits([order_statistic(own, int(k)) for k in wanted])
    assert max(sizes) <= MOST_BYTES


def test_more_targets_than_counters_are_asked_for_in_lots():
    scores = np.random.default_rng(3).standard_normal(30_000)
    codes = np.arange(30_000)[:, None] // 3
    ask, sizes = asked_in_parts(scores, codes, 2)
    found = order_statistics(np.full((10_000, 1), 2), np.full(10_000, 3), ask)
    np.testing.assert_array_equal(found[:, 0], np.sort(scores.reshape(-1, 3), axis=1)[:, 1])
    assert max(sizes) <= MOST_BYTES


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=30))
def test_keys_are_in_the_order_of_scores_and_lead_back(values):
    scores = np.array(values)
    keys = keys_of(scores)
    np.testing.assert_array_equal(scores_of(keys), scores)
    assert (keys[:, None] < keys[None, :]).tolist() == (scores[:, None] < scores[None, :]).tolist()
