"""Weights: the threshold by its definition, in exact arithmetic, and the promise over many calibration sets."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.stats import beta, binom

import guardband as gb
from guardband.bands.levels import Levels
from guardband.bands.numbered_groups import NumberedGroups
from guardband.bands.predicted import Context
from guardband.calibration.conformal import Conformal
from guardband.calibration.cut import MarginalCut, PacCut
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.rejection_cut import RejectionCut, kept_in_part, kept_rows, seed_of, weighted
from guardband.calibration.score import Scaled
from guardband.calibration.weighted_cut import WeightedCut, effective_rows, largest_weights

ERROR = 1e-6
"""How often any of these statistical tests may fail by chance, shared by eight."""
EACH = ERROR / 8
SETS, PAC_SETS = 2000, 4000


def by_definition(scores, weights, level, own):
    """Return inf{c : sum of weights of scores <= c is at least level (sum of all weights + own)}, in fractions."""
    exact = [Fraction(float(w)) for w in weights]
    needed = level * (sum(exact) + Fraction(float(own)))
    for c in sorted(set(scores)):
        if sum(w for s, w in zip(scores, exact, strict=True) if s <= c) >= needed:
            return c
    return math.inf


def calibrated(scores, weights, *levels, cut=None):
    return (cut or WeightedCut()).calibrate(scores, Context(weight=weights), Levels.of(list(levels)), False)


@pytest.mark.parametrize("seed", range(5))
def test_the_threshold_is_what_the_definition_says(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        n = int(rng.integers(1, 13))
        scores = rng.integers(0, 6, n) / 2 if rng.random() < 0.6 else rng.standard_normal(n)
        if rng.random() < 0.2:
            scores[0] = np.inf
        kinds = [
            rng.integers(0, 4, n) / 1.0,
            rng.integers(0, 5, n) / 10,
            rng.random(n) * 10.0 ** rng.integers(-9, 9, n),
        ]
        weights = kinds[rng.integers(3)]
        weights[rng.integers(n)] += 0.3
        level = Fraction(str(rng.choice(["0.5", "0.8", "0.9", "0.95", "0.333"])))
        sums = np.cumsum(weights[np.argsort(scores)])
        edges = sums / float(level) - sums[-1]
        around = np.concatenate([edges, np.nextafter(edges, 9e99), np.nextafter(edges, -9e99)])
        new = np.concatenate([around[around >= 0], weights, rng.random(3), [0.0, 1e300]])
        found = calibrated(scores, weights, float(level))
        want = [by_definition(scores, weights, level, own) for own in new]
        assert WeightedCut().thresholds(found.arrays, Context(weight=new))[:, 0].tolist() == want
        arrays = {name: torch.from_numpy(own) for name, own in found.arrays.items()}
        in_torch = WeightedCut().thresholds(arrays, Context(weight=torch.from_numpy(new)), torch)
        assert in_torch[:, 0].tolist() == want


def test_equal_weights_are_the_rank_of_split_conformal():
    for n in (1, 8, 9, 10, 99, 100):
        scores = np.random.default_rng(n).standard_normal(n)
        plain = MarginalCut().calibrate(scores, Context(), Levels.of([0.9, 0.5]), False)
        found = calibrated(scores, np.full(n, 0.7), 0.9, 0.5)
        own = WeightedCut().thresholds(found.arrays, Context(weight=np.array([0.7])))[0]
        assert own.tolist() == plain.arrays["threshold"].tolist()
        assert [share == 1 for share in found.promise.infinite_share] == list(plain.promise.whole_line)
        assert [bool(r) for r in found.remarks] == [True] * any(plain.promise.whole_line)


def test_largest_weights_are_exact_for_any_size_of_numbers():
    for scale in (1e-310, 1e-30, 1.0, 1e30, 1e307):
        weights = np.array([0.1, 0.2, 0.7, 1e-9, 3.0]) * scale
        found = largest_weights(weights, Fraction("0.6"))
        exact = [Fraction(float(w)) for w in weights]
        bounds = [sum(exact[: j + 1]) / Fraction("0.6") - sum(exact) for j in range(5)]
        bounds = [own for own in bounds if own >= 0]
        assert len(bounds) == len(found)
        for own, bound in zip(found, bounds, strict=True):
            assert Fraction(float(own)) <= bound
            above = math.nextafter(own, math.inf)
            assert math.isinf(above) or Fraction(above) > bound


def drawn_sets(rng, source, target, n):
    """Return how many of the new rows, one for each calibration set, are covered: with the row's mass, and without."""
    with_mass, without = 0, 0
    for _ in range(SETS):
        scores, weights = source(rng, n)
        score, weight = target(rng)
        found = calibrated(scores, weights, 0.9)
        both = WeightedCut().thresholds(found.arrays, Context(weight=np.array([weight, 0.0])))[:, 0]
        with_mass, without = with_mass + (score <= both[0]), without + (score <= both[1])
    return int(with_mass), int(without)


