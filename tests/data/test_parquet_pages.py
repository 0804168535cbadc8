"""Parquet files that unpack to far more than their size: few rows at a time are unpacked, or they are refused."""

import io
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from guardband.data import memory, parquet_pages
from guardband.data.damage import UnreadableError
from guardband.data.disk import batch_rows, open_table
from guardband.data.parquet_file import row_groups
from guardband.data.parquet_pages import Pages, rows_at_once
from guardband.data.parquet_part import part_of_parquet
from guardband.data.several import open_tables
from guardband.data.whole_table import read_whole

N = 5000
KINDS = {
    "kinds": {},
    "plain": {"use_dictionary": False},
    "small pages": {"use_dictionary": False, "data_page_size": 100, "write_batch_size": 7},
    "kinds, then plain": {"dictionary_pagesize_limit": 3000, "data_page_size": 500, "write_batch_size": 50},
    "version 2": {"data_page_version": "2.0", "write_page_index": True},
    "groups": {"row_group_size": 700},
    "built on others": {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY", "b": "DELTA_BYTE_ARRAY"}},
    "lengths": {
        "use_dictionary": False,
        "column_encoding": {"a": "DELTA_LENGTH_BYTE_ARRAY", "b": "DELTA_LENGTH_BYTE_ARRAY"},
    },
}
IN_ONE_PAGE = ("plain", "lengths")
"""The texts of a column are unpacked together, however few rows are asked for."""


def texts(seed=0):
    """Return texts of very different lengths, some of them repeated often, others missing."""
    random = np.random.default_rng(seed)
    lengths = [int(n) for n in random.exponential(30, 40)] + [4000]
    own = ["ab"[i % 2] * n for i, n in enumerate(lengths)]
    rows = np.sort(random.integers(0, len(own), N)) if seed % 2 else random.integers(0, len(own), N)
    return [None if i % 11 == 0 else own[row] for i, row in enumerate(rows)]


def table():
    fixed = pa.array([b"%09d" % (i % 4) for i in range(N)], pa.binary(9))
    return pa.table({"x": np.arange(N) / 7, "a": texts(0), "b": texts(1), "fixed": fixed})


def written(own, **options):
    sink = io.BytesIO()
    parquet.write_table(own, sink, **options)
    return sink.getvalue()


def steps(body, most=2048, columns=None):
    file = parquet.ParquetFile(io.BytesIO(body))
    return rows_at_once(io.BytesIO(body), file.schema, columns, range(file.num_row_groups), most, "t")


def bound(body, rows):
    file = parquet.ParquetFile(io.BytesIO(body))
    groups = row_groups(io.BytesIO(body), "t")
    found = list(parquet_pages._pages(io.BytesIO(body), file.schema, None, groups, len(body), "t"))
    return Pages(*np.array(found, dtype=float).reshape(-1, 4).T).most(rows)


def largest(body, rows):
    """Return the most bytes of text that Arrow unpacks at once."""
    batches = parquet.ParquetFile(io.BytesIO(body)).iter_batches(rows)
    return max(
        sum(pc.sum(pc.binary_length(batch[name])).as_py() or 0 for name in ("a", "b", "fixed")) for batch in batches
    )


@pytest.mark.parametrize(
    ("kind", "compression"),
    [*((kind, "zstd") for kind in KINDS), *(("kinds", own) for own in ("none", "snappy", "gzip", "brotli", "lz4"))],
)
def test_no_batch_is_larger_than_the_headers_of_pages_say(kind, compression):
    body = written(table(), compression=compression, **KINDS[kind])
    for rows in (16, 256, 4096):
        assert largest(body, rows) <= bound(body, rows)


def test_the_bound_of_ordinary_tables_is_near_what_they_take():
    """Else they would be read in small steps."""
    for kind in ("kinds", "groups", "version 2"):
        body = written(table(), compression="snappy", **KINDS[kind])
        assert bound(body, 1024) < 2 * 1024 * 2 * 4000 + 5 * len(body)
    ordinary = pa.table({"a": [f"street {i % 1000}" for i in range(200_000)], "x": np.arange(200_000.0)})
    assert steps(written(ordinary), 1 << 15) == 1 << 15
    assert steps(written(ordinary, use_dictionary=False), 1 << 15) == 1 << 15


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in IN_ONE_PAGE])
@pytest.mark.parametrize("room", [1 << 12, 1 << 18])
def test_tables_of_long_texts_are_read_as_they_are_in_small_steps(tmp_path, monkeypatch, kind, room):
    path = tmp_path / "t.parquet"
    path.write_bytes(written(table(), **KINDS[kind]))
    whole = open_table(str(path))
    size = batch_rows(4)
    monkeypatch.setattr("guardband.data.disk.batch_rows", lambda columns: 2048)
    monkeypatch.setattr("guardband.data.parquet_part.batch_rows", lambda columns: 2048)
    assert size == 1 << 15
    monkeypatch.setattr(parquet_pages, "ROOM", room)
    assert steps(path.read_bytes()) < 2048
    asked = []
    original = parquet.ParquetFile.iter_batches
    monkeypatch.setattr(
        parquet.ParquetFile, "iter_batches", lambda self, rows, **own: asked.append(rows) or original(self, rows, **own)
    )
    batches = [batch for batch, _ in whole.batches()]
    assert [len(batch) for batch in batches] == [2048, 2048, N - 4096]
    assert pa.Table.from_batches(batches).equals(table().cast(batches[0].schema))
    parts = [next(part_of_parquet(whole, first, min(2048, N - first)).batches())[0] for first in (0, 2048, 4096)]
    assert all(one.equals(other) for one, other in zip(parts, batches, strict=True))
    assert max(asked) < 2048


