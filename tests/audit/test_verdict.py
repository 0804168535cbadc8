from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from scipy.stats import beta, betabinom, binom

import guardband as gb
from guardband.audit.audit import audit
from guardband.audit.evidence import Evidence
from guardband.audit.verdict import (
    DECIDES_FIRST,
    Counted,
    Verdict,
    VerdictKind,
    rows_that_tell,
    used_before,
    verdict_on,
    verdict_on_all,
)
from guardband.bands.levels import Levels
from guardband.bands.promise import NoPromise, Part
from guardband.bands.rank_promise import MarginalPromise, PacPromise
from guardband.bands.ranks import marginal_rank, pac_rank
from guardband.cli.exit_codes import exit_code
from guardband.data.fingerprint import Twins
from judged import evidence_of
from reported import grouped_evidence


def counted(covered, n, n2=1000, level=0.9, *, significance=0.01, among=1, delta=None, **changed):
    """Return a count at one level of a marginal promise, or of a pac one if a delta is given."""
    exact = Levels.of(level).values[0]
    rank = marginal_rank(exact, n2) if delta is None else pac_rank(exact, n2, delta)
    numbers = {"confidence_level": (level,), "n_calibration": n2, "whole_line": (rank > n2,), "rank": (rank,)}
    kind = MarginalPromise if delta is None else PacPromise
    promise = kind(**numbers | {"delta": delta} | changed)
    return Counted(Part(promise), 0, promise.expectations()[0], covered, n, significance, among)


@pytest.mark.parametrize(
    ("own", "kind", "sentence"),
    [
        (
            counted(912, 1000),
            "consistent",
            "Consistent with the promise: 912 of 1,000 rows (91.2%) fell inside their 90% intervals. 867 to 929 were "
            "expected.",
        ),
        (
            counted(980, 1000),
            "consistent",
            "Consistent with the promise: 980 of 1,000 rows (98.0%) fell inside their 90% intervals. Only 867 to 929 "
            "were expected: the intervals are wider than needed.",
        ),
        (
            counted(40, 42, level=0.95),  # all 42 would be no surprise
            "consistent",
            "Consistent with the promise: 40 of 42 rows (95.2%) fell inside their 95% intervals. At least 36 were "
            "expected.",
        ),
        (
            counted(850, 1000),
            "broken",
            "Promise broken: only 850 of 1,000 rows (85.0%) fell inside their 90% intervals. If the promise held, 99% "
            "of all audits would find at least 867 inside (p = 0.00034). Calibrate on rows like those you will "
            "predict.",
        ),
        (
            counted(127, 150, n2=320),
            "too few rows",
            "Too few rows to tell: 127 of 150 rows fell inside. They cannot tell a coverage of 85% from 90%. You need "
            "about 420 more rows.",
        ),
        (
            counted(27, 30),
            "too few rows",
            "Too few rows to tell: 27 of 30 rows fell inside. They cannot tell a coverage of 80% from 90%. You need "
            "about 40 more rows.",
        ),
        (
            counted(270, 300, n2=40),
            "too few rows",
            "Too few rows to tell: 270 of 300 rows fell inside. They cannot tell a coverage of 80% from 90%. More test "
            "rows would not help, because the model has only 40 calibration rows. Calibrate on more rows.",
        ),
        (
            counted(126, 150, n2=113),
            "too few rows",
            "Too few rows to tell: 126 of 150 rows fell inside. They cannot tell a coverage of 84% from 90%. More test "
            "rows would not help, because the model has only 113 calibration rows. Calibrate on more rows.",
        ),
        (
            counted(300, 300, n2=27, level=0.99),
            "cannot judge",
            "No usable intervals: 27 calibration rows, and this level needs 99. Calibrate on more rows.",
        ),
        (
            counted(300, 300, n2=10, delta=0.1),
            "cannot judge",
            "No usable intervals: 10 calibration rows, and this level needs 22. Calibrate on more rows.",
        ),
        (
            counted(300, 300, n2=27, level=0.99, among=2),
            "cannot judge",
            "No usable 99% intervals: 27 calibration rows, and this level needs 99. Calibrate on more rows.",
        ),
        (
            counted(300, 300, whole_line=(True,)),
            "cannot judge",
            "No usable intervals: they are infinite. Train again, or choose another method.",
        ),
    ],
)
def test_every_verdict_has_its_sentence(own, kind, sentence):
    found = verdict_on(own)
    assert (found.kind, found.sentence) == (kind, sentence)


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (counted(912, 1000), "count"),
        (counted(850, 1000), "count"),
        (counted(127, 150, n2=320), "few test rows"),
        (counted(270, 300, n2=40), "few calibration rows"),
        (counted(300, 300, n2=27, level=0.99), "infinite"),
    ],
)
def test_every_verdict_has_its_reason_and_says_how_many_rows_would_tell(own, reason):
    found = verdict_on(own)
    assert found.reason == reason
    if reason != "few test rows":
        assert found.more_rows is None
    else:
        assert own.n + found.more_rows == rows_that_tell(own.expectation, own.share, own.n, own.significance)


