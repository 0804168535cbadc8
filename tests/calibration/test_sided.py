"""One bound with a promise, or each of two: exact laws, and the definition checked by brute force."""

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.stats import beta, betabinom, binom, chi2, expon, kstest

import guardband as gb
from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedInterval
from guardband.bands.ranks import marginal_rank, pac_rank
from guardband.calibration.conformal import Conformal
from guardband.calibration.counted import CountedSummary, Joined
from guardband.calibration.cut import MarginalCut, PacCut
from guardband.calibration.group_ranks import GroupScores
from guardband.calibration.score import Additive, OneSide, Residual, Scaled
from guardband.calibration.sided import Sided
from guardband.words import at_least

FAMILY_WISE = 1e-6
SETS = 2000
NOISE = expon(loc=-0.7)  # skewed: a quarter of it is larger than all that the other side can be


@dataclass(frozen=True)
class OffByOne(MarginalCut):
    """Split conformal with a rank that is too small by one."""

    def rank(self, level, n):
        return super().rank(level, n) - 1


@dataclass(frozen=True)
class PacOffByOne(PacCut):
    """The pac rank, too small by one."""

    def rank(self, level, n):
        return super().rank(level, n) - 1


def rows(spread, noise):
    """Return predictions that are wrong in both tails, in units of the spread of each row, and the true values."""
    parts = ((share * spread)[None, None] for share in (-0.4, 0.0, 1.3))
    return PredictedInterval(*parts), spread * noise


def shares_missed(rule, n, seed, scales=True):
    """Return the exact shares of new rows below and above their intervals, given each of many calibration sets."""
    rng = np.random.default_rng(seed)
    spread = 0.5 + rng.random(SETS * n) if scales else np.ones(SETS * n)
    predicted, y = rows(spread, NOISE.rvs(size=SETS * n, random_state=rng))
    summary = rule.summarise(predicted, y, Context())
    every = {name: summary.rows(name).reshape(SETS, n) for name in summary.blocks[0]}
    one, _ = rows(np.ones(1), np.zeros(1))
    ends = []
    for i in range(SETS):
        own = type(summary)(n, {}, ({name: scores[i] for name, scores in every.items()},))
        lower, _, upper = rule.ends(one, Context(), rule.calibrate(own).arrays)
        ends.append((lower[0, 0], upper[0, 0]))
    low, high = np.array(ends).T
    return NOISE.cdf(low), NOISE.sf(high)


def sided(cut, score=None, side="both", tails=None, level=Fraction(9, 10)):
    exact = None if tails is None else tuple(Fraction(str(tail)) for tail in tails)
    levels = Levels((level if exact is None else 1 - sum(exact),), scalar=True)
    return Sided.of("own", levels, score or Scaled(), cut, side, exact)


def refutes(missed, k, n):
    """Return whether shares missed contradict the law of rank k, all tests of this file together at 1e-6."""
    return kstest(1 - missed, beta(k, n + 1 - k).cdf).pvalue < FAMILY_WISE / 20


CASES = [
    (Scaled(), True),
    (Residual(), False),
    (Additive(), False),
    (Additive(relative=True), True),
]


@pytest.mark.parametrize(("score", "scales"), CASES)
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_one_side_has_the_beta_law_of_its_rank(score, scales, side):
    n = 60
    below, above = shares_missed(sided(MarginalCut(), score, side), n, seed=1, scales=scales)
    missed, other = (below, above) if side == "lower" else (above, below)
    assert (other == 0).all()
    assert not refutes(missed, marginal_rank(Fraction(9, 10), n), n)


def test_each_tail_has_the_beta_law_of_its_rank():
    n, tails = 120, (0.02, 0.08)
    missed = shares_missed(sided(MarginalCut(), tails=tails), n, seed=2)
    for own, tail in zip(missed, tails, strict=True):
        assert not refutes(own, marginal_rank(1 - Fraction(str(tail)), n), n)
    assert np.mean(missed[0] + missed[1]) <= 0.1


