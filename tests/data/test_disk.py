import contextlib
import gzip
import io
import os
import re
import sys

import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from guardband.data import csv_file
from guardband.data.disk import batch_rows, open_table, unique_names
from guardband.data.kinds import column_of
from guardband.data.typed_columns import typed
from guardband.data.whole_table import read_whole

ROWS = "a,b,c,d\n1,yes,2024-01-01,x\n2.5,No,2024-01-03 12:00,y\nNA,?,,\n"
TYPES = {"a": pa.float64(), "b": pa.bool_(), "c": pa.timestamp("us"), "d": pa.string()}


def read(path):
    disk = open_table(str(path))
    return read_whole(disk, disk.names)


def written(tmp_path, text, name="t.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def test_a_column_is_what_all_its_cells_say(tmp_path):
    table = read(written(tmp_path, ROWS)).table
    assert dict(zip(table.column_names, table.schema.types, strict=True)) == TYPES
    assert table["a"].to_pylist() == [1.0, 2.5, None]
    assert table["b"].to_pylist() == [True, False, None]
    assert table["d"].to_pylist() == ["x", "y", None]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (ROWS, "utf-8-sig"),
        (ROWS.replace("\n", "\r\n"), "utf-8"),
        (ROWS.replace(",", ";"), "utf-8"),
        (ROWS.replace(",", "\t"), "utf-8"),
        (ROWS.replace(",", "|").replace("\n", "\n\n"), "utf-8"),
        (ROWS.replace(",", ";").replace("2.5", "2,5"), "utf-8"),
        (ROWS.replace(",", " , "), "utf-8"),
        (ROWS, "utf-16"),
        (ROWS.rstrip("\n"), "utf-8"),
        ("\n" * 30 + ROWS, "utf-8"),
        ("\r\n\r\n" + ROWS.replace("\n", "\r\n"), "utf-8"),
        ("\n\n" + ROWS, "utf-8-sig"),
        ("\n\n" + ROWS, "utf-16"),
        ("\r" + ROWS.replace("\n", "\r"), "utf-8"),
    ],
    ids=[
        *("BOM", "CRLF", "semicolons", "tabs", "bars and empty lines", "decimal comma", "blanks", "UTF-16", "no end"),
        *("empty lines first", "empty CRLF lines first", "BOM and empty lines", "UTF-16 and empty lines", "CR"),
    ],
)
def test_the_same_rows_however_they_are_written(tmp_path, text, encoding):
    expected = read(written(tmp_path, ROWS)).table
    assert read(written(tmp_path, text, "other.csv", encoding)).table.equals(expected)


def test_gzip_is_unpacked_also_in_pieces(tmp_path):
    lines = ROWS.encode().splitlines(keepends=True)
    packed = gzip.compress(b"".join(lines[:2])) + gzip.compress(b"".join(lines[2:]))
    assert read(written(tmp_path, packed, "t.csv.gz")).table.equals(read(written(tmp_path, ROWS)).table)
    with pytest.raises(ValueError, match="cut short"):
        read(written(tmp_path, packed[:-9], "short.csv.gz"))
    with pytest.raises(ValueError, match="damaged gzip"):
        read(written(tmp_path, packed[:20] + b"no" + packed[22:], "bad.csv.gz"))
    with pytest.raises(ValueError, match="damaged gzip"):
        read(written(tmp_path, packed + b"\0\0no", "more.csv.gz"))
    assert len(read(written(tmp_path, packed + bytes(2000), "padded.csv.gz")).table) == 3


def test_gzip_is_unpacked_a_little_at_a_time(monkeypatch):
    monkeypatch.setattr(csv_file, "HEAD", 1 << 10)
    text = b"a,b\n" + b"1,2\n" * 100_000
    stream = csv_file.Stream(io.BufferedReader(io.BytesIO(gzip.compress(text))), "packed")
    assert len(stream.head) < 2 << 10
    assert stream.readall() == text


