"""Damaged and hostile tables against what ``fit`` and ``predict`` do with them, each in a process of its own.

    PYTHONPATH=src:tests python benchmarks/attacks/damaged_tables.py --files 6000 --seed 2
    PYTHONPATH=src:tests python benchmarks/attacks/damaged_tables.py --files 0 --bombs

The first makes files that are damaged at random, after those with a purpose (``tests/damaged_files.py`` makes both). It
counts how they end: read, refused in one sentence, in words of Arrow, in a traceback, or by a signal. The last three
must be 0. ``--bombs`` reads small files that unpack to much, and says how long that took and what memory. It takes a
minute, and the memory of a table of 500 MB.
"""

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import damaged_files
from excel_files import write_xlsx

ENDINGS = ["read", "refused", "raw", "traceback", "signal"]
MEMORY, SECONDS = 6 << 30, 60
MB = 1 << 20


def count(folder, files, seed):
    """Print how damaged files end, and those that end badly."""
    program = [sys.executable, damaged_files.__file__, str(folder), "0", str(files), str(seed)]
    done = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True)
    counted = Counter()
    for line in done.stdout.splitlines():
        _, name, kind, ways = json.loads(line)
        worst = max((ending for _, ending, _ in ways), key=ENDINGS.index)
        counted[worst] += 1
        if worst not in ENDINGS[:2]:
            print(worst, name, kind, ways)
    what = f"{files:,} at random, seed {seed}" if files else "with a purpose"
    print(f"{what}: " + ", ".join(f"{counted[ending]:,} {ending}" for ending in ENDINGS), flush=True)


def bombs(folder):
    """Write small files that unpack to much, and return their paths."""
    zeros = pa.table({"y": np.zeros(1 << 24), "x": np.zeros(1 << 24)})
    parquet.write_table(zeros, folder / "sixteen million rows.parquet", row_group_size=1 << 24)
    with pa.ipc.new_file(
        str(folder / "packed zeros.arrow"), zeros.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as file:
        file.write_table(zeros)
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int32)), pa.array(["a" * MB]))
    kinds = pa.table({"y": np.zeros(100_000), "x": long})
    with pa.ipc.new_file(str(folder / "one long category.arrow"), kinds.schema) as file:
        file.write_table(kinds)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2**31 - 1], pa.int32()), pa.array([1.5]))
    with pa.ipc.new_file(
        str(folder / "two billion runs.arrow"), pa.schema([("y", runs.type), ("x", runs.type)])
    ) as file:
        file.write_batch(pa.record_batch([runs, runs], names=["y", "x"]))
    for name, head, block, blocks in [
        ("rows", b"y,x\n", b"1.5,2\n" * 200_000, 200),
        ("one line", b"y,x\n1,", b"a" * MB, 1000),
        ("a quote without end", b'y,x\n1,"', b"a\n" * (MB // 2), 1000),
    ]:
        with gzip.open(folder / f"{name}.csv.gz", "wb", 1) as file:
            file.write(head)
            for _ in range(blocks):
                file.write(block)
    (folder / "a million columns.csv").write_bytes((b"," * (MB - 10) + b"\n") * 4)
    for name, old, new in [
        ("far cell", b"</sheetData>", b'<row><c r="XFD1048576"><v>1</v></c></row></sheetData>'),
        ("row beyond", b'r="A2"', b'r="A99999999999999999999"'),
        ("column beyond", b'r="A2"', b'r="ZZZZZZZZZZ2"'),
        ("blanks", b"<sheetData>", b"<sheetData>" + b" " * (500 * MB)),
    ]:
        path = write_xlsx(folder / f"{name}.xlsx", {"s": [["y", "x"], [1, 2], [3, 4]]})
        with zipfile.ZipFile(path) as packed:
            parts = {part: packed.read(part) for part in packed.namelist()}
        sheet = "xl/worksheets/sheet1.xml"
        parts[sheet] = parts[sheet].replace(old, new)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for part, data in parts.items():
                packed.writestr(part, data)
    return sorted(folder.iterdir())


def stream(path):
    """Read a table as ``predict`` does, without predicting."""
    from guardband.data.several import open_tables

    for number, _ in enumerate(open_tables([str(path)]).batches()):
        if number == 2000:
            return


def explode(path):
    """Print how a file is read whole and in batches, by a process with limits."""
    for way in (damaged_files.fit_reading, stream):
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            for kind, limit in [("AS", MEMORY), ("CPU", SECONDS), ("CORE", 0)]:
                resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (limit, limit))
            ending = damaged_files.outcome_of(lambda way=way: way(path))
            os.write(send, json.dumps([word[:200] for word in ending]).encode())
            os._exit(0)
        os.close(send)
        _, status, used = os.wait4(child, 0)
        with open(receive, "rb") as pipe:
            ending, words = json.loads(pipe.read() or f'["signal", "{status}"]')
        seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        size = path.stat().st_size / 1e6
        print(f"{path.name:32} {size:6.2f} MB  {way.__name__:12} {seconds:5.1f} s {memory:6,.0f} MB  {ending} {words}")


def main():
    """Run what was asked for."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--files", type=int, default=600)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--bombs", action="store_true")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.files:
            count(Path(folder), 0, options.seed)
            count(Path(folder), options.files, options.seed)
    if options.bombs:
        with tempfile.TemporaryDirectory() as folder:
            for path in bombs(Path(folder)):
                explode(path)


if __name__ == "__main__":
    main()
