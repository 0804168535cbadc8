"""Intervals at every threshold contain what is no miss; keys are known once, and nothing is half-done."""

import math
from fractions import Fraction

import numpy as np
import pytest

from guardband.bands.predicted import PredictedGaussian, PredictedInterval, PredictedPoint
from guardband.calibration.online.aci import AdaptiveLevel
from guardband.calibration.online.stream import Stream, as_scored, ends
from guardband.calibration.score import Additive, OneSide, Residual, Scaled

PREDICTED = PredictedInterval(*(np.array([[own]]) for own in ([-1.0, 2.0, 0.0], [0.0, 2.0, 0.0], [1.0, 5.0, 0.0])))
BOTH = [Scaled(), Residual(), Additive(), Additive(relative=True)]
SCORES = BOTH + [OneSide(score, side) for score in BOTH for side in ("lower", "upper")]


@pytest.mark.parametrize("score", SCORES, ids=repr)
@pytest.mark.parametrize("threshold", [-math.inf, -2.0, -0.1, 0.0, 0.5, 3.0, math.inf])
def test_an_interval_contains_the_prediction_and_every_value_that_is_no_miss(score, threshold):
    low, high = ends(score, PREDICTED, threshold)
    assert (low <= PREDICTED.point[0, 0]).all()
    assert (high >= PREDICTED.point[0, 0]).all()
    for y in np.linspace(-9, 9, 73):
        scores = score.of(PREDICTED, np.full(3, y))[0, 0]
        inside = (low <= y) & (y <= high)
        assert inside[scores <= threshold].all()


@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_at_minus_infinity_it_is_the_prediction_alone_and_without_a_prediction_infinite(score):
    low, high = ends(score, PREDICTED, -math.inf)
    for end, other in ((low, "upper"), (high, "lower")):
        if getattr(score, "side", None) == other:
            assert np.isinf(end).all()
        else:
            assert np.array_equal(end, PREDICTED.point[0, 0])
    low, high = ends(score, PREDICTED.map(lambda part: part * np.nan), -math.inf)
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()


def test_a_score_gets_an_interval_or_a_point_and_nothing_else_is_kept():
    assert isinstance(as_scored(Residual(), PREDICTED), PredictedPoint)
    gaussian = PredictedGaussian(np.zeros((1, 1, 2)), np.ones((1, 1, 2)))
    assert isinstance(as_scored(Residual(), gaussian), PredictedPoint)
    with pytest.raises(ValueError, match="An online rule needs lower, point and upper of each row, found mean and"):
        as_scored(Scaled(), gaussian)


def test_nothing_is_judged_if_scores_cannot_be_had():
    stream = Stream(AdaptiveLevel(), Residual(), Fraction(1, 10), 20)
    keys, _, _ = stream.expect(PredictedPoint(np.zeros((1, 1, 3))), None)

    def fails(predicted):
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        stream.judge(keys, fails)
    assert list(stream.waiting) == keys == [0, 1, 2]
    assert stream.tally.judged == len(stream.past) == 0
