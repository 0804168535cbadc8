"""Scores with weights that lie apart give the thresholds of one machine, and beyond those kept never narrower ones."""

from types import SimpleNamespace

import numpy as np
import pytest

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context
from guardband.calibration.counted_at import KnownAt, RememberedAt
from guardband.calibration.weighted_cut import WeightedCut
from guardband.calibration.weighted_search import (
    AskedWeights,
    Between,
    Heavier,
    OfWeighty,
    WeightTotals,
    searched_weights,
)
from guardband.data.order_statistics import MOST_BYTES, replied
from guardband.data.weight_statistics import BinaryParts

SCORES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "few values": lambda rng, n: rng.integers(-3, 3, n) * 0.5,
    "zeros of both signs": lambda rng, n: np.copysign(0.0, rng.standard_normal(n)),
    "some infinite": lambda rng, n: np.where(rng.random(n) < 0.02, np.inf, rng.exponential(size=n)),
    "many infinite": lambda rng, n: np.where(rng.random(n) < 0.3, np.inf, rng.exponential(size=n)),
    "all infinite": lambda rng, n: np.full(n, np.inf),
}
WEIGHTS = {
    "equal": lambda rng, n: np.full(n, 0.7),
    "lognormal": lambda rng, n: np.exp(2 * rng.standard_normal(n)),
    "some zero": lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.exponential(size=n)),
    "one heavy": lambda rng, n: np.where(np.arange(n) == n // 2, 1e6, rng.random(n)),
    "far apart": lambda rng, n: 10 ** rng.uniform(-60, 60, n),
}
LEVELS = Levels.of([0.5, 0.9, 0.97])


def asked(scores, weights, parts=3):
    """Return a function that asks every part, what is told of all, and how large answers were."""
    rows, sizes = np.array_split(np.random.default_rng(1).permutation(len(scores)), parts), []

    def ask(question):
        answers = [question.answer(scores[own], weights[own]) for own in rows]
        sizes.extend(answer.nbytes for answer in answers if isinstance(answer, np.ndarray))
        return question.together(answers)

    return ask, sum((WeightTotals.of(scores[own], weights[own]) for own in rows), WeightTotals()), sizes


def thresholds(arrays, new):
    return WeightedCut().thresholds(arrays, Context(weight=new))


def new_weights(arrays, weights):
    """Return weights at which thresholds change, others beside them, and some far out."""
    edges = np.concatenate([arrays["most_weight"].ravel(), weights])
    edges = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), [0.0, 1e-300, 1e300]])
    return edges[edges >= 0]


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("n", [1, 7, 1000])
def test_scores_that_lie_apart_have_the_thresholds_of_one_machine(scores, weights, n):
    rng = np.random.default_rng(n)
    own, mass = SCORES[scores](rng, n), WEIGHTS[weights](rng, n)
    mass[0] += not mass.any()
    one = WeightedCut().calibrate(own, Context(weight=mass), LEVELS, False)
    ask, told, sizes = asked(own, mass)
    many = WeightedCut().calibrate_counted(RememberedAt(AskedWeights(told, ask)), LEVELS, False)
    assert many.promise == one.promise
    assert [own.in_words() for own in many.remarks] == [own.in_words() for own in one.remarks]
    new = new_weights(one.arrays, mass)
    np.testing.assert_array_equal(thresholds(many.arrays, new), thresholds(one.arrays, new))
    assert max(sizes) <= MOST_BYTES


@pytest.mark.parametrize("scores", ["normal", "few values", "some infinite"])
@pytest.mark.parametrize("weights", ["equal", "lognormal", "one heavy"])
def test_beyond_the_scores_that_are_kept_intervals_are_wider_and_never_narrower(scores, weights):
    rng = np.random.default_rng(0)
    own, mass = SCORES[scores](rng, 3000), WEIGHTS[weights](rng, 3000)
    one = WeightedCut().calibrate(own, Context(weight=mass), LEVELS, False)
    ask, told, _ = asked(own, mass)
    few = replied(searched_weights(told, LEVELS, few=30), ask)
    arrays = {"score": np.append(few.scores, np.inf), "most_weight": few.most_weight}
    new = new_weights(one.arrays, mass)
    exact, found = thresholds(one.arrays, new), thresholds(arrays, new)
    assert (found >= exact).all()
    np.testing.assert_array_equal(np.isinf(found), np.isinf(exact))
    np.testing.assert_array_equal(
        few.limits, one.arrays["most_weight"][:, np.isfinite(one.arrays["score"][:-1])][:, -1]
    )
    light = new <= few.most_weight[:, 0].max() + 5 * np.median(mass)
    assert len(few.scores) < 400
    if weights == "equal":  # ten entries of each level serve rows that are nine times as heavy as any
        np.testing.assert_array_equal(found[light], exact[light])
    assert (found <= thresholds(one.arrays, 2 * new)).all()


