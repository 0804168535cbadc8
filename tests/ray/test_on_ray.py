"""On Ray a model is calibrated and predicts as on one machine, to the bit, and a fault changes nothing but the time.

All that needs the cluster is in this file: with several, several processes of pytest would each start one.
"""

import contextlib
import copy
import errno
import io
import json
import os
import signal
import time
import warnings
from functools import partial
from glob import glob
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from safetensors import safe_open

import guardband as gb
from guardband.cli.console import Speaker
from guardband.cli.predict_ray import PartWriter, place_in, predict_on_ray
from guardband.cli.process import main
from guardband.cli.stated_columns import NOTHING_MORE
from guardband.cli.stream import Inputs, predict_into
from guardband.data.damage import UnreadableError
from guardband.data.disk import open_table
from guardband.data.several import open_tables
from guardband.data.table_writer import open_writer
from guardband.exceptions import MissingTargetWarning, OverlapError
from guardband.ray import scoring, spread, summarising
from guardband.ray.cluster import in_order, task
from guardband.ray.scoring import DONE, score_files
from guardband.ray.sources import FILE, ROW, Files, read_files
from ray_rows import COLUMNS, frame, table

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    # Ray 2.60 sets options of its own that it deprecates, and leaves pipes to the collector.
    *(pytest.mark.filterwarnings(f"ignore::{name}") for name in ("DeprecationWarning", "ResourceWarning")),
    pytest.mark.filterwarnings("ignore::ray.util.annotations.RayDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SIZES = (40_000, 3, 33_000)
PART_ROWS = 1 << 15
SEED_OF_LAST = SIZES[-1], 12


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the pattern of three Parquet files."""
    folder = tmp_path_factory.mktemp("in")
    for i, n in enumerate(SIZES):
        parquet.write_table(table(n, 10 + i), folder / f"{i}.parquet", row_group_size=10_000)
    return str(folder / "*.parquet")


@pytest.fixture(scope="module")
def whole():
    return pa.concat_tables([table(n, 10 + i) for i, n in enumerate(SIZES)])


def same(one, other):
    """Return whether two models were calibrated to the same bits, and promise the same."""
    a, b = one.calibration_.found.arrays, other.calibration_.found.arrays
    assert a.keys() == b.keys()
    for name, array in a.items():
        np.testing.assert_array_equal(b[name], array)
    new = frame(table(50, 99))
    ends, others = one.predict_interval(new), other.predict_interval(new)
    np.testing.assert_array_equal(others.lower, ends.lower)
    np.testing.assert_array_equal(others.upper, ends.upper)
    return one.certificate_.promise.rank == other.certificate_.promise.rank


def on_one_machine(model, rows):
    return copy.copy(model).calibrate(frame(rows), np.array(rows["y"]))


# ---------------------------------------------------------------------------------------------- rows


def test_rows_of_files_come_in_order_and_know_their_place(files, whole):
    found = Files.of(files, part_rows=PART_ROWS)
    assert len(found.parts) == 5
    assert found.rows == len(whole)
    blocks = list(read_files(found, ["id"]).iter_batches(batch_size=None, batch_format="pyarrow"))
    rows = pa.concat_tables(blocks)
    np.testing.assert_array_equal(rows["id"], whole["id"])
    np.testing.assert_array_equal(rows[ROW], whole["id"])
    np.testing.assert_array_equal(rows[FILE], np.repeat([0, 1, 2], SIZES))


# --------------------------------------------------------------------------------------- calibration


@pytest.mark.parametrize("keep_scores", [100, 1 << 20])
@pytest.mark.parametrize(
    "options",
    [
        {"confidence_level": [0.8, 0.9]},
        {"guarantee": "pac", "groups": "letter"},
        {"tails": (0.02, 0.08)},
        {"method": "pav"},
    ],
)
def test_calibration_is_that_of_one_machine_to_the_bit(options, keep_scores, fitted, files, whole, tmp_path):
    model = fitted(**options)
    one = on_one_machine(model, whole)
    many = gb.ray.calibrate(model, files, target="y", keep_scores=keep_scores)
    assert same(one, many)
    many.save(tmp_path / "m.guardband")
    assert same(one, gb.load(tmp_path / "m.guardband"))


def test_a_dataset_calibrates_as_its_files_do(fitted, files, whole, cluster):
    dataset = cluster.data.from_arrow(whole.select([*COLUMNS, "y"])).repartition(4)
    model = fitted()
    assert same(on_one_machine(model, whole), gb.ray.calibrate(model, dataset, target="y", keep_scores=100))


def test_cells_of_csv_and_missing_targets_are_read_as_on_one_machine(fitted, tmp_path):
    rows = table(900, 5)
    y = np.where(np.arange(900) % 10, rows["y"], np.nan)
    rows = rows.set_column(3, "y", pa.array(y, from_pandas=True))
    for i in range(3):
        csv.write_csv(rows.slice(300 * i, 300), tmp_path / f"{i}.csv")
    model = fitted()
    with pytest.warns(MissingTargetWarning, match="90 of 900 rows"):
        many = gb.ray.calibrate(model, str(tmp_path / "*.csv"), target="y", keep_scores=100)
    known = rows.filter(~np.isnan(y))
    again = pa.table({name: csv_column(tmp_path, name) for name in COLUMNS} | {"y": csv_column(tmp_path, "y")})
    assert many.certificate_.n_calibration == len(known)
    assert same(on_one_machine(model, again.filter(np.asarray(again["y"].is_valid()))), many)


def csv_column(folder, name):
    return pa.concat_tables([csv.read_csv(folder / f"{i}.csv") for i in range(3)])[name]


def test_rows_that_trained_the_model_are_refused(fitted, tmp_path):
    parquet.write_table(table(600, 0), tmp_path / "t.parquet")
    with pytest.raises(OverlapError, match="600 of 600 calibration rows"):
        gb.ray.calibrate(fitted(), str(tmp_path / "t.parquet"), target="y")


def test_what_was_counted_says_so_and_has_no_other_levels(fitted, files):
    many = gb.ray.calibrate(fitted(), files, target="y", keep_scores=100)
    assert "counted in parts" in str(many.certificate_)
    with pytest.raises(ValueError, match="Calibrate it again and name all levels"):
        many.predict_interval(frame(table(5, 1)), confidence_level=0.5)


def test_what_needs_every_row_is_refused_above_the_limit(fitted, files):
    with pytest.raises(ValueError, match="raise keep_scores"):
        gb.ray.calibrate(fitted(method="bayes"), files, target="y", keep_scores=100)


# ------------------------------------------------------------------------------------------- scoring


def scored(model, pattern, folder, **options):
    found = Files.of(pattern, part_rows=PART_ROWS, skip_corrupt=options.get("skip_corrupt", False))
    inputs = Inputs.of(model, found.like)
    write = options.pop("write", None) or PartWriter(model, inputs, None, False, NOTHING_MORE, False, ".parquet")
    return score_files(found, folder, write, ".parquet", {"model": "m"}, **options)


def together(folder):
    return pa.concat_tables([parquet.read_table(path) for path in sorted(folder.glob("*.parquet"))])


@pytest.fixture(scope="module")
def model(fitted, whole):
    return on_one_machine(fitted(), whole)


@pytest.fixture(scope="module")
def expected(model, files, tmp_path_factory):
    """Return what one machine writes."""
    place = tmp_path_factory.mktemp("one") / "out.parquet"
    disk = open_tables(sorted(map(str, glob(files))))
    with open_writer(place, ".parquet") as writer:
        for _ in predict_into(writer, model, disk, Inputs.of(model, disk), None):
            pass
    return parquet.read_table(place)


def test_a_folder_holds_the_rows_of_one_machine_in_order(model, files, expected, tmp_path):
    done = scored(model, files, tmp_path)
    assert together(tmp_path).equals(expected)
    assert (len(done.said), done.again, done.skipped) == (5, 0, ())
    assert json.loads((tmp_path / DONE).read_text()) == {"parts": 5, "skipped": []}


def test_a_dataset_keeps_its_rows_and_their_order(model, files, expected):
    rows = gb.ray.predict(model, files)
    found = pa.concat_tables(list(rows.iter_batches(batch_size=None, batch_format="pyarrow")))
    for name in expected.column_names:
        np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.usefixtures("one_at_a_time")
def test_a_stopped_run_goes_on_and_writes_no_part_again(model, files, expected, tmp_path):
    def stop(done, of):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scored(model, files, tmp_path, on_part=stop)
    assert not (tmp_path / DONE).exists()
    first = sorted(tmp_path.glob("*.parquet"))[0]
    before = first.stat().st_ino
    done = scored(model, files, tmp_path)
    assert done.again == 2
    assert first.stat().st_ino == before
    assert together(tmp_path).equals(expected)


def test_a_part_that_was_cut_or_removed_is_written_again(model, files, expected, tmp_path):
    scored(model, files, tmp_path)
    first, second, *_ = sorted(tmp_path.glob("*.parquet"))
    first.write_bytes(first.read_bytes()[:-1])
    second.unlink()
    assert scored(model, files, tmp_path).again == 3
    assert together(tmp_path).equals(expected)


def test_a_folder_holds_one_result(model, files, tmp_path):
    scored(model, files, tmp_path / "out")
    with pytest.raises(ValueError, match="holds the result of other files"):
        scored(model, files.replace("*", "0"), tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").touch()
    with pytest.raises(ValueError, match=r"is not empty: it has mine\.txt"):
        scored(model, files, tmp_path / "full")


@pytest.mark.parametrize("damaged", [b"", b"a,b\n1,2\n" + bytes(3000)])
def test_a_csv_that_is_no_table_is_left_out_if_asked(damaged, tmp_path):
    csv.write_csv(table(5, 0), tmp_path / "0.csv")
    (tmp_path / "1.csv").write_bytes(damaged)
    with pytest.raises(UnreadableError, match=r"1\.csv"):
        Files.of(str(tmp_path / "*.csv"))
    found = Files.of(str(tmp_path / "*.csv"), skip_corrupt=True)
    assert [path for path, _ in found.skipped] == [str(tmp_path / "1.csv")]
    assert len(found.parts) == 1


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_files_without_rows_and_of_one_row_change_nothing(ending, model, tmp_path):
    rows, folder = table(301, 60).select(COLUMNS), tmp_path / "in"
    folder.mkdir()
    starts = [0, 0, 1, 1, 301, 301]  # files of 0, 1, 0, 300 and 0 rows
    for i, (start, end) in enumerate(pairwise(starts)):
        write = parquet.write_table if ending == ".parquet" else csv.write_csv
        write(rows.slice(start, end - start), folder / f"{i}{ending}")
    pattern = str(folder / f"*{ending}")
    model.save(tmp_path / "m.guardband")
    one = tmp_path / f"one{ending}"
    command("predict", tmp_path / "m.guardband", *sorted(folder.iterdir()), "-o", one)
    said = command("predict", tmp_path / "m.guardband", pattern, "-o", tmp_path / "out", "--ray", "auto")
    again = command("predict", tmp_path / "m.guardband", pattern, "-o", tmp_path / "out", "--ray", "auto")
    read = parquet.read_table if ending == ".parquet" else csv.read_csv
    assert pa.concat_tables(map(read, sorted((tmp_path / "out").glob(f"*{ending}")))).equals(read(one))
    assert (said["rows"], said["files"], again["rows"], again["files"]) == (301, 2, 301, 2)
    if ending == ".csv":  # of Parquet files without rows a dataset has no part
        found = gb.ray.predict(model, pattern).iter_batches(batch_size=None, batch_format="pyarrow")
        np.testing.assert_array_equal(pa.concat_tables(found)["lower"], read(one)["lower"])
    else:
        assert len(Files.of(pattern).parts) == 2


def test_files_without_any_rows_are_refused_as_on_one_machine(model, tmp_path):
    for i in range(2):
        csv.write_csv(table(3, 0).slice(0, 0), tmp_path / f"{i}.csv")
        parquet.write_table(table(3, 0).slice(0, 0), tmp_path / f"{i}.parquet")
    for ending in ("csv", "parquet"):
        with pytest.raises(ValueError, match="has column names, but no rows: add rows below them"):
            scored(model, str(tmp_path / f"*.{ending}"), tmp_path / f"out {ending}")


def test_a_rule_calibrates_whatever_its_first_files_hold(tmp_path):
    rng = np.random.default_rng(0)
    rows = pa.table({"lower": -np.ones(400), "upper": np.ones(400), "y": rng.standard_normal(400)})
    csv.write_csv(rows.slice(0, 0), tmp_path / "0.csv")
    csv.write_csv(rows.slice(0, 3).set_column(2, "y", pa.nulls(3, pa.float64())), tmp_path / "1.csv")
    csv.write_csv(rows, tmp_path / "2.csv")
    options = ["--lower", "lower", "--upper", "upper", "--target", "y", "-o", tmp_path / "r.rule"]
    one = command("calibrate", tmp_path / "2.csv", *options)
    many = command("calibrate", str(tmp_path / "[012].csv"), *options, "--ray", "auto")
    assert many["certificate"]["promise"] == one["certificate"]["promise"]


def test_paths_may_be_objects_and_what_are_no_files_is_said(model, files, whole):
    first = Path(files.replace("*", "0"))
    assert Files.of(first).rows == Files.of([first]).rows == SIZES[0]
    with pytest.raises(ValueError, match="There are no files"):
        gb.ray.calibrate(model, [], target="y")
    for call in (partial(gb.ray.calibrate, target="y"), gb.ray.predict, partial(gb.ray.audit, target="y")):
        with pytest.raises(TypeError, match=r"found DataFrame\. Make a dataset of a table"):
            call(model, whole.to_pandas())


def test_names_as_long_as_a_disk_allows_have_a_place(model, tmp_path):
    long = "\u00fc" * 123 + ".parquet"
    parquet.write_table(table(5, 0), tmp_path / long)
    scored(model, str(tmp_path / long), tmp_path / "out")
    assert len(together(tmp_path / "out")) == 5


def command(*arguments):
    """Run a command, and return what it says as JSON."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingTargetWarning)
        patch.setattr("sys.argv", ["guardband", *map(str, arguments), "--json"])
        with pytest.raises(SystemExit) as end:
            main()
    assert end.value.code in (None, 0), out.getvalue()
    return json.loads(out.getvalue() or "{}")


# -------------------------------------------------------------------------------------------- faults


def once(marker):
    """Return a function that ends its process the first time that it is called anywhere."""

    def end():
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    return end


def test_workers_killed_in_calibration_change_nothing(fitted, files, whole, tmp_path, monkeypatch):
    def killed(original, end):
        def run(*arguments):
            out = original(*arguments)
            end()
            return out

        return run

    for module, name in ((summarising, "_summarised"), (spread, "_answer")):
        monkeypatch.setattr(module, name, killed(getattr(module, name), once(str(tmp_path / name))))
    model = fitted()
    many = gb.ray.calibrate(model, files, target="y", keep_scores=100)
    assert {path.name for path in tmp_path.iterdir()} == {"_summarised", "_answer"}
    assert same(on_one_machine(model, whole), many)


def test_workers_killed_in_scoring_leave_no_partial_or_second_file(model, files, expected, tmp_path, monkeypatch):
    before_file, before_note = (once(str(tmp_path / name)) for name in ("file", "note"))
    inner = PartWriter(model, Inputs.of(model, Files.of(files).like), None, False, NOTHING_MORE, False, ".parquet")

    def write(disk, path):
        found = inner(disk, path)
        before_file()
        return found

    original, note = scoring._write, scoring._note

    def killed(shared, part):
        def ended(own):
            before_note()
            return note(own)

        original.__globals__["_note"] = ended  # which it brings along, as it is not found by its name any more
        return original(shared, part)

    monkeypatch.setattr(scoring, "_write", killed)
    scored(model, files, tmp_path / "out", write=write)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "note", "out"}
    assert together(tmp_path / "out").equals(expected)
    assert len(list((tmp_path / "out").iterdir())) == 7