def test_pac_tails_share_delta():
    n, tails, delta = 300, (0.04, 0.1), 0.2
    missed = shares_missed(sided(PacCut(delta), tails=tails), n, seed=3)
    for own, tail in zip(missed, tails, strict=True):
        level = 1 - Fraction(str(tail))
        k = pac_rank(level, n, delta / 2)
        assert not refutes(own, k, n)
        assert k > pac_rank(level, n, delta)
        assert refutes(own, pac_rank(level, n, delta), n)  # the rank that all of delta would give
        fails = binom.sf(k - 1, n, float(level))
        low, high = binom.ppf([FAMILY_WISE / 20, 1 - FAMILY_WISE / 20], SETS, fails)
        assert low <= (own > tail).sum() <= high
    either = ((missed[0] > tails[0]) | (missed[1] > tails[1])).sum()
    assert either <= binom.isf(FAMILY_WISE / 20, SETS, delta)


def test_pac_for_one_side_has_all_of_delta():
    n = 200
    _, above = shares_missed(sided(PacCut(0.1), side="upper"), n, seed=4)
    assert not refutes(above, pac_rank(Fraction(9, 10), n, 0.1), n)


@pytest.mark.parametrize(("cut", "tails"), [(OffByOne(), (0.02, 0.08)), (PacOffByOne(0.1), (0.05, 0.1))])
def test_a_rank_that_is_off_by_one_is_refuted(cut, tails):
    n = 150
    right = MarginalCut() if isinstance(cut, OffByOne) else PacCut(0.1 / 2)
    for own, tail in zip(shares_missed(sided(cut, tails=tails), n, seed=5), tails, strict=True):
        level = 1 - Fraction(str(tail))
        k = right.rank(level, n)
        assert refutes(own, k, n)
        assert not refutes(own, k - 1, n)


def test_new_rows_that_are_missed_follow_the_beta_binomial():
    n, new = 40, 25
    _, above = shares_missed(sided(MarginalCut(), side="upper"), n, seed=6)
    counts = binom.rvs(new, 1 - above, random_state=np.random.default_rng(7))
    k = marginal_rank(Fraction(9, 10), n)
    expected = betabinom(new, k, n + 1 - k).pmf(np.arange(new + 1)) * SETS
    grouped = expected >= 5
    found = np.bincount(counts, minlength=new + 1)
    statistic = ((found - expected)[grouped] ** 2 / expected[grouped]).sum()
    assert chi2.sf(statistic, grouped.sum()) > FAMILY_WISE / 20


