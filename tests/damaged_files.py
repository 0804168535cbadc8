"""Tables that were damaged, by chance or on purpose, each read in a process of its own as ``fit`` and ``predict`` do.

``python damaged_files.py FOLDER FIRST COUNT SEED`` prints one line of JSON for each damaged file. It imports what
reads tables once and forks for each file, so that a process that dies is seen to die, and takes its memory with it.
"""

import contextlib
import datetime
import decimal
import io
import json
import os
import resource
import signal
import sys
import traceback
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from pyarrow import parquet

ROWS = 60
TARGET = "y"
NOT_LEARNT = ("many", "pair", "fixed", "runs", "none")
MEMORY, SECONDS = 3 << 30, 20
AT_ONCE = 2
ENDINGS = (".csv", ".arrow", ".parquet")


# What is damaged.


def plain_columns(n=ROWS):
    random = np.random.default_rng(5)
    gone = random.random(n) < 0.2
    words = [None if g else ["Wien", "Graz", "größer", "a longer text than twelve"][i % 4] for i, g in enumerate(gone)]
    day = datetime.date(2024, 1, 1)
    moments = [None if g else datetime.datetime(2024, 1, 1, i % 24) for i, g in enumerate(gone)]
    return {
        TARGET: pa.array(random.standard_normal(n)),
        "whole": pa.array(random.integers(0, 1000, n), pa.int32()),
        "some": pa.array(random.standard_normal(n), mask=gone),
        "truth": pa.array([None if g else bool(i % 2) for i, g in enumerate(gone)]),
        "text": pa.array(words, pa.string()),
        "date": pa.array([day + datetime.timedelta(i) for i in range(n)]),
        "moment": pa.array(moments, pa.timestamp("us")),
    }


def rich_columns(n=ROWS):
    texts = plain_columns(n)["text"]
    moments = plain_columns(n)["moment"]
    return plain_columns(n) | {
        "large": texts.cast(pa.large_string()),
        "bytes": texts.cast(pa.binary()),
        "kind": texts.dictionary_encode(),
        "zoned": moments.cast(pa.timestamp("ns", "Europe/Vienna")),
        "money": pa.array([decimal.Decimal(i) / 100 for i in range(n)], pa.decimal128(12, 2)),
        "none": pa.nulls(n),
        "small": pa.array(np.arange(n) % 100, pa.uint8()),
        "half": pa.array(np.arange(n).astype(np.float16)),
        "span": pa.array(np.arange(n), pa.duration("s")),
        "clock": pa.array(np.arange(n, dtype=np.int32)).cast(pa.time32("s")),
    }