@pytest.mark.usefixtures("one_at_a_time")
def test_a_full_disk_is_said_in_one_sentence_and_the_next_run_goes_on(model, files, expected, tmp_path):
    inputs = Inputs.of(model, Files.of(files).like)
    inner = PartWriter(model, inputs, None, False, NOTHING_MORE, False, ".parquet")

    def full(disk, path):
        if "2.parquet" in disk.label:
            raise OSError(errno.ENOSPC, "No space left on device")
        return inner(disk, path)

    with pytest.raises(ValueError, match=r"cannot be written: No space left on device\. Free some space"):
        scored(model, files, tmp_path, write=full)
    assert not (tmp_path / DONE).exists()
    assert scored(model, files, tmp_path).again == 3
    assert together(tmp_path).equals(expected)


def test_a_part_that_kills_every_worker_ends_the_run_with_a_sentence(model, files, tmp_path, monkeypatch):
    monkeypatch.setattr("guardband.ray.cluster.RETRIES", 1)

    def deadly(disk, path):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ValueError, match="was killed 2 times"):
        scored(model, files.replace("*", "1"), tmp_path, write=deadly)
    assert not list(tmp_path.glob("*.parquet"))


def test_work_that_nobody_waits_for_ends_with_its_worker_and_is_not_interrupted(tmp_path):
    def wait(folder):
        (folder / "begun").write_text(str(os.getpid()))
        try:
            time.sleep(600)
        except BaseException:  # a worker that goes on after it may have loaded half of a package
            (folder / "interrupted").touch()
            raise

    calls = (partial(task(lambda: 1).remote), partial(task(wait).remote, tmp_path))
    under_way = in_order(calls, 2)
    assert next(under_way) == 1
    while not (tmp_path / "begun").exists() or not (tmp_path / "begun").read_text():
        time.sleep(0.01)
    worker = int((tmp_path / "begun").read_text())
    under_way.close()
    while os.path.exists(f"/proc/{worker}/fd/0") and not (tmp_path / "interrupted").exists():
        time.sleep(0.01)
    assert not (tmp_path / "interrupted").exists()