def test_a_promise_for_all_new_rows_says_what_would_have_broken_it():
    own = verdict_on(counted(912, 1000, delta=0.1))
    least = int(min(binom(1000, 0.9).ppf(0.01), betabinom(1000, 913, 88).ppf(0.01)))
    assert own.sentence.endswith(
        f"The promise is at least 90% of all new rows. Fewer than {least} inside would have broken it."
    )


@pytest.mark.parametrize(("n", "n2"), [(60, 500), (150, 200), (400, 1000)])
def test_the_word_follows_from_the_exact_law_at_every_count(n, n2):
    rank = marginal_rank(Levels.of(0.9).values[0], n2)
    law = betabinom(n, rank, n2 + 1 - rank)
    breach_is_seen = law.ppf(0.01) / n >= 0.8
    for covered, p in enumerate(law.cdf(np.arange(n + 1))):
        assert (p < 0.01) == (covered < counted(covered, n, n2).expected[0])  # broken: below the range that is shown
        expected = "broken" if p < 0.01 else "too few rows" if p < 0.1 or not breach_is_seen else "consistent"
        assert verdict_on(counted(covered, n, n2)).kind == expected, covered


@pytest.mark.parametrize(("covered", "n", "n2"), [(127, 150, 320), (127, 150, 1000), (430, 490, 5000)])
def test_so_many_rows_would_break_it_and_one_fewer_would_not(covered, n, n2):
    rank, share = marginal_rank(Levels.of(0.9).values[0], n2), covered / n
    m = rows_that_tell(counted(covered, n, n2).expectation, share, n, 0.01)
    p, before = (betabinom(rows, rank, n2 + 1 - rank).cdf(np.floor(share * rows)) for rows in (m, m - 1))
    assert p < 0.01 <= before


def test_no_number_of_rows_tells_a_share_that_few_calibration_rows_allow():
    for n2 in (40, 113, 200, 1000):
        expectation = counted(1, 1, n2).expectation
        rank = marginal_rank(Levels.of(0.9).values[0], n2)
        assert expectation.least_share(0.01) == pytest.approx(beta.ppf(0.01, rank, n2 + 1 - rank))
    assert rows_that_tell(counted(1, 1, 40).expectation, 0.8, 100, 0.01) is None
    both = counted(1, 1, delta=0.1).expectation
    assert both.least_share(0.01) == pytest.approx(beta.ppf(0.01, 913, 88))


def test_a_great_many_rows_are_not_counted():
    own = counted(0, 1, n2=10**4)
    nearly = own.expectation.least_share(0.01) - 1e-9
    own = replace(own, covered=round(nearly * 10**4), n=10**4)
    assert rows_that_tell(own.expectation, nearly, own.n, 0.01) is None
    assert verdict_on(own).sentence.endswith("You need more than 100,000 more rows.")


def test_levels_are_doubted_together():
    doubtful = counted(128, 150, 400)
    assert 0.05 < doubtful.p_value < 0.1
    assert verdict_on(doubtful).kind == "too few rows"
    assert verdict_on(replace(doubtful, among=2, significance=0.005)).kind == "consistent"


def test_nothing_promised_is_not_judged():
    nothing = NoPromise(confidence_level=(0.9,), n_calibration=9, whole_line=(False,), reason="so it is")
    own = verdict_on(Counted(Part(nothing), 0, nothing.expectations()[0], 10, 1000, 0.01, 1))
    assert own.kind == "cannot judge"
    assert own.sentence == (
        "Cannot judge: nothing is promised. 10 of 1,000 rows (1.0%) fell inside their 90% intervals. With a coverage "
        'of exactly 90%, 877 to 921 would be usual. For a promise, use method="conf-nn" or "pav".'
    )


