import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import guardband as gb

RNG = np.random.default_rng(0)
Y = RNG.standard_normal(200)
LOWER, POINT, UPPER = np.full(200, -1.0), np.zeros(200), np.full(200, 1.0)


def test_crossing_bands_are_refused_with_the_rows_named():
    lower = LOWER.copy()
    lower[[3, 7]] = 0.5
    with pytest.raises(ValueError, match=r"lower <= point <= upper must hold in every row, found 2 .* \(rows 3, 7\)"):
        gb.BandCalibrator().fit(lower, POINT, UPPER, Y)
    rule = gb.BandCalibrator().fit(LOWER, POINT, UPPER, Y)
    with pytest.raises(ValueError, match=r"lower <= point <= upper .* found 1 where it does not \(row 0\)"):
        rule.transform([2.0], [0.0], [1.0])


def test_crossing_bands_are_ordered_when_asked():
    mixed = gb.BandCalibrator(crossing="sort").fit(UPPER, POINT, LOWER, Y)
    plain = gb.BandCalibrator().fit(LOWER, POINT, UPPER, Y)
    assert mixed.transform([1.0], [0.0], [-1.0]).upper == plain.transform([-1.0], [0.0], [1.0]).upper


def test_transform_before_fit_says_so():
    with pytest.raises(NotFittedError, match="call fit first"):
        gb.BandCalibrator().transform([0.0], [1.0], [2.0])


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ((LOWER, POINT, UPPER[:9], Y), "one shape"),
        ((LOWER, POINT, UPPER, Y[:9]), "found 200 and 9"),
        (([], [], [], []), "n > 0"),
        ((LOWER, POINT, UPPER, np.r_[Y[:199], np.nan]), "NaN.*row 199"),
        (
            (np.stack([LOWER] * 2), np.stack([POINT] * 2), np.stack([UPPER] * 2), Y),
            r"takes 1 interval\(s\) for each row, found 2",
        ),
    ],
)
def test_mismatched_arrays_are_refused(arrays, words):
    with pytest.raises(ValueError, match=words):
        gb.BandCalibrator().fit(*arrays)


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "magic"},
        {"guarantee": "conditional"},
        {"delta": 0},
        {"on_insufficient": "clip"},
        {"crossing": "ignore"},
        {"confidence_level": 90},
        {"rule": "greedy"},
        {"average": "sometimes"},
    ],
)
def test_other_words_are_refused_before_any_work(wrong):
    with pytest.raises(ValueError, match=r"must"):
        gb.BandCalibrator(**wrong)


def test_a_prediction_that_is_not_finite_gets_the_whole_line():
    rule = gb.BandCalibrator().fit(LOWER, POINT, UPPER, Y)
    bands = rule.transform([np.nan, -np.inf, -1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    assert bands.lower[:2].tolist() == [-np.inf, -np.inf]
    assert bands.upper[:2].tolist() == [np.inf, np.inf]
    assert np.isfinite(bands.lower[2])


def test_failed_fit_leaves_the_old_calibration():
    rule = gb.BandCalibrator().fit(LOWER, POINT, UPPER, Y)
    before = rule.certificate
    with pytest.raises(ValueError, match="NaN"):
        rule.fit(LOWER, POINT, UPPER, np.full(200, np.nan))
    assert rule.certificate == before
