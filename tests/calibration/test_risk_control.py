"""Risk control: the least threshold within the budget, and its promise over many calibration sets."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import guardband as gb
from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedInterval, PredictedPoint
from guardband.bands.risk_bounds import risk_budget
from guardband.calibration import risk_control
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.risk_control import RiskControl, _first_float, _float_at, _place
from guardband.calibration.score import Additive, Residual, Scaled
from guardband.exceptions import DegenerateBandWarning, InsufficientCalibrationError, InsufficientCalibrationWarning
from predictions import predictions_for

SIGNIFICANCE = 1e-6 / 10
SETS = 4000
SCORES = [Scaled(), Additive(), Additive(relative=True), Residual()]


def rule_of(score, limit=0.3, cap=2.0, delta=None, loss="distance"):
    return RiskControl("own", Levels.of(), score, gb.Risk(limit, cap, loss), delta)


def miss(y, lower, upper):
    return np.where((lower <= y) & (y <= upper), 0.0, 1.0)


def calibrated(rule, n=200, seed=0):
    predicted, y = predictions_for(rule, n, seed)
    return predicted, y, rule.calibrate(rule.summarise(predicted, y, Context()))


def risks(n, limit, cap, delta=None, seed=0):
    """Return the exact risk of many calibration sets: E min((y - c)+, cap) = exp(-c) (1 - exp(-cap)) for Exp(1)."""
    rng, rule = np.random.default_rng(seed), rule_of(Residual(), limit, cap, delta)
    points = PredictedPoint(np.zeros((1, 1, n)))
    found = [rule.calibrate(rule.summarise(points, rng.exponential(size=n), Context())) for _ in range(SETS)]
    return np.exp([-own.arrays["threshold"][0] for own in found]) * (1 - math.exp(-cap))


def slack(cap):
    """Return how far a mean of so many risks may lie from what is expected of it (Hoeffding)."""
    return (1 - math.exp(-cap)) * math.sqrt(math.log(1 / SIGNIFICANCE) / (2 * SETS))


@pytest.mark.parametrize(("n", "limit", "cap"), [(5, 0.4, 2.0), (60, 0.3, 2.0)])
def test_the_expected_risk_lies_in_its_band(n, limit, cap):
    mean = risks(n, limit, cap).mean()
    assert limit - 2 * cap / (n + 1) - slack(cap) <= mean <= limit + slack(cap)


def test_without_room_for_one_more_row_the_expected_risk_is_too_large(monkeypatch):
    monkeypatch.setattr(risk_control, "risk_budget", lambda limit, cap, n, delta: limit * n)
    assert risks(5, 0.4, 2.0).mean() > 0.4 + slack(2.0)


def test_given_the_data_the_risk_exceeds_the_limit_for_at_most_delta_of_the_sets():
    failures = (risks(50, 0.2, 1.0, delta=0.1) > 0.2).sum()
    assert failures <= stats.binom.isf(SIGNIFICANCE, SETS, 0.1)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("n", [19, 20, 200])
def test_a_limit_on_misses_gives_the_rank_of_a_confidence_level(score, n):
    rule = rule_of(score, 0.1, 1.0, loss=miss)
    predicted, y, found = calibrated(rule, n)
    scores = np.sort(score.of(predicted, y)[0, 0])
    rank = math.ceil(round(0.9 * (n + 1), 9))
    threshold = found.arrays["threshold"][0]
    assert (rule.ends(predicted, Context(), found.arrays)[0][:, 0] <= y).sum() >= rank
    # a slack of rounding covers the row at the rank a little before its score
    assert threshold == pytest.approx(scores[rank - 1], rel=1e-13)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("delta", [None, 0.1])
def test_the_threshold_is_the_least_float_within_the_budget(score, delta):
    rule = rule_of(score, delta=delta)
    predicted, y, found = calibrated(rule)
    (threshold,), budget = found.arrays["threshold"], risk_budget(0.3, 2.0, 200, delta)

    def total(c):
        lower, _, upper = rule.ends(predicted, Context(), {"threshold": np.array([c])})
        return math.fsum(rule.risk.losses(y, lower[:, 0], upper[:, 0]))

    assert total(threshold) <= budget < total(np.nextafter(threshold, -np.inf))
    assert budget - total(threshold) < 1e-10  # distances are continuous


@pytest.mark.parametrize("score", SCORES)
def test_a_loose_limit_takes_the_least_score(score):
    rule = rule_of(score, limit=1.99)
    predicted, y, found = calibrated(rule, 1000)
    assert found.arrays["threshold"][0] == score.of(predicted, y).min()


def test_summaries_of_blocks_give_the_same():
    rule = rule_of(Scaled())
    predicted, y, found = calibrated(rule)
    parts = [rule.summarise(predicted.rows(rows), y[rows], Context()) for rows in (slice(0, 7), slice(7, None))]
    other = rule.calibrate(parts[0] + parts[1])
    assert other.arrays == found.arrays
    assert other.promise == found.promise


def test_losses_are_counted_in_the_unit_of_the_target():
    def to_units(lower, point, upper):
        return np.exp(lower), np.exp(point), np.exp(upper)

    rule = rule_of(Scaled(), limit=1.0, cap=20.0).in_units(to_units)
    predicted, y, found = calibrated(rule, 400)
    lower, _, upper = to_units(*rule.ends(predicted, Context(), found.arrays))
    total = rule.risk.losses(np.exp(y), lower[:, 0], upper[:, 0]).sum()
    assert total == pytest.approx(risk_budget(1.0, 20.0, 400))


def test_too_few_rows_give_infinite_intervals_and_say_how_many_it_takes():
    rule = rule_of(Scaled(), 0.1, 2.0)
    predicted, y = predictions_for(rule, 18)
    block = [(predicted, y, Context())]
    with pytest.warns(InsufficientCalibrationWarning, match="needs at least 19 calibration rows, but there are 18"):
        found = Calibrated.from_blocks(rule, block)
    assert found.certificate.whole_line
    assert np.isneginf(found.ends(predicted, Context())[0]).all()
    with pytest.raises(InsufficientCalibrationError, match="lower the cap"):
        Calibrated.from_blocks(rule, block, on_insufficient="raise")


def test_unusable_predictions_give_infinite_intervals_and_no_loss():
    rule = rule_of(Scaled())
    predicted, y = predictions_for(rule, 100)
    broken = replace(predicted, upper=np.full_like(predicted.upper, np.nan))
    with pytest.warns(DegenerateBandWarning, match="not finite, or have no width"):
        found = Calibrated.from_blocks(rule, [(broken, y, Context())])
    assert found.certificate.whole_line
    some = replace(predicted, upper=np.where(np.arange(100) < 5, np.nan, predicted.upper))
    _, _, upper = Calibrated.from_blocks(rule, [(some, y, Context())]).ends(some, Context())
    assert np.isinf(upper[:5]).all()
    assert np.isfinite(upper[5:]).all()


def test_a_loss_that_grows_with_the_interval_is_refused():
    def width(y, lower, upper):
        return np.minimum(upper - lower, 2.0) * (upper < 1e300)

    with pytest.raises(ValueError, match="must not grow when an interval grows"):
        calibrated(rule_of(Scaled(), loss=width))


def test_a_loss_that_infinite_intervals_have_is_refused():
    with pytest.raises(ValueError, match=r"infinite intervals, found 0\.5"):
        calibrated(rule_of(Scaled(), loss=lambda y, lower, upper: np.full(len(y), 0.5)))


def test_what_a_risk_has_no_promise_for_is_refused():
    rule = rule_of(Scaled())
    with pytest.raises(ValueError, match=r"none for each group\. Remove groups"):
        rule.for_groups(("a",))
    with pytest.raises(ValueError, match="cannot use weights"):
        rule.for_weights()
    with pytest.raises(ValueError, match=r"has no confidence level\. Remove"):
        rule.at(Levels.of(0.8))


def test_places_of_floats_are_in_order_and_neighbours_differ_by_one():
    values = [-np.inf, -1.7e308, -1.0, -5e-324, 0.0, 5e-324, 2.2250738585072014e-308, 1.0, 1.7e308]
    for value in values:
        assert _float_at(_place(value)) == value
        if np.isfinite(value):
            assert _place(np.nextafter(value, np.inf)) == _place(value) + 1
    assert [_place(value) for value in values] == sorted(map(_place, values))


@pytest.mark.parametrize("wanted", [-3.5, -5e-324, 0.0, 5e-324, 0.1, 7.0, 1.5e300])
def test_the_first_float_that_fits_is_found_wherever_it_is(wanted):
    asked = []

    def fits(value):
        asked.append(value)
        return value >= wanted

    assert _first_float(fits, -1e9, 1.7e308) == wanted
    assert len(asked) <= 64
    assert _first_float(fits, np.nextafter(wanted, -np.inf), wanted) == wanted


def test_a_threshold_may_lie_beyond_all_scores():
    """A loss that ends only at five times the largest score: the least float at which all rows have none."""

    def wide(y, lower, upper):
        return np.where(upper < 5.0, 1.0, 0.0)

    rule = rule_of(Residual(), 0.05, 1.0, loss=wide)
    points = PredictedPoint(np.zeros((1, 1, 30)))
    found = rule.calibrate(rule.summarise(points, np.linspace(-1, 1, 30), Context()))
    threshold = found.arrays["threshold"][0]
    assert Residual().interval(points, threshold)[1].min() >= 5.0
    assert Residual().interval(points, np.nextafter(threshold, 0))[1].max() < 5.0
    assert found.promise.covered == (30,)


def test_the_promise_has_all_numbers_of_the_risk():
    rule = rule_of(Residual(), 0.25, 2.0, delta=0.2)
    predicted, y, found = calibrated(rule, 300)
    promise = found.promise
    lower, _, upper = rule.ends(predicted, Context(), found.arrays)
    assert (promise.limit, promise.cap, promise.delta, promise.n_calibration) == (0.25, 2.0, 0.2, 300)
    assert promise.covered == (int(((lower[:, 0] <= y) & (y <= upper[:, 0])).sum()),)
    assert promise.whole_line == (False,)
    assert promise.loss == rule.risk.name
    assert not found.remarks


@pytest.mark.parametrize(("n", "words"), [(1, "there is 1"), (2, "there are 2")])
def test_too_few_rows_are_told_in_a_sentence(n, words):
    rule = rule_of(Residual(), 5, 100)
    points = PredictedPoint(np.zeros((1, 1, n)))
    (remark,) = rule.calibrate(rule.summarise(points, np.zeros(n), Context())).remarks
    assert remark.in_words() == (
        f"A mean loss of at most 5 with a cap of 100 needs at least 19 calibration rows, but {words}. Add calibration "
        "rows, raise the limit or lower the cap."
    )


def test_further_rows_count_like_those_of_one_block():
    rule = rule_of(Scaled())
    predicted, y = predictions_for(rule, 100)
    first, rest = (slice(0, 60), slice(60, 100))
    summary = rule.summarise(predicted.rows(first), y[first], Context())
    others = predicted.rows(rest)
    scores = rule.scores(others, y[rest], Context())
    both = rule.with_rows(summary, others, y[rest], scores)
    whole = rule.summarise(predicted, y, Context())
    assert both.n == 100
    for name in ("score", "y", "lower", "point", "upper"):
        np.testing.assert_array_equal(both.rows(name), whole.rows(name))
    np.testing.assert_array_equal(rule.calibration_scores(both), whole.rows("score"))


@pytest.mark.parametrize(("grows", "refused"), [(1e-11, True), (1e-13, False)])
def test_a_loss_may_grow_by_what_rounding_does_and_by_no_more(grows, refused):
    """By 1e-12 of its cap, which is 2."""

    def loss(y, lower, upper):
        return np.where(upper > 1e300, 0.0, np.where(upper > 0.5, 1.0 + 2 * grows, 1.0))

    rule = rule_of(Residual(), 1.5, 2.0, loss=loss)
    points = PredictedPoint(np.zeros((1, 1, 50)))
    summary = rule.summarise(points, np.linspace(-1, 1, 50), Context())
    if refused:
        with pytest.raises(
            ValueError, match=r"for y=-1 it grows from 1 to 1 at the interval -0\.\d+ to 0\.\d+\. Change"
        ):
            rule.calibrate(summary)
    else:
        rule.calibrate(summary)


def test_a_budget_of_nothing_is_kept_and_a_little_less_than_nothing_is_not():
    """19 rows leave 0 for a limit of 5 and a cap of 100; 8 rows leave -0.1 for a limit of 0.1 and a cap of 1."""
    for n, limit, cap, finite in ((19, 5, 100, True), (8, 0.1, 1.0, False)):
        rule = rule_of(Residual(), limit, cap)
        y = np.linspace(-1, 1, n)
        found = rule.calibrate(rule.summarise(PredictedPoint(np.zeros((1, 1, n))), y, Context()))
        assert np.isfinite(found.arrays["threshold"][0]) == finite
        assert found.promise.whole_line == (not finite,)
        assert [remark.category for remark in found.remarks] == ([] if finite else [InsufficientCalibrationWarning])
        assert rule.promised_risk == rule.risk
        if finite:
            assert found.arrays["threshold"][0] == pytest.approx(1.0)


def points_of(n):
    return PredictedPoint(np.zeros((1, 1, n)))


def test_the_true_value_is_brought_to_its_unit_as_the_point_is():
    rule = rule_of(Residual()).in_units(lambda lower, point, upper: (lower - 1, 2 * point, upper + 1))
    y = np.linspace(-1, 1, 9)
    np.testing.assert_array_equal(rule.summarise(points_of(9), y, Context()).rows("y"), 2 * y)


def test_the_promise_names_a_loss_of_ones_own_and_counts_rows_on_their_bounds():
    rule = rule_of(Residual(), 0.5, 1.0, loss=miss)
    found = rule.calibrate(rule.summarise(points_of(7), np.array([0.0] * 5 + [3.0, 4.0]), Context()))
    assert found.arrays["threshold"].tolist() == [0.0]
    assert (found.promise.loss, found.promise.covered) == ("own", (5,))


def test_infinite_thresholds_are_above_all():
    few, unusable = rule_of(Residual(), 0.1, 2.0), rule_of(Residual(), 5.0, 100.0)
    nothing = PredictedPoint(np.full((1, 1, 19), np.nan))
    for rule, predicted, n in ((few, points_of(5), 5), (unusable, nothing, 19)):
        found = rule.calibrate(rule.summarise(predicted, np.zeros(n), Context()))
        assert found.arrays["threshold"].tolist() == [np.inf]
        assert found.promise.whole_line == (True,)
    # 19 rows leave a budget of exactly 0: it is not too few rows, but predictions that are of no use
    assert [remark.category for remark in found.remarks] == [DegenerateBandWarning]


def test_rows_that_no_finite_threshold_reaches_make_intervals_infinite():
    half = np.where(np.arange(40) < 20, 1.0, 0.0)[None, None]  # sides of no width, with true values beside them
    rule = rule_of(Scaled(), 0.3, 1.0)
    found = rule.calibrate(rule.summarise(PredictedInterval(-half, 0 * half, half), np.full(40, 5.0), Context()))
    assert found.arrays["threshold"].tolist() == [np.inf]
    assert [remark.category for remark in found.remarks] == [DegenerateBandWarning]


@pytest.mark.parametrize(("cap", "grows", "refused"), [(2.0, 1.8e-12, False), (2.0, 3e-12, True), (1e4, 5e-9, False)])
def test_what_rounding_may_add_is_a_share_of_the_cap(cap, grows, refused):
    def loss(y, lower, upper):
        return np.where(upper > 1e300, 0.0, np.where(upper > 0.5, 1.0 + grows, 1.0))

    rule = rule_of(Residual(), 1.5, cap, loss=loss)
    summary = rule.summarise(points_of(50), np.linspace(-1, 1, 50), Context())
    if refused:
        with pytest.raises(ValueError, match="must not grow"):
            rule.calibrate(summary)
    else:
        rule.calibrate(summary)


def test_a_loss_that_some_rows_keep_is_refused():
    rule = rule_of(Residual(), 0.3, 1.0, loss=lambda y, lower, upper: np.where(y > 0.9, 0.25, 0.0))
    with pytest.raises(ValueError, match=r"infinite intervals, found 0\.25\. Subtract what every row has"):
        rule.calibrate(rule.summarise(points_of(30), np.linspace(-1, 1, 30), Context()))
