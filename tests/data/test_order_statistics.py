"""The k-th smallest of values that lie apart is that of all together, to the bit, in answers that stay small."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardband.bands.ranks import order_statistic
from guardband.data.order_statistics import (
    BYTES_OF_ONE,
    MOST_BYTES,
    between,
    keys_of,
    middle_ranks,
    order_statistics,
    ranks_around,
    searched,
    values_of,
)

FEW = MOST_BYTES // BYTES_OF_ONE
ENDS = [-1.7976931348623157e308, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.7976931348623157e308]
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


@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_may_be_off_by_a_stated_number_and_answers_by_a_stated_size(kind):
    n, most, off_by, sizes = 50_000, 1 << 12, 100, []
    values = KINDS[kind](np.random.default_rng(4), n)
    ranks = np.array([[1, n // 3, n // 2, n]])
    search = searched(ranks, np.array([n]), most, off_by, (values.min(), values.max()))
    try:
        question = next(search)
        while True:
            answer = question.answer(values)
            sizes.append(answer.nbytes)
            question = search.send(answer)
    except StopIteration as end:
        (found,) = end.value
    known = np.sort(values)
    for value, k in zip(found, ranks[0], strict=True):
        assert np.searchsorted(known, value) < k <= np.searchsorted(known, value, side="right") + off_by
    assert max(sizes, default=0) <= most


def test_values_with_the_same_first_digits_are_asked_for_what_differs():
    values = 1 + np.random.default_rng(5).random(100_000) * 1e-12
    search = searched(np.array([[50_000]]), np.array([len(values)]), ends=(values.min(), values.max()))
    first = next(search)
    assert first.done > 48
    assert first.answer(values).sum() == len(values)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=30))
def test_keys_are_in_the_order_of_scores_and_lead_back(values):
    scores = np.array(values)
    keys = keys_of(scores)
    np.testing.assert_array_equal(values_of(keys), scores)
    assert (keys[:, None] < keys[None, :]).tolist() == (scores[:, None] < scores[None, :]).tolist()


def test_keys_are_ordered_as_values_and_lead_back_to_them():
    keys = keys_of(np.array(ENDS))
    assert (np.diff(keys.astype(object)) >= 0).all()
    assert keys[3] == keys[4]
    np.testing.assert_array_equal(values_of(keys), ENDS)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 10, 99, 100, 1001])
def test_quantiles_and_medians_are_numpys(n):
    random = np.random.default_rng(n)
    for values in (random.standard_normal(n), random.standard_cauchy(n), np.round(random.standard_normal(n))):
        known = np.sort(values)
        for share in (0.25, 0.5, 0.75, 0.99, 0.01):
            low, high = ranks_around(share, n)
            assert between(known[low], known[high], share, n) == np.quantile(values, share)
        assert np.mean(known[list(middle_ranks(n))]) == np.median(values)
