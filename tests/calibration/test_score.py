import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import guardband as gb
from guardband.bands.predicted import PredictedInterval
from guardband.calibration.score import Additive, OneSide, Residual, Scaled

INF, NAN = np.inf, np.nan


def predicted(bands):
    """Return bands ``(n, 3)``, of numpy or of torch, as one candidate of one copy."""
    return PredictedInterval(*(bands[None, None, :, i] for i in range(3)))


def scores_of(score, bands, y):
    found = score.of(predicted(bands), y)
    assert found.shape == (1, 1, len(y))
    return found[0, 0]


def interval(score, bands, threshold, xp=np):
    """Return lower and upper ends, ``(n,)`` each."""
    ends = score.interval(predicted(bands), threshold, xp)
    assert all(end.shape == (1, 1, len(bands)) for end in ends)
    return tuple(end[0, 0] for end in ends)


@pytest.mark.parametrize(
    ("band", "y", "score"),
    [
        ([0, 1, 3], 1, 0),  # at the point
        ([0, 1, 3], 0, 1),
        ([0, 1, 3], 5, 2),
        ([1, 1, 3], 1, 0),  # 0/0 is 0
        ([1, 1, 3], 0, INF),  # beyond a side of no width
        ([0, 1, 1], 2, INF),
        ([0, 1, 1], 0.5, 0.5),  # the other side does not matter
        ([1, 1, 1], 1, 0),
        ([NAN, 1, 3], 1, INF),
        ([0, NAN, 3], 1, INF),
        ([0, 1, INF], 1, INF),
        ([-1.7e308, 1.0, 1.7e308], 0.0, 1 / 1.7e308),
        ([-1.7e308, 1e-10, 1.7e308], 0.0, INF),  # the quotient is no normal number
    ],
)
def test_score_at_every_edge(band, y, score):
    found = scores_of(Scaled(), np.array([band], dtype=float), np.array([y], dtype=float))[0]
    assert found == (score if score in (0, INF) else pytest.approx(score)) or (score < 1e-300 and found == INF)


def test_score_is_one_more_than_that_of_sesia_and_candes():
    rng = np.random.default_rng(0)
    bands, y = np.sort(rng.standard_normal((1000, 3)), -1), rng.standard_normal(1000)
    lower, point, upper = bands.T
    theirs = np.maximum((lower - y) / (point - lower), (y - upper) / (upper - point))
    np.testing.assert_allclose(scores_of(Scaled(), bands, y), theirs + 1, rtol=1e-9)


def test_score_is_the_papers_maximum_where_both_widths_are_positive():
    rng = np.random.default_rng(0)
    bands, y = np.sort(rng.standard_normal((1000, 3)), -1), rng.standard_normal(1000)
    lower, point, upper = bands.T
    paper = np.maximum((point - y) / (point - lower), (y - point) / (upper - point))
    np.testing.assert_allclose(scores_of(Scaled(), bands, y), paper)


def test_infinite_scale_is_the_whole_line_even_without_width():
    lower, upper = interval(Scaled(), np.array([[1.0, 1.0, 1.0]]), np.float64(INF))
    assert (lower[0], upper[0]) == (-INF, INF)


SCORES = [Scaled(), Residual(), Additive(), Additive(relative=True)]


@pytest.mark.parametrize("score", SCORES, ids=repr)
@pytest.mark.parametrize("threshold", [1.3, 0.0, -0.2])
def test_torch_and_numpy_give_the_same_ends(score, threshold):
    bands = np.sort(np.random.default_rng(0).standard_normal((100, 3)), -1)
    ours = interval(score, bands, np.float64(threshold))
    theirs = interval(score, torch.tensor(bands), torch.tensor(threshold, dtype=torch.float64), torch)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b.numpy())


@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_ends_keep_the_precision_of_the_bands(score):
    bands = torch.randn(5, 3).sort(-1).values
    lower, upper = interval(score, bands, torch.tensor(1.3, dtype=torch.float64), torch)
    assert lower.dtype == upper.dtype == torch.float32


@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_inside_is_where_the_score_is_at_most_the_threshold(score):
    rng = np.random.default_rng(0)
    bands, y = np.sort(rng.standard_normal((2000, 3)), -1), rng.standard_normal(2000)
    scores = scores_of(score, bands, y)
    for threshold in np.quantile(scores[np.isfinite(scores)], [0.02, 0.3, 0.5, 0.9]) + 1e-9:
        lower, upper = interval(score, bands, threshold)
        inside = (lower <= y) & (y <= upper)
        if isinstance(score, Additive) and threshold < 0:  # extended to contain the point
            assert inside[scores <= threshold].all()
        else:
            np.testing.assert_array_equal(inside, scores <= threshold)


