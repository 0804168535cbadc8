"""Columns of a table on disk as what they were when a model was fitted, in every batch."""

import pyarrow as pa
import pytest
from pyarrow import parquet

from guardband.data import csv_file
from guardband.data.disk import DiskTable, open_table
from guardband.data.encoder import TableEncoder
from guardband.data.table import read_table
from guardband.data.typed_columns import typed
from guardband.data.whole_table import read_whole


def written(path, text):
    path.write_text(text)
    return path


def encoded(path, encoder):
    """Return the matrix that a model would see, batch by batch."""
    disk = open_table(str(path))
    kinds = dict(zip(disk.names, encoder.kinds, strict=True))
    first, parts = 0, []
    for batch, _ in disk.batches():
        parts += encoder.encode(read_table(typed(batch, kinds, disk, first))).tolist()
        first += len(batch)
    return parts


def test_every_batch_reads_as_the_whole_did(tmp_path, monkeypatch):
    # Blocks of a few lines: in some, the text column holds whole numbers alone, and the dates have no hours.
    lines = [
        f"{i},{'a' if i < 40 else i % 3},2024-01-{1 + i % 28:02d}{' 06:00' if i < 9 else ''},{i % 2 < 1}"
        for i in range(200)
    ]
    path = written(tmp_path / "t.csv", "n,c,day,b\n" + "\n".join(lines).replace("199", "") + "\n")
    disk = open_table(str(path))
    whole = read_whole(disk, disk.names).table
    assert whole.schema.types == [pa.float64(), pa.string(), pa.timestamp("us"), pa.bool_()]
    encoder = TableEncoder.learn(read_table(whole))
    assert encoder.kinds == ("number", "category", "date", "boolean")
    expected = encoder.encode(read_table(whole)).tolist()
    monkeypatch.setattr(csv_file, "BLOCK", 200)
    assert encoded(path, encoder) == expected
    parquet.write_table(whole, tmp_path / "t.parquet")
    assert encoded(tmp_path / "t.parquet", encoder) == expected
    assert TableEncoder.from_dict(encoder.to_dict()) == encoder


@pytest.mark.parametrize(
    ("kind", "cell", "words"),
    [
        ("number", "two", "held numbers when the model was fitted, found 'two' in row 3 of"),
        ("number", "2024-01-01", "held numbers when the model was fitted, found '2024-01-01' in row 3"),
        ("date", "7", "held dates when the model was fitted, found '7' in row 3"),
        ("boolean", "maybe", "held booleans when the model was fitted, found 'maybe' in row 3"),
    ],
)
def test_cells_that_say_something_else_are_named(tmp_path, kind, cell, words):
    disk = open_table(str(written(tmp_path / "t.csv", f"x,y\n,1\n,1\n{cell},1\n")))
    ((batch, _),) = disk.batches()
    with pytest.raises(ValueError, match=words):
        typed(batch, {"x": kind}, disk)


def test_columns_of_another_type_are_refused():
    dates = pa.table({"x": pa.array([1], pa.timestamp("us"))})
    disk = DiskTable("memory", ("x",), None, None, lambda columns: iter(()))
    with pytest.raises(ValueError, match="held numbers when the model was fitted, found dates"):
        typed(dates, {"x": "number"}, disk)
    with pytest.raises(ValueError, match="held dates when the model was fitted, found int64"):
        typed(pa.table({"x": [1]}), {"x": "date"}, disk)
    assert typed(pa.table({"x": [1]}), {"x": "category"}, disk)["x"].to_pylist() == [1]
