"""What a certificate of groups or sides says, word for word; its figures are those of scipy and of fractions."""

import math
from fractions import Fraction

import pytest
from scipy.stats import beta

from guardband.bands.law import Law
from guardband.bands.parted_promise import PartedPromise
from guardband.bands.promise import Part
from guardband.bands.rank_promise import MarginalPromise, OverlapPromise, PacPromise

ASSUMES = (
    "Assumes: new rows come from the same source as the calibration rows, in no particular order (exchangeable). The "
    "figure for these calibration rows also needs independent rows."
)
IID = "Assumes: calibration rows and new rows are independent draws from the same source (independent and identically "
LATER = "or for rows from another source or a later time if the data have changed."
NOT_GROUPS = f"Not promised: coverage for a single row, for another group or for a part of one, {LATER}"
NOT_SIDES = f"Not promised: coverage for a single row, for a group, {LATER}"
OUTSIDE = "  A row that belongs to none of these groups gets an infinite interval."
AVERAGE = "on average over possible calibration sets"


def down(share):
    """Return a share in percent with two digits, rounded down."""
    return f"{math.floor(10_000 * Fraction(share)) / 100:g}%"


def one(cls, n, *ranks, level=(0.9,), **more):
    return cls(confidence_level=level, n_calibration=n, rank=ranks, whole_line=tuple(k > n for k in ranks), **more)


def parted(*parts, level=(0.9,), n=1508, whole=(False,), **more):
    return PartedPromise(confidence_level=level, n_calibration=n, whole_line=whole, parts=parts, **more)


def two_sides(**more):
    low, high = one(MarginalPromise, 1000, 951, level=(0.95,)), one(MarginalPromise, 1000, 901)
    return parted(Part(low, side="lower"), Part(high, side="upper"), level=(0.85,), n=1000, **more)


THREE = parted(
    Part(one(MarginalPromise, 500, 451), 0, "g = a", width=(2.0,), plain_width=(1.9,)),
    Part(one(MarginalPromise, 1000, 901), 1, "g = b", width=(3.0,), plain_width=(3.0001,)),
    Part(one(MarginalPromise, 8, 9), 2, "g = c"),
    by="g",
)


def test_groups_are_said_in_these_words():
    each = [beta.ppf(0.1 / 3, k, n + 1 - k) for k, n in ((451, 500), (901, 1000))]
    assert THREE.lines("cqr") == [
        f"Promise: {AVERAGE}, at least 90% of new rows in each group (g) fall inside their intervals.",
        "How: cqr made the intervals of each group just wide enough to contain enough of its calibration rows (1,508 "
        "calibration rows in all). The intervals are infinite in 1 of 3 groups: 'g = c'.",
        f"Coverage: at least {down(Fraction(901, 1001))} is expected in each group. For these calibration rows it is "
        f"at least {down(min(each))} in each group, with 90% confidence, for all groups at once.",
        f"  g = a: 500 calibration rows, 451 inside, coverage at least {down(each[0])}, mean width 2 (5.3% wider than "
        "with one promise for all rows)",
        f"  g = b: 1,000 calibration rows, 901 inside, coverage at least {down(each[1])}, mean width 3 (as with one "
        "promise for all rows)",
        "  g = c: 8 calibration rows, infinite intervals",
        OUTSIDE,
        ASSUMES,
        NOT_GROUPS,
    ]
    assert THREE.headline("cqr") == (
        "On average over possible calibration sets, at least 90% of new rows from the same source in each group (g) "
        "fall inside their intervals."
    )
    assert THREE.not_promised() == [
        "Coverage for a single row. Each promise is about all rows of its group together.",
        "Coverage within another group, or within a part of one. Some may be covered less often.",
        "Coverage for rows from another source, or from a later time if the data have changed.",
        "Narrow intervals or accurate predictions.",
        f"The level for every calibration set. For the set used here it is at least {down(min(each))} in each group, "
        "with 90% confidence, if rows are independent.",
    ]
    assert THREE.expected_coverage() == pytest.approx((901 / 1001,))
    assert THREE.coverage_bound(0.3) == pytest.approx((beta.ppf(0.1, 451, 50),))
    assert THREE.some_infinite == (True,)
    assert (THREE.sides, THREE.side, THREE.is_grouped) == (("both",), "both", True)
    assert THREE.tails() == (pytest.approx((0.05,)), pytest.approx((0.05,)))


