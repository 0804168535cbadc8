"""Damaged Arrow and Parquet files, each read in a process of its own: none ends it, and none gives a traceback.

Neither format holds a checksum of its data: a file with another number in it is read, and nothing can tell. That is
the only reason why some of these are read.
"""

import gzip
import json
import struct
import subprocess
import sys
import zipfile

import pyarrow as pa
import pytest
from pyarrow import parquet

import damaged_files
from excel_files import write_xlsx
from guardband.data import arrow_file, csv_file, damage, disk, memory
from guardband.data.damage import UnreadableError
from guardband.data.disk import open_table
from guardband.data.several import open_tables
from guardband.data.whole_table import read_whole

AT_RANDOM, WAYS = 150, 4


def outcomes(folder, first, count):
    """Return how each file was read: by ``fit``, and by ``predict`` into each format."""
    program = [sys.executable, damaged_files.__file__, str(folder), str(first), str(count), "1"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_damaged_files_are_read_or_refused_in_one_sentence(tmp_path):
    found = outcomes(tmp_path, 0, 0) + outcomes(tmp_path, 0, AT_RANDOM)
    assert len(found) > AT_RANDOM
    bad = [
        (name, kind, way, ending, words)
        for _, name, kind, ways in found
        for way, ending, words in ways
        if ending not in ("read", "refused")
    ]
    assert bad == []
    assert {len(ways) for *_, ways in found} == {WAYS}
    assert sum(all(ending == "refused" for _, ending, _ in ways) for *_, ways in found) > len(found) / 2


def arrow_file_of(path, rows=100, batches=4, **options):
    table = pa.table({"a": range(rows), "b": [f"k{i}" for i in range(rows)]})
    with pa.ipc.new_file(str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as file:
        file.write_table(table, max_chunksize=rows // batches)
    return path


def parquet_file_of(path, rows=100, batches=4):
    table = pa.table({"a": range(rows), "b": [f"k{i}" for i in range(rows)]})
    parquet.write_table(table, path, row_group_size=rows // batches)
    return path


@pytest.mark.parametrize("make", [arrow_file_of, parquet_file_of])
@pytest.mark.parametrize("change", ["cut", "emptied", "removed", "other"])
def test_a_file_that_changes_while_it_is_read_is_named(tmp_path, monkeypatch, make, change):
    rows = 4 * 40_000  # more than is read ahead
    path = make(tmp_path / "t", rows)
    batches = open_table(str(path)).batches()
    next(batches)
    size = path.stat().st_size
    if change == "removed":  # it is open: its data stay until it is closed
        path.unlink()
        assert sum(len(batch) for batch, _ in batches) > 0
        return
    if change == "other":
        path.write_bytes(b"\xab" * size)
    else:
        with path.open("rb+") as file:
            file.truncate(size // 3 if change == "cut" else 0)
    with pytest.raises(UnreadableError, match=f"^{path} .* Write or copy the file again.$"):
        for _ in batches:
            pass


@pytest.mark.parametrize("make", [arrow_file_of, parquet_file_of])
def test_a_file_that_was_replaced_before_it_is_read_is_named(tmp_path, make):
    path = make(tmp_path / "t")
    table = open_table(str(path))
    other = pa.table({"a": ["x"] * 3, "b": [1.5] * 3})
    if make is arrow_file_of:
        with pa.ipc.new_file(str(path), other.schema) as file:
            file.write_table(other)
    else:
        parquet.write_table(other, path)
    with pytest.raises(UnreadableError, match=r"was changed while guardband read it. Try again"):
        read_whole(table, table.names)


def test_no_file_is_mapped_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(pa, "memory_map", None)
    table = open_table(str(arrow_file_of(tmp_path / "t")))
    assert read_whole(table, table.names).table["a"].to_pylist() == list(range(100))


def test_batches_are_counted_without_their_data(tmp_path, monkeypatch):
    path = arrow_file_of(tmp_path / "t", 1000, 4)
    with path.open("rb") as file:
        assert [batch.rows for batch in arrow_file.batches_in(file, "t")] == [250] * 4
    monkeypatch.setattr(pa.ipc.RecordBatchFileReader, "get_batch", None, raising=False)
    assert open_table(str(path)).total == 1000


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_what_a_batch_takes_in_memory_is_known_before_it_is_read(tmp_path, compression):
    path = arrow_file_of(tmp_path / "t", 10_000, 1, compression=compression)
    with path.open("rb") as file:
        (batch,) = arrow_file.batches_in(file, "t")
    with pa.OSFile(str(path)) as source:
        used = pa.ipc.open_file(source).get_batch(0).nbytes
    assert used <= batch.size <= used + 1000


def test_a_small_file_of_many_rows_is_refused_before_it_is_read_whole(tmp_path, monkeypatch):
    """Its rows are read in batches nevertheless, as ``predict`` does."""
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": [1] * 1_000_000}), path)
    assert path.stat().st_size < 20_000
    table = open_table(str(path))
    assert sum(len(batch) for batch, _ in table.batches()) == 1_000_000
    monkeypatch.setattr(memory, "memory", lambda: 45_000_000)
    words = "has 1,000,000 rows of 1 columns?, which need about 1 GiB of memory, but this machine has 0 GiB. Use fewer"
    with pytest.raises(UnreadableError, match=words):
        read_whole(table, table.names)


def test_a_packed_batch_that_memory_cannot_hold_is_refused(tmp_path, monkeypatch):
    table = pa.table({"a": [0] * 1_000_000})
    with pa.ipc.new_file(str(tmp_path / "t"), table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
        file.write_table(table)
    assert (tmp_path / "t").stat().st_size < 20_000
    found = open_table(str(tmp_path / "t"))
    monkeypatch.setattr(memory, "memory", lambda: 15_000_000)
    with pytest.raises(UnreadableError, match="unpacks to rows that need about"):
        next(found.batches())


def test_text_that_unpacks_to_more_than_memory_is_refused_on_the_way(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 5_000_000))
    monkeypatch.setattr(memory, "memory", lambda: 60_000_000)
    seen = []
    with pytest.raises(UnreadableError, match="unpacks to rows that need about"):
        read_whole(open_table(str(path)), ["a", "b"], seen.append)
    assert 0 < len(seen) < 10


def test_memory_is_that_of_the_machine_or_of_the_container(tmp_path, monkeypatch):
    assert memory.memory() > 1 << 28
    monkeypatch.setattr(memory, "CONTAINER", (tmp_path / "limit",))
    free = memory.memory()
    (tmp_path / "limit").write_text("max\n")
    assert memory.memory() == free
    (tmp_path / "limit").write_text("123456\n")
    assert memory.memory() == 123_456


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowIndexError("Index 7 out of bounds"),
        pa.ArrowNotImplementedError("no kernel"),
        pa.ArrowInvalid("first line\nsecond"),
        pa.ArrowKeyError("k"),
        OSError("short read"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        OverflowError("too large"),
        IndexError(""),
        SystemError("Negative size passed to PyBytes_FromStringAndSize"),
    ],
)
def test_whatever_goes_wrong_is_one_sentence(error):
    with (
        pytest.raises(
            UnreadableError, match=r"^t begins as Arrow, but cannot be read: .+ Write or copy the file again.$"
        ),
        damage.reading("t", "Arrow"),
    ):
        raise error
    with pytest.raises(UnreadableError, match=r"^t does not fit into memory"), damage.reading("t", "Arrow"):
        raise MemoryError
    with pytest.raises(ValueError, match=r"^ours$"), damage.reading("t"):
        raise ValueError("ours")


def test_every_type_is_read_or_refused_by_its_name(tmp_path):
    strange = damaged_files.targeted()
    fine = ("nothing", "runs", "runs of text", "kinds with a missing one", "kinds of Latin-1", "kinds of nothing")
    for name in fine:
        path = tmp_path / f"{name}.arrow"
        path.write_bytes(strange[f"{name}.arrow"])
        assert damaged_files.fit_reading(path).n == damaged_files.ROWS
    path.write_bytes(strange["no zone of that name.arrow"])
    with pytest.raises(ValueError, match="time zone 'Mars/Base', which is not known: write it in UTC"):
        damaged_files.fit_reading(path)


def test_parts_of_a_table_are_tested_once(tmp_path, monkeypatch):
    tested = []
    monkeypatch.setattr(disk, "need_sound", tested.append)
    paths = [str(arrow_file_of(tmp_path / f"t{i}")) for i in range(2)]
    assert sum(len(batch) for batch, _ in open_tables(paths).batches()) == 200
    assert len(tested) == 8


def nested(depth, schema=b"\x19"):
    """Return a Parquet file without rows, written by hand: a column within so many groups.

    ``schema`` is what stands before the list of columns: by default the number and type of its field.
    """

    def element(name, more):
        return bytes([0x35, 2, 0x18, len(name)]) + name + more + b"\0"

    group, leaf = element(b"a", b"\x15\x02"), bytes([0x15, 2, 0x25, 2, 0x18, 1]) + b"z\0"
    count = depth + 2
    size = bytes([count & 127 | 128, count >> 7 & 127 | 128, count >> 14])
    footer = b"\x15\x02" + schema + b"\xfc" + size + group * (depth + 1) + leaf + b"\x16\0\x19\x0c\0"
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_columns_nested_too_deep_are_refused_before_they_end_the_process(tmp_path):
    """Arrow calls itself for each level: at 100,000 of them, from a file of 0.8 MB, its stack ends."""
    path = tmp_path / "t.parquet"
    path.write_bytes(nested(90))
    assert open_table(str(path)).names == ("a",)
    for depth in (101, 100_000):
        path.write_bytes(nested(depth))
        with pytest.raises(UnreadableError, match="nested more than 100 deep"):
            open_table(str(path))


@pytest.mark.parametrize(
    "schema",
    [
        b"\x09\x04",  # the field's number in full
        b"\x09\x84\x80\x08",  # the same and 2 ** 16
        b"\x09\xff\x01\xf0\x80\x80\x80\x80\x20" + b"\x09\x04",  # after a list of 2 ** 32 * 2, which is none
    ],
)
def test_numbers_of_fields_and_sizes_are_cut_as_arrow_cuts_them(tmp_path, schema):
    path = tmp_path / "t.parquet"
    path.write_bytes(nested(90, schema))
    assert parquet.read_schema(path).names == ["a"]
    path.write_bytes(nested(101, schema))
    with pytest.raises(UnreadableError, match="nested more than 100 deep"):
        open_table(str(path))


@pytest.mark.parametrize("depth", [3, 80, 98, 101, 150])
def test_the_depth_is_that_of_files_which_others_write(tmp_path, depth):
    kind = pa.int64()
    for _ in range(depth - 1):
        kind = pa.struct([("a", kind), ("b", pa.int8())] if depth == 3 else [("a", kind)])
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"x": pa.array([None], kind), "y": [1]}), path)
    if depth < 100:
        assert open_table(str(path)).names == ("x", "y")
    else:
        with pytest.raises(UnreadableError, match="nested more than 100 deep"):
            open_table(str(path))


def test_a_list_without_end_in_a_parquet_file_is_not_followed(tmp_path):
    """A map of 2^60 pairs of booleans, in a file of 24 bytes; each pair takes a byte at least."""
    footer = b"\x1b" + b"\x80" * 8 + b"\x10" + b"\x11" + b"\0"
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(UnreadableError, match="begins as Parquet, but cannot be read"):
        open_table(str(path))


def test_one_batch_of_an_arrow_file_is_not_listed_often(tmp_path):
    """Else a file of 2 MB, half of it one batch and half a list of it, takes hours to open."""
    path = arrow_file_of(tmp_path / "t", 100, 4)
    whole = path.read_bytes()
    length = int.from_bytes(whole[-10:-6], "little")
    footer = whole[-10 - length : -10]
    with path.open("rb") as file:
        known = arrow_file._Table.root(footer).structs(3, "qi4xq")
        assert len(arrow_file.batches_in(file, "t")) == 4
    first, *others = (struct.pack("<qi4xq", *block) for block in known)
    for other in others:
        footer = footer.replace(other, struct.pack("<qi4xq", known[0][0], known[0][1], known[0][2] * 4))
    footer = footer.replace(first, struct.pack("<qi4xq", known[0][0], known[0][1], known[0][2] * 4))
    path.write_bytes(whole[: -10 - length] + footer + whole[-10:])
    with pytest.raises(UnreadableError, match="begins as Arrow, but cannot be read: its batches overlap"):
        open_table(str(path))


def test_a_category_that_is_a_long_text_is_not_written_out(tmp_path, monkeypatch):
    kinds = pa.DictionaryArray.from_arrays(pa.array([0] * 1000), pa.array(["a" * 100_000]))
    table = pa.table({"a": kinds})
    with pa.ipc.new_file(str(tmp_path / "t"), table.schema) as file:
        file.write_table(table)
    monkeypatch.setattr(memory, "memory", lambda: 100_000_000)
    with pytest.raises(UnreadableError, match="unpacks to rows that need about"):
        next(open_table(str(tmp_path / "t")).batches())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            b'a,"b\n' + b"1,2\n" * 2000,
            "a line or a quoted cell is longer than 0 MB. A quotation mark may lack its partner",
        ),
        ("a,b\n1,2\n".encode("utf-32"), "is written as UTF-32: save it as UTF-8"),
        ("a,b\n1,2\n".encode("utf-16") + b"\x00\xd8\x0a\x00", "cannot be read: .* illegal UTF-16 surrogate"),
        (
            b",".join(b"%d" % i for i in range(100_001)) + b"\n",
            "has 100,001 columns, but guardband reads at most 100,000",
        ),
    ],
)
def test_strange_text_is_refused_in_one_sentence(tmp_path, monkeypatch, text, words):
    monkeypatch.setattr(csv_file, "BLOCK", 1 << 12)
    (tmp_path / "t.csv").write_bytes(text)

    def read():
        found = open_table(str(tmp_path / "t.csv"))
        read_whole(found, found.names)

    with pytest.raises(ValueError, match=words) as error:
        read()
    assert str(error.value).endswith(".")


