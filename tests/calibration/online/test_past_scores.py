"""Past scores are those of a plain list, cut to the window and sorted anew each time."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from guardband.calibration.online.past_scores import PastScores

SCORES = st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0, math.inf, -0.5]), max_size=30)


@given(start=SCORES, added=SCORES, window=st.one_of(st.none(), st.integers(1, 12)))
def test_the_window_holds_the_latest_and_ranks_are_those_of_a_sorted_list(start, added, window):
    past, plain = PastScores(window, start), start
    for score in added:
        past.add(score)
        plain = [*plain, score]
    latest = plain if window is None else plain[-window:]
    assert past.in_time().tolist() == latest
    assert [past.smallest(k) for k in range(1, len(latest) + 1)] == sorted(latest)
    assert past.smallest(0) == -math.inf
    assert past.smallest(len(latest) + 1) == math.inf


def test_a_copy_is_apart():
    past = PastScores(2, [1.0])
    past.copy().add(3.0)
    assert np.array_equal(past.in_time(), [1.0])