def test_quotes_keep_separators_and_line_ends(tmp_path):
    table = read(written(tmp_path, 'a,"b\nc"\n"1,5","x\r\ny"\n2,"say ""hi"""\n')).table
    assert table.to_pydict() == {"a": ["1,5", "2"], "b\nc": ["x\r\ny", 'say "hi"']}


def test_what_is_no_utf8_is_latin1_with_a_remark(tmp_path):
    found = read(written(tmp_path, "name,€\nKöln,1\nParis,2\n", encoding="cp1252"))
    assert found.table["name"].to_pylist() == ["Köln", "Paris"]
    assert found.table.column_names == ["name", "€"]
    assert "Latin-1" in found.remarks[0]


def test_names_become_unique():
    assert unique_names(["a", "a", "a (2)", "", " a "]) == ("a", "a (3)", "a (2)", "column 4", "a (4)")


def test_a_name_tries_each_number_once_however_often_it_is_repeated():
    tried = []

    class Name(str):
        def strip(self):
            return self

        def __format__(self, spec):
            tried.append(self)
            return str(self)

    assert len(set(map(str, unique_names([Name("x") for _ in range(1000)])))) == 1000
    assert len(tried) == 999
    assert unique_names([*["x"] * 20_000, *map(str, range(20_000))])[19_999:20_001] == ("x (20000)", "0")


def test_one_stray_word_among_numbers_is_remarked(tmp_path):
    cells = [*map(str, range(50)), "broken"]
    found = read(written(tmp_path, "x,y\n" + "".join(f"{cell},1\n" for cell in cells)))
    assert found.table["x"].type == pa.string()
    assert found.remarks == (
        "'x' is read as a category because 1 cell is not a number, such as 'broken': correct it, or leave it empty.",
    )
    found = read(written(tmp_path, "x;y\n" + "".join(f"{cell},5;1\n" for cell in cells)))
    assert "such as 'broken,5'" in found.remarks[0]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["950", "1,234", "2,500"], None),
        (["-1,234", "", "+12,500"], None),
        (["1,5", "2,25", "0,125"], [1.5, 2.25, 0.125]),
        (["0,123", "1,234"], [0.123, 1.234]),
        (["1,234", "1234,567"], [1.234, 1234.567]),
        (["1,234", "12,5"], [1.234, 12.5]),
        (["846", "1.325", "2.500"], None),
        (["846,5", "1.325"], None),
        (["1.325", "2.500"], [1.325, 2.5]),
        (["846", "1.325", "2.5"], [846, 1.325, 2.5]),
        (["846", "1.325", "1846"], [846, 1.325, 1846]),
        (["846", "0.325"], [846, 0.325]),
    ],
)
@pytest.mark.parametrize("separator", ["\t", ";", "|"])
def test_a_mark_that_may_be_of_thousands_is_left_as_text(tmp_path, separator, cells, numbers):
    rows = "".join(f"{cell}{separator}1\n" for cell in cells)
    path = written(tmp_path, f"x{separator}y\n{rows}")
    found = read(path)
    assert found.table["x"].to_pylist() == (numbers or [cell or None for cell in cells])
    cell = next(cell for cell in cells if re.fullmatch("[+-]?[1-9][0-9]{0,2}[,.][0-9]{3}", cell)) if not numbers else ""
    ways = re.sub("[,.]", "", cell), cell.replace(",", ".")
    both = "{0} or {1}: write {0} or {1}0".format(*ways)
    words = (f"'x' is read as a category because {cell!r} may mean {both}.",)
    assert found.remarks == (() if numbers else words)
    # What the column held when a model was fitted decides afterwards.
    disk = open_table(str(path))
    ((batch, _),) = disk.batches()
    expected = [float(cell.replace(",", ".")) if cell else None for cell in cells]
    assert typed(batch, {"x": "number"}, disk)["x"].to_pylist() == expected
    assert typed(batch, {"x": "category"}, disk)["x"].to_pylist() == [cell or None for cell in cells]


def test_dates_in_another_style_are_remarked(tmp_path):
    found = read(written(tmp_path, "d,y\n12/31/2024,1\n1/1/2025,2\n"))
    words = "'d' is read as a category, not as dates: write '12/31/2024' in the form 2024-12-31 or 31.12.2024."
    assert found.remarks == (words,)


