import re

import numpy as np
import pandas as pd
import pytest

import guardband as gb
from guardband.bands import interval_table
from notebook_html import MEAN, shown
from promised import certificate

INF = np.inf


def bands(lower, point, upper, level=0.9, **more):
    return gb.Intervals(*(np.array(side, dtype=float) for side in (lower, point, upper)), level, **more)


def many(n, **more):
    point = np.arange(n, dtype=float)
    return bands(point - 1, point, point + 2, **more)


def ends(html):
    """Return where each bar begins and ends."""
    return [(min(found), max(found)) for found in places(html)]


def places(html):
    """Return the places on the axis that the outline of each bar goes through."""
    outlines = re.findall(r'd="([^"]*)"', html)
    return [[float(x) for x in re.findall(r"[MLH](-?[\d.]+)", outline)] for outline in outlines]


def test_a_table_shows_every_row_of_few():
    found = shown(many(11))
    assert found.count("svg") == 11
    assert "more rows" not in found.text
    assert found.text.startswith("11 intervals, confidence level 90% row")


def test_a_table_shows_the_first_and_the_last_rows_of_many():
    found = shown(many(1000))
    assert found.count("svg") == 10
    assert "… 990 more rows" in found.text
    labels = re.findall(r'class="text">(\d+)</th>', many(1000)._repr_html_())
    assert labels == ["0", "1", "2", "3", "4", "995", "996", "997", "998", "999"]


def test_only_the_shown_rows_are_looked_at(monkeypatch):
    seen = []
    monkeypatch.setattr(interval_table._Axis, "__init__", lambda self, values: seen.append(len(values)) or finite(self))

    def finite(axis):
        axis.low, axis.high = 0.0, 1.0

    many(100_000)._repr_html_()
    assert seen == [30]


def test_bars_lie_where_the_intervals_lie_on_one_axis():
    html = bands([0, 5], [1, 7], [5, 10])._repr_html_()
    (left, middle), (start, right) = ends(html)
    assert (left, right) == (8, 212)  # the margins are for infinite ends
    assert middle == start == pytest.approx(110)
    assert re.findall(r'class="point" x1="([\d.]+)"', html) == ["28.4", "150.8"]
    assert "zero" not in re.sub("<style>.*</style>", "", html, flags=re.DOTALL)


def test_infinite_ends_are_shown_as_arrows_and_in_words():
    made = bands([-INF, 0, -INF], [1, 1, 1], [2, INF, INF])
    assert [(low, high) for low, high in ends(made._repr_html_())] == [(0, 212), (8, 220), (0, 220)]
    assert "\N{MINUS SIGN}∞" in shown(made).text
    assert "from 0 to ∞" in made._repr_html_()


@pytest.mark.parametrize(
    "made",
    [
        bands([-INF], [np.nan], [INF]),
        bands([-INF, -INF], [-INF, INF], [INF, INF]),
        bands([2.0], [2.0], [2.0]),
        bands([np.nan], [np.nan], [np.nan]),
        bands([-1.7e308], [0.0], [1.7e308]),
        bands([], [], []),
        bands([5e-324], [5e-324], [1e-323]),
    ],
    ids=["infinite", "infinite points", "no width", "missing", "huge", "no rows", "tiny"],
)
def test_rows_of_any_kind_are_shown(made):
    found = shown(made)
    assert found.count("svg") == len(made)
    assert not re.findall(r'(?:x1|d)="[^"]*(?:nan|inf)', made._repr_html_())


def test_several_levels_lie_inside_each_other():
    made = bands([[1, 0]], [3], [[4, 5]], (0.5, 0.9))
    found = shown(made)
    assert "confidence levels 50%, 90%" in found.text
    assert "lower 90% lower 50% prediction upper 50% upper 90%" in found.text
    assert found.text.endswith("0.0 1.0 3.0 4.0 5.0")
    (wide, narrow) = ends(made._repr_html_())
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_of_many_levels_the_widest_are_shown():
    levels = (0.5, 0.6, 0.7, 0.8, 0.9)
    found = shown(bands(np.zeros((2, 5)), [1, 1], np.full((2, 5), 2), levels))
    assert "lower 90% lower 80% lower 70% prediction" in found.text
    assert "2 more levels are not shown. Call to_pandas() or to_polars() to see all of them." in found.text


def test_numbers_have_the_decimals_that_tell_the_ends_apart():
    assert "1,013.100 1,013.250 1,013.400" in shown(bands([1013.1], [1013.25], [1013.4])).text
    assert "324,125 490,778 694,001" in shown(bands([324125.2], [490777.7], [694001.1])).text
    assert "2e-12 3e-12".replace("-", "\N{MINUS SIGN}") in shown(bands([1e-12], [2e-12], [3e-12])).text


def test_names_from_a_table_are_escaped():
    made = bands([0.0], [1.0], [2.0], index=pd.Index([MEAN]), unlike_words=f"Column {MEAN} is new.")
    assert shown(made).text.count(MEAN) == 2


def test_the_promise_stands_below():
    own = certificate("marginal", "conf-nn", 0.9, 1000, rank=901)
    assert shown(bands([0.0], [1.0], [2.0], certificate=own)).text.endswith(own.promise.headline("conf-nn"))