def test_groups_have_a_law_for_each_side():
    """Two groups and two tails share delta: each part has a quarter of it."""
    n, delta, tails = 400, 0.2, (0.05, 0.1)
    rule = sided(PacCut(delta), tails=tails).for_groups(("a", "b"))
    promise = _calibrated_by_groups(rule, n).promise
    assert [(part.group, part.side) for part in promise.parts] == [
        (0, "lower"), (0, "upper"), (1, "lower"), (1, "upper")
    ]  # fmt: skip
    for part, tail in zip(promise.parts, (*tails, *tails), strict=True):
        assert part.promise.rank == (pac_rank(1 - Fraction(str(tail)), n // 2, delta / 4),)
        assert part.promise.delta == delta / 4
    assert promise.delta == delta


def _calibrated_by_groups(rule, n):
    rng = np.random.default_rng(8)
    predicted, y = rows(np.ones(n), NOISE.rvs(size=n, random_state=rng))
    context = Context(group=np.arange(n) % 2)
    return rule.calibrate(rule.summarise(predicted, y, context))


# ------------------------------------------------------------------------------------------ the definition

VALUES = [Fraction(v) for v in (-3, -2, -1, 0, 1, 2, 3)]


def least_scale(side, low, point, high, y):
    """Return the least c >= 0 for which the scaled bound covers y, infinite if none does."""
    gap, width = (y - point, high - point) if side == "upper" else (point - y, point - low)
    if gap <= 0:
        return 0.0
    return float(gap / width) if width > 0 else math.inf


def least_shift(side, low, point, high, y):
    """Return the least c >= 0 for which the bound that lies c from the point covers y."""
    return float(max(0, y - point if side == "upper" else point - y))


@pytest.mark.parametrize(("score", "definition"), [(Scaled(), least_scale), (Residual(), least_shift)])
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_the_score_is_the_least_threshold_that_covers(score, definition, side):
    """For all small whole numbers, among them sides of no width and y on a bound."""
    triples = [(low, m, high) for low in VALUES for m in VALUES for high in VALUES if low <= m <= high]
    cases = [(*own, y) for own in triples for y in VALUES]
    *parts, y = np.array(cases, dtype=float).T
    predicted = PredictedInterval(*(part[None, None] for part in parts))
    own = OneSide(score, side)
    found = own.of(predicted, y)[0, 0]
    assert found.tolist() == [definition(side, *case) for case in cases]
    for c in (0.0, 0.25, 1 / 3, 0.5, 1.0, 2.0, 3.0):
        lower, upper = (end[0, 0] for end in own.interval(predicted, c))
        covered = y <= upper if side == "upper" else lower <= y
        assert (covered == (found <= c)).all()
        assert (np.isneginf(lower) if side == "upper" else np.isposinf(upper)).all()
        assert ((lower <= parts[1]) & (parts[1] <= upper)).all()


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_an_additive_bound_covers_what_scores_no_more(relative, side):
    """It covers more only because the interval is extended to contain the point, or has no width."""
    triples = [(low, m, high) for low in VALUES for m in VALUES for high in VALUES if low <= m <= high]
    *parts, y = np.array([(*own, y) for own in triples for y in VALUES], dtype=float).T
    predicted = PredictedInterval(*(part[None, None] for part in parts))
    own = OneSide(Additive(relative), side)
    found = own.of(predicted, y)[0, 0]
    for c in (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0):
        lower, upper = (end[0, 0] for end in own.interval(predicted, c))
        covered = y <= upper if side == "upper" else lower <= y
        assert covered[found <= c].all()
        reach = (parts[2] + c * (parts[2] - parts[0] if relative else 1)) if side == "upper" else None
        if reach is not None:
            unextended = (reach >= parts[1]) & ((parts[2] > parts[0]) | (not relative))
            assert (covered == (found <= c))[unextended].all()


@pytest.mark.parametrize("score", [Scaled(), Residual(), Additive(), Additive(relative=True)])
def test_what_is_not_finite_is_infinitely_far(score):
    bad = np.array([np.nan, np.inf, -np.inf])
    predicted = PredictedInterval(*(part[None, None] for part in (bad - 1, bad, bad + 1)))
    for side in ("lower", "upper"):
        own = OneSide(score, side)
        assert np.isposinf(own.of(predicted, np.zeros(3))).all()
        lower, upper = own.interval(predicted, 1.0)
        assert np.isneginf(lower).all()
        assert np.isposinf(upper).all()


def test_tails_are_order_statistics_by_brute_force():
    """Rounded values tie; the bounds are found again by sorting exact fractions."""
    rng = np.random.default_rng(9)
    for n in (1, 9, 20, 33, 60):
        y = np.round(4 * rng.standard_normal(n)) / 2
        low, m, high = np.full(n, -1.0), np.full(n, 0.5), np.full(n, 1.0)
        tails = (0.1, 0.25)
        with np.errstate(all="ignore"):
            rule = gb.BandCalibrator(tails=tails, on_insufficient="inf")
            fitted = _quietly(rule.fit, low, m, high, y)
        bands = fitted.transform([-1.0], [0.5], [1.0])
        for side, tail, end in (("lower", tails[0], bands.lower[0]), ("upper", tails[1], bands.upper[0])):
            width = Fraction(3, 2) if side == "lower" else Fraction(1, 2)
            scores = sorted(
                max(Fraction(0), (Fraction(1, 2) - Fraction(v) if side == "lower" else Fraction(v) - Fraction(1, 2)))
                / width
                for v in y.tolist()
            )
            k = math.ceil((1 - Fraction(str(tail))) * (n + 1))
            if k > n:
                assert math.isinf(end)
            else:
                exact = Fraction(1, 2) + (-1 if side == "lower" else 1) * scores[k - 1] * width
                assert end == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


def _quietly(fit, *arrays):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*arrays)


# ------------------------------------------------------------------------------------------ the rule


def test_torch_gives_the_same_bounds():
    predicted, y = rows(0.5 + np.arange(300) / 300, NOISE.rvs(size=300, random_state=np.random.default_rng(10)))
    for rule in (sided(MarginalCut(), side="upper"), sided(MarginalCut(), Additive(), tails=(0.05, 0.1))):
        arrays = rule.calibrate(rule.summarise(predicted, y, Context())).arrays
        expected = rule.ends(predicted, Context(), arrays)
        tensors = predicted.map(torch.from_numpy)
        found = rule.ends(tensors, Context(), {name: torch.from_numpy(own) for name, own in arrays.items()}, torch)
        for one, two in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, two.numpy())


