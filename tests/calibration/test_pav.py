"""The pav selection: its choices one by one, and its failure rates by simulation."""

import numpy as np
import pytest
from scipy.stats import binom

import guardband as gb
from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedInterval
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.pav import WHOLE_LINE, PavSelection
from guardband.calibration.summary import Summary
from guardband.planning import corollary_epsilon, pav_epsilon
from laws import SIGNIFICANCE

TAUS = (0.1, 0.08, 0.05, 0.01)


def selection(rule="fixed-sequence", **asked):
    return PavSelection("pav", Levels.of(0.9), TAUS, rule, **asked)


def counted(n, counts):
    """Return the summary of n rows of which each candidate contains so many."""
    return Summary(n, {"covered": np.array(counts)})


def chosen(rule, counts, n=100, on_insufficient="inf", **asked):
    calibrated = Calibrated.by(selection(rule, **asked), counted(n, counts), on_insufficient=on_insufficient)
    return int(calibrated.found.arrays["chosen"][0])


@pytest.mark.parametrize(
    ("counts", "paper", "fixed"),
    [
        ([89, 90, 95, 99], 1, 1),
        ([90, 92, 95, 99], 0, 0),
        ([91, 89, 95, 99], 0, 2),  # not monotone: the sequence stops at the first failure from the wide end
        ([91, 95, 99, 89], 0, WHOLE_LINE),
        ([80, 81, 82, 90], 3, 3),
    ],
)
@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_paper_takes_the_largest_tau_and_the_sequence_stops_at_the_first_failure(counts, paper, fixed):
    assert chosen("paper", counts) == paper
    assert chosen("fixed-sequence", counts) == fixed


def test_no_tau_is_the_whole_line_with_a_warning():
    with pytest.warns(gb.InsufficientCalibrationWarning, match=r"contain 90 of the 100 calibration rows. The widest"):
        assert chosen("paper", [80, 81, 82, 83]) == WHOLE_LINE
    with pytest.raises(gb.InsufficientCalibrationError):
        chosen("paper", [80, 81, 82, 83], on_insufficient="raise")


def test_the_aim_sets_the_count_that_is_needed():
    n = 4000
    summary = counted(n, [n] * 4)

    def rank(rule, **asked):
        return selection(rule, **asked).calibrate(summary).promise.rank[0]

    assert rank("paper") == rank("nested") == 3600
    assert rank("nested", aim="pac") == 3625
    assert binom.sf(rank("paper", aim="pac") - 1, n, 0.9) <= 0.1 / 4 < binom.sf(rank("paper", aim="pac") - 2, n, 0.9)
    assert rank("nested", aim="average") == 3601
    corollary = rank("paper", aim="average", average="corollary")
    assert corollary == int(np.ceil((0.9 + corollary_epsilon(0.9, n, 4)) * n))
    assert 3601 < rank("paper", aim="average") < corollary


def test_pac_aim_counts_match_the_published_table():
    grid = tuple(np.arange(10, 0, -1) / 100)
    for n, share in ((500, 0.932), (1000, 0.922), (4000, 0.9113), (25000, 0.9044)):
        rule = PavSelection("pav", Levels.of(0.9), grid, "paper", aim="pac")
        assert rule.calibrate(counted(n, [n] * 10)).promise.rank[0] / n == pytest.approx(share, abs=5e-4)


def test_a_vacuous_corollary_is_the_whole_line():
    with pytest.warns(
        gb.InsufficientCalibrationWarning, match=r"needs at least \d+ calibration rows, but there are 500"
    ):
        assert chosen("paper", [500] * 4, n=500, aim="average", average="corollary") == WHOLE_LINE


def test_nested_bands_contain_all_narrower_ones():
    rng = np.random.default_rng(0)
    bands = PredictedInterval(*np.moveaxis(np.sort(rng.standard_normal((4, 50, 3)), -1), -1, 0)[:, None])
    rule = selection("nested")
    point_in = rule._shaped(bands, np)
    assert (np.diff(point_in.lower[0], axis=0) <= 0).all()
    assert (np.diff(point_in.upper[0], axis=0) >= 0).all()
    assert (point_in.point == bands.point).all()
    counts = rule.summarise(bands, rng.standard_normal(50), Context()).totals["covered"]
    assert (np.diff(counts) >= 0).all()


# One uniform number stands for a response: network j covers it if it is at most p_j.


def failure_rate(rule, p, n, epsilon, seed, replications=4000, independent=True):
    rng = np.random.default_rng(seed)
    selected = PavSelection("pav", Levels.of(0.9), tuple(np.linspace(0.1, 0.01, len(p))), rule)
    failures = 0
    for _ in range(replications):
        u = rng.random((n, len(p))) if independent else rng.random((n, 1))
        j = int(selected.calibrate(counted(n, (u <= p).sum(0))).arrays["chosen"][0])
        failures += j != WHOLE_LINE and p[j] <= 0.9 - epsilon + 1e-12
    return failures


