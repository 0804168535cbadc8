"""An explanation in words, by column, as a table, as JSON and as a picture."""

import json
from dataclasses import FrozenInstanceError

import matplotlib as mpl
import numpy as np
import pytest

import guardband as gb
from guardband.explain.bars import bars_of

COLUMNS = ("district", "area", "built", "rooms")


def explanation(**changes):
    own = {
        "columns": COLUMNS,
        "cells": (("old town", "240", "1990", "missing"), ("north", "80", "2001", "3")),
        "rows": np.array([17, 4]),
        "confidence_level": 0.9,
        "widths": np.array([230_000.0, 120_000.0]),
        "points": np.array([500_000.0, 200_000.0]),
        "base_width": 140_000.0,
        "base_point": 300_000.0,
        "width": np.array([[70_000.0, 30_000, -10_000, 0], [-20_000, 0, 0, 0]]),
        "point": np.array([[50_000.0, 149_000, 700, 300], [-40_000, -60_000, 0, 0]]),
        "width_error": np.array([[2_500.0, 200, 0, 0], [0, 0, 0, 0]]),
        "point_error": np.zeros((2, 4)),
        "exact": False,
        "n_background": 100,
    }
    return gb.Explanation(**own | changes)


def test_words_say_how_wide_and_which_columns_add_and_take_away():
    assert explanation().in_words(0) == (
        "This interval is 230,000 wide, 90,000 more than average. "
        "district = old town adds 70,000 (± 5,000), area = 240 adds 30,000. built = 1990 takes 10,000 away. "
        "The prediction is 500,000, 200,000 more than average. "
        "area = 240 adds 149,000, district = old town adds 50,000, built = 1990 adds 1,000."
    )
    assert explanation().in_words(1, of="width") == (
        "This interval is 120,000 wide, 20,000 less than average. district = north takes 20,000 away."
    )
    assert str(explanation()) == "\n".join(explanation().in_words(i) for i in range(2))


def test_columns_beyond_the_largest_are_added_up():
    words = explanation().in_words(0, of="width", most=1)
    assert words.endswith("district = old town adds 70,000 (± 5,000). The 3 other columns add 20,000.")
    words = explanation(width=np.array([[70_000.0, 30_000, -10_000, 0]] * 2)).in_words(0, of="width", most=2)
    assert words.endswith("The 2 other columns take 10,000 away.")
    one = explanation(columns=COLUMNS[:2], width=np.array([[70_000.0, 20_000]] * 2))
    assert one.in_words(0, of="width", most=1).endswith("The 1 other column adds 20,000.")


def test_words_are_plain_where_nothing_changes_a_width():
    same = explanation(widths=np.full(2, 140_000.0), width=np.zeros((2, 4)))
    assert same.in_words(0, of="width") == "This interval is 140,000 wide, about the average. No column changes it."
    little = explanation(widths=np.full(2, 140_000.0), width=np.full((2, 4), 1.0))
    assert little.in_words(0, of="width").endswith("No column changes it much.")
    nothing = explanation(widths=np.zeros(2), base_width=0.0, width=np.zeros((2, 4)))
    assert nothing.in_words(0, of="width") == "This interval is 0 wide, about the average. No column changes it."


def test_no_sentence_has_more_than_twenty_words():
    for i in range(2):
        for sentence in explanation().in_words(i).split(". "):
            assert len(sentence.replace("= ", "").split()) <= 20


def test_long_names_and_signs_that_act_on_a_terminal_are_harmless():
    own = explanation(columns=("x" * 500, "a\x1b[31m\nb", "built", "rooms"))
    words = own.in_words(0)
    assert "x" * 41 not in words
    assert "\x1b" not in words
    assert "\n" not in words


def test_columns_are_sorted_by_their_mean_absolute_contribution():
    assert explanation().by_column() == {"district": 45_000, "area": 15_000, "built": 5_000, "rooms": 0}
    assert list(explanation().by_column("point"))[:2] == ["area", "district"]
    with pytest.raises(ValueError, match='of must be "width" or "point", found \'size\''):
        explanation().by_column("size")


def test_the_table_has_a_line_for_each_row_and_column():
    table = explanation().to_pandas()
    assert len(table) == 8
    assert table.loc[1].to_dict() == {
        "row": 17,
        "column": "area",
        "value": "240",
        "width": 30_000,
        "width_error": 200,
        "point": 149_000,
        "point_error": 0,
    }


def test_everything_can_be_stored_as_json():
    stored = json.loads(json.dumps(explanation().to_dict(), allow_nan=False))
    assert stored["columns"] == list(COLUMNS)
    assert stored["width"][0] == [70_000, 30_000, -10_000, 0]
    assert set(stored) == set(gb.Explanation.__dataclass_fields__)


def test_an_explanation_cannot_be_changed_and_is_short_to_print():
    with pytest.raises(FrozenInstanceError):
        explanation().exact = True
    assert len(explanation()) == 2
    assert len(repr(explanation())) < 300


def test_bars_are_the_largest_contributions_and_the_sum_of_the_others():
    bars = bars_of(explanation(), 0, "width", 2)
    assert [(bar.label, bar.value) for bar in bars] == [
        ("district = old town", 70_000),
        ("area = 240", 30_000),
        ("2 other columns", -10_000),
    ]
    assert sum(bar.value for bar in bars) == pytest.approx(explanation().width[0].sum())


@pytest.mark.parametrize("of", ["width", "point"])
def test_the_picture_shows_the_contributions(of):
    mpl.use("agg")
    from matplotlib import pyplot

    ax = explanation().plot(0, of=of, most=3)
    shown = [bar.get_width() for bar in ax.patches]
    assert shown == [bar.value for bar in bars_of(explanation(), 0, of, 3)]
    assert ax.get_xlabel() == ("added to the width" if of == "width" else "added to the prediction")
    assert explanation(columns=("$a$", *COLUMNS[1:])).plot(0, ax=ax) is ax
    ax.figure.canvas.draw()
    pyplot.close(ax.figure)
