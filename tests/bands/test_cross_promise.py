from __future__ import annotations

import pytest
from scipy.special import smirnovi

from guardband.bands.certificate import Certificate
from guardband.bands.cross_promise import CrossPromise, CvMinmaxPromise, CvPlusPromise
from guardband.bands.law import Law
from guardband.bands.promise import Promise

BOTH = [CvPlusPromise, CvMinmaxPromise]


def _promise(kind: type[CrossPromise], n: int = 400, folds: int = 8, **more: object) -> CrossPromise:
    rank = (361,) if n == 400 else (n + 1,)
    own = {"confidence_level": (0.9,), "n_calibration": n, "rank": rank, "whole_line": (rank[0] > n,)}
    return kind(**own | {"fold_sizes": (n // folds,) * folds} | more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", BOTH)
def test_a_promise_survives_json(kind: type[CrossPromise]) -> None:
    own = Certificate("conf-nn", _promise(kind), True)
    assert Certificate.from_dict(own.to_dict()) == own
    assert Promise.kinds[kind.kind] is kind


@pytest.mark.parametrize("kind", BOTH)
def test_it_says_what_is_proved_what_is_typical_and_what_is_neither(kind: type[CrossPromise]) -> None:
    own = _promise(kind)
    text = str(Certificate("conf-nn", own, True))
    proved, here = own.expected_coverage()[0], own.coverage_bound(0.1)[0]
    assert f"at least {int(10_000 * proved) / 100:g}% of new rows" in text
    assert "Typical is" in text
    assert "that is not proved" in text
    assert f"at least {int(10_000 * here) / 100:g}%, with 90% confidence" in text
    assert "400 rows for calibration, in 8 folds" in text
    assert not own.is_testable
    assert "split" in own.why_untestable()


def test_minmax_promises_more() -> None:
    plus, minmax = (_promise(kind) for kind in BOTH)
    assert plus.expected_coverage()[0] < minmax.expected_coverage()[0] < 0.9
    assert plus.coverage_bound(0.1)[0] < minmax.coverage_bound(0.1)[0]


@pytest.mark.parametrize("kind", BOTH)
def test_infinite_intervals_cover_all(kind: type[CrossPromise]) -> None:
    own = _promise(kind, n=8, folds=2)
    assert own.expected_coverage() == own.coverage_bound(0.1) == (1.0,)
    assert "The intervals are infinite." in str(Certificate("conf-nn", own, True))


def test_several_levels_stand_side_by_side() -> None:
    own = _promise(CvPlusPromise, confidence_level=(0.9, 0.5), rank=(361, 201), whole_line=(False, False))
    text = str(Certificate("conf-nn", own, False))
    assert "76.96% / 0.44%" in text
    assert "about 90% / 50%" in text
    assert "the level itself" in text
    assert "Nothing useful is proved at 50%." in text
    assert "Nothing useful" not in own.headline("conf-nn")


def test_it_says_that_nothing_useful_is_proved() -> None:
    own = _promise(CvPlusPromise, confidence_level=(0.5,), rank=(201,))
    assert "Nothing useful is proved at this level." in own.headline("conf-nn")
    assert own.unproved() == (0.5,)
    assert not _promise(CvMinmaxPromise, confidence_level=(0.5,), rank=(201,)).unproved()


ASSUMES = (
    "Assumes: the rows of the table and new rows are independent draws from the same source (independent and "
    "identically distributed)."
)
LATER = "or for rows from another source or a later time if the data have changed."
AVERAGE = "on average over possible tables, at least"


def _down(share: float) -> str:
    return f"{int(1e4 * share) / 100:g}%"


def test_cv_plus_is_said_in_these_words() -> None:
    own = _promise(CvPlusPromise)
    proved = _down(1 - 2 * (400 - 361 + 8) / 408)  # of n rows in K folds, 2 (n - k + K) of n + K are missed
    here = _down(1 - 2 * ((400 - 361) / 400 + smirnovi(50, 0.1 / 8)))
    typical = "Typical is about 90%, which is what you asked for, but that is not proved."
    assert own.lines("cqr") == [
        f"Promise: {AVERAGE} {proved} of new rows fall inside their intervals. {typical}",
        "How: cqr used all 400 rows for calibration, in 8 folds. Each row was predicted without its fold.",
        f"Coverage: for the rows at hand, it is at least {here}, with 90% confidence.",
        ASSUMES,
        f"Not promised: 90% itself, coverage for a single row or for a group, {LATER}",
    ]
    assert own.headline("cqr") == (
        f"O{AVERAGE[1:]} {proved} of new rows from the same source fall inside their intervals. {typical}"
    )
    assert own.not_promised()[:3] == [
        f"The level itself. 90% is typical, and {proved} is proved.",
        f"A high coverage for this table. Only {here} is proved, with 90% confidence.",
        "Coverage for a single row. The promise is about all rows together, and some rows are harder to predict.",
    ]
    assert own.counted == "400 calibration rows in 8 folds"
    assert not own.counts_rows_inside


def test_the_first_of_several_levels_stands_in_the_headline() -> None:
    own = _promise(CvMinmaxPromise, confidence_level=(0.95, 0.9), rank=(381, 361), whole_line=(False, False))
    first = _down(own.expected_coverage()[0])
    assert own.headline("cqr") == (
        f"O{AVERAGE[1:]} {first} of new rows from the same source fall inside their intervals. Typical is at least "
        "95%, which is what you asked for, but that is not proved."
    )
    assert own.not_promised()[:2] == [
        f"The level itself. 95% / 90% is typical, and {first} / {_down(own.expected_coverage()[1])} is proved.",
        f"A high coverage for this table. Only {' / '.join(map(_down, own.coverage_bound(0.1)))} is proved, with 90% "
        "confidence.",
    ]


def test_what_is_proved_where_intervals_are_infinite_or_folds_have_one_row() -> None:
    levels = {"confidence_level": (0.9, 0.5), "rank": (9, 5), "whole_line": (True, False)}
    some = _promise(CvMinmaxPromise, n=8, folds=2, **levels).lines("cqr")
    assert some[1].endswith(" Each row was predicted without its fold. The intervals are infinite at 90%.")
    assert "that is not proved." in some[0]
    assert some[-1].startswith("Not promised: the level itself, coverage for a single row")
    alone = _promise(CvMinmaxPromise, n=99, folds=99, rank=(90,), whole_line=(False,))
    assert alone.expected_coverage() == (0.9,)
    assert alone.lines("cqr")[0] == f"Promise: {AVERAGE} 90% of new rows fall inside their intervals."
    assert alone.lines("cqr")[-1].startswith("Not promised: coverage for a single row")
    assert alone.not_promised()[0].startswith("A high coverage for this table.")


def test_rows_that_only_trained_are_counted() -> None:
    def how(left_over: int) -> str:
        return _promise(CvPlusPromise, left_over=left_over).lines("cqr")[1]

    used = "How: cqr used 400 of the {} rows for calibration, in 8 folds. Each row was predicted without its fold. {}"
    assert how(3) == used.format(403, "The other 3 only trained.")
    assert how(1) == used.format(401, "The other row only trained.")
    assert how(2) == used.format(402, "The other 2 only trained.")


def test_a_level_chosen_after_calibration_has_a_note() -> None:
    assert not any(line.startswith("Note:") for line in _promise(CvPlusPromise).lines("cqr"))
    assert _promise(CvPlusPromise, chosen_after=True).lines("cqr")[-1] == (
        "Note: you chose this level after calibration. If you looked at intervals to choose it, only the coverage for "
        "the rows at hand is proved. It holds for all levels at once."
    )


def test_the_level_is_a_yardstick_that_no_count_contradicts() -> None:
    levels = {"confidence_level": (0.9, 0.5), "rank": (9, 5), "whole_line": (True, False)}
    own = _promise(CvPlusPromise, n=8, folds=2, **levels).expectations()
    assert [one.expected for one in own] == [Law(), Law(share=0.5, open=True)]
    assert [one.tests for one in own] == [(Law(share=0.0, open=True),)] * 2
    assert [(one.level, one.share) for one in own] == [(0.9, None), (0.5, None)]


def test_less_than_a_tenth_is_of_no_use() -> None:
    def unproved(k: int) -> tuple[float, ...]:
        return _promise(CvPlusPromise, n=90, folds=9, confidence_level=(0.5,), rank=(k,)).unproved()

    # 2 (90 - k) + 10 of 100 rows may be missed
    assert [unproved(k) for k in (49, 51, 54)] == [(0.5,), (), ()]
