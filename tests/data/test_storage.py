"""Objects are found, read and written as files are, and what goes wrong on the way is told apart from damage."""

import gzip
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from excel_files import write_xlsx
from guardband.data import storage as stored
from guardband.data.damage import UnreadableError
from guardband.data.disk import open_table
from guardband.data.files import scratch_folder
from guardband.data.parquet_part import part_of_parquet
from guardband.data.several import open_tables, paths_in
from guardband.data.storage import Address, StorageError, is_address, name_of_file, version_of
from object_storage import KEYS, NO_OTHERS, WRONG, storage

ROWS = pa.table({"a": np.arange(50_000.0), "b": ["x", "yy"] * 25_000, "c.d": np.arange(50_000)})


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    """Give credentials to the client, which is made anew for each test."""
    for name, value in (KEYS | NO_OTHERS).items():
        monkeypatch.setenv(name, value)
    stored._store.cache_clear()


@pytest.fixture
def server():
    with storage("bkt") as made:
        yield made


@pytest.fixture
def at(server):
    return lambda path: f"s3://bkt/{path}{server.options}"


def test_a_pattern_stands_for_objects_in_the_order_of_their_names(server, at, tmp_path, monkeypatch):
    for name in ("b/1.csv", "b/10.csv", "b/2.csv", "b/.h.csv", "b/x/3.csv", "c/1.csv", "b/a b.csv", "b/[1].csv", "b/é"):
        server.objects["bkt"][name] = b"a\n1\n"
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"a\n1\n")
    monkeypatch.chdir(tmp_path)
    for pattern in ("b/*.csv", "b/[12].csv", "*/1.csv", "[bc]/*.csv", "b/*/*.csv", "b/.*", "b/[1].csv", "b/a b.csv"):
        assert paths_in([at(pattern)]) == [at(path) for path in paths_in([pattern])]
    with pytest.raises(FileNotFoundError, match=r"No object matches s3://bkt/b/z\*.*Check the bucket and the pattern"):
        paths_in([at("b/z*")])
    with pytest.raises(ValueError, match=r"b/1\.csv.* is named twice"):
        paths_in([at("b/1.csv"), at("b/*.csv")])
    assert name_of_file(at("b/1.csv")) == "1.csv"


def test_the_endpoint_may_come_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    server.objects["bkt"]["a.csv"] = b"a\n1\n"
    assert paths_in(["s3://bkt/*"]) == ["s3://bkt/a.csv"]


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz", "csv.zip"])
def test_an_object_is_read_as_the_file_that_it_is(kind, server, at, tmp_path):
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        parquet.write_table(ROWS, path, row_group_size=7000)
    else:
        csv.write_csv(ROWS, path)
    if kind == "csv.gz":
        path.write_bytes(gzip.compress(path.read_bytes()))
    if kind == "csv.zip":
        text = path.read_bytes()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("t.csv", text)
    Address.of(at("in/t")).upload(path)
    assert server.objects["bkt"]["in/t"] == path.read_bytes()
    here, there = open_table(str(path)), open_table(at("in/t"))
    for about in ("names", "total", "schema", "dialect"):
        assert getattr(there, about) == getattr(here, about)
    for one, other in zip(here.sound_batches(["c.d", "a"]), there.sound_batches(["c.d", "a"]), strict=True):
        assert one[0].equals(other[0])
        assert one[1] == other[1]
    if kind == "parquet":
        parts = [part_of_parquet(own, 32768, 100) for own in (here, there)]
        one, other = (pa.Table.from_batches([batch for batch, _ in own.sound_batches()]) for own in parts)
        assert one.equals(other)
        assert one["a"][0].as_py() == 32768


def test_parts_of_a_large_file_are_read_without_the_rest_of_it(server, at, tmp_path):
    rows = pa.table({"a": np.random.default_rng(0).random(600_000)})
    parquet.write_table(rows, tmp_path / "t.parquet", row_group_size=100_000)
    Address.of(at("t")).upload(tmp_path / "t.parquet")
    sent = []
    server.on_answer = lambda body: sent.append(len(body))
    disk = open_table(at("t"))
    assert sum(sent) < 300_000
    sent.clear()
    assert sum(len(batch) for batch, _ in part_of_parquet(disk, 32768, 32768).sound_batches()) == 32768
    assert sum(sent) < len(server.objects["bkt"]["t"]) / 3


def test_only_ray_reads_objects_and_only_some_formats(server, at, tmp_path):
    server.objects["bkt"]["a.csv"] = b"a\n1\n"
    with pytest.raises(ValueError, match=r"s3://bkt/a\.csv.* is in object storage, which only --ray reads"):
        open_tables([at("a.csv")])
    feather.write_feather(ROWS, tmp_path / "t.arrow")
    write_xlsx(tmp_path / "t.xlsx", {"s": [["a"], [1]]})
    for name in ("t.arrow", "t.xlsx"):
        server.objects["bkt"][name] = (tmp_path / name).read_bytes()
        with pytest.raises(ValueError, match="is neither Parquet nor CSV"):
            open_table(at(name))


