"""Parts of a Parquet file are its rows, in the batches in which the whole file is read."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from guardband.data.disk import batch_rows, open_table
from guardband.data.parquet_part import part_of_parquet

N = 100_000


@pytest.fixture(scope="module", params=[30_000, 32_768, 7, N])
def disk(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("parts") / "t.parquet"
    n = N if request.param > 7 else 3000
    table = pa.table({"a": np.arange(n), "b": [str(i) for i in range(n)]})
    parquet.write_table(table, path, row_group_size=request.param)
    return open_table(str(path))


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("columns", [None, ["b"]])
def test_parts_are_read_in_the_batches_of_the_whole(disk, batches, columns):
    step = batches * batch_rows(len(disk.names))
    whole = [batch for batch, _ in disk.batches(columns)]
    parts = [
        batch
        for first in range(0, disk.total, step)
        for batch, _ in part_of_parquet(disk, first, min(step, disk.total - first)).batches(columns)
    ]
    assert [len(batch) for batch in parts] == [len(batch) for batch in whole]
    assert all(one.equals(other) for one, other in zip(parts, whole, strict=True))


def test_a_part_reads_no_row_group_without_its_rows(disk, monkeypatch):
    read = []
    original = parquet.ParquetFile.iter_batches

    def iter_batches(self, size, row_groups, **options):
        read.append(list(row_groups))
        return original(self, size, row_groups=row_groups, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", iter_batches)
    size = min(batch_rows(2), disk.total)
    assert sum(len(batch) for batch, _ in part_of_parquet(disk, 0, size).batches()) == size
    (groups,) = read
    assert groups == list(range(len(groups)))
    before = sum(parquet.ParquetFile(disk.label).metadata.row_group(i).num_rows for i in groups[:-1])
    assert before < size
