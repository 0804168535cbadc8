"""Boxes: the intervals of several targets."""

import numpy as np
import pandas as pd
import pytest

import guardband as gb
from notebook_html import Read


@pytest.fixture
def boxes():
    point = np.arange(6.0).reshape(3, 2)
    return gb.Boxes(point - 1, point, point + 2, 0.9, ("price", "days"), index=pd.Index(["x", "y", "z"]))


def test_a_row_is_inside_if_all_its_targets_are(boxes):
    y = boxes.point.copy()
    y[1, 0] += 2.5
    assert boxes.contains(y).tolist() == [True, False, True]
    frame = pd.DataFrame(y[:, ::-1], columns=["days", "price"], index=boxes.index)
    assert boxes.contains(frame).tolist() == [True, False, True]
    with pytest.raises(ValueError, match="one column for each of 2 targets"):
        boxes.contains(y[:, 0])


def test_a_name_gives_the_ordinary_intervals_of_a_target(boxes):
    days = boxes["days"]
    assert isinstance(days, gb.Intervals)
    np.testing.assert_array_equal(days.upper, boxes.upper[:, 1])
    assert [own.point.tolist() for own in boxes] == boxes.point.T.tolist()
    with pytest.raises(KeyError, match="Choose one of 'price', 'days'"):
        boxes["size"]


def test_rows_give_fewer_boxes(boxes):
    assert boxes[1:].point.tolist() == boxes.point[1:].tolist()
    assert boxes[1].index.tolist() == ["y"]
    assert len(boxes[boxes.contains(boxes.point)]) == 3
    with pytest.raises(IndexError, match="Choose rows by"):
        boxes[7]


def test_tables_have_three_columns_for_each_target(boxes):
    names = ["price_point", "price_lower", "price_upper", "days_point", "days_lower", "days_upper"]
    table = boxes.to_pandas()
    assert table.columns.tolist() == names
    assert table.index.tolist() == ["x", "y", "z"]
    assert boxes.to_polars().columns == names
    taken = gb.Boxes(boxes.lower, boxes.point, boxes.upper, 0.9, boxes.targets, input_names=("price_point",))
    assert next(iter(taken.columns())) == "guardband_price_point"
    with pytest.raises(ValueError, match="remove unlike=True"):
        boxes.columns(unlike=True)


def test_several_levels_have_an_axis_of_their_own(boxes):
    both = gb.Boxes(
        np.stack([boxes.lower, boxes.lower - 1], -1),
        boxes.point,
        np.stack([boxes.upper, boxes.upper + 1], -1),
        (0.8, 0.95),
        boxes.targets,
    )
    assert both.contains(boxes.point + 2.5).tolist() == [[False, True]] * 3
    assert both["price"].width.shape == (3, 2)
    assert "price_lower_0.8" in both.columns()


def test_few_rows_are_shown_of_each_target(boxes):
    assert repr(boxes).startswith("3 rows with 2 targets, confidence level 90%\n\nprice: 3 intervals")
    assert "days" in Read(boxes._repr_html_()).text
