"""Rows with a known outcome, as files bring them."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from guardband.cli.console import Speaker
from guardband.cli.labelled import read_labelled
from guardband.data.disk import open_table

N = 40


def read(path, column, **roles):
    """Return the rows of a table with a number x, a target y and one more column, c."""
    x = np.arange(N, dtype=float)
    parquet.write_table(pa.table({"x": x, "y": x}).append_column("c", column), path / "t.parquet")
    return read_labelled(open_table(str(path / "t.parquet")), ["x"], roles.pop("target", "y"), Speaker(True), **roles)


@pytest.mark.parametrize("name", ["fit", "audit"])
def test_an_infinite_target_is_named_with_its_row_in_the_file(command, small_model, tmp_path, name):
    lines = small_model.path.read_text().splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ","  # a row that is left out counts too
    lines[31] = lines[31].rsplit(",", 1)[0] + ",-inf"
    (tmp_path / "t.csv").write_text("\n".join(lines))
    model = [small_model.model_path] if name == "audit" else []
    said = command(name, *model, tmp_path / "t.csv", "-t", "price")
    assert f"The target 'price' must hold finite numbers, found -inf in row 31 of {tmp_path}" in said.complaint


def test_a_target_of_numbers_written_as_text_is_read(tmp_path):
    rows = read(tmp_path, pa.array([f"{i}.5" for i in range(N - 1)] + [None]), target="c")
    assert rows.y.to_list() == [i + 0.5 for i in range(N - 1)]
    assert rows.row_numbers.tolist() == list(range(1, N))


def test_whole_numbers_of_any_size_are_a_target(tmp_path):
    assert read(tmp_path, pa.array([2**60 + 1] * N), target="c").y.to_list() == [2.0**60] * N


@pytest.mark.parametrize(
    "column",
    [
        pa.array([dt.date(9999, 12, 31 - i % 2) for i in range(N)]),
        pa.array([10**18 - i % 2 * 1001 for i in range(N)], pa.timestamp("ns")),
        pa.array([10**18 - i % 2 * 1001 for i in range(N)], pa.timestamp("ns", "Europe/Vienna")),
        pa.array([2**60 - i % 2 * 1024 for i in range(N)]),
        pa.array([2**63 + (1 - i % 2) * 2048 for i in range(N)], pa.uint64()),
    ],
    ids=lambda column: str(column.type),
)
def test_far_dates_fine_moments_and_large_numbers_order_rows(tmp_path, column):
    numbers = read(tmp_path, column, time="c").numbers("c")
    assert (numbers[0::2] > numbers[1::2]).all()


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pa.array([f"{1 + i % 12:02}/31/2020" for i in range(N)]), "text"),
        (pa.array(["a", "b"] * (N // 2)).dictionary_encode(), "categories"),
        (pa.array([True, False] * (N // 2)), "bool"),
        (pa.array([dt.timedelta(hours=i) for i in range(N)]), "duration[us]"),
        (pa.array([dt.time(i % 24) for i in range(N)]), "time64[us]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_time_is_a_date_or_a_number(tmp_path, column, found):
    with pytest.raises(ValueError, match="The column 'c' of --time must hold numbers or dates") as error:
        read(tmp_path, column, time="c")
    assert str(error.value).endswith(f"found {found}. Correct it, or name another column.")


def test_both_commands_refuse_a_time_of_text(command, small_model, tmp_path):
    table = small_model.table.append_column("when", pa.array(["01/31/2020"] * len(small_model.table)))
    csv.write_csv(table, tmp_path / "t.csv")
    for arguments in (["fit", tmp_path / "t.csv"], ["audit", small_model.model_path, tmp_path / "t.csv"]):
        said = command(*arguments, "-t", "price", "--time", "when", "-q")
        assert "The column 'when' of --time must hold numbers or dates such as 2024-12-31" in said.complaint


def test_a_missing_moment_is_named_with_its_row_in_the_file(tmp_path):
    moments = [float(i) for i in range(N - 1)] + [None]
    rows = read(tmp_path, pa.array(moments), time="c").take(np.arange(20, N))
    with pytest.raises(ValueError, match="missing value in row 40"):
        rows.numbers("c")
