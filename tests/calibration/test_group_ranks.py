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