def test_without_the_mass_of_the_new_row_the_level_does_not_hold():
    # One row in twenty is of the kind that nine of ten new rows are, and that kind is hard to predict.
    share, shifted = 0.05, 0.9

    def rows(rng, share, n):
        hard = rng.random(n) < share
        return np.where(hard, 10.0, 0.0) + rng.random(n), np.where(hard, 0.9 / 0.05, 0.1 / 0.95)

    def one(rng):
        scores, weights = rows(rng, shifted, 1)
        return scores[0], weights[0]

    ours, without = drawn_sets(np.random.default_rng(1), lambda rng, n: rows(rng, share, n), one, 30)
    least = int(binom.ppf(EACH, SETS, 0.9))
    assert ours >= least
    assert without < least - SETS // 10


def test_the_level_holds_where_new_rows_have_the_density_3_x_squared():
    def scores(rng, x):
        return np.abs(rng.standard_normal(len(x))) * (0.2 + x)

    def source(rng, n):
        x = rng.random(n)
        return scores(rng, x), 3 * x**2

    def target(rng):
        x = rng.random(1) ** (1 / 3)
        return scores(rng, x)[0], 3 * x[0] ** 2

    ours, _ = drawn_sets(np.random.default_rng(2), source, target, 100)
    assert ours >= int(binom.ppf(EACH, SETS, 0.9))
    plain = 0
    rng = np.random.default_rng(3)
    for _ in range(SETS):
        plain += target(rng)[0] <= np.sort(source(rng, 100)[0])[90]
    assert plain < int(binom.ppf(EACH, SETS, 0.9))


LEVEL, DELTA, BOUND, N = Fraction("0.8"), 0.1, 2.0, 120


def chance_of_level(rank=lambda level, n: PacCut(DELTA).rank(level, n), bound=BOUND):
    """Return how often coverage given the data is at least the level: Bin(N, 1 / bound) rows are kept, then Beta."""
    kept = np.arange(N + 1)
    ranks = np.array([rank(LEVEL, int(m)) for m in kept])
    holds = np.where(ranks > kept, 1.0, beta.sf(float(LEVEL), ranks, np.maximum(kept + 1 - ranks, 1)))
    return float((binom.pmf(kept, N, 1 / bound) * holds).sum())