def test_both_sides_together_are_the_plain_rule():
    assert isinstance(sided(MarginalCut()), Conformal)


def test_summaries_of_blocks_add_up():
    rng = np.random.default_rng(11)
    predicted, y = rows(0.5 + rng.random(200), NOISE.rvs(size=200, random_state=rng))
    rule = sided(MarginalCut(), tails=(0.1, 0.1))
    whole = rule.summarise(predicted, y, Context())
    halves = [rule.summarise(predicted.rows(part), y[part], Context()) for part in (slice(80), slice(80, None))]
    one, two = rule.calibrate(whole), rule.calibrate(halves[0] + halves[1])
    assert one.promise == two.promise
    assert {name: own.tolist() for name, own in one.arrays.items()} == {
        name: own.tolist() for name, own in two.arrays.items()
    }


def test_a_bound_at_the_point_may_cover_more_than_its_rank():
    """More than half of the rows lie below the point; an upper bound for 30% is then the point itself."""
    rng = np.random.default_rng(12)
    predicted, y = rows(np.ones(500), rng.standard_normal(500))
    found = sided(MarginalCut(), side="upper", level=Fraction(3, 10))
    calibration = found.calibrate(found.summarise(predicted, y, Context()))
    assert calibration.arrays["upper_threshold"].tolist() == [0.0]
    assert calibration.promise.parts[0].promise.extended
    usual = sided(MarginalCut(), side="upper")
    assert not usual.calibrate(usual.summarise(predicted, y, Context())).promise.parts[0].promise.extended


def test_scores_of_two_tails_are_those_of_the_whole_interval():
    rng = np.random.default_rng(13)
    predicted, y = rows(0.5 + rng.random(50), rng.standard_normal(50))
    for score in (Scaled(), Residual(), Additive()):
        both, tails = sided(MarginalCut(), score), sided(MarginalCut(), score, tails=(0.1, 0.1))
        np.testing.assert_array_equal(both.scores(predicted, y, Context()), tails.scores(predicted, y, Context()))


def test_rows_of_an_entity_share_one_weight_on_each_side():
    rng = np.random.default_rng(14)
    y, entity = rng.standard_normal(400), np.repeat(np.arange(100), 4)
    zero = np.zeros(400)
    fit = (zero - 1, zero, zero + 1, y)
    marginal = gb.BandCalibrator(tails=(0.05, 0.1)).fit(*fit, entities=entity)
    drawn = gb.BandCalibrator(side="upper", guarantee="pac").fit(*fit, entities=entity)
    assert [part.promise.n_calibration for part in marginal.certificate.promise.parts] == [100, 100]
    assert all(part.promise.shared for part in marginal.certificate.promise.parts)
    assert drawn.certificate.promise.parts[0].promise.n_calibration == 100
    assert "All rows of one entity together count once" in str(marginal.certificate)
    assert "drew one row from each entity" in str(drawn.certificate)


# ------------------------------------------------------------------------------------------ words


def fitted(n=399, **asked):
    y = NOISE.rvs(size=n, random_state=np.random.default_rng(15))
    return gb.BandCalibrator(**asked).fit(np.full(n, -1.0), np.zeros(n), np.ones(n), y)


def test_the_certificate_says_which_side():
    upper, lower = fitted(side="upper").certificate, fitted(side="lower", guarantee="pac").certificate
    assert upper.kind == "marginal"
    assert upper.rank == 360
    assert str(upper).startswith(
        "Promise: on average over possible calibration sets, at least 90% of new rows lie at or below their upper "
        "bounds.\nHow: conf-nn moved the upper bounds just far enough to contain 360 of the 399 calibration rows."
    )
    assert lower.kind == "pac"
    assert "with 90% confidence, at least 90% of all new rows lie at or above their lower bounds" in str(lower)


