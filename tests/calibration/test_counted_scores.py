"""What is left of counted scores when they are gone."""

import numpy as np
import pytest

from guardband.calibration.counted import Counted, Known, Remembered


class Apart(Counted):
    """Scores of groups that lie apart."""

    def __init__(self, *groups):
        self.groups, self.n = [np.sort(own) for own in groups], sum(map(len, groups))
        self.number, self.asked = np.array([len(own) for own in groups]), 0

    def infinite(self):
        self.asked += 1
        return np.array([np.isinf(own).sum() for own in self.groups])

    def smallest(self, ranks):
        pairs = zip(self.groups, ranks, strict=True)
        return np.array([[own[k - 1] if k <= len(own) else np.inf for k in row] for own, row in pairs])


@pytest.mark.parametrize("before", [None, 90])
def test_what_was_asked_for_is_known_when_the_scores_are_gone(before):
    own = Apart([3.0, 1.0, 2.0], [7.0, np.inf, 5.0, 4.0], [6.0])
    asked = Remembered(own, before)
    ranks = np.array([[1, 3], [2, 4], [2, 3]])
    found = asked.smallest(ranks)
    assert found.tolist() == [[1, 3], [5, np.inf], [np.inf, np.inf]]
    assert asked.infinite().tolist() == asked.infinite().tolist() == [0, 1, 0]
    assert own.asked == 1
    known = asked.known()
    for again in (known, Known.from_arrays(known.drawn_from, known.to_arrays())):
        assert again.smallest(ranks).tolist() == found.tolist()
        assert again.infinite().tolist() == [0, 1, 0]
        assert (again.n, again.drawn_from) == (asked.n, asked.drawn_from) == (8, before or 8)
        assert again.known() is again
        for group, rank in ((0, 2), (2, 1)):
            other = ranks.copy()
            other[group, 0] = rank
            with pytest.raises(ValueError, match="name all levels"):
                again.smallest(other)
    assert ("kept" in known.to_arrays()) == (before is not None)


def test_the_least_score_is_that_of_all_groups():
    assert Apart([3.0, 2.0], [-1.0, 4.0]).least() == -1
    assert Apart([3.0, 2.0]).drawn_from == 2
