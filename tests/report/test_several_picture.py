"""The picture of a target on the page of several."""

import pytest

from guardband.report.several_picture import round_ticks


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, [0, 1, 2, 3, 4]),
        (-0.25, 0.25, [-1, -0.5, 0, 0.5, 1]),
        (19.05, 3850, [5000, 10000, 15000]),
        (2, 2, [8]),
        (5e-324, 1e-323, [2e-323]),
    ],
)
def test_ticks_are_round(low, high, ticks):
    assert round_ticks(low, high) == ticks


@pytest.mark.parametrize(("low", "high"), [(-4e307, 4e307), (1e15, 1e15 + 1), (1e-200, 2e-200), (0, 0.999)])
def test_ticks_are_few_and_lie_inside(low, high):
    ticks = round_ticks(low, high)
    assert 1 <= len(ticks) <= 8
    assert all(low <= tick / 4 <= high for tick in ticks)