@pytest.fixture
def with_corrupt(files, tmp_path):
    """Return three files of which the second is damaged in its middle."""
    folder = tmp_path / "corrupt"
    folder.mkdir()
    for i, seed in enumerate((10, 12, 13)):
        parquet.write_table(table(20_000, seed), folder / f"{i}.parquet")
    place = folder / "1.parquet"
    data = bytearray(place.read_bytes())
    data[len(data) // 4 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 4)
    place.write_bytes(bytes(data))
    assert open_table(str(place)).total == 20_000
    return str(folder / "*.parquet")


@pytest.mark.usefixtures("one_at_a_time")
def test_a_corrupt_file_is_named_and_left_out_of_calibration_only_if_asked(fitted, with_corrupt):
    model = fitted()
    with pytest.raises(UnreadableError, match=r"1\.parquet"):
        gb.ray.calibrate(model, with_corrupt, target="y")
    many = gb.ray.calibrate(model, with_corrupt, target="y", skip_corrupt=True)
    assert many.certificate_.n_calibration == 40_000
    assert "left out what it could not read: rows 1 to 20,000 of" in str(many.certificate_)
    rest = pa.concat_tables([table(20_000, 10), table(20_000, 13)])
    assert same(on_one_machine(model, rest), many)


@pytest.mark.usefixtures("one_at_a_time")
def test_a_corrupt_file_is_named_and_left_out_of_the_folder_only_if_asked(model, with_corrupt, tmp_path):
    with pytest.raises(UnreadableError, match=r"1\.parquet"):
        scored(model, with_corrupt, tmp_path / "one")
    assert not (tmp_path / "one" / DONE).exists()
    done = scored(model, with_corrupt, tmp_path / "two", skip_corrupt=True)
    assert len(done.skipped) == 1
    assert "1.parquet" in done.skipped[0]
    assert [path.name[:6] for path in sorted((tmp_path / "two").glob("*.parquet"))] == ["000000", "000002"]


@pytest.mark.usefixtures("one_at_a_time")
def test_a_corrupt_file_is_named_and_left_out_of_an_audit_only_if_asked_and_never_of_a_monitor(model, with_corrupt):
    with pytest.raises(UnreadableError, match=r"1\.parquet"):
        gb.ray.audit(model, with_corrupt, target="y")
    many = gb.ray.audit(model, with_corrupt, target="y", skip_corrupt=True)
    place = with_corrupt.replace("*", "1")
    assert f"guardband left out rows 1 to 20,000 of {place}, which it could not read." in many.notes
    rest = pa.concat_tables([table(20_000, 10), table(20_000, 13)])
    one = model.audit(frame(rest), np.array(rest["y"]))
    assert (many.verdict, many.sentence, many.p_value) == (one.verdict, one.sentence, one.p_value)
    assert [(own.n, own.covered) for own in many.levels] == [(own.n, own.covered) for own in one.levels]
    monitor = gb.Monitor(model)
    with pytest.raises(UnreadableError, match=r"1\.parquet"):
        gb.ray.update(monitor, with_corrupt, target="y")
    assert monitor.rows == 0


@pytest.mark.usefixtures("one_at_a_time")
def test_a_file_that_is_gone_when_a_worker_reads_it_is_named_in_one_sentence(model, tmp_path):
    for name in "01":
        parquet.write_table(table(300, 70), tmp_path / f"{name}.parquet")
    files = Files.of(str(tmp_path / "*.parquet"))
    (tmp_path / "1.parquet").unlink()
    for call in (
        partial(gb.ray.calibrate, model, skip_corrupt=True),
        partial(gb.ray.audit, model, skip_corrupt=True),
        partial(gb.ray.update, gb.Monitor(model)),
        partial(gb.ray.fit, columns=COLUMNS, memory_limit=1000),
    ):
        with pytest.raises(ValueError, match=r"There is no table at .*1\.parquet: check the path"):
            call(files, target="y")


def test_an_unlike_row_is_told_by_its_own_file_if_another_was_left_out(model, with_corrupt, tmp_path):
    place = with_corrupt.replace("*", "2")
    rows = parquet.read_table(place)
    parquet.write_table(rows.set_column(2, "letter", pa.array(["new", *rows["letter"].to_pylist()[1:]])), place)
    model.save(tmp_path / "m.guardband")
    files = Files.of(with_corrupt)
    writer = PartWriter(model, Inputs.of(model, files.like), None, False, NOTHING_MORE, False, ".parquet")
    speaker = Speaker(quiet=True)
    found = predict_on_ray(files, b"", writer, str(tmp_path / "out"), True, "auto", speaker)
    assert f"'new' in row 1 of {place}" in found.found.in_words(lambda row: place_in(files, row))


# --------------------------------------------------------------------------------------------- audit


@pytest.mark.parametrize("options", [{"confidence_level": [0.8, 0.9]}, {"groups": "letter"}, {"tails": (0.02, 0.08)}])
def test_the_verdict_on_counts_is_that_on_all_rows(options, fitted, whole, tmp_path):
    model = on_one_machine(fitted(**options), whole)
    rows = [table(5000, 20), table(7, 21), table(4000, 22)]
    for i, own in enumerate(rows):
        parquet.write_table(own, tmp_path / f"{i}.parquet")
    rows = pa.concat_tables(rows)
    one = model.audit(frame(rows), np.array(rows["y"]))
    many = gb.ray.audit(model, str(tmp_path / "*.parquet"), target="y")
    assert (many.verdict, many.sentence, many.p_value) == (one.verdict, one.sentence, one.p_value)
    for found, wanted in zip((*many.levels, *many.parts), (*one.levels, *one.parts), strict=True):
        assert (found.n, found.covered, found.low, found.high) == (wanted.n, wanted.covered, wanted.low, wanted.high)
        np.testing.assert_allclose(found.mean_width, wanted.mean_width, rtol=1e-12)


def test_rows_without_a_true_value_are_told_of_in_an_audit(model, tmp_path):
    rows = table(300, 30)
    y = np.where(np.arange(300) % 10, rows["y"], np.nan)
    parquet.write_table(rows.set_column(3, "y", pa.array(y, from_pandas=True)), tmp_path / "0.parquet")
    parquet.write_table(rows.set_column(3, "y", pa.nulls(300, pa.float64())), tmp_path / "1.parquet")
    with pytest.warns(MissingTargetWarning, match="330 of 600 rows"):
        found = gb.ray.audit(model, str(tmp_path / "*.parquet"), target="y")
    assert found.levels[0].n == 270


@pytest.mark.parametrize("keep_scores", [100, 1 << 20])
def test_rows_that_calibrated_the_model_cannot_judge_it(keep_scores, fitted, files, tmp_path):
    own = gb.ray.calibrate(fitted(), files, target="y", keep_scores=keep_scores)
    own.save(tmp_path / "m.guardband")
    for model in (own, gb.load(tmp_path / "m.guardband")):
        assert gb.ray.audit(model, files, target="y").verdict == "cannot judge"
        assert model.audit(frame(rows := table(*SEED_OF_LAST)), np.array(rows["y"])).verdict == "cannot judge"
        assert model.audit(frame(rows := table(3000, 77)), np.array(rows["y"])).verdict == "consistent"


# ------------------------------------------------------------------------------------------- monitor


@pytest.fixture(scope="module")
def later(tmp_path_factory):
    """Return the pattern of three files of later rows, some without a true value, and these rows."""
    folder, parts = tmp_path_factory.mktemp("later"), []
    for i, n in enumerate((700, 1, 500)):
        rows, rng = table(n, 40 + i), np.random.default_rng(i)
        y = np.where(rng.random(n) < 0.1, np.nan, rows["y"].to_numpy() * 1.2)
        day = np.datetime64("2026-01-01") + rng.integers(0, 300, n).astype("timedelta64[D]")
        rows = rows.set_column(3, "y", pa.array(y, from_pandas=True)).append_column("day", pa.array(day))
        parts.append(rows.set_column(4, "id", pa.array(1000 * i + np.arange(n))))
        parquet.write_table(parts[-1], folder / f"{i}.parquet")
    return str(folder / "*.parquet"), pa.concat_tables(parts)


def held(state):
    """Return what a state says, with the checksum of its arrays."""
    with safe_open(state, "np") as file:
        return file.metadata()


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("named", [{}, {"time": "day"}, {"key": "id", "time": "day"}])
def test_a_monitor_finds_what_it_finds_on_one_machine_to_the_bit(grouped, named, model, fitted, whole, later, tmp_path):
    model = on_one_machine(fitted(guarantee="pac", groups="letter"), whole) if grouped else model
    pattern, rows = later
    table = rows.to_pandas()
    one, many = gb.Monitor(model), gb.Monitor(model)
    there = gb.ray.update(many, pattern, target="y", **named)
    own = {{"key": "keys"}.get(name, name): table[column] for name, column in named.items()}
    here = one.update(table["y"], X=frame(rows), whole_table=True, **own)
    assert (there, there.order.tolist()) == (here, here.order.tolist())
    for monitor, place in ((one, tmp_path / "one"), (many, tmp_path / "many")):
        monitor.save(place)
    assert held(tmp_path / "one") == held(tmp_path / "many")
    again = gb.ray.update(many, pattern, target="y", **named)
    assert (again.counted, again.skipped) == (0, here.counted)


@pytest.mark.usefixtures("one_at_a_time")
def test_what_a_monitor_cannot_take_is_said_in_one_sentence(model, later, tmp_path):
    pattern, rows = later
    monitor = gb.Monitor(model)
    for options, words in (
        ({"target": "z"}, "There is no column 'z'"),
        ({"target": "y", "time": "letter"}, "'letter' of times must hold numbers or dates"),
        ({"target": "y", "key": "letter"}, "Each row needs a key of its own"),
    ):
        with pytest.raises(ValueError, match=words):
            gb.ray.update(monitor, pattern, **options)
    for name in ("0", "1"):
        parquet.write_table(rows.slice(0, 5), tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match="'id' stands in several files"):
        gb.ray.update(monitor, str(tmp_path / "*.parquet"), target="y", key="id")
    assert monitor.rows == 0


def test_the_command_leaves_the_same_state_with_and_without_ray(model, later, tmp_path, monkeypatch):
    _, rows = later
    model.save(tmp_path / "m.guardband")
    for i in range(2):
        csv.write_csv(rows.slice(600 * i, 600), tmp_path / f"{i}.csv")
    states = tmp_path / "one.monitor", tmp_path / "many.monitor"
    for state, more in zip(states, ([], ["--ray", "auto"]), strict=True):
        options = ["--state", state, "--target", "y", "--key", "id", "--time", "day", "--quiet", *more]
        files = [tmp_path / "m.guardband", tmp_path / "0.csv", tmp_path / "1.csv"]
        monkeypatch.setattr("sys.argv", ["guardband", "monitor", *map(str, [*files, *options])])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code in (None, 0, 1)
    assert held(states[0]) == held(states[1])
