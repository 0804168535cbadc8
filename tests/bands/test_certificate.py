import json

import pytest
from scipy.stats import beta

import guardband as gb
from guardband.bands.ranks import average_coverage
from promised import certificate


def test_marginal_numbers_follow_from_rank_and_rows():
    own = certificate("marginal", "conf-nn", 0.9, 1000, rank=901)
    assert own.expected_coverage == pytest.approx(901 / 1001)
    assert own.coverage_bound(0.05) == pytest.approx(beta.ppf(0.05, 901, 100))
    assert "exchangeable" in own.assumption


def test_it_is_shown_by_its_promise_and_printed_whole():
    own = certificate("marginal", "conf-nn", 0.9, 1000, rank=901)
    lines = str(own).splitlines()
    assert len(lines) > 2
    assert "at least 90% of new rows" in lines[0]
    assert repr(own) == f"{lines[0]} (conf-nn, 1,000 calibration rows. Print it for more.)"


def test_several_levels_give_tuples_in_their_order():
    own = certificate("pac", "conf-nn", (0.9, 0.5), 50, rank=(51, 30), delta=0.1)
    assert own.coverage_bound(0.1) == (1.0, pytest.approx(beta.ppf(0.1, 30, 21)))
    assert own.expected_coverage == (1.0, pytest.approx(30 / 51))


def test_paper_rule_is_bounded_by_its_count_at_delta_over_k():
    own = certificate("pav", "pav", 0.9, 1000, rank=900, delta=0.1, rule="paper", candidates=10, tau=0.08, covered=907)
    assert own.coverage_bound(0.1) == pytest.approx(beta.ppf(0.01, 907, 94))


@pytest.mark.parametrize("rule", ["fixed-sequence", "nested"])
def test_k_free_rules_are_bounded_by_the_preset_threshold(rule):
    own = certificate("pav", "pav", 0.9, 1000, rank=900, delta=0.1, rule=rule, candidates=10, tau=0.08, covered=907)
    assert own.coverage_bound(0.1) == pytest.approx(beta.ppf(0.1, 900, 101))


def test_whole_line_covers_everything():
    pav = certificate(
        "pav", "pav", 0.9, 10, rank=9, delta=0.1, rule="paper", candidates=3, tau=0.0, covered=10, whole_line=True
    )
    assert pav.coverage_bound() == 1.0
    assert certificate("marginal", "conf-nn", 0.9, 8, rank=9).coverage_bound(0.1) == 1.0


def test_a_level_chosen_later_gets_the_simultaneous_bound_and_says_so():
    before = certificate("marginal", "conf-nn", 0.9, 1000, rank=901)
    after = certificate("marginal", "conf-nn", 0.9, 1000, rank=901, chosen_after=True)
    assert after.coverage_bound(0.1) < before.coverage_bound(0.1)
    assert "you chose this level after calibration" in str(after)


@pytest.mark.parametrize("delta", [0, 1, -0.2])
def test_delta_outside_the_open_unit_interval_is_refused(delta):
    with pytest.raises(ValueError, match="delta must lie strictly between"):
        certificate("marginal", "conf-nn", 0.9, 1000, rank=901).coverage_bound(delta)


@pytest.mark.parametrize("level", [0.9, (0.9, 0.5)])
def test_a_certificate_survives_json(level):
    rank = (901, 500) if isinstance(level, tuple) else 901
    own = certificate("pac", "conf-nn", level, 1000, rank=rank, delta=0.1, notes=("a note",))
    assert gb.Certificate.from_dict(json.loads(json.dumps(own.to_dict()))) == own


def test_words_name_promise_numbers_assumption_and_limits():
    text = str(certificate("pac", "conf-nn", 0.9, 1000, rank=913, delta=0.1))
    for part in (
        "90%",
        "contain 913 of the 1,000 calibration rows",
        "independent and identically distributed",
        "Not promised",
    ):
        assert part in text


def test_words_never_promise_more_than_the_numbers():
    nearly = certificate("marginal", "conf-nn", 0.99999, 200_000, rank=199_999)
    assert "at least 99.999% of new rows" in str(nearly)
    assert "100%" not in str(nearly)
    few = certificate("marginal", "conf-nn", 0.9, 50, rank=46)
    assert f"{few.coverage_bound(0.1):.6f}" == "0.846452"
    assert "at least 84.64%" in str(few)
    assert "99.9999%" in str(certificate("pac", "conf-nn", 0.9, 1000, rank=950, delta=1e-6))
    assert "Coverage: 100% is expected" in str(certificate("marginal", "conf-nn", 0.9, 5, rank=6))


def test_words_tell_levels_apart_from_levels_at_once():
    apart = certificate("pac", "conf-nn", (0.9, 0.5), 1000, rank=(913, 520), delta=0.1)
    joint = certificate("pac", "conf-nn", (0.9, 0.5), 1000, rank=(916, 526), delta=0.1, joint=True)
    assert "for each level separately" in str(apart)
    assert "for all levels at once" in str(joint)


def test_expected_coverage_of_the_papers_rule_counts_its_candidates():
    numbers = {"n": 1000, "rank": 900, "delta": 0.1, "candidates": 10, "tau": 0.08, "covered": 907}
    paper = certificate("pav", "pav", 0.9, rule="paper", **numbers)
    free = certificate("pav", "pav", 0.9, rule="nested", **numbers)
    assert free.expected_coverage == pytest.approx(900 / 1001)
    assert paper.expected_coverage == average_coverage(900, 1000, 10)
    assert paper.expected_coverage < free.expected_coverage
