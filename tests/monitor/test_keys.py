"""Keys: one number for each, the same for a number and for text that says it."""

import numpy as np
import pandas as pd
import pytest

from guardband.monitor.keys import digests


def test_a_whole_number_and_text_that_says_it_are_one_key():
    for same in (["7"], [7.0], [" 7 "], ["7.0"], ["7.000"], np.array([7], dtype=np.int32), pd.Series([7])):
        assert digests(same, 1) == digests([7], 1)
    assert digests([7.5], 1) != digests([7], 1)
    assert digests(["07"], 1) != digests([7], 1)


def test_keys_do_not_depend_on_the_process():
    assert digests(["a"], 1).tolist() == [4681665781835383343]
    assert digests([7], 1).tolist() == [16667848380713045890]


@pytest.mark.parametrize(
    "wrong",
    [
        ["a", None],
        pd.Series(["a", np.nan]),
        pd.Series(["a", pd.NA], dtype=object),
        ["a", ""],
        ["a", "a"],
        [1, "1"],
        ["a"],
        [["a", "b"]],
    ],
)
def test_missing_and_repeated_keys_are_refused(wrong):
    with pytest.raises(ValueError, match=r"key"):
        digests(wrong, 2)


def test_many_keys_stay_apart():
    assert len(np.unique(digests(np.arange(50_000), 50_000))) == 50_000