def test_rows_kept_by_weight_have_the_exact_law_of_the_pac_rank():
    # x is uniform and becomes 2x, which is at most 2; the score is x itself: at threshold c coverage is c squared.
    rng = np.random.default_rng(4)
    cut = RejectionCut(PacCut(DELTA), BOUND)
    holds, kept = 0, 0
    for _ in range(PAC_SETS):
        x = rng.random(N)
        found = cut.calibrate(x, Context(weight=2 * x), Levels.of([float(LEVEL)]), False)
        holds += min(1.0, found.arrays["threshold"][0]) ** 2 >= float(LEVEL)
        kept += found.promise.n_calibration
    low, high = binom.ppf([EACH / 2, 1 - EACH / 2], PAC_SETS, chance_of_level())
    assert low <= holds <= high
    low_kept, high_kept = binom.ppf([EACH / 2, 1 - EACH / 2], PAC_SETS * N, 1 / BOUND)
    assert low_kept <= kept <= high_kept
    # It would fail if the rank were one less or one more, delta twice as large, or the bound another:
    for rank in (
        lambda level, n: PacCut(DELTA).rank(level, n) - 1,
        lambda level, n: PacCut(DELTA).rank(level, n) + 1,
        lambda level, n: PacCut(2 * DELTA).rank(level, n),
    ):
        assert not low <= PAC_SETS * chance_of_level(rank) <= high
    assert not low_kept <= PAC_SETS * N / (BOUND * 1.01) <= high_kept


def test_rows_are_kept_by_a_hash_of_the_rows_alone():
    rng = np.random.default_rng(0)
    scores, weights = rng.random(50), rng.random(50)
    rows = kept_rows(scores, weights, 1.0)
    assert rows.tolist() == kept_rows(scores, weights, 1.0).tolist()
    assert rows.tolist() != kept_rows(scores[::-1], weights[::-1], 1.0).tolist()
    assert kept_rows(scores, np.ones(50), 1.0).tolist() == list(range(50))
    assert kept_rows(scores, np.append(np.zeros(49), 1.0), 1.0).tolist() == [49]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, -1.0, 1.0], r"Weights must be 0 or positive numbers, and 1 of 3 are negative \(row 1\). Correct"),
        ([1.0, 1.0, math.nan], r"1 of 3 are missing \(NaN\) \(row 2\)"),
        ([math.inf, 1.0, 1.0], r"1 of 3 are infinite \(row 0\)"),
        ([0.0, 0.0, 0.0], "All weights are 0, which leaves no calibration rows. Give some"),
        ([1.0, 1.0], "weights must have one number for each of 3 rows, found shape"),
        (["a", "b", "c"], "weights must be numbers, and some are not. Pass one number"),
    ],
)
@pytest.mark.parametrize("cut", [WeightedCut(), RejectionCut(PacCut(), 2.0)])
def test_weights_that_are_none_are_refused(cut, weights, words):
    with pytest.raises(ValueError, match=words):
        cut.calibrate(np.arange(3.0), Context(weight=np.array(weights)), Levels.of(0.5), False)


def test_a_weight_beyond_the_bound_is_refused():
    with pytest.raises(ValueError, match="The largest weight is 3, and max_weight is 2"):
        calibrated(np.arange(3.0), np.array([1.0, 3.0, 1.0]), 0.5, cut=RejectionCut(PacCut(), 2.0))


def test_which_guarantees_take_weights():
    groups = GroupedCut(PacCut(), ("a", "b"))
    assert weighted(MarginalCut(), None) == WeightedCut()
    assert weighted(groups, 3) == RejectionCut(groups, 3.0)
    assert RejectionCut(groups, 3.0).uses == {"group", "weight"}
    assert RejectionCut(groups, 3.0).uses_of_new == {"group"}
    for cut, bound, words in (
        (PacCut(), None, 'weights with guarantee="pac" need max_weight'),
        (PacCut(), -1.0, "max_weight must be a positive number, found -1.0"),
        (PacCut(), math.inf, "max_weight must be a positive number"),
        (MarginalCut(), 2.0, 'max_weight is for guarantee="pac". Remove it'),
        (GroupedCut(MarginalCut(), ("a",)), None, 'weights and groups together need guarantee="pac"'),
        (WeightedCut(), None, 'weights need guarantee="marginal" or "pac"'),
    ):
        with pytest.raises(ValueError, match=words):
            weighted(cut, bound)


