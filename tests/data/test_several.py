"""Excel sheets, CSV inside zip files, and several files of one table."""

import datetime
import io
import sys
import zipfile

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from excel_files import Fault, write_xlsx
from guardband.data import csv_file
from guardband.data.several import open_tables, paths_in
from guardband.data.typed_columns import typed
from guardband.data.whole_table import read_whole

DAY, MOMENT = datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 12, 30)
SHEET = [
    ["number", "text", "yes", "day", "moment", "mixed", "as text"],
    [1.5, "a", True, DAY, MOMENT, 1, "1"],
    [None, None, None, None, None, "NA", "2,5"],
    [],
    [3, "b", False, DAY, MOMENT, 2.5, "n/a"],
    [4, "NA", False, DAY, MOMENT, 3, " "],
]


def read(*paths, sheet=None):
    disk = open_tables([str(path) for path in paths], sheet)
    return read_whole(disk, disk.names)


def complaint(*paths, sheet=None):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        read(*paths, sheet=sheet)
    words = str(error.value)
    assert "\n" not in words
    return words


# ---------------------------------------------------------------------------------------------------------- Excel


def test_a_sheet_has_the_types_of_its_cells(tmp_path):
    found = read(write_xlsx(tmp_path / "t.xlsx", {"Notes": [], "Data": SHEET}))
    assert found.remarks == ()
    assert found.table.to_pydict() == {
        "number": [1.5, None, 3, 4],
        "text": ["a", None, "b", None],
        "yes": [True, None, False, False],
        "day": [DAY, None, DAY, DAY],
        "moment": [MOMENT, None, MOMENT, MOMENT],
        "mixed": [1, None, 2.5, 3],
        "as text": [1, 2.5, None, None],
    }


def test_a_sheet_reads_as_the_same_cells_in_a_csv(tmp_path):
    table = read(write_xlsx(tmp_path / "t.xlsx", {"Data": SHEET})).table
    rows = ["" if row == [] else ";".join("" if cell is None else str(cell) for cell in row) for row in SHEET]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    same = read(tmp_path / "t.csv").table
    days = table["day"].cast(pa.timestamp("us"))
    table = table.set_column(3, "day", days).set_column(4, "moment", table["moment"].cast(pa.timestamp("us")))
    assert table.cast(same.schema).equals(same)


def test_a_sheet_is_named_or_the_first_with_cells(tmp_path):
    path = write_xlsx(tmp_path / "t.xlsx", {"Empty": [], "A": [["x"], [1]], "B": [["x"], [2]]})
    assert read(path).table["x"].to_pylist() == [1]
    assert read(path, sheet="B").table["x"].to_pylist() == [2]
    assert complaint(path, sheet="C").endswith("has no sheet 'C': its sheets are 'Empty', 'A', 'B'.")
    assert "The sheet 'Empty' of" in complaint(path, sheet="Empty")
    (tmp_path / "t.csv").write_text("x\n1\n")
    assert complaint(tmp_path / "t.csv", sheet="A").endswith("has no sheets: remove --sheet.")


def test_formulas_that_failed_are_missing_with_a_remark(tmp_path):
    rows = [["x", "y"], [1, Fault("#N/A")], [Fault("#DIV/0!"), 2], [3, Fault("#REF!")]]
    found = read(write_xlsx(tmp_path / "t.xlsx", {"A": rows}))
    assert found.table.to_pydict() == {"x": [1, None, 3], "y": [None, 2, None]}
    (remark,) = found.remarks
    assert remark.startswith("2 cells of ")
    assert "first in 'x' at row 2, and are read as missing" in remark


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "Every sheet of"),
        ([["a", "b"]], "has column names, but no rows"),
        ([["Sales of 2024", None, None], ["a", "b", "c"], [1, 2, 3]], "split merged cells"),
    ],
)
def test_a_sheet_that_is_no_table_says_why(tmp_path, rows, words):
    assert words in complaint(write_xlsx(tmp_path / "t.xlsx", {"A": rows}, merged=["A1:C1"] if len(rows) > 2 else ()))


def test_a_first_column_without_a_name_and_empty_ones_are_no_harm(tmp_path):
    rows = [[None, "a", None, "a"], [0, 1, None, 2], [1, 3, None, 4]]
    table = read(write_xlsx(tmp_path / "t.xlsx", {"A": rows})).table
    assert table.to_pydict() == {"column 1": [0, 1], "a": [1, 3], "a_1": [2, 4]}