@pytest.mark.parametrize(
    "address",
    [
        "s3://KEY:HIDDEN@bkt/x.csv",
        "s3://HIDDEN@bkt/x.csv",
        "s3://KEY:HID/HIDDEN@bkt/x.csv",
        "abfs://c:HIDDEN@account/x.csv",
        "abfs://c@account/x.csv?client_secret=HIDDEN",
        "gs://b/x.csv?access_token=HIDDEN",
    ],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(address):
    assert is_address(address)
    with pytest.raises(ValueError, match="must not hold credentials") as error:
        paths_in([address])
    assert "HID" not in str(error.value)


@pytest.mark.parametrize(
    "address", ["gs://anonymous@b/x", "abfs://container@account.dfs.core.windows.net/x", "hdfs://h:8020/x"]
)
def test_what_comes_before_the_host_need_not_be_a_secret(address):
    assert str(Address.of(address)) == address


@pytest.mark.parametrize("path", ["a/b.csv", "C:\\a.csv", "file:///a.csv", "-", "a:b"])
def test_a_path_is_no_address(path):
    assert not is_address(path)


@pytest.mark.parametrize("address", ["https://h/x.csv", "s3://bkt/x?.csv"])
def test_what_is_no_storage_is_refused(address):
    with pytest.raises(ValueError, match=r"is no address of object storage: .*Write it as s3://bucket/folder"):
        open_table(address)


def test_whatever_is_wrong_is_said_in_one_sentence_with_the_address(server, at, monkeypatch, tmp_path):
    (tmp_path / "t").write_bytes(b"1")
    server.objects["bkt"]["t"] = b"a\n1\n"
    none = at("t").replace("bkt", "none")
    with pytest.raises(StorageError, match=r"There is no object at s3://bkt/z.*Check the bucket and the path\."):
        open_table(at("z"))
    with pytest.raises(StorageError, match=r"s3://none/t\S* cannot be written: there is no bucket none\. Check the"):
        Address.of(none).upload(tmp_path / "t")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", WRONG)
    stored._store.cache_clear()
    for attempt in (
        lambda: open_table(at("t")),
        lambda: paths_in([at("*")]),
        lambda: Address.of(at("u")).upload(tmp_path / "t"),
    ):
        with pytest.raises(StorageError, match=r"s3://bkt/\S* cannot be \w+: the storage refuses the cred") as error:
            attempt()
        assert WRONG not in str(error.value)
        assert KEYS["AWS_SECRET_ACCESS_KEY"] not in str(error.value)
    assert list(server.objects["bkt"]) == ["t"]


def test_a_connection_that_is_cut_is_no_damage(server, at, tmp_path):
    parquet.write_table(ROWS, tmp_path / "t")
    Address.of(at("t")).upload(tmp_path / "t")
    disk = open_table(at("t"))
    server.cut.add("t")
    with pytest.raises(StorageError, match=r"s3://bkt/t\S* cannot be read: the network failed\. Check the network"):
        list(disk.sound_batches())


def test_what_the_storage_refuses_is_said_by_its_code(server, at):
    server.objects["bkt"]["t"] = bytes(3000)
    with Address.of(at("t")).open("rb", 500) as file:
        assert file.read(500) == bytes(500)
        server.objects["bkt"]["t"] = bytes(10)
        with pytest.raises(
            StorageError, match=r"s3://bkt/t\S* cannot be read: the storage answers \w+ \(status 416\)\. "
        ):
            file.read()


def test_an_upload_that_fails_at_its_end_fails(server, at, tmp_path):
    (tmp_path / "t").write_bytes(bytes(6 << 20))

    def refuse(method, path, query):
        if method == "POST" and "uploadId" in query:
            del server.objects["bkt"]

    server.on_request = refuse
    with pytest.raises(StorageError, match="there is no bucket bkt"):
        Address.of(at("t")).upload(tmp_path / "t")


def test_an_object_is_not_there_before_its_upload_ends(server, at, tmp_path):
    (tmp_path / "t").write_bytes(bytes(25 << 20))
    seen = []
    server.on_request = lambda method, path, query: seen.append((method, "t" in server.objects["bkt"]))
    Address.of(at("t")).upload(tmp_path / "t")
    assert [method for method, _ in seen].count("PUT") > 1
    assert not any(is_there for _, is_there in seen)
    assert len(server.objects["bkt"]["t"]) == 25 << 20


def test_a_version_is_another_after_a_change(server, at):
    server.objects["bkt"]["t"] = b"a"
    before = version_of(at("t"))
    assert version_of(at("t")) == before
    server.objects["bkt"]["t"] = b"b"
    assert version_of(at("t")) != before
    assert version_of("/a/path") is None


def test_a_damaged_object_is_told_of_as_a_damaged_file(server, at, tmp_path):
    parquet.write_table(ROWS, tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:1000] + bytes(100_000) + whole[101_000:]):
        server.objects["bkt"]["t"] = damaged
        (tmp_path / "t").write_bytes(damaged)
        said = []
        for path in (at("t"), str(tmp_path / "t")):
            with pytest.raises(UnreadableError) as error:
                list(open_table(path).sound_batches())
            said.append(str(error.value).removeprefix(path))
        assert said[0] == said[1]


def test_a_folder_that_a_killed_process_left_is_removed_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = "import os; from guardband.data.files import scratch_folder as s\nwith s() as f: print(f, flush=True); {}"
    left = subprocess.run(
        [sys.executable, "-c", code.format("os.kill(os.getpid(), 9)")],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    ).stdout.strip()
    assert Path(left).is_dir()
    with scratch_folder() as one:
        assert not Path(left).exists()
        with scratch_folder() as other:
            assert one.is_dir()
            assert other.is_dir()
            assert one != other
    assert list(tmp_path.iterdir()) == []