def test_union_bound_is_needed_and_nearly_tight_for_the_papers_scan():
    n, candidates = 300, 10
    union, free = pav_epsilon(0.9, n, 0.1, candidates), pav_epsilon(0.9, n, 0.1)
    held = failure_rate("paper", np.full(candidates, 0.9 - union), n, union, seed=0)
    assert held <= binom.isf(SIGNIFICANCE, 4000, 0.1)
    broken = failure_rate("paper", np.full(candidates, 0.9 - free), n, free, seed=1)
    assert broken > binom.isf(SIGNIFICANCE, 4000, 0.5)  # without K, the paper's scan fails in most of the runs


def test_fixed_sequence_and_nested_need_no_k():
    n, candidates = 300, 10
    free = pav_epsilon(0.9, n, 0.1)
    bad = np.full(candidates, 0.9 - free)
    mixed = np.r_[np.full(7, 0.9 - free), np.full(3, 0.97)]
    limit = binom.isf(SIGNIFICANCE, 4000, 0.1)
    assert failure_rate("fixed-sequence", bad, n, free, seed=2) <= limit
    assert failure_rate("fixed-sequence", mixed, n, free, seed=3) <= limit
    assert failure_rate("nested", bad, n, free, seed=4, independent=False) <= limit


def test_certificate_prints_the_bound_that_the_rule_has():
    summary = counted(1000, [880, 905, 940, 990])
    paper, free = (Calibrated.by(selection(rule), summary).certificate for rule in ("paper", "fixed-sequence"))
    assert paper.promise.tau == free.promise.tau == (0.08,)
    assert paper.promise.covered == (905,)
    assert "for tau = 0.08 out of 4, by the rule 'paper'" in str(paper)
    assert f"{100 * free.coverage_bound():.4g}%" in str(free)


def bands_for(y, widths):
    half = np.asarray(widths)[:, None] * np.ones(len(y))
    return -half, np.zeros_like(half), half


def test_levels_take_their_own_bands_and_share_one_point():
    y = np.random.default_rng(0).standard_normal(2000)
    rule = gb.BandCalibrator("pav", confidence_level=[0.9, 0.5], taus=[0.5, 0.1, 0.05])
    rule.fit(*bands_for(y, [0.7, 1.7, 2.5]), y)
    assert rule.certificate.promise.tau == (0.1, 0.5)
    lower, point, upper = bands_for(np.zeros(1), [0.7, 1.7, 2.5])
    point[1] = 1.2  # the first level's point lies outside the second level's bands
    bands = rule.transform(lower, point, upper)
    assert bands.lower.tolist() == [[-1.7, -0.7]]
    assert bands.upper.tolist() == [[1.7, 1.2]]


def test_the_order_of_taus_does_not_matter():
    y = np.random.default_rng(0).standard_normal(500)
    widths, taus = np.array([1.6, 2.5, 2.0]), [0.1, 0.01, 0.05]
    a = gb.BandCalibrator("pav", taus=taus).fit(*bands_for(y, widths), y)
    order = [1, 2, 0]
    b = gb.BandCalibrator("pav", taus=[taus[i] for i in order]).fit(*bands_for(y, widths[order]), y)
    assert a.certificate == b.certificate


def test_other_levels_later_are_refused():
    y = np.random.default_rng(0).standard_normal(500)
    rule = gb.BandCalibrator("pav", taus=[0.1, 0.05]).fit(*bands_for(y, [1.7, 2.0]), y)
    with pytest.raises(ValueError, match="Name all levels when you calibrate"):
        rule.transform(*bands_for(y, [1.7, 2.0]), confidence_level=0.8)


@pytest.mark.parametrize("taus", [[], [0.0, 0.1], [0.1, 1.0], [0.1, 0.1]])
def test_other_grids_are_refused(taus):
    with pytest.raises(ValueError, match="taus must"):
        gb.BandCalibrator("pav", taus=taus)


def test_average_and_pac_exclude_each_other():
    with pytest.raises(ValueError, match="not both"):
        gb.BandCalibrator("pav", taus=[0.1], average="sharp", guarantee="pac")


def test_one_of_its_levels_is_given_later_and_joint_levels_share_delta():
    y = np.random.default_rng(0).standard_normal(2000)
    asked = {"confidence_level": [0.9, 0.5], "taus": [0.5, 0.1, 0.01], "guarantee": "pac"}
    rule = gb.BandCalibrator("pav", **asked).fit(*bands_for(y, [0.7, 1.7, 3.0]), y)
    one = rule.transform(*bands_for(np.zeros(1), [0.7, 1.7, 3.0]), confidence_level=0.5)
    assert one.certificate.rank == rule.certificate.rank[1]
    assert one.lower.shape == (1,)
    joint = gb.BandCalibrator("pav", **asked, joint=True).fit(*bands_for(y, [0.7, 1.7, 3.0]), y)
    assert joint.certificate.rank[0] > rule.certificate.rank[0]


