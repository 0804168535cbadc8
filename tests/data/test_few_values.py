import warnings

import numpy as np
import pytest

from guardband.data.few_values import remarks_on_values
from guardband.exceptions import TargetWarning


def test_two_values_are_warned_of():
    with pytest.warns(TargetWarning, match=r"only 2 different values.*contain both\. A classifier may answer"):
        (remark,) = remarks_on_values(np.arange(40.0) % 2)
    assert remark == "The target has only 2 different values. Intervals will often contain both."


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.arange(40.0) % 4, "only 4 different values. Intervals will often contain several of them."),
        (np.r_[np.zeros(60), np.arange(1.0, 41)], "60% of the training targets are equal to 0."),
        (np.arange(40.0), None),
        (np.full(40, 7.0), None),
        (np.arange(9.0), None),
        (np.r_[np.zeros(19), np.arange(1.0, 31)], None),
    ],
)
def test_few_values_and_many_equal_ones_are_said(y, words):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        remarks = remarks_on_values(y)
    assert (words is None and remarks == ()) or words in remarks[0]
