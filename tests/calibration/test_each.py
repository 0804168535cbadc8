"""Each target for itself: the ordinary rule on the rows in which it is known."""

import numpy as np
import pytest

import guardband as gb
from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedPoint
from guardband.bands.predicted_several import PredictedSeveral
from guardband.calibration.conformal import Conformal
from guardband.calibration.cut import MarginalCut, PacCut, SharedCut
from guardband.calibration.each import EachConformal
from guardband.calibration.score import Residual

LEVELS = Levels.of([0.9, 0.5])


def predicted(n, targets=2):
    return PredictedSeveral((PredictedPoint(np.zeros((1, 1, n))),) * targets)


@pytest.mark.parametrize("cut", [MarginalCut(), PacCut(0.2)])
def test_each_target_has_the_thresholds_and_the_promise_of_its_known_rows(cut):
    rng = np.random.default_rng(0)
    y = rng.standard_normal((80, 2))
    y[rng.random((80, 2)) < 0.2] = np.nan
    rule = EachConformal("m", LEVELS, ("a", "b"), Residual(), cut, LEVELS)
    summary = rule.summarise(predicted(80), y, Context())
    found = rule.calibrate(summary)
    one = Conformal("m", LEVELS, Residual(), cut, LEVELS)
    for j in range(2):
        known = y[:, j][~np.isnan(y[:, j])]
        alone = one.calibrate(one.summarise(PredictedPoint(np.zeros((1, 1, len(known)))), known, Context()))
        assert rule.of_target(j) == one
        np.testing.assert_array_equal(found.arrays["threshold"][j], alone.arrays["threshold"])
        np.testing.assert_array_equal(rule.target_arrays(j, found.arrays)["threshold"], alone.arrays["threshold"])
        assert found.promise.of_each[j] == alone.promise == rule.target_found(j, summary).promise
    assert found.promise.names == ("a", "b")
    assert found.promise.n_calibration == 80
    assert found.promise.delta == getattr(cut, "delta", None)
    assert found.promise.whole_line == (False, False)


def test_intervals_are_infinite_where_those_of_all_targets_are_and_each_target_is_told():
    y = np.full((12, 2), np.nan)
    y[:, 0], y[:3, 1] = np.arange(12), np.arange(3)
    rule = EachConformal("m", LEVELS, ("a", "b"), Residual(), MarginalCut())
    found = rule.calibrate(rule.summarise(predicted(12), y, Context()))
    assert [own.whole_line for own in found.promise.of_each] == [(False, False), (True, False)]
    assert found.promise.whole_line == (False, False)
    (remark,) = found.remarks
    assert remark.category is gb.InsufficientCalibrationWarning
    assert remark.in_words() == (
        "Target 'b': 90% intervals with this guarantee need at least 9 calibration rows, but there are 3. Add "
        "calibration rows or choose a lower confidence level."
    )
    few = rule.calibrate(rule.summarise(predicted(3), y[:3], Context()))
    assert few.promise.whole_line == (True, False)


def test_entities_are_counted_once():
    entity = np.repeat(np.arange(20), 3)
    y = np.random.default_rng(1).standard_normal((60, 2))
    rule = EachConformal("m", LEVELS, ("a", "b"), Residual(), SharedCut())
    found = rule.calibrate(rule.summarise(predicted(60), y, Context(entity=entity)))
    assert found.promise.n_calibration == 20
    assert [own.n_calibration for own in found.promise.of_each] == [20, 20]
