"""A fit on Ray is that of one machine on the same rows, and a fault costs time alone."""

import contextlib
import copy
import os
import warnings
from dataclasses import astuple, replace
from functools import partial, reduce
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

import guardband as gb
from guardband.data.damage import UnreadableError
from guardband.data.entities import entities_from
from guardband.data.fingerprint import fingerprints
from guardband.data.hash_split import HashSplit
from guardband.data.labelled_rows import LabelledRows
from guardband.data.reference import Reference
from guardband.data.table import read_table
from guardband.exceptions import MissingTargetWarning
from guardband.experiments.reproduce import on_ray
from guardband.experiments.reproduce.cells import Cell
from guardband.experiments.reproduce.folder import Folder
from guardband.experiments.reproduce.run import run
from guardband.experiments.reproduce.setting import CONF_NN, QREG_UN, Setting
from guardband.learning.options import FitOptions
from guardband.learning.training_rows import TrainingRows
from guardband.ray.calibrating import calibrate_on
from guardband.ray.cluster import Failed
from guardband.ray.gathered import PRINT, Y, divided, in_order, joined
from guardband.ray.learning_rows import LearningRows, features_in, kinds_in
from guardband.ray.parallel import Kept, _beside, _packed, _unpacked, _work, shared_out, train_together
from guardband.ray.pieces import Reader, source_of
from guardband.ray.streams import RowStream, StoppingRows, Tap, TrainingStream
from guardband.ray.survey import count, survey
from guardband.ray.training_entities import _of_piece, _together
from ray_rows import QUICK, same_networks, table, write

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    # Ray 2.60 sets options of its own that it deprecates, and leaves pipes to the collector.
    *(pytest.mark.filterwarnings(f"ignore::{name}") for name in ("DeprecationWarning", "ResourceWarning")),
    pytest.mark.filterwarnings("ignore::ray.util.annotations.RayDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
FEATURES = ["a", "b", "letter"]
N, SEED = 1500, QUICK["random_state"]
OPTIONS = {name: value for name, value in QUICK.items() if name != "verbose"}
ROWS = table(N, 0).drop_columns(["id"])
COLUMNS = ["y", "letter", "b", "a"]
WITHOUT_TARGET = ROWS.slice(0, 75).drop_columns(["y"]).append_column("y", pa.nulls(75, pa.float64()))
MISSING = "75 of 1,575 rows are left out because their target y is missing"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the pattern of files that hold the rows in another order, and rows without a target beside them."""
    some, others = WITHOUT_TARGET.slice(0, 25), WITHOUT_TARGET.slice(25)
    mixed = pa.concat_tables([ROWS, some]).take(np.random.default_rng(1).permutation(N + 25))
    pattern = write(tmp_path_factory.mktemp("fit") / "in", mixed.select(COLUMNS), 3)
    parquet.write_table(others.select(COLUMNS), pattern.replace("*", "3"))
    return pattern


@pytest.fixture(scope="module")
def parts():
    """Return training rows and calibration rows, in the order of their hashes."""
    split, y = HashSplit(SEED, 0.25), ROWS["y"].to_numpy()
    X = ROWS.drop_columns(["y"])
    prints = split.prints(read_table(X), y)
    return in_order([X.append_column(Y, pa.array(y)).append_column(PRINT, pa.array(prints))], split)


def columns(part):
    return part.drop_columns([Y, PRINT]), part[Y].to_numpy().copy()


@pytest.fixture(scope="module")
def alone(parts):
    training, calibration = parts
    return gb.IntervalRegressor(calibration_size=None, **QUICK).fit(*columns(training)).calibrate(*columns(calibration))


def test_a_fit_of_gathered_rows_is_that_of_one_machine_in_any_order_of_rows_and_files(files, alone, tmp_path):
    with pytest.warns(MissingTargetWarning, match=MISSING):
        one = gb.ray.fit(files, target="y", columns=FEATURES, **OPTIONS)
    assert one.fitted_.learned.encoder == alone.fitted_.learned.encoder
    assert one.fitted_.learned.target == alone.fitted_.learned.target
    np.testing.assert_array_equal(one.fitted_.training_prints, alone.fitted_.training_prints)
    np.testing.assert_array_equal(one.fitted_.calibration_prints, alone.fitted_.calibration_prints)
    same_networks(one.fitted_.learned, alone.fitted_.learned)
    said = str(one.certificate_)
    assert "Rows were split by a hash of each row with the seed 0" in said
    assert "One process held all rows, and workers trained copies of the network: rows need about 0.2884 MiB" in said


def test_rows_without_a_target_are_counted_as_on_one_machine():
    whole = pa.concat_tables([ROWS, WITHOUT_TARGET])
    X, y = whole.select(FEATURES), np.array(whole["y"].to_pandas())
    with pytest.warns(MissingTargetWarning, match=MISSING):
        assert LabelledRows.of(X, read_table(X), y).n == N


class Fatal(torch.nn.Module):
    """A network whose worker dies in a training step, once."""

    def __init__(self, width, marker):
        super().__init__()
        self.last, self.marker, self.steps = gb.nn.TripleHead(width), marker, 0

    def forward(self, x):
        self.steps += self.training
        if self.steps > 8 and not os.path.exists(self.marker):
            with open(self.marker, "w"):
                os._exit(1)
        return self.last(x)


class DieOnce:
    """Looks on after every epoch, and ends its process in the second one, once."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, epoch, copied):
        if torch.distributed.get_rank() == 0:
            with open(self.folder / "epochs", "a") as file:
                file.write(f"{epoch} ")
            if epoch == 2 and not (self.folder / "dead").exists():
                (self.folder / "dead").touch()
                os._exit(1)
        return False


@pytest.mark.usefixtures("sent_as_they_are")
def test_a_worker_that_dies_while_it_trains_copies_changes_nothing(tmp_path):
    rows = ROWS.select(["a", "b", "y"])
    pattern, models = write(tmp_path / "in", rows, 2), []
    for name in ("dies", "lives"):
        marker = str(tmp_path / name)
        if name == "lives":
            open(marker, "w").close()
        network = partial(Fatal, marker=marker)
        options = {"network": network, "method": "pav", "taus": (0.05, 0.1), "epochs": 3, "random_state": 0}
        models.append(gb.ray.fit(pattern, target="y", **options))
        assert os.path.exists(marker)
    one, other = (model.fitted_.learned.members.snapshot() for model in models)
    for name, t in one.items():
        torch.testing.assert_close(t, other[name], rtol=0, atol=0)


def learning_rows(files):
    source = source_of(files)
    features = features_in(source, ["y"], FEATURES, ())
    reader = Reader(kinds_in(source, features), "y", source.like)
    return source, LearningRows(reader, HashSplit(SEED, 0.25))


def test_what_passes_learn_is_what_one_machine_learns(files, parts):
    source, rows = learning_rows(files)
    options = FitOptions.of(gb.IntervalRegressor(**QUICK).get_params(deep=False))
    X, y = columns(parts[0])
    one = TrainingRows.of(read_table(X), y, None, 0, options.architecture, options.target.decided(y))
    with pytest.warns(MissingTargetWarning, match=MISSING):
        counted, target = count(source, rows, options.target)
    found = survey(source, rows, counted, target, robust=True)
    assert found.encoder == one.encoder
    for own, other in zip(found.target.scales, one.target.scales, strict=True):
        one_way, other_way = ([value or 0.0 for value in astuple(scale)] for scale in (own, other))
        assert one_way == pytest.approx(other_way, rel=1e-13, abs=1e-13)
    assert (found.n, found.counted.calibration) == (len(y), N - len(y))


@pytest.mark.skipif(not os.environ.get("GUARDBAND_RAY_TRAIN"), reason="starting Ray Train twice takes a minute")
@pytest.mark.usefixtures("sent_as_they_are")
def test_rows_that_no_process_may_hold_train_on_all_workers_and_go_on_when_one_dies(
    files, alone, monkeypatch, tmp_path
):
    def with_a_death(plan, checkpoints):
        job = replace(plan.job, after_epoch=DieOnce(tmp_path))
        return train_together(replace(plan, job=job, every=0.0), checkpoints)

    monkeypatch.setattr("guardband.ray.streamed.train_together", with_a_death)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray Train's own
        model = gb.ray.fit(files, target="y", columns=FEATURES, memory_limit=1000, **OPTIONS)
    assert (tmp_path / "epochs").read_text() == "1 2 2 "  # it went on from the first epoch
    assert model.fitted_.learned.encoder == alone.fitted_.learned.encoder
    assert model.fitted_.seen == alone.fitted_.seen
    np.testing.assert_array_equal(model.fitted_.training_prints, np.sort(alone.fitted_.training_prints))
    np.testing.assert_array_equal(np.sort(model.fitted_.calibration_prints), np.sort(alone.fitted_.calibration_prints))
    assert "No process held all rows: rows need about 0.2884 MiB of memory, and" in str(model.certificate_)
    widths = [np.mean(own.predict_interval(ROWS.drop_columns(["y"])).width) for own in (model, alone)]
    assert widths[0] == pytest.approx(widths[1], rel=0.25)


@pytest.mark.parametrize("rows", [[5, 0, 1, 900, 3], [0, 0, 7], [300] * 10, [1]])
def test_every_process_has_rows_and_each_row_trains_about_equally_often(rows):
    for most in (1, 2, 4):
        shares = shared_out(rows, most, 256)
        assert sorted(i for share in shares for i in share.pieces) == [i for i, n in enumerate(rows) if n]
        assert len(shares) == min(most, sum(n > 0 for n in rows))
        for share in shares:
            wanted = 256 * sum(rows[i] for i in share.pieces) / sum(rows)
            assert abs(share.batch - wanted) <= 1


def test_pieces_know_how_many_of_their_rows_train(files, parts):
    source, rows = learning_rows(files)
    options = FitOptions.of(gb.IntervalRegressor(**QUICK).get_params(deep=False))
    with pytest.warns(MissingTargetWarning, match=MISSING):
        counted, target = count(source, rows, options.target)
    found = survey(source, rows, counted, target, robust=True)
    assert sum(found.in_pieces) == len(parts[0])
    assert found.in_pieces[-1] == 0  # in which no target is known


def test_what_would_fail_every_time_ends_training_at_once(cluster):
    class Here(Kept):
        """An actor that is none, for which no process starts."""

        def __getattribute__(self, name):
            own = object.__getattribute__(self, name)
            return SimpleNamespace(remote=lambda *given: cluster.put(own(*given))) if callable(own) else own

    kept, refused = Here(None, ""), cluster.put(None)
    with pytest.raises(AttributeError):
        _work({"kept": [kept], "plan": refused})
    cluster.get(kept.fail.remote(Failed("No.", is_corrupt=False)))
    assert _work({"kept": [kept], "plan": refused}) is None


def test_a_checkpoint_outlives_the_process_that_holds_it(cluster, tmp_path):
    kept = _beside(Kept).remote(str(tmp_path / "training.checkpoint"), "this fit")
    cluster.get(kept.save.remote(_packed({"weights": torch.arange(3)})))
    cluster.kill(kept, no_restart=False)
    assert torch.equal(_unpacked(cluster.get(kept.load.remote()))["weights"], torch.arange(3))
    cluster.kill(kept)


def test_training_that_goes_on_takes_rows_in_an_order_of_its_own(files, parts):
    source, rows = learning_rows(files)
    options = FitOptions.of(gb.IntervalRegressor(**QUICK).get_params(deep=False))
    with pytest.warns(MissingTargetWarning, match=MISSING):
        counted, target = count(source, rows, options.target)
    found = survey(source, rows, counted, target, robust=True)
    stream = RowStream(found.part, found.encoder, found.target, source.parts, folds=1, seed=0)
    each = []
    for epoch in (1, 1, 4, 4, 7):
        tap = Tap(stream, 200)
        each.append(np.concatenate([tap.next(epoch)[1][:, 0] for _ in range(found.n // 200)]))
    np.testing.assert_array_equal(each[0], each[1])
    np.testing.assert_array_equal(each[2], each[3])
    for one, other in ((0, 2), (0, 4), (2, 4)):
        assert not np.array_equal(each[one], each[other])
        assert len(np.unique(each[other])) == len(each[other])  # each row once


def trained_here(plan, checkpoints):
    """Train on one process what all workers train together: starting Ray Train takes half a minute."""
    own, size = plan.stream, plan.job.recipe.batch_size
    loader = TrainingStream(Tap(own, size), plan.batches, plan.copies, plan.job.device, plan.stops)
    held_out = StoppingRows.of(own, plan.copies, 4 * size, plan.job.device) if plan.stops else None
    return replace(plan.job, loader=loader, held_out=held_out).train()


@pytest.fixture
def streamed(files, monkeypatch):
    """Return a function that fits rows that no process may hold."""
    monkeypatch.setattr("guardband.ray.streamed.train_together", trained_here)

    def fit(**options):
        with pytest.warns(MissingTargetWarning, match=MISSING):
            return gb.ray.fit(files, target="y", columns=FEATURES, memory_limit=1000, **(OPTIONS | options))

    return fit


@pytest.fixture
def with_few_scores(monkeypatch):
    """Return a list in which each fit in passes leaves its model as it is calibrated from counts, not from scores."""
    made = []

    def calibrated(model, source, reader):
        made.append(calibrate_on(model, source, reader, keep_scores=100))
        return calibrate_on(model, source, reader, keep_scores=1 << 20)

    monkeypatch.setattr("guardband.ray.streamed.calibrate_on", calibrated)
    return made


@pytest.mark.parametrize(
    "options",
    [
        {"groups": "letter"},
        {"groups": ["letter", "a"], "group_bins": 3, "guarantee": "pac"},
        {"groups": "letter", "small_groups": "pool", "confidence_level": 0.995},
    ],
)
def test_groups_of_rows_that_no_process_may_hold_are_those_of_one_machine(options, with_few_scores, streamed, parts):
    whole = streamed(**options)
    (X, y), held_out = (columns(part) for part in parts)
    one = gb.IntervalRegressor(calibration_size=None, **(QUICK | options)).fit(X, y)
    # The networks saw rows in another order: they are calibrated again on one machine.
    again = copy.copy(whole).calibrate(*held_out)
    for model in (whole, *with_few_scores):
        assert model.fitted_.grouping.columns == one.fitted_.grouping.columns
        for name, array in again.calibration_.found.arrays.items():
            np.testing.assert_array_equal(model.calibration_.found.arrays[name], array)
        assert len(model.certificate_.promise.statements()) == len(one.fitted_.grouping.names)
        for own, other in zip(
            model.certificate_.promise.statements(), again.certificate_.promise.statements(), strict=True
        ):
            assert (own.name, own.promise) == (other.name, other.promise)
    assert ["counted in parts" in str(model.certificate_) for model in (whole, *with_few_scores)] == [False, True]


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """Return the pattern of files whose rows belong to 120 patients, each in several files, and the rows."""
    rng = np.random.default_rng(3)
    number = rng.integers(0, 120, N)
    own = ROWS.append_column("patient", pa.array([f"p{i}" for i in number])).append_column("site", pa.array(number % 7))
    pattern = write(tmp_path_factory.mktemp("visits") / "in", own.take(rng.permutation(N)), 3)
    return pattern, own


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        (("patient",), {}),
        (("site", "patient"), {"groups": "letter"}),
        (("patient",), {"guarantee": "pac", "confidence_level": 0.8}),
    ],
)
def test_rows_that_no_process_may_hold_are_split_by_what_they_belong_to(
    keys, options, with_few_scores, visits, monkeypatch
):
    pattern, own = visits
    split, X, y = HashSplit(SEED, 0.25, keys), own.drop_columns(["y"]), own["y"].to_numpy()
    (X, y), _ = map(divided, in_order([joined(X, y, split.prints(read_table(X), y))], split))
    options = {"split_by": list(keys), **options}
    one = gb.IntervalRegressor(calibration_size=None, **(QUICK | options)).fit(X, y)
    monkeypatch.setattr("guardband.ray.streamed.train_together", trained_here)
    whole = gb.ray.fit(pattern, target="y", memory_limit=1000, **(OPTIONS | options))
    fitted, wanted = whole.fitted_, one.fitted_
    np.testing.assert_array_equal(fitted.training_entities, wanted.training_entities)
    np.testing.assert_array_equal(fitted.training_prints, np.sort(wanted.training_prints))
    assert fitted.learned.encoder == wanted.learned.encoder
    assert fitted.seen == wanted.seen
    table = read_table(X)
    prints, labels = fingerprints(table, y), entities_from(table, X, keys).labels
    smallest = [np.flatnonzero(labels == each)[np.argmin(prints[labels == each])] for each in np.unique(labels)]
    assert fitted.reference == Reference.learn(table.take(np.array(smallest)), y[smallest])
    # One row of each is drawn by their order, which is that of the files.
    held_out = pa.concat_tables([parquet.read_table(pattern.replace("*", str(i))) for i in range(3)])
    held_out = held_out.filter(split.calibrates(split.prints(read_table(held_out), None)))
    again = copy.copy(whole).calibrate(held_out.drop_columns(["y"]), held_out["y"].to_numpy().copy())
    for model in (whole, *with_few_scores):
        for name, array in again.calibration_.found.arrays.items():
            np.testing.assert_array_equal(model.calibration_.found.arrays[name], array)
        promises = ([own.promise for own in each.certificate_.promise.statements()] for each in (model, again))
        assert next(promises) == next(promises)
        assert len(model.fitted_.calibration_entities) + len(fitted.training_entities) == 120
        assert not np.isin(model.fitted_.calibration_entities, fitted.training_entities).any()
        assert "did not look for rows that depend" not in str(model.certificate_)
    assert ["counted in parts" in str(model.certificate_) for model in (whole, *with_few_scores)] == [False, True]
    assert "Rows were split by a hash of " + ", ".join(keys) in str(whole.certificate_)


def test_entities_do_not_depend_on_how_rows_are_divided_and_many_are_sampled(visits, monkeypatch):
    pattern, _ = visits
    source = source_of(pattern)
    reader = Reader(kinds_in(source, ["a", "patient"]), "y", source.like)
    rows, pieces = LearningRows(reader, HashSplit(SEED, 0.25, ("patient",))), list(source.parts)

    def learnt(pieces):
        found = [own for own in (_of_piece(rows, piece) for piece in pieces) if own is not None]
        return reduce(_together, found)

    one, other = learnt(pieces), learnt(pieces[::-1])
    monkeypatch.setattr("guardband.ray.training_entities.MOST_LABELS", 50)
    monkeypatch.setattr("guardband.ray.training_entities.MOST_ROWS", 20)
    few = learnt(pieces)
    assert (one.are_all, few.are_all) == (True, False)
    np.testing.assert_array_equal(few.labels, one.labels[:50])
    for found, wanted in ((other, one), (few, replace(one, X=one.X[:20], y=one.y[:20], prints=one.prints[:20]))):
        np.testing.assert_array_equal(found.prints, wanted.prints)
        np.testing.assert_array_equal(found.y, wanted.y)
        assert found.X["patient"].to_pylist() == wanted.X["patient"].to_pylist()
    assert len(set(one.X["patient"].to_pylist())) == len(one.labels) == len(one.y)


@pytest.mark.usefixtures("one_at_a_time")
def test_rows_that_do_not_say_what_they_belong_to_are_refused(visits, tmp_path):
    _, own = visits
    gone = own.set_column(
        own.column_names.index("patient"), "patient", pa.array([None, *own["patient"].to_pylist()[1:]])
    )
    pattern = write(tmp_path / "in", gone, 2)
    for limit in (None, 1000):
        with pytest.raises(ValueError, match=r"rows 1 to 750 of .*0\.parquet have no value of 'patient'"):
            gb.ray.fit(pattern, target="y", memory_limit=limit, split_by="patient", **OPTIONS)


def test_what_a_worker_says_of_gathered_rows_is_one_sentence(files):
    with (
        pytest.raises(ValueError, match="Training diverged") as error,
        pytest.warns(MissingTargetWarning, match=MISSING),
    ):
        gb.ray.fit(files, target="y", columns=FEATURES, learning_rate=1e30, **OPTIONS)
    assert "\n" not in str(error.value)


def test_a_fit_leaves_out_what_is_corrupt_only_if_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("guardband.ray.streamed.train_together", trained_here)
    pattern = write(tmp_path / "in", ROWS.select(COLUMNS), 4)
    whole = tmp_path / "whole"
    whole.mkdir()
    for i in (0, 2):
        (whole / f"{i}.parquet").write_bytes((tmp_path / "in" / f"{i}.parquet").read_bytes())
    place = tmp_path / "in" / "1.parquet"
    data = place.read_bytes()
    start, end = len(data) // 4, len(data) // 2
    place.write_bytes(data[:start] + bytes(end - start) + data[end:])
    (tmp_path / "in" / "3.parquet").write_bytes(b"PAR1" + bytes(50))
    rest = gb.ray.fit(str(whole / "*.parquet"), target="y", **OPTIONS)
    for limit, ordered in ((None, np.asarray), (1000, np.sort)):
        options = {"target": "y", "memory_limit": limit, **OPTIONS}
        with pytest.raises(UnreadableError, match=r"3\.parquet"):
            gb.ray.fit(pattern, **options)
        model = gb.ray.fit(pattern, skip_corrupt=True, **options)
        said = str(model.certificate_)
        assert "left out what it could not read: " in said
        assert "rows 1 to 375 of" in said
        assert "3.parquet" in said
        np.testing.assert_array_equal(model.fitted_.training_prints, ordered(rest.fitted_.training_prints))
        np.testing.assert_array_equal(
            np.sort(model.fitted_.calibration_prints), np.sort(rest.fitted_.calibration_prints)
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"calibration": "cv+", "groups": "letter"}, 'calibration="cv\\+" cannot be combined with groups'),
        (
            {"memory_limit": 9, "calibration": "cv+"},
            "Cross-validation needs all rows in one process, and",
        ),
        ({"folds": 4}, "folds=4 has no effect"),
        ({"calibration_size": 100}, "calibration_size must be a share"),
        ({"split_by": len}, "must name columns"),
        ({"drop": ["nothing"]}, "There is no column 'nothing'"),
        ({"memory_limit": 0}, "memory_limit must be a number of bytes"),
        ({"groups": "town"}, "groups names 'town', which is not among the columns"),
        ({"memory_limit": 9, "groups": "auto"}, "To look for groups, guardband needs all rows in one process"),
        ({"memory_limit": 9, "groups": len}, "Groups by a function need all rows in one process"),
        ({"memory_limit": 9, "preset": 60}, "A time limit needs all rows in one process"),
    ],
)
def test_what_a_fit_on_ray_cannot_do_is_said_in_one_sentence(files, options, words):
    with pytest.raises(ValueError, match=words):
        gb.ray.fit(files, target="y", **(OPTIONS | options))