def test_a_doubt_leaves_no_verdict_but_broken():
    doubts = ("Rows of one 'storm' have similar errors. Add --split-by storm.", "Another.")
    for covered, n in ((912, 1000), (127, 150), (27, 30)):
        own = verdict_on(counted(covered, n), doubts)
        assert own.kind == "cannot judge"
        assert own.sentence.startswith(f"Cannot judge: {covered} of {n:,} rows")
        assert own.sentence.endswith(f"but rows may depend on each other. {doubts[0]}")
    assert verdict_on(counted(700, 1000), doubts).kind == "broken"


def test_rows_that_were_used_cannot_judge_even_what_they_would_break():
    evidence = replace(evidence_of(2000, noise=2), used_before=400, used_by_chance=140)
    assert audit(replace(evidence, used_before=140)).verdict == "broken"
    own = audit(evidence)
    assert own.verdict == own.levels[0].verdict == "cannot judge"
    assert own.sentence == (
        "Cannot judge: 400 of 2,000 rows are among those that trained or calibrated the model. "
        "Use rows that are new to the model."
    )


def test_equal_rows_that_chance_explains_do_not_count():
    known = np.repeat(np.arange(100, dtype=np.uint64), [2] * 30 + [1] * 70)
    share = 60 / 130
    chance = 3 * np.sqrt(share * (1 - share) * (1 / 1000 + 2 / 130))
    assert Twins.among(known).most(1000) == int(np.ceil(1000 * (share + chance + 0.05)))
    assert Twins.among(known[:0]).most(7) == Twins.among(known, by_chance=False).most(7) == 1
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (600, 2)).astype(float)
    y = X.sum(1)
    options = {"hidden": (8,), "epochs": 2, "network": "plain", "split_by": []}
    model = gb.IntervalRegressor(**options, random_state=0).fit(X[:300], y[:300])
    evidence = Evidence.of(model, X[300:], y[300:])
    assert evidence.used_before > 290
    assert used_before(evidence) is None


def test_doubts_are_saved_and_loaded(tmp_path):
    X = np.random.default_rng(0).random((100, 2))
    model = gb.IntervalRegressor(hidden=(8,), epochs=2, network="plain", random_state=0).fit(X, X.sum(1))
    assert model.fitted_.doubts == ()
    model.fitted_ = replace(model.fitted_, doubts=("So it is.", "And so."))
    model.save(tmp_path / "m")
    again = gb.load(tmp_path / "m")
    assert again.fitted_.doubts == ("So it is.", "And so.")
    assert Evidence.of(again, X, X.sum(1)).doubts == ("So it is.", "And so.")


def test_what_weighs_most_decides():
    each = [Verdict(kind, kind) for kind in DECIDES_FIRST]
    assert verdict_on_all(reversed(each)) is each[0]
    assert verdict_on_all(each[1:]).kind == "cannot judge"
    assert set(DECIDES_FIRST) == set(get_args(VerdictKind))


def test_each_verdict_has_an_exit_code():
    codes = {kind: exit_code(kind) for kind in get_args(VerdictKind)}
    assert codes == {"consistent": 0, "broken": 1, "too few rows": 0, "cannot judge": 2}


@pytest.mark.parametrize("made", [counted(912, 1000), counted(850, 1000), counted(127, 150, 200), counted(9, 9, 40)])
def test_nothing_is_called_kept_or_proved_and_sentences_are_short(made):
    sentence = verdict_on(made).sentence
    assert "kept" not in sentence
    assert all(len(part.split()) <= 20 for part in sentence.replace(": ", ". ").split(". "))


def test_entities_that_were_used_cannot_judge_and_a_note_says_that_rows_were_drawn():
    evidence = replace(evidence_of(300), drawn_from=(1200, "'patient'"), used_before=40, used_by_chance=15)
    own = audit(evidence)
    assert own.verdict == "cannot judge"
    assert own.sentence.startswith("Cannot judge: 40 of 300 entities ('patient') are among those that trained")
    assert own.notes == ("One row of each 'patient' was drawn at random: 300 of 1,200 rows.",)


def test_a_verdict_on_groups_names_them():
    assert "rows with district = old town" in audit(grouped_evidence()[1]).sentence
    fine = audit(grouped_evidence(worse=0, few=("station",))[1]).sentence
    assert "1 has infinite intervals: 'district = station'." in fine
    few = audit(grouped_evidence(n=60, worse=0)[1]).sentence
    assert few.startswith("Too few rows to tell: ")
    assert " rows with district = " in few


def test_if_all_groups_are_infinite_the_verdict_names_the_largest_and_the_rows_it_needs():
    found = audit(grouped_evidence(n=15, worse=0)[1])
    assert found.verdict == "cannot judge"
    assert "5 calibration rows with district = hillside, and this level needs 9." in found.sentence
