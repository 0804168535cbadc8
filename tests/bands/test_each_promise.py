"""The promise for each of several targets: what it says holds for each of them, also if some rows lack a target."""

import pytest

from guardband.bands.each_promise import EachPromise
from guardband.bands.promise import Part
from guardband.bands.rank_promise import MarginalPromise, PacPromise

SHARED = {"confidence_level": (0.5, 0.9), "n_calibration": 99, "whole_line": (False, False)}
MANY = MarginalPromise(**SHARED, rank=(50, 90))
FEW = MarginalPromise(**SHARED | {"n_calibration": 8, "whole_line": (False, True)}, rank=(5, 9))


def each(*own, **more):
    return EachPromise(**SHARED, names=("price", "days"), of_each=own, **more)


@pytest.mark.parametrize("own", [each(MANY, FEW), each(FEW, MANY)])
def test_numbers_are_those_of_the_target_about_which_least_is_known(own):
    assert own.expected_coverage() == (0.5, 0.9)
    for delta in (0.1, 0.5):
        pairs = zip(MANY.coverage_bound(delta), FEW.coverage_bound(delta), strict=True)
        assert own.coverage_bound(delta) == tuple(map(min, pairs))
    assert own.expectations() == FEW.expectations()
    assert own.some_infinite == (False, True)
    assert own.counted == "up to 99 calibration rows"
    assert "coverage is at least 34.46% with 90% confidence" in own.not_promised()[-1]
    assert own.not_promised()[0] == 'Coverage of all targets at once. For that, use targets="joint".'
    assert own.not_promised()[1:] == FEW.not_promised()


def test_each_target_has_lines_of_its_own_unless_all_are_alike():
    alone, fewer = MANY.lines("cqr"), FEW.lines("cqr")
    promised = f"{alone[0].removesuffix('.')}, for each target separately ('price', 'days')."
    last = alone[4].replace("Not promised: ", "Not promised: coverage of all targets at once, ")
    missing = " The promise assumes that whether a target is missing has nothing to do with the row."
    assert each(MANY, MANY).lines("cqr") == [promised, *alone[1:4], last]
    assert each(MANY, FEW).lines("cqr") == [
        promised,
        *(f"price: {line}" for line in alone[1:3]),
        *(f"days: {line}" for line in fewer[1:3]),
        alone[3] + missing,
        last,
    ]
    assert each(MANY, MANY).counted == "99 calibration rows"
    assert each(MANY, FEW).headline("cqr") == f"For each of 2 targets separately: {MANY.headline('cqr')}"


def test_what_is_asked_of_one_target_is_answered_by_its_own_promise():
    own = each(MANY, FEW)
    assert own.statements() == (Part(MANY, name="price"), Part(FEW, name="days"))
    assert [own.of_target(j) for j in range(own.n_targets)] == [MANY, FEW]
    assert own.is_of_each_target
    assert (own.guarantee, own.assumption) == ("marginal", MANY.assumption)
    assert each(*[PacPromise(**SHARED, rank=(58, 95), delta=0.1)] * 2, delta=0.1).guarantee == "pac"


def test_targets_and_entities_are_handed_on():
    own = each(MANY, MANY)
    assert own.with_targets((FEW, MANY), FEW) == EachPromise(
        confidence_level=(0.5, 0.9),
        n_calibration=8,
        whole_line=(False, False),
        names=("price", "days"),
        of_each=(FEW, MANY),
    )
    assert own.with_targets((FEW, FEW), MANY).whole_line == (False, True)
    together = own.of_entities("patient", 300)
    assert (together.entity, together.n_rows) == ("patient", 300)
    assert together.of_each == (MANY.of_entities("patient", 300),) * 2
