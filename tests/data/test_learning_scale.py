"""The scales that networks learn a target on: there and back, and never far beyond what was seen."""

import numpy as np
import pytest

from guardband.bands.predicted import PredictedPoint
from guardband.data.learning_scale import BEYOND, LearningScale
from guardband.data.target import Target

Y = np.exp(2 * np.random.default_rng(0).standard_normal(1000))


def back(scale, values):
    return scale.back(PredictedPoint(values[None, None])).point[0, 0]


def test_a_long_tail_is_learnt_on_two_scales_and_others_on_one():
    plain, logarithmic = LearningScale.several(Y)
    assert plain.unit is None
    assert plain == LearningScale.plain(Y)
    assert logarithmic.unit > 0
    assert LearningScale.several(np.log(Y)) == (LearningScale.plain(np.log(Y)),)
    assert len(Target(None, None, None, quantiles=True).learn(Y).scales) == 2
    assert len(Target(None, None, None).learn(Y).scales) == 1  # a mean is not the same on every scale


@pytest.mark.parametrize("which", [0, 1])
def test_values_are_standardised_and_come_back(which):
    scale = LearningScale.several(Y)[which]
    learnt = scale.forward(Y)
    assert learnt.mean() == pytest.approx(0)
    assert learnt.std() == pytest.approx(1)
    np.testing.assert_allclose(back(scale, learnt), Y, rtol=1e-9)


def test_logarithms_are_limited_to_little_more_than_the_training_rows():
    _, scale = LearningScale.several(Y)
    least, most = back(scale, np.array([-1e6, 1e6]))
    assert Y.max() < most < np.exp(BEYOND) * Y.max() + 10 * scale.unit
    assert least < Y.min()
    assert scale.furthest(1e6) > most
    assert LearningScale().furthest(1e6) >= 1e6