def test_pages_that_no_number_of_rows_makes_smaller_do_not_slow_the_reading(monkeypatch):
    """Some programs write a page for each column of a row group, however long it is."""
    body = written(table(), use_dictionary=False, data_page_size=1 << 30, compression="none")
    monkeypatch.setattr(parquet_pages, "ROOM", 1 << 10)
    assert steps(body) == 2048


REPEATED = pa.table({"y": [1.0] * 40_000, "a": pa.DictionaryArray.from_arrays([0] * 40_000, ["a" * 150_000])})
FOUND = "fe68f3b6cc75"
IN_A_PROCESS = """
    import resource, sys
    import numpy, pyarrow.compute, pyarrow.parquet
    from guardband.data.disk import open_table
    from guardband.data.whole_table import read_whole

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

    before, table = peak(), open_table(sys.argv[1])
    try:
        whole = len(sys.argv) == 2
        print(len(read_whole(table, table.names).table) if whole else sum(len(own) for own, _ in table.batches()))
    except ValueError as error:
        print(error)
    print(peak() - before)
"""


def read_in_a_process(path, *way):
    """Return what comes of reading a table, and how many bytes beyond those of the packages that took."""
    command = [sys.executable, "-c", textwrap.dedent(IN_A_PROCESS), str(path), *way]
    said, taken = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return said, int(taken)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to tell the most memory")