def test_groups_come_after_the_rows_that_are_kept():
    rng = np.random.default_rng(5)
    scores, weights, group = rng.random(400), rng.random(400), rng.integers(0, 2, 400)
    cut = RejectionCut(GroupedCut(PacCut(), ("a", "b"), "kind"), 1.0)
    found = cut.calibrate(scores, Context(weight=weights, group=group), Levels.of(0.8), False)
    rows = kept_rows(scores, weights, 1.0)
    alone = cut.base.calibrate(scores[rows], Context(group=group[rows]), Levels.of(0.8), False)
    assert (found.arrays["group_threshold"] == alone.arrays["group_threshold"]).all()
    assert [part.promise.n_calibration for part in found.promise.parts] == np.bincount(group[rows]).tolist()
    words = "\n".join(found.promise.lines("conf-nn"))
    assert f"guardband kept {len(rows)} of 400 calibration rows" in words
    assert "the weights say how the share of each kind of row changes" in words
    assert gb.Certificate.from_dict(gb.Certificate("conf-nn", found.promise, True).to_dict()).promise == found.promise


def test_the_certificate_says_what_the_weights_leave():
    weights = np.append(np.ones(199), 20.0)
    found = calibrated(np.arange(200.0), weights, 0.9)
    promise = found.promise
    assert promise.n_effective == pytest.approx(219**2 / (199 + 400)) == effective_rows(weights)
    assert promise.largest_share == 20 / 219
    assert promise.most_weight == (pytest.approx(219 / 9),)
    assert promise.infinite_share == (0.0,)
    assert not found.remarks
    certificate = gb.Certificate("conf-nn", promise, True)
    assert certificate.kind == "marginal"
    assert certificate.expected_coverage == 0.9
    assert certificate.coverage_bound(0.5) == pytest.approx(0.8)
    assert gb.Certificate.from_dict(certificate.to_dict()) == certificate
    assert "say as much as 80 rows of equal weight. The largest weight is 9.1% of the total." in str(certificate)


def test_rows_with_large_weights_are_warned_of():
    found = calibrated(np.arange(20.0), np.append(np.ones(19), 5.0), 0.9)
    (remark,) = found.remarks
    assert not remark.is_of_all
    assert remark.in_words().startswith(
        "About 20.8% of new rows get infinite 90% intervals, because their weight is above 2.667. Add calibration rows"
    )
    assert found.promise.some_infinite == (True,)
    assert found.promise.whole_line == (False,)


def test_infinite_scores_are_told_apart_from_few_rows():
    scores = np.append(np.arange(80.0), np.full(20, np.inf))
    found = calibrated(scores, np.ones(100), 0.9)
    assert found.promise.whole_line == (True,)
    assert "20 of 100 calibration rows have a prediction that is not finite" in found.remarks[0].in_words()


def test_few_rows_that_are_kept_are_warned_of_with_their_number():
    found = calibrated(np.arange(10.0), np.ones(10), 0.9, cut=RejectionCut(PacCut(), 1.0))
    assert found.remarks[0].in_words().startswith("The weights left 10 of 10 calibration rows. 90% intervals with this")


def test_methods_that_do_not_rank_have_no_weights():
    rule = gb.BandCalibrator("pav", taus=[0.1])._options.rule
    with pytest.raises(ValueError, match='method="pav" cannot use weights'):
        rule.for_weights()
    assert Conformal("conf-nn", Levels.of(), Scaled(), MarginalCut()).for_weights().uses == {"weight"}


def test_rows_of_less_weight_than_all_others_have_finite_intervals_and_the_promise_knows_it():
    found = calibrated(np.arange(1.0, 6.0), np.ones(5), 0.9)
    own = WeightedCut().thresholds(found.arrays, Context(weight=np.array([0.3, 1.0])))[:, 0]
    assert own.tolist() == [5.0, np.inf]
    assert found.promise.whole_line == (False,)
    assert found.promise.expected_coverage() == (0.9,)
    assert "Rows with a weight above 0.5556 get infinite intervals" in "\n".join(found.promise.lines("conf-nn"))


