import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import guardband as gb
from guardband.bands.predicted import PredictedInterval
from guardband.calibration.score import Additive, Residual, Scaled

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