@pytest.mark.parametrize("way", [(), ("in batches",)])
def test_a_small_file_that_repeats_one_long_text_is_refused_before_it_fills_memory(tmp_path, way):
    """Six gigabytes in 40,000 rows, from 600 bytes: it took 6.9 GB."""
    path = tmp_path / "t.parquet"
    parquet.write_table(REPEATED, path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 700
    said, taken = read_in_a_process(path, *way)
    assert "bytes, and unpacks to more than 256 MiB of rows, as files do that are made to fill memory. Use" in said
    assert taken < 1 << 30


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to tell the most memory")
def test_long_texts_of_an_honest_table_are_read(tmp_path):
    """240 MB of texts of 60,000 letters, which a file of 500 kB repeats: its own size speaks for it."""
    random = np.random.default_rng(0)
    own = ["".join(map(chr, random.integers(97, 123, 60_000))) for _ in range(15)]
    path = tmp_path / "t.parquet"
    rows = pa.DictionaryArray.from_arrays(random.integers(0, 15, 4000), own)
    parquet.write_table(pa.table({"a": rows, "y": np.arange(4000.0)}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 700_000
    said, taken = read_in_a_process(path)
    assert said == "4000"
    assert taken < 1 << 30


def test_a_row_that_takes_too_much_is_refused_before_it_is_unpacked(monkeypatch):
    body = written(pa.table({"a": ["a" * 1_000_000] * 10}), use_dictionary=False, compression="zstd")
    monkeypatch.setattr(parquet_pages, "ROOM", 1 << 16)
    monkeypatch.setattr(memory, "LEAST", 1 << 18)
    with pytest.raises(UnreadableError, match=r"t has .* bytes, and unpacks to more than"):
        steps(body)


def test_lists_of_texts_count_in_every_row_of_their_group(monkeypatch):
    body = written(pa.table({"a": [["b" * 1000] * 50] * 100}), compression="zstd")
    assert bound(body, 1) >= 100 * 50 * 1000


def test_only_the_columns_that_are_read_are_looked_at(monkeypatch):
    monkeypatch.setattr(parquet_pages, "ROOM", 1 << 16)
    body = written(table())
    assert steps(body, columns=["x"]) == 2048
    assert steps(body, columns=["x", "a"]) < 2048


def test_one_page_is_not_listed_often(tmp_path):
    """Else a file of a few megabytes would be looked through for hours."""
    body = written(pa.table({"a": [1, 2]}), use_dictionary=False, row_group_size=1, compression="none")
    schema = parquet.ParquetFile(io.BytesIO(body)).schema
    with pytest.raises(UnreadableError, match=r"its columns overlap\. Write or copy the file again\."):
        rows_at_once(io.BytesIO(body), schema, None, [0] * 1000, 1024, "t")


def test_several_files_may_take_what_each_of_them_may(tmp_path, monkeypatch):
    for i in range(3):
        parquet.write_table(pa.table({"a": ["b" * 1000] * 1000}), tmp_path / f"t{i}.parquet", compression="zstd")
    paths = [str(tmp_path / f"t{i}.parquet") for i in range(3)]
    found = open_tables(paths)
    assert found.packed == sum(Path(path).stat().st_size for path in paths)
    monkeypatch.setattr(memory, "LEAST", 1 << 20)
    monkeypatch.setattr(memory, "TIMES", 1)
    with pytest.raises(UnreadableError, match=r"3 files, .* unpacks to more than 1 MiB"):
        read_whole(found, ["a"])


def test_what_is_no_header_is_left_to_arrow():
    body = bytearray(written(table()))
    body[4:400] = b"\xff" * 396
    assert steps(bytes(body), columns=["x"]) == 2048


@pytest.mark.parametrize("kind", KINDS)
def test_row_groups_are_those_that_arrow_reads(kind):
    body = written(table(), **KINDS[kind])
    about = parquet.read_metadata(io.BytesIO(body))
    found = row_groups(io.BytesIO(body), "t")
    assert [group.rows for group in found] == [about.row_group(i).num_rows for i in range(about.num_row_groups)]
    for i, group in enumerate(found):
        known = [about.row_group(i).column(j) for j in range(about.num_columns)]
        assert [own.values for own in group.chunks] == [own.num_values for own in known]
        assert [own.end - own.begin for own in group.chunks] == [own.total_compressed_size for own in known]
        assert [own.begin for own in group.chunks] == [
            own.dictionary_page_offset or own.data_page_offset for own in known
        ]


def test_what_arrow_cannot_say_without_ending_the_process_is_not_asked(tmp_path):
    """A find of fuzzing: counts of levels that do not fit the column. Asked for the column, pyarrow aborts."""
    found = Path(__file__).parents[2] / "benchmarks" / "fuzz" / "corpus" / "parquet" / FOUND
    said, _ = read_in_a_process(found)
    assert "cannot be read: Definition level histogram size mismatch" in said
