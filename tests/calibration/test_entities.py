"""Rows that belong together: thresholds, promises and their laws where rows of one entity may depend on each other."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedPoint
from guardband.bands.promise import Promise
from guardband.bands.ranks import shared_coverage_bound, shared_order_statistic, shared_simultaneous_bound
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.conformal import Conformal
from guardband.calibration.cut import MarginalCut, PacCut, SharedCut
from guardband.calibration.score import Residual
from guardband.data.entities import entities_of_labels


def by_the_definition(scores, entity, level):
    """The level-quantile of sum_k sum_i delta(s_ki) / ((K + 1) N_k) + delta(inf) / (K + 1), in fractions."""
    sizes = {label: int((entity == label).sum()) for label in set(entity.tolist())}
    total = Fraction(0)
    for score, label in sorted(zip(scores.tolist(), entity.tolist(), strict=True)):
        total += Fraction(1, (len(sizes) + 1) * sizes[label])
        if total >= level:
            return score
    return np.inf


@pytest.mark.parametrize("seed", range(40))
def test_the_threshold_is_the_quantile_of_shared_weights(seed):
    rng = np.random.default_rng(seed)
    entity = rng.integers(0, rng.integers(1, 25), rng.integers(1, 120))
    scores = rng.normal(size=len(entity)).round(int(rng.integers(0, 3)))
    for level in ("0.5", "0.8", "0.9", "0.95"):
        count = len(np.unique(entity))
        found = shared_order_statistic(scores, entity, Fraction(level) * (count + 1))
        assert found == by_the_definition(scores, entity, Fraction(level))


def test_entities_of_one_row_are_rows():
    scores, levels = np.random.default_rng(0).normal(size=57), Levels.of([0.5, 0.9])
    alone = MarginalCut().calibrate(scores, Context(), levels, False)
    shared = SharedCut().calibrate(scores, Context(entity=np.arange(57)), levels, False)
    np.testing.assert_array_equal(alone.arrays["threshold"], shared.arrays["threshold"])
    assert alone.promise.rank == shared.promise.rank
    assert shared.promise.n_calibration == 57


def test_repeated_rows_have_the_exact_law_of_one_row_each():
    rng = np.random.default_rng(0)
    once, entity = rng.normal(size=57), np.repeat(np.arange(57), rng.integers(1, 5, 57))
    noise = 1 + 1e-6 * rng.random(len(entity))
    found = SharedCut().calibrate(once[entity] * noise, Context(entity=entity), Levels.of(0.9), False)
    alone = MarginalCut().calibrate(once, Context(), Levels.of(0.9), False)
    assert found.promise == alone.promise
    assert alone.arrays["threshold"] <= found.arrays["threshold"] <= alone.arrays["threshold"] * (1 + 1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_a_calibration_of_entities_has_the_quantile_of_shared_weights(seed):
    rng = np.random.default_rng(seed)
    for count in (1, 4, 9, 10, 25):
        entity = np.repeat(np.arange(count), rng.integers(1, 6, count))
        scores = np.where(rng.random(len(entity)) < 0.05, np.inf, rng.integers(0, 40, len(entity)) / 4)
        levels = Levels.of([0.5, 0.8, 0.9, 0.35])
        found = SharedCut().calibrate(scores, Context(entity=entity), levels, False)
        expected = [by_the_definition(scores, entity, level) for level in levels.values]
        assert found.arrays["threshold"].tolist() == expected


def drawn(rng, count, largest, alike):
    """Scores of entities of random sizes, each standard normal, with correlation ``alike`` within an entity."""
    entity = np.repeat(np.arange(count), rng.integers(1, largest + 1, count))
    own = np.sqrt(alike) * rng.normal(size=count)[entity]
    return own + np.sqrt(1 - alike) * rng.normal(size=len(entity)), entity


@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("count", "largest"), [(12, 3), (40, 30)])
def test_new_rows_of_new_entities_are_covered(alike, count, largest):
    """In each of R draws one new row is tested, so that the number inside is binomial with at least the level."""
    rng, inside, repetitions = np.random.default_rng(count), 0, 3000
    for _ in range(repetitions):
        scores, entity = drawn(rng, count, largest, alike)
        threshold = shared_order_statistic(scores, entity, Fraction("0.9") * (count + 1))
        inside += rng.normal() <= threshold
    assert inside >= binom.ppf(1e-4, repetitions, 0.9)


@pytest.mark.parametrize("alike", [0.3, 1.0])
def test_bounds_given_the_data_hold(alike):
    from scipy.special import ndtr

    rng, repetitions, count = np.random.default_rng(1), 500, 60
    broken = {0.1: 0, 0.5: 0}
    at_once = 0
    for _ in range(repetitions):
        scores, entity = drawn(rng, count, 8, alike)
        found = {k: ndtr(shared_order_statistic(scores, entity, Fraction(k))) for k in range(5, 61, 5)}
        for delta in broken:
            broken[delta] += found[55] < shared_coverage_bound(delta, 55, count)
        at_once += any(share < shared_simultaneous_bound(0.1, k, count) for k, share in found.items())
    for delta, times in broken.items():
        assert times <= binom.ppf(1 - 1e-4, repetitions, delta)
    assert at_once <= binom.ppf(1 - 1e-4, repetitions, 0.1)


def calibrated(cut, labels, y, levels=0.9):
    rule = Conformal("own", Levels.of(levels), Residual(), cut)
    predicted = PredictedPoint(np.zeros((1, 1, len(y))))
    return Calibrated.from_entities(rule, (predicted, y, Context()), entities_of_labels(labels, len(y)))


def test_the_certificate_counts_entities_and_says_so():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(80), 5)
    found = calibrated(MarginalCut(), labels, rng.normal(size=400)).certificate
    assert (found.kind, found.n_calibration, found.promise.n_rows) == ("marginal", 80, 400)
    assert "rows drawn at random, one from each new entity," in str(found)
    assert "400 rows" in str(found)
    assert found.expected_coverage == 0.9
    assert found.coverage_bound(0.1) == shared_coverage_bound(0.1, 72, 80)
    assert Promise.from_dict(found.promise.to_dict()) == found.promise


def test_a_pac_promise_takes_one_row_of_each():
    rng = np.random.default_rng(0)
    own = calibrated(PacCut(), np.repeat(np.arange(80), 5), rng.normal(size=400))
    assert own.certificate.n_calibration == 80 == own.summary.n
    assert own.certificate.rank == PacCut().rank(Fraction("0.9"), 80)
    assert "at least 90% of rows drawn at random, one from each new entity" in str(own.certificate)


def test_rows_in_order_within_an_entity_are_drawn_at_random():
    """The second row of each pair is the worse: drawn by its place, coverage given the data would fail too often."""
    rng, repetitions, count, failed = np.random.default_rng(0), 400, 236, 0
    labels = np.repeat(np.arange(count), 2)
    for _ in range(repetitions):
        y = rng.random(2 * count) + np.tile([0.0, 1.0], count)
        own = calibrated(PacCut(), labels, y)
        threshold = own.found.arrays["threshold"][0]
        failed += (min(threshold, 1) + max(threshold - 1, 0)) / 2 < 0.9
    assert failed <= binom.ppf(1 - 1e-4, repetitions, 0.1)


def test_other_levels_keep_what_is_counted():
    own = calibrated(MarginalCut(), np.repeat(np.arange(80), 5), np.random.default_rng(0).normal(size=400))
    later = own.at(0.8, None).certificate
    assert later.n_calibration == 80
    assert later.promise.chosen_after
    assert later.coverage_bound(0.1) == shared_simultaneous_bound(0.1, 64, 80) < own.certificate.coverage_bound(0.1)


def test_the_entity_of_a_new_row_is_not_asked_for():
    own = calibrated(MarginalCut(), np.repeat(np.arange(80), 5), np.random.default_rng(0).normal(size=400))
    lower, _, upper = own.ends(PredictedPoint(np.zeros((1, 1, 3))), Context())
    assert (lower < 0).all()
    assert (upper > 0).all()


def test_too_few_entities_are_the_whole_line_however_many_their_rows():
    with pytest.warns(UserWarning, match="at least 9 calibration"):
        own = calibrated(MarginalCut(), np.repeat(np.arange(8), 100), np.random.default_rng(0).normal(size=800))
    assert own.certificate.whole_line