def test_damaged_and_locked_workbooks_are_one_line(tmp_path):
    whole = write_xlsx(tmp_path / "t.xlsx", {"A": SHEET}).read_bytes()
    (tmp_path / "short.xlsx").write_bytes(whole[:-200])
    assert "damaged zip or Excel file, or cut short" in complaint(tmp_path / "short.xlsx")
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000))
    assert complaint(tmp_path / "old.xls").endswith("Save it again as .xlsx, without a password.")


# ------------------------------------------------------------------------------------------------------------ zip


def zipped(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name.replace("__", "."), text)
    return path


def test_a_csv_in_a_zip_file_is_read_without_what_systems_add(tmp_path):
    path = zipped(tmp_path / "t.zip", t__csv="a;b\n1,5;x\n2;y\n", __DS_Store="no")
    assert read(path).table.to_pydict() == {"a": [1.5, 2], "b": ["x", "y"]}


def test_a_zip_file_is_unpacked_a_little_at_a_time(tmp_path, monkeypatch):
    """What unpacks to much more than its size must not be in memory at once."""
    monkeypatch.setattr(csv_file, "HEAD", 1 << 10)
    monkeypatch.setattr(csv_file, "BLOCK", 1 << 12)
    path = zipped(tmp_path / "t.zip", t__csv="a,b\n" + "0,0\n" * 100_000)
    asked = []
    read_some = zipfile.ZipExtFile.read
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda self, n=-1: asked.append(n) or read_some(self, n))
    disk = open_tables([str(path)])
    batches = disk.batches()
    next(batches)
    batches.close()
    assert 0 < max(asked) <= 1 << 12
    assert min(asked) > 0


def test_zip_files_that_cannot_be_read_say_why(tmp_path, monkeypatch):
    two = zipped(tmp_path / "two.zip", a__csv="x\n1\n", b__csv="x\n2\n")
    assert complaint(two).endswith("holds 2 files, 'a.csv', 'b.csv': unzip it, and name those of one table.")
    assert "nothing in it" in complaint(zipped(tmp_path / "none.zip"))
    path = zipped(tmp_path / "t.zip", t__csv="a,b\n" + "1,2\n" * 500)
    whole = path.read_bytes()
    (tmp_path / "short.zip").write_bytes(whole[:-30])
    assert "cut short" in complaint(tmp_path / "short.zip")
    (tmp_path / "bad.zip").write_bytes(whole[:45] + b"????" + whole[49:])
    assert "damaged zip" in complaint(tmp_path / "bad.zip")
    locked, entry = bytearray(whole), whole.find(b"PK\x01\x02")
    locked[6] |= 1
    locked[entry + 8] |= 1
    (tmp_path / "locked.zip").write_bytes(bytes(locked))
    assert complaint(tmp_path / "locked.zip").endswith("is locked by a password: unzip it first.")

    class Pipe(io.BytesIO):
        def seekable(self):
            return False

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Pipe(whole))))
    assert complaint("-").endswith("cannot be read from a pipe: unzip it first.")


# -------------------------------------------------------------------------------------------------- several files


