"""The table of groups says how wide intervals are: on calibration rows if that is known, else on test rows."""

import pytest

from guardband.cli.group_table import _width


@pytest.mark.parametrize(
    ("known", "on_test_rows", "infinite", "said"),
    [
        (2.5, 3.5, False, "2.5"),
        (None, 3.5, False, "3.5"),
        (None, None, False, "infinite"),
        (None, 3.5, True, "infinite"),
    ],
)
def test_a_width_that_calibration_did_not_keep_is_that_of_the_test_rows(known, on_test_rows, infinite, said):
    line = {"mean_width": known, "infinite": infinite, "found": {"mean_width": on_test_rows}}
    assert _width(line) == said


def test_without_test_rows_a_width_that_nobody_knows_is_left_out():
    assert _width({"mean_width": None, "infinite": False, "found": None}) == ""