def arrow_only_columns(n=ROWS):
    texts = plain_columns(n)["text"]
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([n // 2, n], pa.int32()), pa.array([1.5, 2.5]))
    return plain_columns(n) | {
        "view": texts.cast(pa.string_view()),
        "byte view": texts.cast(pa.binary_view()),
        "kind": texts.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
        "numbered": pa.array(np.arange(n) % 7).dictionary_encode(),
        "runs": runs,
    }


def nested_columns(n=ROWS):
    return plain_columns(n) | {
        "many": pa.array([[i] * (i % 3) for i in range(n)]),
        "pair": pa.array([{"a": i, "b": str(i)} for i in range(n)]),
        "fixed": pa.array([b"%04d" % i for i in range(n)], pa.binary(4)),
    }


def arrow_bytes(columns, compression=None, batches=2):
    sink, table = io.BytesIO(), pa.table(columns)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, table.schema, options=options) as file:
        for batch in table.to_batches(max_chunksize=max(1, -(-len(table) // batches))):
            file.write_batch(batch)
    return sink.getvalue()


def delta_bytes():
    """Return a file whose dictionary grows from batch to batch."""
    parts = [pa.array([["a", "b", "c", "d"][i % (2 + k)] for i in range(ROWS)]) for k in range(3)]
    values, sink = pa.array(["a", "b", "c", "d"]), io.BytesIO()
    kinds = [
        pa.DictionaryArray.from_arrays(
            pa.array([values.to_pylist().index(v) for v in part.to_pylist()], pa.int8()), values[: 2 + k]
        )
        for k, part in enumerate(parts)
    ]
    y = plain_columns()[TARGET]
    schema = pa.schema([(TARGET, y.type), ("kind", kinds[0].type)])
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_file(sink, schema, options=options) as file:
        for kind in kinds:
            file.write_batch(pa.record_batch([y, kind], schema=schema))
    return sink.getvalue()


def parquet_bytes(columns, **options):
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def sources():
    """Return the files before they are damaged, by name."""
    plain, rich = plain_columns(), rich_columns()
    numbers = {name: plain[name] for name in (TARGET, "whole", "some")}
    return {
        "plain.arrow": arrow_bytes(plain),
        "rich.arrow": arrow_bytes(rich),
        "only.arrow": arrow_bytes(arrow_only_columns()),
        "nested.arrow": arrow_bytes(nested_columns()),
        "lz4.arrow": arrow_bytes(rich, "lz4"),
        "zstd.arrow": arrow_bytes(arrow_only_columns(), "zstd", batches=3),
        "delta.arrow": delta_bytes(),
        "plain.parquet": parquet_bytes(plain, compression="none"),
        "rich.parquet": parquet_bytes(rich, row_group_size=25),
        "zstd.parquet": parquet_bytes(rich, compression="zstd", use_dictionary=False, write_page_index=True),
        "gzip.parquet": parquet_bytes(plain, compression="gzip", data_page_version="2.0"),
        "brotli.parquet": parquet_bytes(plain, compression="brotli", data_page_size=64),
        "lz4.parquet": parquet_bytes(nested_columns(), compression="lz4"),
        "split.parquet": parquet_bytes(
            numbers, compression="none", use_dictionary=False, column_encoding="BYTE_STREAM_SPLIT"
        ),
        "delta.parquet": parquet_bytes(
            {"whole": plain["whole"], "text": plain["text"], TARGET: plain["whole"]},
            compression="none",
            use_dictionary=False,
            column_encoding={"whole": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", TARGET: "PLAIN"},
        ),
    }


# How it is damaged.


def damaged(data, random):
    """Return the bytes of a file with one kind of damage, and its name."""
    kind = ("bits", "bytes", "zeros", "cut", "insert", "repeat", "number", "swap")[random.integers(8)]
    made, n = bytearray(data), len(data)
    at = int(random.integers(8, n))
    size = int(min(n - at, 1 + random.integers(64)))
    if kind == "bits":
        for place in random.integers(6, n, 1 + random.integers(3)):
            made[place] ^= 1 << int(random.integers(8))
    elif kind == "bytes":
        for place in random.integers(6, n, 1 + random.integers(8)):
            made[place] = int(random.integers(256))
    elif kind == "zeros":
        made[at : at + size] = bytes(size)
    elif kind == "cut":
        del made[at:]
    elif kind == "insert":
        made[at:at] = random.bytes(size)
    elif kind == "repeat":
        made[at:at] = made[at : at + size]
    elif kind == "number":  # a length or an offset, where one may lie
        width = int(random.choice([4, 8]))
        at = int(random.integers(8, max(9, n - width))) // width * width
        value = int(random.choice([-1, 2**31 - 1, -(2**31), 1 << 20, 255, 2**30]))
        made[at : at + width] = value.to_bytes(width, "little", signed=True)
    else:
        other = int(random.integers(8, n))
        made[at : at + size], made[other : other + size] = made[other : other + size], made[at : at + size]
    return bytes(made), kind


def targeted():
    """Return files whose buffers contradict each other, by name; no writer makes them by mistake."""
    huge, below = 2**31 - 1, -(2**31)
    files = {}

    def change(name, x, buffer, edit, dtype=np.int32):
        """Write a column, and change one of its buffers where it lies in the file."""
        old = memoryview(x.buffers()[buffer]).tobytes()
        array = np.frombuffer(old[: len(old) // np.dtype(dtype).itemsize * np.dtype(dtype).itemsize], dtype).copy()
        edit(array)
        made = arrow_bytes({TARGET: plain_columns()[TARGET], "x": x}, batches=1)
        new = array.tobytes()
        assert made.count(old[: len(new)]) == 1
        files[f"{name}.arrow"] = made.replace(old[: len(new)], new)

    def put(place, value):
        return lambda array: array.__setitem__(place, value)

    texts = pa.array([f"abcde{i:05d}" for i in range(ROWS)])
    for kind, width in ((pa.string(), np.int32), (pa.large_string(), np.int64), (pa.binary(), np.int32)):
        x = texts.cast(kind)
        for place in (0, 30, 59, 60):
            for value in (huge, below, -1, 5, 10**9):
                change(f"offset {place} of {kind} {value}", x, 1, put(place, value), width)
    for value in (0xFF, 0xC3, 0x80, 0):
        change(f"text with byte {value}", texts, 2, put(slice(None, None, 9), value), np.uint8)
    kinds = pa.array(["a", "b"] * (ROWS // 2))
    for kind, width, value in [
        (pa.int8(), np.int8, -7),
        (pa.int8(), np.int8, 100),
        (pa.int32(), np.int32, huge),
        (pa.int32(), np.int32, below),
        (pa.int64(), np.int64, 2**62),
        (pa.int64(), np.int64, -1),
        (pa.uint16(), np.uint16, 65_535),
    ]:
        for values in (
            kinds,
            pa.array([1.5, 2.5] * (ROWS // 2)),
            kinds.cast(pa.large_string()),
            kinds.cast(pa.binary()),
        ):
            x = values.dictionary_encode().cast(pa.dictionary(kind, values.type))
            change(f"index {value} of {kind} for {values.type}", x, 1, put(ROWS // 2, value), width)
    views = pa.array([f"a text of more than twelve letters {i}" for i in range(ROWS)], pa.string_view())
    for name, column, value in [
        ("size", 0, huge),
        ("size below", 0, -5),
        ("short size", 0, 5),
        ("buffer", 2, 77),
        ("buffer below", 2, -1),
        ("place", 3, huge),
        ("place below", 3, -400),
    ]:
        change(f"view with another {name}", views, 1, put(4 * (ROWS // 2) + column, value))
    for value in (huge, 0, -1, 3):
        runs = pa.RunEndEncodedArray.from_arrays(
            pa.array(range(2, ROWS + 1, 2), pa.int32()), pa.array(range(ROWS // 2))
        )
        old = np.arange(2, ROWS + 1, 2, dtype=np.int32).tobytes()
        for place in (0, 7, 29):
            new = np.arange(2, ROWS + 1, 2, dtype=np.int32)
            new[place] = value
            made = arrow_bytes(
                {TARGET: plain_columns()[TARGET], "x": plain_columns()["whole"], "runs": runs}, batches=1
            )
            files[f"run {place} ends at {value}.arrow"] = made.replace(old, new.tobytes())
        lists = pa.array([[i, i] for i in range(ROWS)])
        change(f"list to {value}", lists, 1, put(30, value))
    half = pa.array([0, 1] * (ROWS // 2))
    strange = {
        "date far away": pa.array([2**31 - 1] * ROWS, pa.int32()).cast(pa.date32()),
        "moment far away": pa.array([2**63 - 1] * ROWS, pa.int64()).cast(pa.timestamp("s")),
        "moment far below": pa.array([-(2**63)] * ROWS, pa.int64()).cast(pa.timestamp("ns", "UTC")),
        "day of milliseconds": pa.array([2**63 - 1] * ROWS, pa.int64()).view(pa.date64()),
        "time beyond a day": pa.array([2**63 - 1] * ROWS, pa.int64()).view(pa.time64("ns")),
        "time below": pa.array([-5] * ROWS, pa.int32()).view(pa.time32("s")),
        "endless span": pa.array([2**63 - 1] * ROWS, pa.int64()).view(pa.duration("s")),
        "no zone of that name": pa.array([1] * ROWS, pa.timestamp("us", "Mars/Base")),
        "large decimal": pa.array([decimal.Decimal(10) ** 70] * ROWS, pa.decimal256(76, 2)),
        "nothing": pa.nulls(ROWS),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([30, ROWS], pa.int32()), pa.array([1.5, 2.5])),
        "runs of text": pa.RunEndEncodedArray.from_arrays(pa.array([30, ROWS], pa.int32()), pa.array(["a", "b"])),
        "kinds of lists": pa.DictionaryArray.from_arrays(half, pa.array([[1], [2]])),
        "kinds with a missing one": pa.DictionaryArray.from_arrays(
            pa.array([0, 1] * (ROWS // 2)), pa.array(["a", None])
        ),
        "kinds of Latin-1": pa.array([b"a", b"\xff"] * (ROWS // 2)).dictionary_encode(),
        "kinds of nothing": pa.nulls(ROWS, pa.dictionary(pa.int8(), pa.null())),
        "intervals": pa.array([(1, 2, 3)] * ROWS, pa.month_day_nano_interval()),
        "endless numbers": pa.array([float("inf")] * ROWS),
    }
    for name, x in strange.items():
        files[f"{name}.arrow"] = arrow_bytes({TARGET: plain_columns()[TARGET], "x": x}, batches=1)
    for name in ("\x1b[31mred", "two\nlines", "\x00", "\u202e", "", "x" * 100_000, "lower"):
        x = pa.array([1.5, 2.5] * (ROWS // 2))
        files[f"name {ascii(name)[:20]}.arrow"] = arrow_bytes({TARGET: plain_columns()[TARGET], name: x, "x": x})
    files["no columns.arrow"] = arrow_bytes({})
    files["no columns.parquet"] = parquet_bytes({})
    files["no rows.arrow"] = arrow_bytes({TARGET: pa.array([], pa.int64()), "x": pa.array([], pa.string())}, batches=1)
    return files | _targeted_parquet()


def varint(value):
    """Return a whole number as Thrift's compact protocol writes it."""
    value, made = (value << 1) ^ (value >> 63), bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def with_footer(data, change):
    """Return a Parquet file with another footer."""
    size = int.from_bytes(data[-8:-4], "little")
    footer = change(data[-8 - size : -8])
    return data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _targeted_parquet():
    n = 12_345
    kinds = pa.array(["alpha", "beta"]).take(pa.array(np.random.default_rng(1).integers(0, 2, n)))
    columns = {TARGET: pa.array(np.arange(n) % 50), "x": kinds}
    made = parquet_bytes(columns, compression="none", write_statistics=False)
    files = {}
    for value in (2**62, 2**63 - 1, -1, 0, n + 1, n - 1, 10**9):
        files[f"{value} rows.parquet"] = with_footer(made, lambda f, v=value: f.replace(varint(n), varint(v)))
        first = with_footer(made, lambda f, v=value: f.replace(varint(n), varint(v), 1))
        files[f"{value} rows in all.parquet"] = first
    about = parquet.read_metadata(io.BytesIO(made)).row_group(0)
    for j in range(2):
        chunk = about.column(j)
        for back in range(1, 400, 37):
            at = chunk.dictionary_page_offset + chunk.total_compressed_size - back
            files[f"index of column {j}, {back}.parquet"] = made[:at] + b"\xff" * 16 + made[at + 16 :]
        at = chunk.dictionary_page_offset
        for size in (1, 5, 9):
            files[f"page of column {j}, {size}.parquet"] = made[: at + size] + b"\xff" * 4 + made[at + size + 4 :]
    bad = pa.Array.from_buffers(pa.string(), ROWS, pa.array(["\x7f" * 4] * ROWS).buffers())
    invalid = parquet_bytes({TARGET: plain_columns()[TARGET], "x": bad}, compression="none")
    files["invalid UTF-8.parquet"] = invalid.replace(b"\x7f" * 4, b"\xff\xfe\x80\x81")
    return files


# How it is read.


class _Model:
    """What ``predict`` asks of a model, without a network: it was fitted on a file before that was damaged."""

    def __init__(self, X):
        from guardband.data.encoder import TableEncoder
        from guardband.data.table import read_table
        from guardband.data.unlike import Seen

        table = read_table(X).settled()
        self.feature_names_in_, self.n_features_in_ = list(table.names), len(table.names)
        self.encoder = TableEncoder.learn(table)
        learned, seen = SimpleNamespace(encoder=self.encoder), Seen.learn(table)
        self.fitted_ = SimpleNamespace(learned=learned, seen=seen, grouping=None, weighting=None, calibrated=None)
        self.calibration_ = SimpleNamespace(at=lambda level, delta: None)

    def read_rows(self, X, to_predict):
        from guardband.data.table import read_table

        return read_table(X, self.feature_names_in_).read_as(self.encoder.kinds)

    def intervals_of(self, table, calibrated):
        from guardband.bands.intervals import Intervals

        ends = self.encoder.encode(table).sum(axis=1)
        return Intervals(ends - 1, ends, ends + 1, 0.9)


def fit_reading(path):
    """Do what ``fit`` does up to training."""
    from guardband.cli.columns import as_table, crowded_in_words, useless_in_words, views_of
    from guardband.cli.console import Speaker
    from guardband.cli.labelled import read_labelled
    from guardband.data.encoder import TableEncoder
    from guardband.data.fingerprint import fingerprints
    from guardband.data.repeats import repeats_in
    from guardband.data.several import open_tables
    from guardband.data.table import read_table

    disk = open_tables([str(path)])
    if TARGET not in disk.names:
        raise ValueError(f"There is no column {TARGET!r}: name another.")
    features = [name for name in disk.names if name not in (TARGET, *NOT_LEARNT)]
    if not features:
        raise ValueError("There are no columns to learn from: add some.")
    rows = read_labelled(disk, features, TARGET, Speaker())
    views = views_of(rows)
    Speaker().note(as_table(views))
    useless_in_words(views), crowded_in_words(views)
    table, y = read_table(rows.X).settled(), rows.y.to_numpy()
    TableEncoder.learn(table).encode(table)
    repeats_in(table, y)
    fingerprints(table, y)
    rows.take(np.arange(rows.n // 2))
    return rows


def predict_reading(path, model, ending):
    """Do what ``predict`` does, with a model that has no network, and write a table."""
    from guardband.cli.stream import Inputs, predict_into
    from guardband.data.several import open_tables
    from guardband.data.table_writer import open_writer

    disk = open_tables([str(path)])
    inputs = Inputs.of(model, disk)
    out = path.with_name(f"out-{os.getpid()}{ending}")
    try:
        with open_writer(out, ending) as writer:
            for _ in predict_into(writer, model, disk, inputs, None, True):
                pass
    finally:
        out.unlink(missing_ok=True)


def outcome_of(work):
    """Return how a piece of work ends, in a word, and what it says: only "read" and "refused" are fit for a user."""
    try:
        work()
    except pa.ArrowException as error:
        return "raw", f"{type(error).__name__}: {error}"
    except (ValueError, TypeError, OSError) as error:
        words = str(error)
        own = type(error).__name__ in ("ValueError", "TypeError", "FileNotFoundError", "UnreadableError", "NoRowsError")
        fine = own and words.endswith(".") and "\n" not in words
        return "refused" if fine else "raw", f"{type(error).__name__}: {words}"
    except BaseException as error:
        return "traceback", f"{type(error).__name__}: {error}\n{traceback.format_exc()[-1500:]}"
    return "read", ""


def read_apart(path, model):
    """Read a file in a process of its own, first as ``fit`` does, then as ``predict`` does; return how both end."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        with contextlib.suppress(BaseException):
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            works = {e: lambda e=e: predict_reading(path, model, e) for e in ENDINGS}
            works = {"fit": lambda: fit_reading(path)} | works
            for name, work in works.items():
                os.write(send, json.dumps([name, *(word[:2000] for word in outcome_of(work))]).encode() + b"\n")
        os._exit(0)
    os.close(send)
    return child, receive


def ended(child, receive, status):
    """Return how each way of reading ended, the last of them perhaps by a signal."""
    with open(receive, "rb") as pipe:
        found = [json.loads(line) for line in pipe.read().splitlines()]
    if os.WIFSIGNALED(status):
        found.append(["after", "signal", signal.Signals(os.WTERMSIG(status)).name])
    elif os.WEXITSTATUS(status):
        found.append(["after", "signal", f"exit {os.WEXITSTATUS(status)}"])
    return found


def cases(first, count, seed, originals):
    """Yield damaged files by number: name, kind of damage, bytes."""
    names = list(originals)
    for i in range(first, first + count):
        random = np.random.default_rng([seed, i])
        name = names[i % len(names)]
        data, kind = damaged(originals[name], random)
        yield i, name, kind, data


def serve(folder, first, count, seed):
    """Print how each damaged file was read; without a number of files, those with a purpose."""
    warnings.simplefilter("ignore")
    pa.set_cpu_count(1)
    originals = sources()
    models = {}
    for name, data in originals.items():
        path = folder / name
        path.write_bytes(data)
        with contextlib.redirect_stderr(io.StringIO()):
            models[name] = _Model(fit_reading(path).X)
            for ending in ENDINGS:  # what it imports here is imported in all processes
                outcome_of(lambda n=name, p=path, e=ending: predict_reading(p, models[n], e))
    todo = ((i, n, k, d, models[n]) for i, n, k, d in cases(first, count, seed, originals))
    if not count:
        one = _Model(pa.table({"x": pa.array(["a", "b"] * 20)}))
        todo = ((i, name, "targeted", data, one) for i, (name, data) in enumerate(targeted().items()))
    running = {}

    def wait():
        child, status = os.wait()
        about, path, receive = running.pop(child)
        print(json.dumps([*about, ended(child, receive, status)]), flush=True)
        path.unlink(missing_ok=True)

    for i, name, kind, data, model in todo:
        path = folder / f"{seed}-{i}-{name.replace('/', ' ')}"
        path.write_bytes(data)
        child, receive = read_apart(path, model)
        running[child] = ((i, name, kind), path, receive)
        if len(running) >= AT_ONCE:
            wait()
    while running:
        wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