@pytest.mark.parametrize(("asked", "rows"), [({"guarantee": "pac"}, 22), ({"average": "sharp"}, 9)])
def test_a_whole_line_names_the_rows_needed(asked, rows):
    with pytest.warns(gb.InsufficientCalibrationWarning, match=f"needs at least {rows} calibration rows"):
        gb.BandCalibrator("pav", taus=[0.1], **asked).fit([[0.0] * 5], [[1.0] * 5], [[2.0] * 5], [1.0] * 5)


def test_nested_returns_the_widened_bands():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < 0.04, -1.4, rng.uniform(-1.1, 2, 400))
    lower, point, upper = np.array([[-1.5], [-1.2]]), np.zeros((2, 1)), np.array([[0.2], [2.0]])
    rule = gb.BandCalibrator("pav", taus=[0.2, 0.1], rule="nested")
    rule.fit(*(np.repeat(side, 400, axis=1) for side in (lower, point, upper)), y)
    bands = rule.transform(lower, point, upper)
    assert (bands.lower[0], bands.upper[0]) == (-1.5, 2.0)
    plain = gb.BandCalibrator("pav", taus=[0.2, 0.1], rule="paper")
    plain.fit(*(np.repeat(side, 400, axis=1) for side in (lower, point, upper)), y)
    assert plain.transform(lower, point, upper).lower[0] == -1.2


def test_values_on_a_bound_are_inside():
    shape = np.zeros((1, 2, 3))
    bands = PredictedInterval(shape - np.array([1.0, 2.0])[:, None], shape, shape + np.array([1.0, 2.0])[:, None])
    assert selection().summarise(bands, np.array([-1.0, 1.0, 0.0]), Context()).totals["covered"].tolist() == [3, 3]
    assert selection().summarise(bands, np.array([-2.0, 2.0, 1.5]), Context()).totals["covered"].tolist() == [0, 3]


def test_nested_bands_are_running_extremes():
    rng = np.random.default_rng(1)
    bands = PredictedInterval(*np.moveaxis(np.sort(rng.standard_normal((4, 50, 3)), -1), -1, 0)[:, None])
    shaped = selection("nested")._shaped(bands, np)
    np.testing.assert_array_equal(shaped.lower, np.minimum.accumulate(bands.lower, axis=1))
    np.testing.assert_array_equal(shaped.upper, np.maximum.accumulate(bands.upper, axis=1))


@pytest.mark.parametrize("shares", [1, 2, 3])
def test_the_promise_has_the_delta_and_its_shares(shares):
    rule = selection(aim="pac", delta=0.2, shares=shares)
    promise = rule.calibrate(counted(300, [300] * 4)).promise
    assert (promise.delta, promise.shares, promise.joint) == (0.2, shares, shares > 1)
    assert binom.sf(promise.rank[0] - 1, 300, 0.9) <= 0.2 / shares < binom.sf(promise.rank[0] - 2, 300, 0.9)


def test_without_a_network_tau_is_zero_and_the_point_is_that_of_the_first():
    found = selection("paper").calibrate(counted(100, [80, 81, 82, 83]))
    assert (found.promise.tau, found.promise.covered, found.promise.whole_line) == ((0.0,), (100,), (True,))
    points = np.arange(4.0)[None, :, None] * np.ones((1, 4, 2))
    ends = selection("paper").ends(PredictedInterval(points - 1, points, points + 1), Context(), found.arrays)
    assert np.isneginf(ends[0]).all()
    assert ends[1].tolist() == [0, 0]
    assert np.isposinf(ends[2]).all()


def test_a_corollary_that_says_nothing_asks_for_one_row_more_than_there_are():
    found = selection("paper", aim="average", average="corollary").calibrate(counted(500, [500] * 4))
    assert found.promise.rank == (501,)


def test_why_there_is_no_network_is_told_with_its_numbers():
    (remark,) = selection("paper").calibrate(counted(100, [80, 81, 85, 83])).remarks
    assert remark.in_words() == (
        "pav needs intervals that contain 90 of the 100 calibration rows. The widest ones, for tau = 0.01, contain 83. "
        "Add smaller taus or train longer, and calibrate on fresh rows."
    )
    (remark,) = selection("paper").calibrate(counted(100, [80, 81, 85, 89])).remarks
    assert "contain 89." in remark.in_words()
    (remark,) = selection("paper").calibrate(counted(1, [0] * 4)).remarks  # one row is needed, and there is one
    assert remark.in_words().startswith("pav needs intervals that contain 1 of the 1 calibration rows")
    for n, words in ((1, "there is 1"), (2, "there are 2"), (0, "there are 0")):
        (remark,) = selection("nested", aim="pac").calibrate(counted(n, [n] * 4)).remarks
        assert remark.in_words() == (
            f"pav at 90% needs at least 22 calibration rows, but {words}. Add calibration rows or choose a lower "
            "confidence level."
        )
