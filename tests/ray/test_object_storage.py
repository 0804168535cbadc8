"""From object storage and back the results are those of local files, to the bit, and a fault changes nothing else.

The storage is a small server of this process. docs/log.md says when all this last ran against another one.
"""

import os
import signal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import guardband as gb
from guardband.cli.predict_ray import PartWriter
from guardband.cli.process import main
from guardband.cli.stated_columns import NOTHING_MORE
from guardband.cli.stream import Inputs
from guardband.data.damage import UnreadableError
from guardband.ray.folders import NOTES
from guardband.ray.scoring import DONE, score_files
from guardband.ray.sources import Files
from object_storage import KEYS, storage
from ray_rows import QUICK, frame, table

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    # Ray 2.60 sets options of its own that it deprecates, and leaves pipes to the collector.
    *(pytest.mark.filterwarnings(f"ignore::{name}") for name in ("DeprecationWarning", "ResourceWarning")),
    pytest.mark.filterwarnings("ignore::ray.util.annotations.RayDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SIZES, PART_ROWS = (33_000, 3, 2000), 1 << 15
NAMES = [f"{i}.parquet" for i in range(len(SIZES))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of three Parquet files and three CSV files."""
    made = tmp_path_factory.mktemp("in")
    for i, n in enumerate(SIZES):
        parquet.write_table(table(n, 10 + i), made / f"{i}.parquet", row_group_size=10_000)
        csv.write_csv(table(300, 20 + i), made / f"{i}.csv")
    return made


@pytest.fixture
def server(folder, cluster):
    """Run a storage with these files in a bucket."""
    with storage("bkt", "out") as made:
        made.objects["bkt"] = {f"in/{path.name}": path.read_bytes() for path in folder.iterdir()}
        yield made


@pytest.fixture
def at(server):
    """Return a function from a path in the storage to its address."""
    return lambda path: f"s3://{path}{server.options}"


@pytest.fixture(scope="module")
def model(fitted, folder):
    rows = pa.concat_tables(parquet.read_table(folder / name) for name in NAMES)
    return fitted().calibrate(frame(rows), np.array(rows["y"]))


def scored(model, pattern, folder, write=None, **options):
    found = Files.of(pattern, part_rows=PART_ROWS, skip_corrupt=options.get("skip_corrupt", False))
    write = write or PartWriter(model, Inputs.of(model, found.like), None, False, NOTHING_MORE, False, ".parquet")
    return score_files(found, folder, write, ".parquet", {"model": "m"}, **options)


@pytest.fixture(scope="module")
def expected(model, folder, tmp_path_factory, cluster):
    """Return the files that are written to a disk, by name."""
    out = tmp_path_factory.mktemp("out")
    scored(model, str(folder / "*.parquet"), out)
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def written(server, prefix="result/"):
    """Return the objects that are no notes, by name."""
    own = server.objects["out"]
    return {name.removeprefix(prefix): own[name] for name in own if f"/{NOTES}/" not in name}


def uploads(server):
    """Return how often each object was written."""
    begun = [path for method, path in server.asked if method == "POST" and NOTES not in path and DONE not in path]
    return {path: begun.count(path) // 2 for path in begun}


def test_a_folder_of_objects_holds_the_files_of_a_disk_to_the_bit(model, expected, server, at):
    done = scored(model, at("bkt/in/*.parquet"), at("out/result"))
    assert written(server) == expected
    assert set(uploads(server).values()) == {1}
    assert (len(done.said), done.again) == (4, 0)
    server.asked.clear()
    assert scored(model, at("bkt/in/*.parquet"), at("out/result")).again == 4
    assert uploads(server) == {}
    everything = b"".join([*server.objects["out"].values(), *(name.encode() for name in server.objects["out"])])
    assert not any(key.encode() in everything for key in KEYS.values())


def test_every_call_finds_in_objects_what_it_finds_in_files(model, fitted, folder, at, tmp_path):
    for pattern in ("*.parquet", "*.csv"):
        here, there = str(folder / pattern), at(f"bkt/i*/{pattern}")
        one, many = (gb.ray.calibrate(fitted(), own, target="y", keep_scores=100) for own in (here, there))
        for name, array in one.calibration_.found.arrays.items():
            np.testing.assert_array_equal(many.calibration_.found.arrays[name], array)
    one, many = (gb.ray.audit(many, own, target="y") for own in (str(folder / "*.csv"), at("bkt/in/*.csv")))
    assert repr(one) == repr(many)
    (block,) = gb.ray.predict(model, at("bkt/in/2.parquet")).iter_batches(batch_size=None)
    ends = model.predict_interval(frame(parquet.read_table(folder / "2.parquet")))
    np.testing.assert_array_equal(block["lower"], ends.lower)
    monitors = [gb.Monitor(model), gb.Monitor(model)]
    for monitor, own in zip(monitors, (here, there), strict=True):
        gb.ray.update(monitor, own, target="y")
    assert repr(monitors[0]) == repr(monitors[1])


def test_a_fit_on_objects_is_that_on_files(folder, at):
    options = {name: value for name, value in QUICK.items() if name != "verbose"}
    one, many = (
        gb.ray.fit(own, target="y", drop=["id"], **options) for own in (str(folder / "[12].csv"), at("bkt/in/[12].csv"))
    )
    new = frame(table(20, 99))
    np.testing.assert_array_equal(one.predict_interval(new).lower, many.predict_interval(new).lower)
    with pytest.raises(ValueError, match="Checkpoints cannot be in object storage"):
        gb.ray.fit(at("bkt/in/*.csv"), target="y", checkpoints=at("out/c"))


def test_the_command_reads_and_writes_objects(model, expected, server, at, tmp_path, monkeypatch, capsys):
    model.save(tmp_path / "m.guardband")
    out = at("out/result/")
    command = ["predict", str(tmp_path / "m.guardband"), at("bkt/in/*.csv"), "-o", out, "--ray", "auto"]
    monkeypatch.setattr("sys.argv", ["guardband", *command])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in (None, 0)
    assert f"{out} has 3 files" in capsys.readouterr().err
    found = pa.concat_tables(csv.read_csv(pa.py_buffer(own)) for name, own in written(server).items() if name != DONE)
    assert len(found) == 900
    assert {"point", "lower", "upper"} <= set(found.column_names)


# -------------------------------------------------------------------------------------------- faults


def test_a_worker_killed_while_it_uploads_leaves_nothing_in_sight(model, expected, server, at, tmp_path):
    inner = PartWriter(
        model, Inputs.of(model, Files.of(at("bkt/in/*.parquet")).like), None, False, NOTHING_MORE, False, ".parquet"
    )
    killed = []

    def write(disk, path):
        found = inner(disk, path)
        (tmp_path / path.name).write_text(f"{os.getpid()} {path.parent}")
        return found

    def kill(method, path, query):
        if not killed and "partNumber" in query and "000000-" in path and NOTES not in path:
            process, scratch = (tmp_path / path.split("/")[-1]).read_text().split()
            killed.append((path.removeprefix("out/"), scratch))
            os.kill(int(process), signal.SIGKILL)

    server.on_request = kill
    scored(model, at("bkt/in/*.parquet"), at("out/result"), write=write)
    ((name, scratch),) = killed
    assert uploads(server)[f"out/{name}"] >= 1
    assert [method for method, path in server.asked if path == f"out/{name}"].count("POST") == 3  # one has no end
    assert written(server) == expected
    assert not os.path.exists(scratch)


def test_a_stopped_run_goes_on_and_uploads_only_what_is_not_whole(model, expected, server, at):
    def stop(done, of):
        if done == of:  # when no worker has anything to do: those that are stopped take long to start again
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scored(model, at("bkt/in/*.parquet"), at("out/result"), on_part=stop)
    assert DONE not in written(server)
    own = server.objects["out"]
    first, second, *_ = sorted(name for name in own if name.endswith(".parquet"))
    own[first] = own[first][:-1]
    del own[second]
    server.asked.clear()
    assert scored(model, at("bkt/in/*.parquet"), at("out/result")).again == 2
    assert uploads(server) == {f"out/{first}": 1, f"out/{second}": 1}
    assert written(server) == expected


def test_a_folder_of_objects_holds_one_result(model, server, at):
    scored(model, at("bkt/in/1.parquet"), at("out/result"))
    for others in ("bkt/in/2.parquet", "bkt/in/[12].parquet"):
        with pytest.raises(ValueError, match="holds the result of other files"):
            scored(model, at(others), at("out/result"))
    server.objects["out"]["full/mine.txt"] = b""
    with pytest.raises(ValueError, match=r"is not empty: it has mine\.txt"):
        scored(model, at("bkt/in/1.parquet"), at("out/full"))

    def other(method, path, query):
        if method == "POST" and path.endswith(".parquet"):
            server.objects["out"][f"new/{NOTES}/plan.json"] = b"{}"

    server.on_request = other
    with pytest.raises(ValueError, match="holds the result of other files"):
        scored(model, at("bkt/in/1.parquet"), at("out/new"))
    assert DONE not in written(server, "new/")


def test_an_object_that_changes_meanwhile_ends_the_run_and_is_never_left_out(fitted, server, at):
    own = server.objects["bkt"]
    whole, files = own["in/0.parquet"], Files.of(at("bkt/in/0.parquet"))

    def calibrate(n, other):
        """Calibrate, and put something else in the place of an object when it is read for the n-th time."""
        own["in/0.parquet"], reads = whole, []

        def change(method, path, query):
            if method == "GET" and path.endswith("/0.parquet"):
                reads.append(path)
                if len(reads) == n:
                    own.pop("in/0.parquet") if other is None else own.update({"in/0.parquet": other})

        server.on_request = change
        with pytest.raises(ValueError, match=r"s3://bkt/in/0\.parquet") as error:
            gb.ray.calibrate(fitted(), files, target="y", skip_corrupt=True)
        assert not isinstance(error.value, UnreadableError)
        return str(error.value)

    for n in (1, 6, 9):  # the beginning, the end of the file with its footer, and rows
        assert "was changed meanwhile. Run again when nobody" in calibrate(n, own["in/2.parquet"])
        assert "was changed meanwhile" in calibrate(n, whole[:4] + bytes(len(whole) - 4))
        assert "There is no object at" in calibrate(n, None)


def test_a_damaged_object_is_named_and_left_out_only_if_asked(fitted, server, at):
    own = server.objects["bkt"]
    whole = own["in/0.parquet"]
    for damaged, left in (
        (whole[: len(whole) // 2], "0.parquet"),
        (whole[: len(whole) // 4] + bytes(len(whole) // 4) + whole[len(whole) // 2 :], "rows 1 to 33,000 of"),
    ):
        own["in/0.parquet"] = damaged
        with pytest.raises(UnreadableError, match=r"s3://bkt/in/0\.parquet"):
            gb.ray.calibrate(fitted(), at("bkt/in/0.parquet"), target="y")
        many = gb.ray.calibrate(fitted(), at("bkt/in/*.parquet"), target="y", skip_corrupt=True)
        assert many.certificate_.n_calibration == sum(SIZES[1:])
        assert left in str(many.certificate_)