def test_infinite_intervals_are_said_with_the_levels_and_groups_that_have_them():
    levels = (0.9, 0.5)
    a, b, c = (one(MarginalPromise, n, *k, level=levels) for n, *k in ((8, 9, 5), (1000, 901, 501), (0, 1, 1)))
    own = parted(
        Part(a, 0, "g = a", width=(math.inf, 2.0), plain_width=(3.0, 2.0)),
        Part(b, 1, "g = b"),
        Part(c, 2, "g = c"),
        level=levels,
        whole=(False, False),
        by="g",
    )
    bounds = [f"at least {down(beta.ppf(0.1 / 3, k, n + 1 - k))}" for k, n in ((5, 8), (901, 1000), (501, 1000))]
    said = own.lines("cqr")
    assert said[1].endswith(
        "(1,508 calibration rows in all). The intervals are infinite at 90% in 2 of 3 groups: 'g = a', 'g = c'. The "
        "intervals are infinite at 50% in 1 of 3 groups: 'g = c'."
    )
    assert said[3:6] == [
        f"  g = a: 8 calibration rows, infinite at 90%, 5 inside, coverage at least 100% / {bounds[0][9:]}, mean width "
        "∞ / 2",
        f"  g = b: 1,000 calibration rows, 901 / 501 inside, coverage {bounds[1]} / {bounds[2][9:]}",
        "  g = c: 0 calibration rows, infinite intervals",
    ]
    assert own.some_infinite == (True, True)
    side = parted(Part(a, side="lower"), level=levels, n=8, whole=(True, False)).lines("cqr")[1]
    assert side == (
        "How: cqr moved the lower bounds just far enough to contain 5 of the 8 calibration rows. The intervals are "
        "infinite at 90%."
    )


def test_all_rows_together_are_expected_to_be_covered_as_by_one_rank():
    """An audit tests the parts: this is what to expect of all rows, and it is bounded from below only."""
    law = Law((math.ceil(Fraction("0.9") * 1509), 1508), open=True)
    (found,) = THREE.expectations()
    assert (found.level, found.expected, found.tests, found.share) == (0.9, law, (law,), None)
    infinite = parted(*THREE.parts, whole=(True,)).expectations()[0]
    assert (infinite.expected, infinite.tests) == (Law(), (Law(),))
    alone = parted(Part(one(PacPromise, 1000, 913, delta=0.1), side="lower"), n=1000, delta=0.1)
    assert alone.expectations() == alone.parts[0].promise.expectations()


def test_the_price_of_a_group_is_a_share_of_the_width():
    def said(width, plain, side="both"):
        part = Part(one(MarginalPromise, 500, 451), 0, "g", side, width=width, plain_width=plain)
        return parted(part, by="g").lines("cqr")[3].partition(", coverage ")[2].partition(", ")[2]

    assert said((1.9,), (2.0,)) == "mean width 1.9 (5.0% narrower than with one promise for all rows)"
    assert said((2.2,), (2.0,), "lower").endswith(" (10.0% larger than with one promise for all rows)")
    assert said((1.8,), (2.0,), "upper").endswith(" (10.0% smaller than with one promise for all rows)")
    assert said((2.002,), (2.0,)).endswith(" (0.1% wider than with one promise for all rows)")
    assert said((2.0008,), (2.0,)).endswith(" (as with one promise for all rows)")
    assert said((2.0,), None) == ""
    several = Part(
        one(MarginalPromise, 500, 451, 251, level=(0.9, 0.5)), 0, "g", width=(2.0, 1.0), plain_width=(1.0, 1.0)
    )
    assert parted(several, level=(0.9, 0.5), by="g").lines("cqr")[3].endswith(", mean width 2 / 1")


def test_each_side_apart_is_said_in_these_words():
    own = two_sides()
    bound = 1 - sum(1 - beta.ppf(0.05, k, 1001 - k) for k in (951, 901))
    assert own.lines("cqr") == [
        f"Promise: {AVERAGE}, at most 5% of new rows lie below their intervals, and at most 10% above.",
        "How: cqr moved each bound just far enough: 951 of the 1,000 calibration rows lie at or above their lower "
        "bounds, and 901 at or below their upper bounds.",
        f"Coverage: at least {down(1 - Fraction(50 + 100, 1001))} is expected. For these calibration rows it is at "
        f"least {down(bound)}, with 90% confidence.",
        ASSUMES,
        NOT_SIDES,
    ]
    assert own.not_promised()[-1] == (
        f"The level for every calibration set. For the set used here it is at least {down(bound)}, with 90% "
        "confidence, if rows are independent."
    )
    assert own.not_promised()[0].startswith("Coverage for a single row. The promise is about all rows together")
    assert own.tails() == (pytest.approx((0.05,)), pytest.approx((0.1,)))
    assert (own.sides, own.side, own.is_grouped, own.some_infinite) == (("lower", "upper"), "both", False, (False,))
    assert own.of_entities("patient", 5000).lines("cqr")[1] == (
        "How: cqr moved each bound just far enough: 951 of the 1,000 calibration entities (patient) lie at or above "
        "their lower bounds, and 901 at or below their upper bounds. All rows of one patient together count once "
        "(5,000 rows in all)."
    )
    chosen = parted(
        *(Part(p.promise.__class__(**vars(p.promise) | {"chosen_after": True}), side=p.side) for p in own.parts)
    )
    assert chosen.lines("cqr")[-1].startswith("Note: you chose this level after calibration.")