@pytest.mark.parametrize("cell", ["2024-02-30", "0000-03-31", "31.3.0000", "0001-01-01 00:00+05:00"])
def test_dates_that_there_are_not_are_remarked(tmp_path, cell):
    zone = "+01:00" if "+" in cell else ""
    found = read(written(tmp_path, f"d,y\n2024-12-31 10:00{zone},1\n2024-01-01 10:00{zone},2\n{cell},3\n"))
    assert found.remarks == (
        f"'d' is read as a category, not as dates: {cell!r} is none. Correct it, or leave it empty.",
    )


def test_a_long_head_may_end_within_a_letter(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "HEAD", 64)
    for cut in range(8):
        text = "grüße,x\n" + "ä" * (20 + cut) + ",1\n" + "öö,2\n" * 40
        table = read(written(tmp_path, text)).table
        assert table.column_names == ["grüße", "x"]
        assert len(table) == 41


def test_long_cells_and_long_files_of_any_line_end_have_a_head(tmp_path):
    long = "x" * 200_000
    assert read(written(tmp_path, f"a,b\n1,{long}\n2,y\n")).table["b"].to_pylist() == [long, "y"]
    table = read(written(tmp_path, "a,b\r" + "1,2\r" * (csv_file.HEAD // 4))).table
    assert (table.column_names, len(table)) == (["a", "b"], csv_file.HEAD // 4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is empty"),
        (b"a" * (2 << 20) + b"\n1\n", "a first line that is too long"),
        (b"a," * (1 << 20) + b"\n1\n", "a first line that is too long"),
        (b"\n\na,b\n1,2\n3\n", "line 5 has 1 cell, but"),
        (b"\n \n", "is empty"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2\n3\n", "line 3 has 1 cell, but the header has 2"),
        (b"a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, but the header has 2"),
        (b"PK\x03\x04....", "is a damaged zip or Excel file, or cut short"),
        (b"\x00\x01\x02", "is not a table"),
        (b"PAR1....", "begins as Parquet, but cannot be read"),
        (b"ARROW1..", "begins as Arrow, but cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path, text, words):
    with pytest.raises(ValueError, match=words) as error:
        read(written(tmp_path, text))
    assert "\n" not in str(error.value)


def test_a_ragged_line_far_down_is_named(tmp_path, monkeypatch):
    """Many blocks are read at a time by then; from standard input, which is read once, one at a time."""
    monkeypatch.setattr(csv_file, "BLOCK", 1 << 12)
    monkeypatch.setattr(csv_file, "HEAD", 1 << 12)
    text = b"a,b\n" + b"1,2\n" * 20_000 + b"3\n" + b"1,2\n" * 20_000
    words = "line 20,002 has 1 cell, but the header has 2"
    with pytest.raises(ValueError, match=words):
        read(written(tmp_path, text))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    with pytest.raises(ValueError, match=words):
        read("-")


def test_a_file_may_be_left_in_the_middle(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "BLOCK", 1 << 12)
    disk = open_table(str(written(tmp_path, b"a,b\n" + b"1,2\n" * 100_000)))
    for _ in range(20):
        batches = disk.batches()
        assert len(next(batches)[0]) > 0
        batches.close()


@pytest.mark.parametrize(
    "text", [b"a,b\n", b"a,b\n1,2\n3\n", b"a,b\n" + b"1,2\n" * 50_000], ids=["empty", "ragged", "left"]
)
def test_no_thread_holds_a_file_that_was_read(tmp_path, monkeypatch, text):
    """One that lets go of it when Python ends aborts the process."""

    class Seen(io.BufferedReader):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            files.append(self)

    files = []
    monkeypatch.setattr("io.BufferedReader", Seen)
    monkeypatch.setattr(csv_file, "BLOCK", 1 << 12)
    (alone,) = [sys.getrefcount(one) for one in [object()]]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # no thread gets its turn by chance
    try:
        for _ in range(10):
            with contextlib.suppress(ValueError):
                next(open_table(str(written(tmp_path, text))).batches(), None)
            assert {sys.getrefcount(file) for file in files} == {alone}
            files.clear()
    finally:
        sys.setswitchinterval(interval)


def test_no_file_and_folders_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no table at"):
        open_table(str(tmp_path / "none.csv"))
    with pytest.raises(ValueError, match="is a folder"):
        open_table(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"can be read only once, and .* Pass it by standard input, as -"):
        open_table(str(tmp_path / "pipe"))


def test_a_batch_without_rows_is_read_as_anything():
    none = pa.array([], pa.string())
    for kind in ("boolean", "number", "date", "category"):
        assert len(column_of(none, kind, True)) == 0


def test_columnar_files_read_alike_whole_and_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("guardband.data.disk.MOST_ROWS", 1024)
    table = pa.table({"n": pa.array(range(3000)), "t": [f"k{i % 7}" for i in range(3000)]})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=1700)
    feather.write_feather(table, str(tmp_path / "t.feather"), compression="lz4")
    with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as file:
        file.write_table(table)
    for path in tmp_path.iterdir():
        disk = open_table(str(path))
        parts = list(disk.batches())
        assert disk.total == parts[-1][1] == 3000
        assert max(len(batch) for batch, _ in parts) <= 1024
        assert pa.Table.from_batches([batch for batch, _ in parts]).equals(table)
        assert read_whole(disk, disk.names).table.equals(table)


@pytest.mark.parametrize("names", [["a", "b", "c"], ["a", "b", "a"], ["a", "b", " c"], ["a", "b", "a.b"]])
def test_some_columns_of_parquet_are_those_of_all(tmp_path, names):
    table = pa.Table.from_arrays([pa.array([i, i + 1]) for i in range(3)], names=names)
    parquet.write_table(table, tmp_path / "t.parquet")
    disk = open_table(str(tmp_path / "t.parquet"))
    ((whole, _),) = disk.batches()
    assert whole.schema.names == list(disk.names)
    for some in (disk.names[::-1], disk.names[:1], disk.names[2:0:-1]):
        ((batch, done),) = disk.batches(some)
        assert batch.equals(whole.select(list(some)))
        assert done == 2


def test_columns_of_parquet_that_are_not_wanted_are_not_read(tmp_path):
    rows = 1000
    table = pa.table({"a": range(rows), "b": range(rows, 2 * rows), "c": range(2 * rows, 3 * rows)})
    parquet.write_table(table, tmp_path / "t.parquet", compression="none", use_dictionary=False)
    whole = (tmp_path / "t.parquet").read_bytes()
    place = parquet.read_metadata(tmp_path / "t.parquet").row_group(0).column(1).data_page_offset
    disk = open_table(str(written(tmp_path, whole[:place] + bytes(64) + whole[place + 64 :], "bad.parquet")))
    assert read_whole(disk, ["c", "a"]).table.equals(table.select(["c", "a"]))
    with pytest.raises(ValueError, match="cannot be read"):
        read_whole(disk, ["b"])


def test_nested_columns_are_refused_unless_left_out(tmp_path):
    parquet.write_table(pa.table({"x": [1, 2], "many": [[1], [2]]}), tmp_path / "t.parquet")
    disk = open_table(str(tmp_path / "t.parquet"))
    with pytest.raises(ValueError, match="column 'many' holds list<"):
        read_whole(disk, disk.names)
    assert read_whole(disk, ["x"]).table.column_names == ["x"]


def test_batches_are_bounded_in_cells():
    assert batch_rows(20) == 1 << 15
    assert batch_rows(10_000) * 10_000 <= 11_000_000


def test_standard_input_is_read_as_csv(monkeypatch):
    class Standard:
        buffer = io.BytesIO(gzip.compress(ROWS.encode()))

    monkeypatch.setattr("sys.stdin", Standard)
    disk = open_table("-")
    assert disk.total is None
    assert read_whole(disk, disk.names).table["a"].to_pylist() == [1.0, 2.5, None]