@pytest.mark.parametrize(
    ("relative", "band", "y", "expected"),
    [
        (False, (0, 1, 4), 5, 1),
        (False, (0, 1, 4), -2, 2),
        (False, (0, 1, 4), 1, -1),
        (False, (0, NAN, 4), 1, INF),
        (True, (0, 1, 4), 5, 0.25),
        (True, (0, 1, 4), 2, -0.5),
        (True, (1, 1, 1), 1, -0.5),
        (True, (1, 1, 1), 1.1, INF),
    ],
)
def test_additive_scores_and_their_edges(relative, band, y, expected):
    found = scores_of(Additive(relative), np.array([band], dtype=float), np.array([y], dtype=float))[0]
    assert found == expected


def test_a_shortened_band_still_contains_its_point():
    lower, upper = interval(Additive(), np.array([[0.0, 0.1, 4.0], [0.0, 3.9, 4.0]]), np.float64(-3.0))
    assert lower[0] <= 0.1 <= upper[0]
    assert lower[1] <= 3.9 <= upper[1]


@pytest.mark.parametrize("score", SCORES, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_threshold_row_lies_inside_its_own_interval(dtype, score):
    rng = np.random.default_rng(0)
    bands = np.sort(rng.standard_normal((5000, 3)) * 1e-3, -1).astype(dtype)
    y = (rng.standard_normal(5000) * 1e-3).astype(dtype)
    scores = scores_of(score, bands.astype(np.float64), y.astype(np.float64))
    for i in range(5000):
        lower, upper = interval(score, bands[i : i + 1], dtype(scores[i]))
        assert lower.dtype == dtype
        assert lower[0] <= y[i] <= upper[0]


EPS, TINY, LEAST = np.finfo(np.float64).eps, np.finfo(np.float64).tiny, 5e-324


@pytest.mark.parametrize(
    ("score", "band", "threshold", "low", "high"),
    [
        (Scaled(), (0, 1, 2), 1.0, -8 * EPS, 2 + 8 * EPS),  # 4 eps (|m| + c times the width of the side)
        (Scaled(), (0, 1, 4), 1.0, -8 * EPS, 4 + 16 * EPS),
        (Scaled(), (-1, 0, 1), 0.0, 0, 0),
        (Scaled(), (-2 * TINY, 0, 2 * TINY), 0.5, -TINY - 8 * LEAST, TINY + 8 * LEAST),  # 4 eps (tiny + tiny)
        (Residual(), (0, 1, 9), 1.0, -8 * EPS, 2 + 8 * EPS),
        (Additive(), (1, 2, 3), 1.0, -8 * EPS, 4 + 16 * EPS),
        (Additive(), (0, 0, 0), 0.0, -TINY, TINY),
        (Additive(relative=True), (1, 1.5, 2), 1.0, -8 * EPS, 3 + 12 * EPS),
    ],
    ids=str,
)
def test_ends_are_the_outcomes_at_the_threshold_and_the_stated_slack(score, band, threshold, low, high):
    lower, upper = interval(score, np.array([band], dtype=float), np.float64(threshold))
    assert (lower[0], upper[0]) == (low, high)


@pytest.mark.parametrize(
    ("band", "threshold"),
    [
        ((0, 1, INF), 1.0),  # the lower end alone could be computed
        ((-INF, 1, 3), 1.0),
        ((-1.7e308, 1.7e308, 1.71e308), 0.0),  # the width of one side is not finite
        ((-1.71e308, -1.7e308, 1.7e308), 0.0),
        ((0, 1, 3), INF),
        ((0, 1, 3), NAN),
    ],
)
def test_an_end_that_cannot_be_computed_makes_both_infinite(band, threshold):
    lower, upper = interval(Scaled(), np.array([band], dtype=float), np.float64(threshold))
    assert (lower[0], upper[0]) == (-INF, INF)


@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_ends_beyond_all_numbers_are_infinite_without_a_warning(score):
    lower, upper = interval(score, np.array([[-1.7e308, -1.6e308, 1.7e308]]), np.float64(1.7e308))
    assert lower[0] == -INF
    assert upper[0] > 0


def test_the_least_normal_number_is_a_score():
    """It can be computed back: the interval at this threshold ends at y."""
    band, y = np.array([[-1.0, 0.0, 1.0]] * 3), np.array([TINY, -TINY, TINY / 2])
    assert scores_of(Scaled(), band, y).tolist() == [TINY, TINY, INF]
    assert interval(Scaled(), band, np.float64(TINY))[1][0] >= TINY


def test_what_extends_an_interval_says_so_on_one_side_as_well():
    for score, extends in ((Scaled(), False), (Residual(), False), (Additive(), True), (Additive(relative=True), True)):
        assert score.extends is extends
        assert scores_of(score, np.array([[0.0, 1.0, 3.0]]), np.array([1.0]))[0] <= 0
        assert OneSide(score, "upper").extends is extends


@pytest.mark.parametrize(
    ("relative", "side", "band", "y", "expected"),
    [
        (False, "upper", (0, 1, 4), 5, 1),
        (False, "lower", (0, 1, 4), 5, -5),
        (True, "upper", (0, 1, 4), 5, 0.25),
        (True, "upper", (0, 0.25, 0.5), 1, 1),
        (True, "lower", (0, 0.25, 0.5), 1, -2),
        (True, "upper", (1, 1, 1), 1, -1),
        (True, "upper", (1, 1, 1), 0.5, -1),
        (True, "upper", (1, 1, 1), 1.5, INF),
        (True, "lower", (1, 1, 1), 1.5, -1),
        (True, "lower", (1, 1, 1), 0.5, INF),
    ],
)
def test_additive_scores_beyond_one_bound_and_their_edges(relative, side, band, y, expected):
    score = OneSide(Additive(relative), side)
    assert scores_of(score, np.array([band], dtype=float), np.array([y], dtype=float))[0] == expected


def test_scores_of_cqr_are_in_units_of_the_target_unless_they_are_to_be_relative():
    band, y = np.array([[0.0, 1.0, 4.0], [0.0, 0.25, 0.5]]), np.array([5.0, 1.0])
    assert scores_of(Additive(), band, y).tolist() == [1.0, 0.5]
    assert scores_of(Additive(relative=True), band, y).tolist() == [0.25, 1.0]


VALUE = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=64),
    st.sampled_from([0.0, 1.0, -1.0, 1e-300, 5e-324, 1e308, NAN, INF, -INF]),
    st.floats(-3, 3).map(lambda v: round(v, 1)),
)
FINITE = VALUE.filter(np.isfinite)