def test_the_certificate_says_each_tail():
    words = str(fitted(tails=(0.02, 0.08)).certificate)
    assert "at most 2% of new rows lie below their intervals, and at most 8% above." in words
    assert (
        "How: conf-nn moved each bound just far enough: 392 of the 399 calibration rows lie at or above their lower "
        "bounds, and 368 at or below their upper bounds."
    ) in words
    assert fitted(tails=(0.02, 0.08)).certificate.confidence_level == 0.9


def test_one_level_after_calibration_is_fine_for_one_side():
    rule = fitted(side="upper")
    wider = rule.transform([-1.0], [0.0], [1.0], confidence_level=0.95)
    assert np.isneginf(wider.lower).all()
    assert wider.upper[0] > rule.transform([-1.0], [0.0], [1.0]).upper[0]
    assert "you chose this level after calibration" in str(wider.certificate)


def test_another_level_for_tails_is_refused():
    with pytest.raises(ValueError, match=r"tails=\(0\.02, 0\.08\).* Calibrate again with other tails\."):
        fitted(tails=(0.02, 0.08)).transform([-1.0], [0.0], [1.0], confidence_level=0.95)


def test_too_few_rows_make_one_side_infinite():
    with pytest.warns(
        gb.InsufficientCalibrationWarning,
        match=r"have an infinite side\. 99\.9% lower bounds with this guarantee need at least 999 .* larger tails",
    ):
        rule = fitted(tails=(0.001, 0.08))
    bands = rule.transform([-1.0], [0.0], [1.0])
    assert np.isneginf(bands.lower).all()
    assert np.isfinite(bands.upper).all()
    assert not rule.certificate.whole_line
    assert "Too few rows for lower bounds: they are infinite." in str(rule.certificate)
    with pytest.warns(gb.InsufficientCalibrationWarning, match=r"are infinite\. 90% upper bounds .* at least 9 "):
        few = fitted(5, side="upper").certificate
    assert few.whole_line
    assert "has too few calibration rows (5)" in str(few)
    with pytest.raises(gb.InsufficientCalibrationError, match=r"99\.9% lower bounds"):
        fitted(tails=(0.001, 0.08), on_insufficient="raise")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"side": "left"}, "side must be one of 'both', 'lower', 'upper', found 'left'"),
        ({"side": "upper", "tails": (0.1, 0.1)}, "Give side or tails, not both"),
        ({"tails": (0.1, 0.1), "confidence_level": 0.9}, "tails take the place of a confidence level"),
        ({"tails": (0.1, 0.1), "alpha": 0.1}, "tails take the place of a confidence level"),
        ({"tails": (0.5, 0.5)}, "tails must add up to less than 1"),
        ({"tails": (0.0, 0.1)}, "tails must lie strictly between 0 and 1"),
        ({"tails": (0.02, 1.0)}, "tails must lie strictly between 0 and 1"),
        ({"tails": (0.1,)}, "tails must be two numbers"),
        ({"tails": [(0.1, 0.1), (0.2, 0.2)]}, "tails must be two numbers"),
        ({"tails": 0.1}, "tails must be two numbers"),
        ({"method": "pav", "side": "upper"}, 'method="pav" has no promise for one side'),
        ({"method": "qreg-un", "tails": (0.1, 0.1)}, 'method="qreg-un" has no promise for one side'),
    ],
)
def test_what_cannot_be_asked_for_is_refused(asked, words):
    with pytest.raises(ValueError, match=words):
        gb.BandCalibrator(**asked)


def test_tails_are_exact_fractions():
    """0.1 + 0.2 as floats is more than 0.3, which would move a rank."""
    rule = fitted(99, tails=(0.1, 0.2))
    assert [part.promise.rank for part in rule.certificate.promise.parts] == [(90,), (80,)]
    assert rule.certificate.confidence_level == 0.7


@pytest.mark.parametrize("groups", [None, np.arange(399) % 2])
def test_what_is_not_promised_speaks_of_all_parts(groups):
    """The bound of one part alone would be too high, and its delta too small."""
    n = 399
    y = NOISE.rvs(size=n, random_state=np.random.default_rng(15))
    bands = (np.full(n, -1.0), np.zeros(n), np.ones(n))
    marginal = gb.BandCalibrator(tails=(0.05, 0.1)).fit(*bands, y, groups=groups).certificate
    in_words = f"it is at least {at_least(marginal.coverage_bound(0.1))}"
    assert in_words in marginal.promise.not_promised()[-1]
    pac = gb.BandCalibrator(tails=(0.05, 0.1), guarantee="pac").fit(*bands, y, groups=groups).certificate
    assert pac.promise.not_promised()[-1].startswith("Certainty. Up to 10% of possible calibration sets")