def test_cells_of_an_experiment_give_what_they_give_here_also_if_a_worker_is_killed(tmp_path, monkeypatch):
    of_cell = on_ray._of_cell

    def killed(*arguments):
        with open(tmp_path / f"begun {arguments[0].name}", "a") as file:
            file.write(".")
        out = of_cell(*arguments)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(tmp_path / "killed", os.O_CREAT | os.O_EXCL))
            os._exit(1)
        return out

    monkeypatch.setattr(on_ray, "_of_cell", killed)
    setting = Setting("tuned", (8,), (CONF_NN, QREG_UN), max_epochs=2, batch_size=100)
    cells = [Cell("simulation", replace(setting, name=name), (0,), 300, 200) for name in ("one", "two")]
    numbers = []
    for name, cluster in (("here", None), ("there", "auto")):
        folder = Folder(tmp_path / name)
        folder.open({"seed": 7}, {"command": "here"})
        run(cells, folder, seed=7, device="cpu", verbose=False, cluster=cluster)
        assert all(folder.is_done(cell) for cell in cells)
        numbers.append(folder.tables()["results"].drop(columns="seconds"))
    np.testing.assert_array_equal(numbers[0], numbers[1])
    assert sorted(path.read_text() for path in tmp_path.glob("begun *")) == [".", ".."]  # the other one was kept
