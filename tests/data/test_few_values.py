import warnings

import numpy as np
import pytest

from guardband.data.few_values import remarks_on_values
from guardband.exceptions import TargetWarning


@pytest.mark.parametrize("code", [-999.0, 999.0, 9999.0, -99999.0])
@pytest.mark.parametrize("least", [0, -20])
def test_a_code_for_missing_is_warned_of(code, least):
    how = "and no other is negative" if code < 0 == least else "far from all others"
    words = rf"60 training targets are exactly {code:.0f}, {how}\. .* remove these rows\."
    with pytest.warns(TargetWarning, match=words) as said:
        assert remarks_on_values(np.r_[np.linspace(least, 500, 100), np.full(60, code)]) == ()
    assert len(said) == 1


def test_a_negative_code_is_warned_of_beside_large_targets():
    prices = np.linspace(105, 11_140, 100)  # the code is nearer to them than 20% of their range
    with pytest.warns(TargetWarning, match="2 training targets are exactly -999, and no other is negative"):
        remarks_on_values(np.r_[prices, -999, -999])


@pytest.mark.parametrize(
    "y",
    [
        np.r_[np.arange(999.0), 999, 999],  # counts that reach 999
        np.r_[np.arange(900.0), 999, 999],  # away by less than 20% of their range
        np.r_[np.arange(99.0), 999],  # once
        np.r_[np.linspace(0, 9000, 99), -999],  # once
        np.r_[np.linspace(-5000, 9000, 99), -9999, -9999.5],  # once
        np.r_[np.linspace(-2000, 9000, 99), -999, -999],  # among negative targets
        np.r_[np.arange(99.0), 990, 990],
        np.r_[np.arange(9.0), 99, 99],  # two digits
        np.r_[np.arange(99.0), 999.9, 999.9],
        np.r_[np.arange(9.0), 500, 999, 999, 2000, 2000],  # not at an end
        np.r_[-1.7e308, 1.0, 999, 999],
    ],
)
def test_other_values_are_no_code_for_missing(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        remarks_on_values(y)


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