@pytest.fixture
def parts(tmp_path):
    """Three files of one table, the second with its columns in another order, the third without rows."""
    (tmp_path / "p-1.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "p-2.csv").write_text("b,a\nz,3\n")
    (tmp_path / "p-3.csv").write_text("a,b\n")
    return tmp_path


def test_files_are_one_table_by_the_names_of_columns(parts):
    paths = paths_in([str(parts / "p-*.csv")])
    disk = open_tables(paths)
    assert disk.label == f"3 files, {paths[0]} to {paths[2]}"
    assert read_whole(disk, disk.names).table.to_pydict() == {"a": [1, 2, 3], "b": ["x", "y", "z"]}
    assert read_whole(disk, ["b"]).table.to_pydict() == {"b": ["x", "y", "z"]}
    assert [done for _, done in disk.batches()][-1] <= disk.total == sum((parts / p).stat().st_size for p in paths)


def test_a_cell_of_several_files_is_named_with_its_file(parts):
    (parts / "p-2.csv").write_text("b,a\nz,3\nz,three\n")
    disk = open_tables(paths_in([str(parts / "p-*.csv")]))
    rows = 0
    with pytest.raises(ValueError, match=r"'three' in row 2 of .*p-2.csv"):  # noqa: PT012
        for batch, _ in disk.batches():
            typed(batch, {"a": "number"}, disk, rows)
            rows += len(batch)
    assert disk.place(2).endswith("row 2 of " + str(parts / "p-1.csv"))


def test_files_that_do_not_belong_together_are_refused(parts):
    one = parts / "p-1.csv"
    (parts / "less.csv").write_text("a\n1\n")
    (parts / "more.csv").write_text("a,b,c\n1,2,3\n")
    (parts / "other.csv").write_text("a;b\n1;2\n")
    csv.write_csv(pa.table({"a": [1]}), parts / "x.csv")
    parquet.write_table(pa.table({"a": [1], "b": ["x"]}), parts / "p.parquet")
    assert f"less.csv lacks 'b', which {one} has: add that" in complaint(one, parts / "less.csv")
    assert f"more.csv has 'c', which {one} lacks: remove that" in complaint(one, parts / "more.csv")
    assert "by different signs: save both with the same one" in complaint(one, parts / "other.csv")
    assert "have different formats: save all files in one format" in complaint(one, parts / "p.parquet")


def test_types_of_columnar_files_are_made_alike(tmp_path):
    parquet.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "1.parquet")
    parquet.write_table(pa.table({"b": pa.nulls(1), "a": [0.5]}), tmp_path / "2.parquet")
    found = read(tmp_path / "1.parquet", tmp_path / "2.parquet").table
    assert found.to_pydict() == {"a": [1, 2, 0.5], "b": ["x", "y", None]}
    parquet.write_table(pa.table({"a": ["one"], "b": ["x"]}), tmp_path / "3.parquet")
    words = complaint(tmp_path / "1.parquet", tmp_path / "3.parquet")
    assert words.startswith("The column 'a' holds string in ")
    assert words.endswith("save both with the same type.")


def test_categories_of_one_file_are_texts_of_another(tmp_path):
    letters = pa.table({"a": pa.array(["x", "y"]).dictionary_encode()})
    parquet.write_table(letters, tmp_path / "1.parquet")
    parquet.write_table(pa.table({"a": ["z"]}), tmp_path / "2.parquet")
    for order in ((1, 2), (2, 1)):
        found = read(*(tmp_path / f"{i}.parquet" for i in order)).table
        assert sorted(found["a"].to_pylist()) == ["x", "y", "z"]


def test_a_file_without_rows_says_nothing_of_types(tmp_path):
    parquet.write_table(
        pa.table({"b": pa.array([], pa.float64()), "a": pa.array([], pa.bool_())}), tmp_path / "0.parquet"
    )
    parquet.write_table(pa.table({"a": ["x", "y"], "b": ["u", None]}), tmp_path / "1.parquet")
    for order in ((0, 1), (1, 0)):
        found = read(*(tmp_path / f"{i}.parquet" for i in order)).table
        assert found.to_pydict() == {"a": ["x", "y"], "b": ["u", None]}


def test_sheets_may_be_parts_of_one_table(tmp_path):
    paths = [write_xlsx(tmp_path / f"{i}.xlsx", {"A": [["x", "t"], [i, "a" if i else None]]}) for i in (0, 1)]
    assert read(*paths).table.to_pydict() == {"x": [0, 1], "t": [None, "a"]}


def test_paths_are_named_once_and_patterns_find_something(parts):
    one = str(parts / "p-1.csv")
    assert paths_in([one]) == [one]
    with pytest.raises(ValueError, match="is named twice, and its rows would count twice: name it once"):
        paths_in([one, one])
    (parts / "link.csv").symlink_to(one)
    with pytest.raises(ValueError, match="is the same file as"):
        paths_in([one, str(parts / "link.csv")])
    with pytest.raises(FileNotFoundError, match="No file matches"):
        paths_in([str(parts / "q-*.csv")])
    with pytest.raises(ValueError, match="name either files or -"):
        paths_in(["-", one])
    odd = parts / "a[1].csv"
    odd.write_text("a\n1\n")
    assert paths_in([str(odd)]) == [str(odd)]
