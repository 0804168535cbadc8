"""Periods: the unit follows from the span of dates."""

from dataclasses import replace

import numpy as np
import pytest

from guardband.audit.audit import audit
from guardband.audit.periods import MOST_PERIODS, ROWS_A_PERIOD, UNITS, unit_for
from guardband.data.table import Column
from judged import evidence_of

FIRST = 19_723.0  # the first of January 2024, a Monday


def over(span, n=4000):
    return FIRST + np.linspace(0, span, n, endpoint=False)


@pytest.mark.parametrize(
    ("days", "unit", "first", "last"),
    [
        (1, "hour", "2024-01-01 00:00", "2024-01-01 23:00"),
        (7, "day", "2024-01-01", "2024-01-07"),
        (31, "day", "2024-01-01", "2024-01-31"),
        (91, "week", "2024-01-01", "2024-03-25"),
        (366, "month", "2024-01", "2024-12"),
        (2 * 365, "month", "2024-01", "2025-12"),
        (5 * 365, "quarter", "2024 Q1", "2028 Q4"),
        (20 * 365, "year", "2024", "2043"),
    ],
)
def test_the_unit_follows_from_the_span(days, unit, first, last):
    own = unit_for(over(days))
    assert own.name == unit
    title, bins = own.periods(over(days), "sold")
    assert title == f"By {unit} of sold"
    assert (bins.labels[0], bins.labels[-1]) == (first, last)
    assert 1 < len(bins.labels) <= MOST_PERIODS


def test_few_rows_get_coarser_periods():
    for n in (40, 150, 400):
        _, bins = unit_for(over(366, n)).periods(over(366, n), "sold")
        assert n / len(bins.labels) >= ROWS_A_PERIOD
    assert unit_for(over(366, 15)) is None
    assert unit_for(np.full(500, FIRST)) is None
    assert unit_for(over(100 * 365)) is None


def test_periods_agree_with_the_calendar():
    rng = np.random.default_rng(0)
    days = rng.uniform(-20_000, 40_000, 500)
    moments = (days * 86_400e6).astype("datetime64[us]")
    by_name = {unit.name: unit for unit in UNITS}
    for name, code in (("hour", "h"), ("day", "D"), ("month", "M"), ("year", "Y")):
        np.testing.assert_array_equal(by_name[name].number(days), moments.astype(f"datetime64[{code}]").astype(int))
    weeks = by_name["week"].number(days)
    for week, moment in zip(weeks, moments, strict=True):
        monday = np.datetime64(by_name["week"].words(int(week)))
        assert monday.astype(object).isoweekday() == 1
        assert 0 <= (moment - monday) / np.timedelta64(1, "D") < 7
    assert by_name["quarter"].words(int(by_name["quarter"].number(np.array([FIRST + 120]))[0])) == "2024 Q2"


def test_an_hour_that_floating_point_cannot_hold_is_that_hour():
    hours = np.arange(24 * 400)
    (unit,) = (own for own in UNITS if own.name == "hour")
    np.testing.assert_array_equal(unit.number(FIRST + hours / 24), 24 * int(FIRST) + hours)


def test_missing_dates_come_last_and_gaps_are_left_out():
    days = np.r_[over(31, 300), np.nan, over(31, 300) + 121]
    _, bins = unit_for(days).periods(days, "sold")
    assert bins.labels == ("2024-01-01", "2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29", "2024-04-29",
                           "2024-05-06", "2024-05-13", "2024-05-20", "2024-05-27", "missing")  # fmt: skip
    assert bins.stratum_of[300] == 10


def test_coverage_by_month_is_counted_and_a_bad_month_is_marked():
    evidence = evidence_of(3000)
    days = over(366, 3000)
    july = (days >= FIRST + 182) & (days < FIRST + 213)
    evidence.y[july] += 3
    evidence = replace(evidence, time=Column("sold", days, "date"))
    (family,) = (own for own in audit(evidence).families if own.key == "time")
    assert (family.title, family.compared) == ("By month of sold", 12)
    assert sum(own.n for own in family.strata) == 3000
    assert [own.label for own in family.strata if own.flag == "low"] == ["2024-07"]
    covered = evidence.covered[:, 0]
    assert family.strata[6].covered == int(covered[july].sum())