# ------------------------------------------------------------------------------------------ what each side hands on


def block(n=400, groups=None, seed=16):
    rng = np.random.default_rng(seed)
    predicted, y = rows(0.5 + rng.random(n), NOISE.rvs(size=n, random_state=rng))
    return predicted, y, Context(group=groups)


ASKED = {
    "upper": sided(MarginalCut(), side="upper"),
    "lower, pac": sided(PacCut(0.1), side="lower"),
    "tails": sided(MarginalCut(), tails=(0.05, 0.2)),
    "tails, pac": sided(PacCut(0.1), tails=(0.05, 0.2)),
}
GROUPS = np.where(np.arange(400) < 10, 0, 1)  # too few of the first for the lower tail


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("name", ASKED)
def test_a_promise_falls_apart_into_those_of_its_rules(name, grouped):
    rule = ASKED[name].for_groups(("a", "b"), "g") if grouped else ASKED[name]
    predicted, y, context = block(groups=GROUPS if grouped else None)
    promise = rule.calibrate(rule.summarise(predicted, y, context)).promise
    apart = rule.apart(promise)
    for own, found in zip(rule.rules, apart, strict=True):
        wanted = own.calibrate(own.summarise(predicted, y, context)).promise
        assert [part.promise.rank for part in found.statements()] == [one.promise.rank for one in wanted.statements()]
        assert [part.side for part in found.statements()] == ["both"] * len(found.statements())
        assert (found.confidence_level, found.whole_line) == (wanted.confidence_level, wanted.whole_line)
        assert (found.delta, found.rank) == (wanted.delta, wanted.rank)
    assert rule.together(apart) == promise
    assert getattr(promise, "by", "") == ("g" if grouped else "")


def test_a_group_with_too_few_rows_on_one_side_leaves_the_others_finite():
    rule = ASKED["tails"].for_groups(("a", "b"), "g")
    promise = rule.calibrate(rule.summarise(*block(groups=GROUPS))).promise
    assert [part.promise.whole_line for part in promise.parts] == [(True,), (False,), (False,), (False,)]
    assert promise.whole_line == (False,)
    assert [own.whole_line for own in rule.apart(promise)] == [(False,), (False,)]


def test_what_one_side_knows_of_itself():
    upper, tails = ASKED["upper"], ASKED["tails"]
    assert (upper.possible, tails.possible) == (None, tails.levels)
    assert upper.score == tails.score == Scaled()
    assert (upper.candidates, upper.group_columns, upper.has_quick_levels) == (1, 0, True)
    grouped = upper.for_groups(("a", "b"), "g", 2)
    assert (grouped.group_columns, grouped.has_quick_levels) == (2, False)
    assert tails.rows_for_a_group(2) == tails.rules[0].rows_for_a_group(2) > tails.rules[1].rows_for_a_group(2)


def test_scores_of_calibration_rows_are_the_larger_ones_and_not_known_from_counts():
    for rule in (ASKED["upper"], ASKED["tails"]):
        summary = rule.summarise(*block())
        wanted = np.maximum.reduce([summary.rows(f"score_{side}") for side in rule.sides])
        np.testing.assert_array_equal(rule.calibration_scores(summary), wanted)
        assert rule.calibration_scores(counted(summary)) is None


def counted(summary, groups=0):
    def of(scores):
        return GroupScores.of(scores, summary.rows("group")[:, None], groups) if groups else Joined(scores)

    names = [name for name in summary.blocks[0] if name.startswith("score")]
    return CountedSummary(summary.n, {}, (), {name: of(summary.rows(name)) for name in names})