def test_what_was_found_is_known_for_its_levels_alone():
    rng = np.random.default_rng(4)
    own, mass = rng.standard_normal(500), rng.random(500)
    ask, told, _ = asked(own, mass)
    asked_now = RememberedAt(AskedWeights(told, ask))
    found = WeightedCut().calibrate_counted(asked_now, LEVELS, False)
    known = KnownAt.from_arrays(500, asked_now.known().to_arrays())
    again = WeightedCut().calibrate_counted(known, LEVELS, False)
    assert again.promise == found.promise
    for name, array in found.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    with pytest.raises(ValueError, match="Calibrate it again and name all levels"):
        WeightedCut().calibrate_counted(known, Levels.of([0.8]), False)


def test_what_is_told_of_parts_is_what_is_told_of_all():
    scores, weights = np.array([1.0, np.inf, 2.0, np.inf, 3.0]), np.array([0.25, 0.5, 0.0, 0.0, 8.0])
    one = WeightTotals.of(scores, weights)
    assert (one.n, one.weighty, one.infinite, one.least, one.most) == (5, 2, 2, 0.25, 8.0)
    assert (float(one.sum.exact), float(one.sum_infinite.exact)) == (8.75, 0.5)
    for cut in range(6):
        both = WeightTotals.of(scores[:cut], weights[:cut]) + WeightTotals.of(scores[cut:], weights[cut:])
        assert WeightTotals() + both == both == one


def test_rows_without_weight_are_in_no_answer():
    scores, weights = np.array([1.0, -0.0, 2.0, 2.5, np.inf, 3.0]), np.array([1.0, 4.0, 2.0, 0.0, 3.0, 5.0])
    digits = SimpleNamespace(answer=lambda own: own)
    assert OfWeighty(digits).answer(scores, weights).tolist() == [1, 0, 2, 3]
    found = Between(-1.0, 3.0).answer(scores, weights)
    assert found.tolist() == [[1, 1], [0, 4], [2, 2]]
    assert not np.signbit(found).any()
    units = BinaryParts.between(1.0, 5.0)
    heavier = Heavier(units, np.array([-1.0, 2.0])).answer(scores, weights)
    assert [float(units.total(own)) for own in heavier] == [15, 12]
    assert units.rows(heavier).tolist() == [5, 3]


def test_a_level_that_finite_scores_just_reach_serves_rows_without_weight():
    own, mass = np.r_[np.arange(9.0), np.inf], np.ones(10)
    one = WeightedCut().calibrate(own, Context(weight=mass), Levels.of([0.9]), False)
    ask, told, _ = asked(own, mass)
    many = WeightedCut().calibrate_counted(RememberedAt(AskedWeights(told, ask)), Levels.of([0.9]), False)
    new = np.array([0.0, 1e-9])
    assert thresholds(one.arrays, new).ravel().tolist() == thresholds(many.arrays, new).ravel().tolist() == [8, np.inf]


def test_the_next_score_after_those_that_are_kept_is_known_too():
    """The score 2,699 + j serves rows of weight j / 0.9. Eleven are kept after the first, and then a twelfth."""
    own, mass, levels = np.random.default_rng(0).permutation(np.arange(3000.0)), np.ones(3000), Levels.of([0.9])
    ask, told, _ = asked(own, mass)
    few = replied(searched_weights(told, levels, few=12), ask)
    arrays = {"score": np.append(few.scores, np.inf), "most_weight": few.most_weight}
    assert thresholds(arrays, np.array([0.0, 11.9, 12.5, 13.3])).ravel().tolist() == [2699, 2710, 2711, 2711]
    assert thresholds(arrays, np.array([13.5])) > 2712
