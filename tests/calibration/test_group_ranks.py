"""The k-th smallest score of each group, of many rows, beside a sort of each group's own."""

import numpy as np
import pytest

from guardband.bands.ranks import order_statistic
from guardband.calibration.group_ranks import MANY_ROWS, GroupScores

N = MANY_ROWS + 10_000
KINDS = {
    "smooth": lambda rng: rng.standard_normal(N),
    "ties": lambda rng: rng.integers(0, 5, N) * 1.0,
    "some infinite": lambda rng: np.where(rng.random(N) < 0.15, np.inf, rng.random(N)),
    "sorted": lambda rng: np.sort(rng.standard_normal(N)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unknown", [False, True])
def test_counting_rows_far_away_gives_the_scores_of_a_sort(kind, unknown):
    """Groups of half of the rows, of a few, of none; rows of no group, and of one that is not known."""
    rng = np.random.default_rng(0)
    scores = KINDS[kind](rng)
    half, rare = rng.random(N) < 0.5, rng.random(N) < 0.001
    codes = np.stack([np.where(half, 0, 1), np.where(rare, 2, -1), np.full(N, -1)], axis=1).astype(np.int8)
    if unknown:
        codes[::1000, 2] = -2
    own = GroupScores.of(scores, codes, 4)
    each = [scores[(codes == group).any(axis=1)] for group in range(4)]
    assert own.number.tolist() == [len(part) for part in each]
    assert own.infinite().tolist() == [int(np.isinf(part).sum()) for part in each]
    ranks = np.array([[int(0.8 * len(part)) + 1, len(part), len(part) + 1] for part in each])
    ranks[3] = 1
    expected = [[order_statistic(part, int(k)) for k in row] for part, row in zip(each, ranks, strict=True)]
    assert own.smallest(ranks).tolist() == expected


@pytest.mark.parametrize("kept", ["low", "high"])
def test_a_sample_that_misjudges_where_scores_are_changes_none_of_them(kept):
    """Every third row, which the sample takes, has other scores than all the rest: these are looked at again."""
    rng = np.random.default_rng(1)
    scores = rng.random(N) + 10
    scores[::3] = rng.random(N // 3) + (0 if kept == "low" else 30)
    codes = np.stack([rng.integers(0, 2, N), rng.integers(2, 4, N)], axis=1).astype(np.int8)
    own = GroupScores.of(scores, codes, 4)
    assert own.rows is not None
    each = [np.sort(scores[(codes == group).any(axis=1)]) for group in range(4)]
    for share in (0.05, 0.2, 0.5, 0.8, 0.95):
        ranks = np.array([[int(share * len(part)), int(share * len(part)) + 1] for part in each])
        expected = [[part[k - 1] for k in row] for part, row in zip(each, ranks, strict=True)]
        assert own.smallest(ranks).tolist() == expected


@pytest.mark.parametrize("many", [False, True])
def test_any_ranks_of_any_groups_are_those_of_a_sort(many):
    """The first, the last, one too many: of groups that overlap, with rows of none, ties and infinite scores."""
    rng = np.random.default_rng(2)
    for seed in range(2 if many else 30):
        n = N if many else int(rng.integers(1, 40))
        scores = np.round(rng.exponential(size=n), 1 if seed % 2 else 12)
        scores[rng.random(n) < 0.1] = np.inf
        codes = np.stack([rng.integers(-1, 2, n), rng.choice([-1, 2, 3], n, p=[0.9, 0.05, 0.05])], axis=1)
        own = GroupScores.of(scores, codes.astype(np.int64), 5)
        each = [np.sort(scores[(codes == group).any(axis=1)]) for group in range(5)]
        assert own.number.tolist() == [len(part) for part in each]
        assert own.infinite().tolist() == [int(np.isinf(part).sum()) for part in each]
        ranks = np.array([[1, max(1, len(part) // 2), max(1, len(part)), len(part) + 1] for part in each])
        expected = [
            [part[k - 1] if k <= len(part) else np.inf for k in row] for part, row in zip(each, ranks, strict=True)
        ]
        assert own.smallest(ranks).tolist() == expected


def test_some_ranks_may_be_misjudged_and_others_not():
    """A sample that shows one group as it is, and of another a rank but not the next; a pattern with low scores alone.

    Every third row, which the sample takes, is uniform in the first group, and half of the others are far above.
    """
    rng = np.random.default_rng(3)
    scores, first = rng.random(N), rng.random(N) < 0.5
    scores[first & (np.arange(N) % 3 > 0) & (rng.random(N) < 0.5)] += 10
    low = (rng.random(N) < 0.01) & (np.arange(N) % 3 > 0)  # of which the sample has none
    scores[low] -= 20
    codes = np.stack([np.where(first & ~low, 0, 1), np.where(low, 3, 2)], axis=1).astype(np.int8)
    own = GroupScores.of(scores, codes, 4)
    each = [np.sort(scores[(codes == group).any(axis=1)]) for group in range(4)]
    for shares in ((0.3, 0.5), (0.2, 0.9), (0.05, 0.95), (0.5, 0.55)):
        ranks = np.array([[int(share * len(part)) for share in shares] for part in each])
        ranks[3] = len(each[3]) + 1
        expected = [
            [part[k - 1] if k <= len(part) else np.inf for k in row] for part, row in zip(each, ranks, strict=True)
        ]
        assert own.smallest(ranks).tolist() == expected


def test_a_rank_that_is_not_among_the_rows_looked_at_is_not_answered():
    rng = np.random.default_rng(4)
    codes, scores = rng.integers(0, 2, (60, 1)), rng.permutation(60) / 7.0
    own = GroupScores.of(scores, codes, 2)
    for low, high in ((2.0, 6.0), (0.0, 5.0), (3.0, 9.0)):
        rows = (scores >= low) & (scores <= high)
        below = np.array([int((scores[codes[:, 0] == group] < low).sum()) for group in range(2)])
        every = np.array([np.arange(1, 61)] * 2)
        found = own._each(every, scores[rows], codes[rows], below)
        for group in range(2):
            part = np.sort(scores[codes[:, 0] == group])
            expected = [s if low <= s <= high else np.nan for s in part] + [np.inf] * (60 - len(part))
            np.testing.assert_array_equal(found[group], expected)