@pytest.mark.parametrize("level", [Fraction(9, 10), Fraction(2, 10)])
@pytest.mark.parametrize("groups", [0, 2])
def test_counts_give_the_promise_of_all_scores_on_each_side(groups, level):
    plain = sided(MarginalCut(), side="upper", level=level)
    for rule in (ASKED["tails"], plain):
        own = rule.for_groups(("a", "b"), "g") if groups else rule
        summary = own.summarise(*block(groups=np.arange(400) % 2 if groups else None))
        whole, found = own.calibrate(summary), own.calibrate(counted(summary, groups))
        assert found.promise == whole.promise
        for name, array in whole.arrays.items():
            np.testing.assert_array_equal(found.arrays[name], array)
    assert whole.promise.parts[0].promise.extended == (level < Fraction(1, 2))


def test_one_of_several_levels_at_the_point_extends_the_promise():
    levels = Levels.of((0.2, 0.9))
    rule = Sided.of("own", levels, Scaled(), MarginalCut(), "upper")
    assert rule.calibrate(rule.summarise(*block())).promise.parts[0].promise.extended


def test_new_patterns_of_groups_are_solved_for_on_each_side():
    codes = np.stack([np.arange(400) % 2, np.arange(400) // 200], axis=1)
    rule = ASKED["tails"].for_groups(("a", "b", "c", "d"), "g, h", 2)
    codes[:, 1] += 2
    predicted, y, context = block(groups=codes)
    summary = rule.summarise(predicted, y, context)
    found = rule.calibrate(summary)
    new = Context(group=np.array([[0, 2], [1, 3]]))
    rule.complete(found, summary, new)
    lower, _, upper = rule.ends(predicted.rows(slice(0, 2)), new, found.arrays)
    for i, end in ((0, lower), (1, upper)):
        own = rule.rules[i]
        alone = own.summarise(predicted, y, context)
        calibration = own.calibrate(alone)
        own.complete(calibration, alone, new)
        np.testing.assert_array_equal(own.ends(predicted.rows(slice(0, 2)), new, calibration.arrays)[2 * i], end)
        assert np.isfinite(end).all()


def test_other_levels_are_those_of_the_rule_and_of_its_side():
    levels = Levels.of((0.8, 0.5))
    rule = ASKED["upper"].at(levels)
    assert rule.levels == rule.rules[0].levels == levels
    same = ASKED["tails"].levels
    other = Levels(same.values, scalar=False)
    assert ASKED["tails"].at(other).levels is other


def test_a_cut_with_settings_but_without_delta_is_shared_as_it_is():
    @dataclass(frozen=True)
    class Named(MarginalCut):
        name: str = "mine"

    assert [rule.cut for rule in sided(Named(), tails=(0.1, 0.1)).rules] == [Named(), Named()]


def test_too_few_rows_on_one_side_ask_for_a_lower_level_and_on_two_for_larger_tails():
    few = block(5)
    upper, tails = (ASKED[name].calibrate(ASKED[name].summarise(*few)).remarks for name in ("upper", "tails"))
    assert [own.in_words().endswith("a lower confidence level.") for own in upper] == [True]
    assert [own.in_words().endswith("larger tails.") for own in tails] == [True]


def test_the_sides_of_groups_are_infinite_each_by_itself():
    rule = sided(MarginalCut(), tails=(0.01, 0.2)).for_groups(("a", "b"), "g")
    predicted, y, context = block(60, groups=np.arange(60) % 2)
    promise = rule.calibrate(rule.summarise(predicted, y, context)).promise
    assert promise.whole_line == (False,)
    assert [own.whole_line for own in rule.apart(promise)] == [(True,), (False,)]
    one = ASKED["upper"].for_groups(("a",), "g")
    promise = one.calibrate(one.summarise(*block(60, groups=np.zeros(60, dtype=int)))).promise
    (found,) = one.apart(promise)
    assert (promise.rank, found.rank) == ((55,), None)
    assert one.together([found]) == promise


def test_only_the_least_score_of_all_groups_is_that_of_the_other_side():
    rule = sided(MarginalCut(), Residual(), side="upper").for_groups(("a", "b"), "g")
    predicted, _, context = block(40, groups=np.arange(40) % 2)
    y = np.where(np.arange(40) % 2, np.linspace(-1, 1, 40), 5.0 + np.arange(40))
    summary = rule.summarise(predicted, y, context)
    for found in (rule.calibrate(summary), rule.calibrate(counted(summary, 2))):
        assert [part.promise.extended for part in found.promise.parts] == [False, False]
