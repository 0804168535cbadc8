"""What a certificate of rows that were kept by their weights says, word for word."""

from scipy.stats import beta

from guardband.bands.kept_promise import KeptPromise, given_rows, of_kept_rows
from guardband.bands.parted_promise import PartedPromise
from guardband.bands.promise import DISTINCT_ROW, Part
from guardband.bands.rank_promise import PacPromise

NUMBERS = {"confidence_level": (0.9,), "n_calibration": 1000, "rank": (913,), "whole_line": (False,), "delta": 0.1}
KEPT = KeptPromise(**NUMBERS, n_given=1500, max_weight=2.5)
WRONG = "Coverage if the weights are wrong, or if rows with equal inputs now have other outcomes."


def test_rows_that_were_kept_are_said_to_be_that():
    bound = f"{int(10_000 * beta.ppf(0.1, 913, 88)) / 100:g}%"
    expected = f"{int(10_000 * 913 / 1001) / 100:g}%"
    assert KEPT.lines("cqr") == [
        "Promise: with 90% confidence, at least 90% of all new rows from the weighted population fall inside their "
        "intervals.",
        "How: cqr made the intervals just wide enough to contain 913 of the 1,000 calibration rows. guardband kept "
        "1,000 of 1,500 calibration rows, each with a chance of its weight divided by 2.5.",
        f"Coverage: at least {expected} is expected. For these calibration rows it is at least {bound}, with 90% "
        "confidence.",
        "Assumes: the weights say how the share of each kind of row changes. For given inputs, true values behave as "
        "before. Rows are drawn independently.",
        "Not promised: coverage for a single row or for a group, or for rows from another source or a later time if "
        "the data have changed.",
    ]
    assert KEPT.headline("cqr") == (
        "With 90% confidence, at least 90% of all new rows from the weighted population fall inside their intervals."
    )
    assert KEPT.not_promised()[1:4] == [
        "Coverage within a group. Some groups may be covered less often, and others more often.",
        WRONG,
        "Narrow intervals or accurate predictions.",
    ]
    assert KEPT.guarantee == "pac"
    assert given_rows(KEPT) == {"n_given": 1500}
    assert given_rows(PacPromise(**NUMBERS)) == {}
    assert of_kept_rows(PacPromise(**NUMBERS), 1500, 2.5) == KEPT


def test_each_group_of_kept_rows_is_said_to_be_one():
    parts = tuple(Part(PacPromise(**NUMBERS), i, f"g = {i}") for i in range(2))
    own = of_kept_rows(PartedPromise(**NUMBERS | {"rank": None, "n_calibration": 2000}, parts=parts, by="g"), 3000, 2.5)
    assert [part.promise for part in own.parts] == [of_kept_rows(PacPromise(**NUMBERS), 3000, 2.5)] * 2
    assert [part.name for part in own.statements()] == ["g = 0", "g = 1"]
    assert own.lines("cqr")[1] == (
        "How: cqr made the intervals of each group just wide enough to contain enough of its calibration rows (2,000 "
        "calibration rows in all). guardband kept 2,000 of 3,000 calibration rows, each with a chance of its weight "
        "divided by 2.5."
    )


def test_repeated_rows_among_those_kept_are_still_not_promised():
    said = KEPT.of_entities(DISTINCT_ROW, 1200).not_promised()
    assert said[2:5] == [
        "Coverage for new rows that repeat a row of the table.",
        WRONG,
        "Narrow intervals or accurate predictions.",
    ]