def one_cell_at(place):
    return lambda sheet: sheet.replace(b"</sheetData>", b'<row><c r="%s"><v>1</v></c></row></sheetData>' % place)


@pytest.mark.parametrize("place", [b"XFD1048576", b"A4000000000", b"ZZZZZZ2"])
def test_a_workbook_with_a_cell_far_away_does_not_end_the_process(tmp_path, monkeypatch, place):
    """A kilobyte that asks for a table of half a terabyte: what reads it aborts."""
    monkeypatch.setattr("guardband.data.excel_file.memory", lambda: 1 << 30)
    path = write_xlsx(tmp_path / "t.xlsx", {"s": [["a", "b"], [1, 2]]})
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = one_cell_at(place)(parts[sheet])
    with zipfile.ZipFile(path, "w") as packed:
        for name, data in parts.items():
            packed.writestr(name, data)
    with pytest.raises(ValueError, match=r"cannot be read as a workbook of Excel: .*Save it again"):
        open_table(str(path))


def test_a_program_beside_a_workbook_is_not_run(tmp_path, monkeypatch):
    write_xlsx(tmp_path / "t.xlsx", {"s": [["a", "b"], [1, 2]]})
    for name in ("fastexcel", "pyarrow", "json", "guardband"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert open_table("t.xlsx").names == ("a", "b")
    assert not (tmp_path / "ran").exists()