def test_a_few_thresholds_by_the_definition_in_numpy_and_torch():
    rng = np.random.default_rng(0)
    for _ in range(8):
        scores, weights = rng.integers(0, 6, 9) / 2, rng.integers(0, 4, 9) + 0.25
        scores[0] = np.inf
        new = np.concatenate([weights, [0.0, 0.3, 7.5, 1e300]])
        found = calibrated(scores, weights, 0.5, 0.8)
        want = [[by_definition(scores, weights, Fraction(level), own) for level in ("0.5", "0.8")] for own in new]
        assert WeightedCut().thresholds(found.arrays, Context(weight=new)).tolist() == want
        arrays = {name: torch.from_numpy(own) for name, own in found.arrays.items()}
        assert WeightedCut().thresholds(arrays, Context(weight=torch.from_numpy(new)), torch).tolist() == want
        odd = np.array([-0.5, -1e-300, np.nan])
        assert np.isposinf(WeightedCut().thresholds(found.arrays, Context(weight=odd))).all()


def test_weights_beyond_all_numbers_are_the_largest_number():
    assert largest_weights(np.array([1e308]), Fraction(1, 10)).tolist() == [np.finfo(np.float64).max]
    weights = np.array([1.0, 1.0]) * 1.7e308
    assert largest_weights(weights, Fraction("0.3")).tolist() == [np.finfo(np.float64).max] * 2


def test_no_weight_is_largest_where_the_weights_up_to_it_fall_short_by_the_last_digit():
    """One of two weights is half of all: exactly if they are equal, and not if the other is larger by 2^-52."""
    assert largest_weights(np.array([1.0, 1.0]), Fraction(1, 2)).tolist() == [0.0, 2.0]
    for more in (2.0**-52, 1e-7):
        assert len(largest_weights(np.array([1.0, 1.0 + more]), Fraction(1, 2))) == 1


def test_a_row_of_no_weight_may_have_a_finite_interval():
    """Half of all weight is on the only finite score: enough for a row of weight 0, for no other."""
    found = calibrated(np.array([1.0, np.inf, np.inf]), np.array([2.0, 1.0, 1.0]), 0.5)
    assert found.promise.whole_line == (False,)
    assert found.promise.most_weight == (0.0,)
    assert WeightedCut().thresholds(found.arrays, Context(weight=np.array([0.0, 1e-300])))[:, 0].tolist() == [1, np.inf]
    (remark,) = found.remarks
    assert not remark.is_of_all


def test_levels_that_were_chosen_after_calibration_say_so():
    for after in (False, True):
        found = WeightedCut().calibrate(np.arange(9.0), Context(weight=np.ones(9)), Levels.of(0.5), after)
        assert found.promise.chosen_after is after


@pytest.mark.parametrize(("n", "few"), [(5, True), (8, True), (9, False), (40, False)])
def test_infinite_scores_are_blamed_only_if_the_weights_would_do(n, few):
    """Nine rows of equal weight are enough for 90%."""
    scores = np.append(np.arange(n - n // 5 - 1.0), np.full(n // 5 + 1, np.inf))
    (remark,) = calibrated(scores, np.full(n, 0.5), 0.9).remarks
    assert remark.is_of_all
    words = remark.in_words()
    assert words.startswith(f"{n // 5 + 1} of {n} calibration rows have a prediction") is not few
    assert words[0].isdigit() or words[0].isupper()


def test_too_little_weight_is_told_as_a_sentence():
    found = calibrated(np.full(3, np.inf), np.ones(3), 0.9)
    why = found.promise.why_infinite(0)
    assert found.remarks[0].in_words() == why[:1].upper() + why[1:]
    assert why[0].islower()


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e300])
def test_effective_rows_do_not_depend_on_the_unit_of_weights(size):
    assert effective_rows(size * np.array([3.0, 1.0])) == pytest.approx(1.6)


