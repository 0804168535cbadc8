"""What the page says to do follows from the verdict and its figures."""

from dataclasses import replace
from typing import get_args

import pytest

from guardband.audit.verdict import VerdictKind
from guardband.report.advice import MOST_GROUPS, Findings, LowGroup, PromisedGroup, StepKind, steps

GOOD = Findings("consistent", 0.9, 1000, groups=20)
OLD_TOWN = LowGroup("rows with district: old town", 78, 100, 84)


def told(found):
    return [step.kind for step in steps(found)]


CASES = {
    "consistent": (GOOD, ["use"]),
    "wider than needed": (replace(GOOD, above=True), ["use", "recalibrate"]),
    "low group": (replace(GOOD, low_groups=(OLD_TOWN,)), ["use", "look"]),
    "one width": (replace(GOOD, one_width=True), ["use", "change"]),
    "one width, in Python": (replace(GOOD, one_width=True, python_only=True), ["use", "change"]),
    "changed column": (replace(GOOD, drifted=("area", "built")), ["use", "look"]),
    "broken": (replace(GOOD, status="broken"), ["stop", "recalibrate"]),
    "broken in one group": (replace(GOOD, status="broken", low_groups=(OLD_TOWN,)), ["stop", "recalibrate", "look"]),
    "broken everywhere": (
        replace(GOOD, status="broken", low_groups=(OLD_TOWN,) * 12, drifted=("area",)),
        ["stop", "recalibrate", "look"],
    ),
    "few test rows": (
        replace(GOOD, status="too few rows", reason="few test rows", more_rows=38),
        ["collect", "check"],
    ),
    "very few test rows": (replace(GOOD, status="too few rows", reason="few test rows"), ["collect", "check"]),
    "few calibration rows": (
        replace(GOOD, status="too few rows", reason="few calibration rows"),
        ["recalibrate", "check"],
    ),
    "infinite": (
        replace(GOOD, status="cannot judge", reason="infinite", infinite=True, calibration_rows=8, rows_needed=9),
        ["collect"],
    ),
    "infinite, lower level known": (
        replace(
            GOOD,
            status="cannot judge",
            reason="infinite",
            infinite=True,
            calibration_rows=8,
            rows_needed=9,
            highest_level=0.88,
        ),
        ["collect", "change"],
    ),
    "infinite, rows needed not known": (
        replace(GOOD, status="cannot judge", reason="infinite", infinite=True),
        ["collect"],
    ),
    "infinite outputs": (
        replace(GOOD, status="cannot judge", reason="infinite", infinite=True, rows_needed=0),
        ["change"],
    ),
    "another level infinite": (
        replace(GOOD, status="cannot judge", reason="infinite", level=0.99, calibration_rows=60, rows_needed=99),
        ["collect"],
    ),
    "used rows": (replace(GOOD, status="cannot judge", reason="used rows"), ["check"]),
    "no promise": (replace(GOOD, status="cannot judge", reason="no promise"), ["change"]),
    "no law": (replace(GOOD, status="cannot judge", reason="no law"), ["change"]),
    "dependent rows": (replace(GOOD, status="cannot judge", reason="dependent rows"), ["change"]),
    "unchecked": (Findings("unchecked", 0.9, 1000), ["check"]),
    "unchecked, infinite": (Findings("unchecked", 0.9, 8, infinite=True, rows_needed=9), ["collect"]),
}


@pytest.mark.parametrize("name", CASES)
def test_each_case_has_its_steps(name):
    found, kinds = CASES[name]
    assert told(found) == kinds
    for step in steps(found):
        assert step.title[0].isupper()
        assert step.words.endswith(".")
        assert not step.title.endswith(".")


def test_every_verdict_and_every_kind_of_step_is_covered():
    assert {found.status for found, _ in CASES.values()} == {*get_args(VerdictKind), "unchecked"}
    assert {kind for _, kinds in CASES.values() for kind in kinds} == set(get_args(StepKind))


def words(name):
    return " ".join(f"{step.title}. {step.words}" for step in steps(CASES[name][0]))


def test_steps_name_their_figures():
    assert "Collect about 40 more test rows." in words("few test rows")
    assert "Collect 1 more calibration row. The model has 8. 90% intervals need at least 9." in words("infinite")
    assert "intervals are finite up to 88%" in words("infinite, lower level known")
    assert "Collect 39 more calibration rows. The model has 60. 99% intervals need" in words("another level infinite")
    assert "Look at rows with district: old town. Only 78.0% of these 100 rows fell inside." in words("low group")
    assert "Look at what changed: area and 1 more." in words("changed column")
    assert "1,000 calibration rows" in words("few calibration rows")


def test_intervals_of_one_width_come_with_how_to_make_them_adapt():
    assert (
        "All intervals have the same width. Pass residuals= or quantile models to gb.calibrate to get intervals that "
        "adapt to each row."
    ) in words("one width, in Python")
    assert "All intervals have the same width. Use method conf-nn, or" in words("one width")


@pytest.mark.parametrize("name", ["broken", "few test rows", "very few test rows", "unchecked"])
def test_no_command_is_named_if_only_python_loads_the_model(name):
    found, _ = CASES[name]
    own, python = (" ".join(step.words for step in steps(one)) for one in (found, replace(found, python_only=True)))
    assert "guardband audit" in own
    assert "guardband audit" not in python
    assert ("gb.calibrate in Python" if name == "broken" else "model.audit(X, y) in Python") in python


def test_a_broken_promise_is_never_followed_by_use():
    for found, kinds in CASES.values():
        assert ("use" in kinds) == (found.status == "consistent")


def test_of_many_groups_few_are_named():
    many = tuple(replace(OLD_TOWN, title=f"district: {i}") for i in range(MOST_GROUPS + 2))
    found = steps(replace(GOOD, low_groups=many))
    assert len(found) == 1 + MOST_GROUPS + 1
    assert found[-1].title == "2 more groups have low coverage"


def test_a_broken_group_is_named_and_the_others_may_be_relied_on():
    groups = (PromisedGroup("town = Linz", 100, broken=True), PromisedGroup("town = Graz", 100))
    first, second, *_ = steps(replace(GOOD, status="broken", promised_groups=groups))
    assert first.title == "Do not rely on the intervals of rows with 'town = Linz'"
    assert first.words == "New rows of this group fall inside less often than promised."
    assert second.kind == "recalibrate"


@pytest.mark.parametrize("status", ["consistent", "unchecked", "broken"])
def test_a_small_group_needs_rows_or_a_pool(status):
    small = [PromisedGroup(f"shop = {i}", 5, needed, infinite=True) for i in range(5) for needed in (9, 6)]
    groups = (*small, PromisedGroup("shop = all", 50, 9))
    found = steps(replace(GOOD, status=status, promised_groups=groups))
    collected = [own for own in found if own.kind == "collect"]
    assert collected[0].title == "Collect 4 more calibration rows with shop = 0"
    assert [own.title for own in collected][-1] == "2 more groups have too few calibration rows"
    assert len(collected) == 4
    (pool,) = [own for own in found if own.title == "Or pool small groups"]
    assert "--small-groups pool" in pool.words
    in_python = steps(replace(GOOD, status=status, promised_groups=groups, python_only=True))
    assert any('small_groups="pool"' in own.words for own in in_python)
