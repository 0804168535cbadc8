"""Online rules: limits that no adversary can break, and each rule against a plain statement of it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardband.bands.long_run_promise import LongRunPromise
from guardband.bands.predicted import PredictedPoint
from guardband.bands.recent_promise import RecentPromise
from guardband.calibration.online import tracking
from guardband.calibration.online.aci import AdaptiveLevel
from guardband.calibration.online.past_scores import PastScores
from guardband.calibration.online.recent import Recent
from guardband.calibration.online.registry import RULES, rule_named
from guardband.calibration.online.rule import Tally
from guardband.calibration.online.scale_free import ScaleFree
from guardband.calibration.online.stream import Stream
from guardband.calibration.online.tracking import Tracking
from guardband.calibration.score import Residual

LONG_RUN = [AdaptiveLevel(), AdaptiveLevel(0.3), ScaleFree(), Tracking(), Tracking(0.9)]
ROUNDING = 1e-6
"""Rows: what sums of levels in double precision may be off by."""


def stream_of(rule, alpha, window=50, warm=()):
    stream = Stream(rule, Residual(), Fraction(str(alpha)), window)
    if len(warm):
        stream.start(np.asarray(warm, dtype=float))
    return stream


def expect(stream, count):
    return stream.expect(PredictedPoint(np.zeros((1, 1, count))), None)[0]


def score_that(stream, key, is_miss):
    """Return a score that is a miss, or none, for a waiting row; no other can be had at an infinite threshold."""
    threshold = stream.waiting[key][0]
    if math.isinf(threshold):
        return 1.0
    return math.nextafter(threshold, math.inf) + abs(threshold) * is_miss if is_miss else threshold


def within_limits(stream):
    excess = float(stream.tally.excess(stream.alpha))
    short, over = stream.rule.limits(stream.alpha, stream.tally, stream.state)
    return -short - ROUNDING <= excess <= over + ROUNDING


@pytest.mark.parametrize("rule", LONG_RUN, ids=repr)
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.01])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_no_sequence_breaks_the_limits_whatever_waits_and_in_whatever_order_truth_arrives(rule, alpha, data):
    warm = data.draw(st.lists(st.floats(0, 10), max_size=40))
    stream = stream_of(rule, alpha, window=data.draw(st.sampled_from([100, None])), warm=warm)
    moves = st.tuples(st.integers(1, 6), st.integers(0, 6), st.sampled_from(["miss", "hit", "turns"]), st.randoms())
    for count, judged, wants, random in data.draw(st.lists(moves, max_size=60)):
        expect(stream, count)
        keys = random.sample(list(stream.waiting), min(judged, len(stream.waiting)))
        for key in keys:
            is_miss = wants == "miss" or (wants == "turns" and stream.tally.judged % 2 == 0)
            own = score_that(stream, key, is_miss)
            stream.judge([key], lambda predicted, own=own: np.array([own]))
            assert within_limits(stream)


@pytest.mark.parametrize("rule", LONG_RUN, ids=repr)
@pytest.mark.parametrize("wants", [True, False])
@pytest.mark.parametrize("delay", [1, 7])
def test_an_adversary_who_always_misses_or_never_does_is_held_to_the_limits(rule, wants, delay):
    stream = stream_of(rule, 0.1, warm=np.arange(40.0))
    most = 0.0
    for _ in range(3000 // delay):
        keys = expect(stream, delay)
        scores = [score_that(stream, key, wants) for key in keys]
        stream.judge(keys, lambda predicted, scores=scores: np.array(scores))
        assert within_limits(stream)
        most = max(most, abs(float(stream.tally.excess(stream.alpha))))
    assert stream.tally.most_waiting == delay
    if isinstance(rule, AdaptiveLevel):  # no limits are nearer: with 50 scores all is inside at a level below 1/51
        short, over = rule.limits(stream.alpha, stream.tally, ())
        assert most >= (over if wants else short) - delay - 1 / (51 * rule.step_size)


def test_the_limits_of_aci_are_those_of_gibbs_and_candes():
    step, alpha, judged = 0.005, Fraction(1, 10), 1000
    short, over = AdaptiveLevel(step).limits(alpha, Tally(judged, 100, 1), ())
    published = (max(0.1, 0.9) + step) / step
    assert over < short <= published


def brute_force_aci(scores, warm, alpha, step, window):
    present, past, out = alpha, list(warm), []
    for score in scores:
        latest = sorted(past[-window:])
        rank = math.ceil((1 - present) * (len(latest) + 1))
        out.append(-math.inf if rank < 1 else math.inf if rank > len(latest) else latest[rank - 1])
        present += step * (alpha - (score > out[-1]))
        past.append(score)
    return out


def brute_force_scale_free(scores, warm, alpha, window):
    present, past, out = float(alpha), list(warm), []
    squares = max(100, len(warm)) * float(alpha) * float(1 - alpha)
    for score in scores:
        latest = sorted(past[-window:])
        rank = math.ceil((1 - Fraction(present)) * (len(latest) + 1))
        out.append(-math.inf if rank < 1 else math.inf if rank > len(latest) else latest[rank - 1])
        gradient = float(alpha) - (score > out[-1])
        squares += gradient**2
        present += gradient / math.sqrt(3 * squares)
        past.append(score)
    return out


def brute_force_tracking(scores, warm, alpha, step, window):
    past, share, excess, out = list(warm), float(alpha), 0.0, []
    center = sorted(past)[math.ceil((1 - alpha) * (len(past) + 1)) - 1]
    for t, score in enumerate(scores):
        n, latest = len(past[-window:]), sorted(past[-window:])
        spread = latest[math.ceil(0.75 * (n + 1)) - 1] - latest[math.ceil(0.25 * (n + 1)) - 1]
        out.append(center + spread * math.tan(math.pi / 2 * excess / math.sqrt(t + 100)))
        is_miss = score > out[-1]
        excess += is_miss - share
        past.append(score)
        n, latest = len(past[-window:]), sorted(past[-window:])
        spread = latest[math.ceil(0.75 * (n + 1)) - 1] - latest[math.ceil(0.25 * (n + 1)) - 1]
        center += step * spread * (is_miss - share)
    return out


def brute_force_recent(scores, warm, alpha, half_life, window):
    past, out = list(warm), []
    for score in scores:
        latest = past[-window:]
        weights = [0.5 ** (age / half_life) for age in range(len(latest), 0, -1)]
        needed = float(1 - alpha) * (sum(weights) + 1)
        reached = [c for c in sorted(latest) if sum(w for w, s in zip(weights, latest, strict=True) if s <= c) > needed]
        out.append(reached[0] if reached else math.inf)
        past.append(score)
    return out


ALPHA = Fraction("0.1")
BRUTE_FORCE = [
    (AdaptiveLevel(0.05), lambda s, w: brute_force_aci(s, w, ALPHA, Fraction("0.05"), 60)),
    (ScaleFree(), lambda s, w: brute_force_scale_free(s, w, ALPHA, 60)),
    (Tracking(0.2), lambda s, w: brute_force_tracking(s, w, ALPHA, 0.2, 60)),
    (Recent(20), lambda s, w: brute_force_recent(s, w, ALPHA, 20, 60)),
]


@pytest.mark.parametrize(("rule", "stated"), BRUTE_FORCE, ids=lambda own: getattr(own, "word", ""))
@pytest.mark.parametrize("seed", range(3))
def test_thresholds_are_those_of_a_plain_statement_of_the_rule(rule, stated, seed):
    rng = np.random.default_rng(seed)
    scores = np.abs(rng.standard_normal(250)) * np.repeat([1.0, 3.0], 125)  # scores grow halfway
    warm = np.abs(rng.standard_normal(40))
    stream, found = stream_of(rule, 0.1, 60, warm), []
    for score in scores:
        found.append(stream.threshold())
        (key,) = expect(stream, 1)
        stream.judge([key], lambda predicted, score=score: np.array([score]))
    assert found == pytest.approx(stated(scores.tolist(), warm.tolist()), rel=1e-9)


@pytest.mark.parametrize("rule", [*LONG_RUN, Recent()], ids=repr)
def test_without_scores_intervals_are_infinite_and_with_calibration_scores_they_are_those_of_split_conformal(rule):
    assert stream_of(rule, 0.1).threshold() == math.inf
    warm = np.random.default_rng(0).permutation(np.arange(50.0))
    first = stream_of(rule, 0.1, warm=warm).threshold()
    if not isinstance(rule, Recent):
        assert first == 45.0  # rank 46 of 50
    else:
        assert 43 <= first < math.inf


def test_recent_without_forgetting_is_split_conformal():
    scores = np.random.default_rng(0).standard_normal(99)
    past = PastScores(None, scores.tolist())
    assert Recent(1e12).threshold(Fraction(1, 10), Tally(), (), past) == np.sort(scores)[90]  # rank 90, rounded up


def test_ties_and_infinite_scores_do_not_stop_tracking():
    stream = stream_of(Tracking(), 0.1, warm=[1.0] * 30)
    for score in [math.inf] * 30 + [1.0] * 300:
        (key,) = expect(stream, 1)
        stream.judge([key], lambda predicted, score=score: np.array([score]))
        assert within_limits(stream)
        assert not math.isnan(stream.threshold())


def test_rules_have_words_and_others_are_refused():
    assert set(RULES) == {"aci", "scale-free", "tracking", "recent"}
    assert rule_named("aci") == AdaptiveLevel()
    assert rule_named(Tracking(0.2)) == Tracking(0.2)
    for wrong in ("ACI", 3, None):
        with pytest.raises(ValueError, match="rule must be one of 'aci', 'scale-free', 'tracking', 'recent', or"):
            rule_named(wrong)


@pytest.mark.parametrize("made", [lambda: AdaptiveLevel(0), lambda: AdaptiveLevel(2), lambda: Tracking(-1)])
def test_a_step_lies_between_0_and_1(made):
    with pytest.raises(ValueError, match="step_size must lie strictly between 0 and 1"):
        made()


def test_a_half_life_that_forgets_too_much_is_refused_with_one_that_does():
    with pytest.raises(ValueError, match="half_life must be a number of rows, 1 or more, found 0"):
        Recent(0)
    with pytest.raises(ValueError, match=r"always be infinite at this level. Use half_life=7 or more"):
        stream_of(Recent(6), 0.1)
    stream = stream_of(Recent(7), 0.1, 2000, warm=np.ones(500))
    assert stream.threshold() == 1.0


WAITED = Tally(judged=10, misses=2, most_waiting=4)
TENTH = Fraction(1, 10)


def test_limits_are_those_that_follow_from_each_rule():
    """By hand: how far the level, or the excess, can go, and what four rows that wait at once can add."""
    assert AdaptiveLevel(0.1).limits(TENTH, WAITED, ()) == pytest.approx((0.9 / 0.1 + 0.4, 0.1 / 0.1 + 3.6))
    assert Tracking().limits(TENTH, WAITED, (0.0,)) == pytest.approx((110**0.5 + 0.4, 110**0.5 + 3.6))
    first, last = (1 / (3 * 4 * squares) ** 0.5 for squares in (100 * 0.09, 100 * 0.09 + 2 * 0.81 + 8 * 0.01))
    assert ScaleFree().limits(TENTH, WAITED, (0.1, 100.0)) == pytest.approx(((1 + 4 * first) / last,) * 2)


def test_steps_have_the_length_that_is_documented_unless_it_is_given():
    assert (AdaptiveLevel(), Tracking()) == (AdaptiveLevel(0.005), Tracking(0.1))


def test_before_any_row_the_level_is_exact():
    """0.3 in binary is a little less, by which the rank would be 8."""
    stream = stream_of(ScaleFree(), 0.3, warm=range(1, 10))
    assert stream.threshold() == 7


def test_tracking_is_infinite_from_the_allowed_excess_on():
    past = PastScores(None, [1.0, 2.0, 3.0])
    for alpha, misses, threshold in ((Fraction(10, 21), 21, math.inf), (Fraction(11, 21), 0, -math.inf)):
        assert Tracking().threshold(alpha, Tally(judged=21, misses=misses), (2.0,), past) == threshold


@pytest.mark.parametrize(
    ("past", "alpha", "center", "spread"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], TENTH, 2.0, 6.0),
        ([1] * 9 + [5], TENTH, 2.0, 4.0),  # quartiles are tied
        ([0, 1, 1, 2, 2, 2, 2] + [math.inf] * 3, Fraction(1, 2), 9.0, 2.0),  # a quartile is infinite
        ([3] * 5, TENTH, -2.0, 2.0),  # all are tied
        ([1] * 4 + [math.inf] * 6, TENTH, 2.0, 2.0),
        ([3] * 5, TENTH, math.inf, 0.0),
    ],
)
def test_the_spread_is_finite_and_positive_wherever_it_can_be(past, alpha, center, spread):
    assert tracking._spread(alpha, center, PastScores(None, sorted(map(float, past)))) == spread


def test_quantiles_of_few_scores_are_the_first_and_the_last():
    past = PastScores(None, [5.0, 6.0, 7.0])
    assert [tracking._quantile(past, Fraction(own, 10)) for own in (1, 5, 9)] == [5, 6, 7]
    assert tracking._quantile(PastScores(None), TENTH) == math.inf


def test_recent_rows_take_any_half_life_of_a_row_or_more_and_limit_nothing():
    assert Recent() == Recent(300)
    assert Recent(1).begin(Fraction(1, 2), PastScores(None)) == AdaptiveLevel().begin(TENTH, PastScores(None)) == ()
    for wrong in (0.99, math.inf, math.nan):
        with pytest.raises(ValueError, match="1 or more"):
            Recent(wrong)
    assert Recent().limits(TENTH, WAITED, ()) == pytest.approx((1.0, 9.0))


def test_a_half_life_is_refused_if_even_all_past_rows_together_would_weigh_too_little():
    """At 80%, those of a half-life of log(2) / log(5/4) rows sum to 4, which is just enough for the next row's 1."""
    least = math.log(2) / math.log(5 / 4)
    assert Recent(least * 1.001).begin(Fraction(1, 5), PastScores(None)) == ()
    with pytest.raises(ValueError, match="Use half_life=4 or more"):
        Recent(least * 0.999).begin(Fraction(1, 5), PastScores(None))


def test_a_stream_promises_what_its_rule_does_from_what_it_has_seen():
    """Of three rows that waited, (1 - 0.5) / 0.3 + 0.5 x 3 misses can be too few, and as many too many."""
    assert Tally().most_waiting == 1
    for rule in (AdaptiveLevel(0.3), Recent(20)):
        stream = stream_of(rule, 0.5, warm=np.arange(9.0))
        keys = expect(stream, 3)
        stream.judge(keys[:2], lambda predicted: np.array([99.0, 0.0]))
        numbers = {"confidence_level": (0.5,), "n_calibration": 9, "whole_line": (False,), "judged": 2, "misses": 1}
        wanted = {
            AdaptiveLevel: LongRunPromise(**numbers, rule="aci", most_waiting=3, most_short=19 / 6, most_over=19 / 6),
            Recent: RecentPromise(**numbers, half_life=20.0),
        }[type(rule)]
        assert stream.promise() == wanted
        assert stream.state == ()