def mixed(one, other):
    """Return the finaliser of splitmix64 of two whole numbers."""
    out = (one * 0x9E3779B97F4A7C15 % 2**64) ^ other
    out = (out ^ (out >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    out = (out ^ (out >> 27)) * 0x94D049BB133111EB % 2**64
    return out ^ (out >> 31)


def test_the_rows_that_are_kept_follow_from_a_sum_of_hashes():
    """Stored models calibrate again from their scores and weights: the draw must stay what it is."""
    rng = np.random.default_rng(0)
    scores, weights = rng.random(80), 3 * rng.random(80)
    bits = zip(scores.view(np.uint64).tolist(), weights.view(np.uint64).tolist(), strict=True)
    seed = sum(mixed(mixed(0, score), weight) for score, weight in bits) % 2**64
    kept = [i for i, own in enumerate(np.random.default_rng(seed).random(80)) if own * 4.0 < weights[i]]
    assert kept_rows(scores, weights, 4.0).tolist() == kept


def test_parts_of_a_table_keep_the_rows_that_the_whole_keeps():
    rng = np.random.default_rng(1)
    scores, weights = rng.random(1000), rng.random(1000)
    seed = sum(seed_of(scores[own], weights[own]) for own in (slice(0, 1), slice(1, 300), slice(300, 1000)))
    parts = [
        first + kept_in_part(scores[first:last], weights[first:last], 1.0, seed, first)
        for first, last in ((0, 7), (7, 7), (7, 640), (640, 1000))
    ]
    assert np.concatenate(parts).tolist() == kept_rows(scores, weights, 1.0).tolist()
    assert kept_rows(scores[::-1], weights[::-1], 1.0).tolist() != kept_rows(scores, weights, 1.0).tolist()


def test_what_is_done_with_kept_rows_is_what_the_cut_of_them_does():
    """New rows need no weight, and what is kept of the context says nothing of weights."""

    class Noting(PacCut):
        def completed(self, arrays, scores, known, new, levels):
            arrays["noted"], arrays["weight"] = scores, known.weight

        def count(self, scores, context):
            assert context.weight is None
            return len(scores)

    rng = np.random.default_rng(0)
    scores, weights, group = rng.random(300), rng.random(300), rng.integers(0, 2, 300)
    cut = RejectionCut(Noting(), 1.0)
    assert cut.word == "pac"
    complete = cut.calibrate_complete(scores, Context(weight=weights), Levels.of(0.5), False)
    assert complete.arrays["noted"].tolist() == scores[kept_rows(scores, weights, 1.0)].tolist()
    assert complete.arrays["weight"] is None
    base = GroupedCut(PacCut(), ("a", "b"), "kind")
    cut = RejectionCut(base, 1.0)
    arrays = cut.calibrate(scores, Context(weight=weights, group=group), Levels.of(0.5), False).arrays
    new = Context(group=NumberedGroups(np.array([1, 0, 1], dtype=np.uint8), np.array([[0], [1]])))
    found = cut.thresholds(cut.prepared(arrays, new), new)
    np.testing.assert_array_equal(found, base.thresholds(arrays, Context(group=np.array([1, 0, 1]))))


def test_no_row_at_all_may_be_kept():
    cut = RejectionCut(GroupedCut(PacCut(), ("a", "b"), "kind"), 1e300)
    context = Context(weight=np.ones(20), group=np.repeat([0, 1], 10))
    found = cut.calibrate(np.arange(20.0), context, Levels.of(0.5), False)
    assert found.promise.whole_line == (True,)
    assert (
        found.remarks[0].in_words().startswith("The weights left 0 of 20 calibration rows. The intervals are infinite")
    )


@pytest.mark.parametrize("bound", [0, 0.0, -0.5, True, math.nan])
def test_a_bound_that_is_none_is_refused(bound):
    with pytest.raises(ValueError, match="max_weight must be a positive number"):
        weighted(PacCut(), bound)
    assert weighted(PacCut(), 0.5) == RejectionCut(PacCut(), 0.5)