@st.composite
def bands_and_responses(draw, members=1):
    """Bands ``(K, n, 3)`` with zero widths, ties, infinities and NaN, ordered where they are numbers."""
    n = draw(st.integers(1, 30))
    bands = draw(arrays(np.float64, (members, n, 3), elements=VALUE))
    bands = np.where(np.isnan(bands).any(-1, keepdims=True), bands, np.sort(bands, -1))
    y = draw(arrays(np.float64, n, elements=FINITE))
    at_a_bound = draw(arrays(np.int64, n, elements=st.integers(-1, 2)))
    same = np.take_along_axis(bands[0], np.clip(at_a_bound, 0, 2)[:, None], 1)[:, 0]
    return bands, np.where((at_a_bound >= 0) & np.isfinite(same), same, y)


@settings(max_examples=300, deadline=None)
@given(
    bands_and_responses(),
    st.sampled_from([0.1, 0.5, 0.8, 0.9, 0.99]),
    st.sampled_from(["marginal", "pac"]),
    st.sampled_from(["conf-nn", "conf-fw", "cqr", "cqr-r"]),
)
@pytest.mark.filterwarnings(
    "ignore::guardband.InsufficientCalibrationWarning", "ignore::guardband.DegenerateBandWarning"
)
def test_no_band_breaks_the_interval(case, level, guarantee, method):
    (bands,), y = case
    rule = gb.BandCalibrator(method, confidence_level=level, guarantee=guarantee).fit(*bands.T, y)
    out = rule.transform(*bands.T)
    assert not np.isnan(out.lower).any()
    assert not np.isnan(out.upper).any()
    assert (out.lower <= out.upper).all()
    k, n = rule.certificate.rank, len(y)
    inside = (out.lower <= y) & (y <= out.upper)
    assert inside.sum() >= min(k, n)
    finite = np.isfinite(bands).all(-1)
    assert ((out.lower[finite] <= bands[finite, 1]) & (bands[finite, 1] <= out.upper[finite])).all()


@settings(max_examples=200, deadline=None)
@given(
    bands_and_responses(members=3),
    st.sampled_from(["paper", "fixed-sequence", "nested"]),
    st.sampled_from([0.5, 0.9]),
)
@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_no_grid_of_bands_breaks_pav(case, rule, level):
    bands, y = case
    fitted = gb.BandCalibrator("pav", confidence_level=level, taus=[0.3, 0.2, 0.1], rule=rule)
    fitted.fit(*np.moveaxis(bands, -1, 0), y)
    out = fitted.transform(*np.moveaxis(bands, -1, 0))
    assert not np.isnan(out.lower).any()
    assert not np.isnan(out.upper).any()
    assert (out.lower <= out.upper).all()
    inside = (out.lower <= y) & (y <= out.upper)
    assert inside.sum() >= fitted.certificate.rank
