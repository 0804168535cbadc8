"""What is watched of each promise: its law, the limit of the evidence, and how often an alarm may be false."""

import math

import numpy as np
import pytest

import guardband as gb
from guardband.exceptions import InsufficientCalibrationWarning
from guardband.monitor.evidence_process import Stream, advanced
from guardband.monitor.miss_law import MissLaw
from guardband.monitor.watched import Statement, Watched, watched
from promised import promise

N = 600


def fitted(levels=None, n=N, method="conf-nn", **options):
    random = np.random.default_rng(0)
    given = {name: options.pop(name) for name in ("groups", "weights", "max_weight", "entities") if name in options}
    zero, y = np.zeros(n), random.standard_normal(n)
    return gb.BandCalibrator(method, confidence_level=levels, **options).fit(zero - 1, zero, zero + 1, y, **given)


def of(rule, significance=0.01):
    return watched(rule.certificate.promise, significance)


def test_on_average_the_law_is_that_of_the_rank_and_nothing_is_added():
    own = of(fitted())
    (statement,) = own.statements
    assert statement.law == MissLaw(rank=(541, N))
    assert own.log_limit == pytest.approx(math.log(100))
    assert own.false_alarm == 0.01


def test_given_the_data_delta_is_added():
    own = of(fitted(guarantee="pac", delta=0.05))
    assert own.statements[0].law == MissLaw(share=0.9)
    assert own.log_limit == pytest.approx(math.log(100))
    assert own.false_alarm == pytest.approx(0.06)


def test_levels_that_fail_one_by_one_each_add_delta():
    assert of(fitted((0.5, 0.8, 0.9), guarantee="pac", delta=0.05)).false_alarm == pytest.approx(0.16)
    assert of(fitted((0.5, 0.8, 0.9), guarantee="pac", delta=0.05, joint=True)).false_alarm == pytest.approx(0.06)


def test_groups_and_tails_share_one_delta():
    groups = np.arange(N) % 3
    assert of(fitted(guarantee="pac", groups=groups)).false_alarm == pytest.approx(0.11)
    assert of(fitted(guarantee="pac", tails=(0.05, 0.05))).false_alarm == pytest.approx(0.11)


def test_levels_and_bounds_on_average_share_the_significance():
    assert of(fitted((0.5, 0.9))).log_limit == pytest.approx(math.log(200))
    assert of(fitted(tails=(0.05, 0.05))).log_limit == pytest.approx(math.log(200))
    assert of(fitted(groups=np.arange(N) % 3)).log_limit == pytest.approx(math.log(100))
    assert of(fitted(side="upper")).log_limit == pytest.approx(math.log(100))


@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
def test_a_level_chosen_after_looking_is_held_to_a_bound_for_all_levels(guarantee):
    rule, zero = fitted(guarantee=guarantee), np.zeros(2)
    promised = rule.transform(zero - 1, zero, zero + 1, confidence_level=0.8).certificate.promise
    assert promised.chosen_after
    own = watched(promised, 0.01)
    assert own.statements[0].law == MissLaw(share=promised.coverage_bound(0.005)[0])
    assert own.statements[0].law.share < 0.8
    assert own.log_limit == pytest.approx(math.log(200))
    assert own.false_alarm == 0.01


def test_entities_that_share_weights_are_held_to_their_bound():
    own = watched(promise("marginal", 0.9, 200, rank=181, shared=True, entity="customer", n_rows=900), 0.01)
    assert own.statements[0].law.rank is None
    assert own.statements[0].law.share < 0.9
    assert own.log_limit == pytest.approx(math.log(200))
    assert own.false_alarm == 0.01


def test_groups_with_infinite_intervals_are_left_out():
    groups = np.where(np.arange(N) < 5, "few", "many")
    with pytest.warns(InsufficientCalibrationWarning):
        rule = fitted(groups=groups)
    assert [own.name for own in of(rule).statements] == ["group = many"]


def test_what_cannot_be_watched_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="Nothing is promised here"):
        watched(promise("none", 0.9, 100), 0.01)
    with pytest.raises(ValueError, match="All intervals are infinite"):
        watched(promise("marginal", 0.9, 5, rank=6, whole_line=True), 0.01)
    with pytest.raises(ValueError, match="no law is known for groups that overlap"):
        of(fitted(groups=np.stack([np.arange(N) % 2, np.arange(N) % 3], axis=1)))
    with pytest.raises(ValueError, match="This promise cannot be monitored"):
        of(fitted(weights=np.ones(N)))


def test_kept_rows_are_watched_like_a_share():
    own = of(fitted(guarantee="pac", weights=np.linspace(0.5, 2, N), max_weight=2.0))
    assert own.statements[0].law == MissLaw(share=0.9)
    assert own.false_alarm == pytest.approx(0.11)


def test_evidence_is_the_mean_within_a_family_and_the_largest_of_families():
    rank, share = MissLaw(rank=(19, 20)), MissLaw(share=0.9)
    log_evidence = np.log([[1.0, 2.0], [3.0, 6.0], [5.0, 1.0]])

    def together(*statements):
        return np.exp(Watched(statements, 0.0, 0.0).together(log_evidence)).tolist()

    groups = [Statement(rank, 0.9, 0, group) for group in range(3)]
    assert together(*groups) == pytest.approx([3.0, 3.0])
    levels = [Statement(rank, 0.9, 0), Statement(rank, 0.8, 1), Statement(rank, 0.7, 2)]
    assert together(*levels) == pytest.approx([5.0, 6.0])
    mixed = [Statement(rank, 0.9, 0, 0), Statement(rank, 0.9, 0, 1), Statement(rank, 0.9, 1, 0)]
    assert together(*mixed) == pytest.approx([5.0, 4.0])
    shares = [Statement(share, 0.9, 0), Statement(share, 0.8, 1), Statement(share, 0.7, 2)]
    assert together(*shares) == pytest.approx([3.0, 3.0])


def test_the_mean_of_groups_is_evidence_too():
    """All sequences of two groups, each with a chance of its own: the expected mean is at most 1."""
    law, probability = MissLaw(rank=(4, 5)), {}
    for s in range(6):
        for t in range(s, 6):
            probability[s, t] = math.exp(
                math.lgamma(2 + s) + math.lgamma(4 + t - s) - math.lgamma(6 + t) + math.lgamma(6) - math.lgamma(4)
            )
    own = Watched(tuple(Statement(law, 0.8, 0, group) for group in range(2)), 0.0, 0.0)
    paths = [[bool(code >> i & 1) for i in range(5)] for code in range(32)]
    evidence = [advanced(Stream(), law, np.array(path))[1][-1] for path in paths]
    total = sum(
        probability[sum(a), 5] * probability[sum(b), 5] * math.exp(own.together(np.array([[x], [z]]))[0])
        for a, x in zip(paths, evidence, strict=True)
        for b, z in zip(paths, evidence, strict=True)
    )
    assert total <= 1 + 1e-9