def test_a_side_with_too_few_rows_has_infinite_bounds_and_no_misses():
    low, high = one(MarginalPromise, 15, 16, level=(0.95,)), one(MarginalPromise, 15, 15)
    own = parted(Part(low, side="lower"), Part(high, side="upper"), level=(0.85,), n=15, whole=(True,))
    assert own.lines("cqr")[1:3] == [
        "How: cqr moved each bound just far enough: 15 of the 15 calibration rows lie at or below their upper bounds. "
        "Too few rows for lower bounds: they are infinite. The intervals are infinite.",
        f"Coverage: at least {down(Fraction(15, 16))} is expected. For these calibration rows it is at least "
        f"{down(beta.ppf(0.05, 15, 1))}, with 90% confidence.",
    ]
    other = parted(Part(high, side="lower"), Part(low, side="upper"), level=(0.85,), n=15).lines("cqr")[1]
    assert other.endswith(" at or above their lower bounds. Too few rows for upper bounds: they are infinite.")


def test_bounds_of_one_side_are_said_in_these_words():
    levels = (0.9, 0.5)
    own = parted(
        Part(one(MarginalPromise, 1000, 901, 501, level=levels), side="lower"), level=levels, n=1000, whole=(False,) * 2
    )
    bounds = " / ".join(down(beta.ppf(0.1, k, 1001 - k)) for k in (901, 501))
    assert own.lines("cqr")[:3] == [
        f"Promise: {AVERAGE}, at least 90% / 50% of new rows lie at or above their lower bounds.",
        "How: cqr moved the lower bounds just far enough to contain 901 / 501 of the 1,000 calibration rows.",
        f"Coverage: at least {down(Fraction(901, 1001))} / {down(Fraction(501, 1001))} is expected. For these "
        f"calibration rows it is at least {bounds}, with 90% confidence.",
    ]
    assert own.headline("cqr") == (
        "On average over possible calibration sets, at least 90% of new rows from the same source lie at or above "
        "their lower bounds. The same holds for 50%, each with its own intervals."
    )
    assert own.tails() == (pytest.approx((0.1, 0.5)), None)
    assert (own.side, own.sides) == ("lower", ("lower",))
    few = one(MarginalPromise, 8, 9, 9, level=levels)
    none = parted(Part(few, side="upper"), level=levels, n=8, whole=(True, True))
    assert none.lines("cqr")[:3] == [
        f"Promise: {AVERAGE}, at least 90% / 50% of new rows lie at or below their upper bounds.",
        "How: cqr has too few calibration rows (8) for 90% / 50% upper bounds. The intervals are infinite at 90% / "
        "50%.",
        "Coverage: 100% / 100% is expected. For these calibration rows it is 100% / 100%, with 90% confidence.",
    ]
    assert none.not_promised()[-1].startswith("The level for every calibration set. For the set used here it is 100%,")


def test_sides_of_groups_given_the_data_share_delta_and_their_misses_add_up():
    ranks = {"a": (600, 580, 560), "b": (400, 390, 401)}
    parts = [
        Part(one(PacPromise, n, k, level=level, delta=0.025), group, f"g = {name}", side)
        for group, (name, (n, low, high)) in enumerate(ranks.items())
        for k, level, side in ((low, (0.95,), "lower"), (high, (0.9,), "upper"))
    ]
    own = parted(*parts, level=(0.85,), n=1000, delta=0.1, by="g")
    a, b, c = (beta.ppf(0.025, k, n + 1 - k) for k, n in ((580, 600), (560, 600), (390, 400)))
    expected = 1 - (Fraction(21, 601) + Fraction(41, 601))
    assert own.lines("cqr") == [
        "Promise: with 90% confidence, at most 5% of all new rows in each group (g) lie below their intervals, and at "
        "most 10% above, in all 2 groups at once.",
        "How: cqr moved the lower and upper bounds of each group just far enough to contain enough of its calibration "
        "rows (1,000 calibration rows in all). The intervals are infinite in 1 of 2 groups: 'g = b'.",
        f"Coverage: at least {down(expected)} is expected in each group. For these calibration rows it is at least "
        f"{down(min(a + b - 1, c))} in each group, with 90% confidence, for all groups at once.",
        f"  g = a: 600 calibration rows; lower bounds: 580 inside, coverage at least {down(a)}; upper bounds: 560 "
        f"inside, coverage at least {down(b)}",
        f"  g = b: 400 calibration rows; lower bounds: 390 inside, coverage at least {down(c)}; upper bounds: infinite",
        OUTSIDE,
        f"{IID}distributed).",
        NOT_GROUPS,
    ]
    assert own.not_promised()[-1] == (
        "Certainty. Up to 10% of possible calibration sets give intervals that cover fewer rows."
    )
    # bounds of a few rows that add up to more misses than there are rows say nothing
    few = [Part(one(MarginalPromise, 3, 1, level=(0.2,)), side=side) for side in ("lower", "upper")]
    assert parted(*few, level=(0.1,), n=3).coverage_bound(0.1) == (0.0,)


def test_a_choice_among_candidates_is_paid_by_every_group():
    own = parted(*(Part(one(PacPromise, 500, 465, delta=0.1), i, f"g = {i}") for i in range(13)), n=6500, by="g")
    own = own.chosen_among(2, 0.2)
    bound = beta.ppf(0.2 / 13 / 2, 465, 36)
    assert own.delta == 0.2
    assert own.chosen_from == 2
    assert [part.promise.delta for part in own.parts] == pytest.approx([0.2 / 13] * 13)
    said = own.lines("cqr")
    assert said[0] == (
        "Promise: with 80% confidence, at least 90% of all new rows in each group (g) fall inside their intervals, in "
        "all 13 groups at once."
    )
    assert said[1].endswith(
        "(6,500 calibration rows in all). This is one of 2 candidates, chosen by these calibration rows. The promise "
        "holds for whichever you choose."
    )
    assert f"it is at least {down(bound)} in each group, with 80% confidence, for all groups at once." in said[2]
    line = f": 500 calibration rows, 465 inside, coverage at least {down(bound)}"
    assert said[3:16] == [*(f"  g = {i}{line}" for i in range(11)), "  2 more groups: see certificate.groups.", OUTSIDE]
    twelve = parted(*own.parts[:12], n=6000, by="g", delta=0.1).lines("cqr")
    assert twelve[14].startswith("  g = 11: 500 calibration rows")
    alone = parted(own.parts[0], n=500, by="g", delta=0.1).lines("cqr")
    assert alone[0].endswith("in each group (g) fall inside their intervals.")
    side = parted(Part(one(PacPromise, 500, 465, delta=0.1), side="lower"), n=500).chosen_among(2, 0.1)
    assert side.lines("cqr")[1].endswith(
        " of the 500 calibration rows. This is one of 2 candidates, chosen by these calibration rows. The promise "
        "holds for whichever you choose."
    )


def test_groups_that_overlap_have_no_bound_to_state():
    parts = (
        Part(one(OverlapPromise, 500, 451), 0, "a", width=(2.0,), plain_width=(4.0,)),
        Part(one(OverlapPromise, 1000, 901), 1, "b"),
    )
    said = parted(*parts, by="a, b").lines("cqr")
    assert said[2:7] == [
        "Coverage: at least 90% is expected in each group.",
        "  a: 500 calibration rows, mean width 2 (50.0% narrower than with one promise for all rows)",
        "  b: 1,000 calibration rows",
        OUTSIDE,
        ASSUMES.partition(" The figure")[0],
    ]
    assert parted(*parts, by="a, b").not_promised()[-1] == "The level for every calibration set."


def test_what_holds_of_all_parts_is_handed_to_each():
    assert [part.promise.extended for part in two_sides().widened().parts] == [True, True]
    assert [part.promise.n_rows for part in two_sides().of_entities("patient", 5000).parts] == [5000, 5000]
    assert two_sides().of_entities("patient", 5000).n_rows == 5000
    assert (THREE.guarantee, two_sides().chosen_from, THREE.is_parted) == ("marginal", 1, True)
    assert THREE.assumption == two_sides().assumption == THREE.parts[0].promise.assumption


@pytest.mark.parametrize(
    ("change", "is_valid"),
    [
        ({"group": None}, True),
        ({"group": 0}, True),
        ({"group": 2**31 - 1}, True),
        ({"group": -1}, False),
        ({"group": 2**31}, False),
        ({"group": "0"}, False),
        ({"side": "upper"}, True),
        ({"side": "sideways"}, False),
        ({"name": 7}, False),
    ],
)
def test_a_part_from_a_file_is_about_a_group_with_a_number_and_a_side(change, is_valid):
    fields = two_sides().to_dict()
    fields["parts"][0] |= change
    if is_valid:
        assert PartedPromise.from_dict(fields).to_dict()["parts"][0] == fields["parts"][0]
    else:
        with pytest.raises(ValueError, match="a part of a promise"):
            PartedPromise.from_dict(fields)
