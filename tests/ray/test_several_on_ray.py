"""Models of several targets on Ray are fitted, calibrated, asked and audited as on one machine, to the bit."""

import copy
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import guardband as gb
from guardband.cli.process import main
from guardband.data.hash_split import HashSplit
from guardband.data.table import read_table
from guardband.exceptions import MissingTargetWarning
from guardband.ray.gathered import divided, in_order, joined
from ray_rows import COLUMNS, QUICK, frame, table

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    # Ray 2.60 sets options of its own that it deprecates, and leaves pipes to the collector.
    *(pytest.mark.filterwarnings(f"ignore::{name}") for name in ("DeprecationWarning", "ResourceWarning")),
    pytest.mark.filterwarnings("ignore::ray.util.annotations.RayDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TARGETS = ["y", "z"]
SIZES = (1500, 3, 900)
OPTIONS = {name: value for name, value in QUICK.items() if name != "verbose"}


def rows(n, seed, missing=0.1):
    """Return rows with a second target, which some lack, and with some that lack both."""
    own, rng = table(n, seed), np.random.default_rng(1000 + seed)
    z = own["b"].to_numpy() + rng.standard_normal(n) * (1 + abs(own["a"].to_numpy()))
    neither = rng.random(n) < missing / 4
    y = np.where(neither, np.nan, own["y"])
    z = np.where(neither | (rng.random(n) < missing), np.nan, z)
    own = own.set_column(3, "y", pa.array(y, from_pandas=True))
    return own.append_column("z", pa.array(z, from_pandas=True))


def targets_of(own):
    return own.select(TARGETS).to_pandas()


@pytest.fixture(scope="module")
def whole():
    return pa.concat_tables([rows(n, 50 + i) for i, n in enumerate(SIZES)])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the pattern of three Parquet files, whose columns are in another order."""
    folder = tmp_path_factory.mktemp("several")
    for i, n in enumerate(SIZES):
        parquet.write_table(rows(n, 50 + i).select(["z", "letter", "b", "y", "a"]), folder / f"{i}.parquet")
    return str(folder / "*.parquet")


@pytest.fixture(scope="module")
def fitted():
    own = rows(600, 49, missing=0.0)
    return {
        targets: gb.IntervalRegressor(calibration_size=None, targets=targets, **QUICK).fit(frame(own), targets_of(own))
        for targets in ("joint", "each")
    }


@pytest.fixture(scope="module")
def alone(fitted, whole):
    """Return the models as one machine calibrates them."""
    with pytest.warns(MissingTargetWarning):
        return {
            targets: copy.copy(model).calibrate(frame(whole), targets_of(whole)) for targets, model in fitted.items()
        }


def same(one, other):
    """Check that two models were calibrated to the same bits, and promise the same."""
    a, b = one.calibration_.found, other.calibration_.found
    assert a.promise == b.promise
    for name, array in a.arrays.items():
        np.testing.assert_array_equal(b.arrays[name], array)
    new = frame(rows(50, 99))
    ends, others = one.predict_interval(new), other.predict_interval(new)
    np.testing.assert_array_equal(others.lower, ends.lower)
    np.testing.assert_array_equal(others.upper, ends.upper)
    assert [own.promise for own in others.certificates] == [own.promise for own in ends.certificates]


@pytest.mark.parametrize("keep_scores", [500, 1 << 20])
@pytest.mark.parametrize("targets", ["joint", "each"])
def test_calibration_is_that_of_one_machine_to_the_bit(targets, keep_scores, fitted, alone, files, tmp_path):
    with pytest.warns(MissingTargetWarning, match="rows are left out because their target y is missing"):
        many = gb.ray.calibrate(fitted[targets], files, target=["z", "y"], keep_scores=keep_scores)
    same(alone[targets], many)
    lacking = [note for note in alone[targets].certificate_.notes if "lack a target" in note]
    assert len(lacking) == (targets == "joint")
    assert [note for note in many.certificate_.notes if "lack a target" in note] == lacking
    many.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband")
    same(alone[targets], again)
    assert ("counted in parts" in str(again.certificate_)) == (keep_scores == 500)


@pytest.mark.filterwarnings("ignore::guardband.exceptions.MissingTargetWarning")
@pytest.mark.parametrize(("targets", "guarantee"), [("joint", "marginal"), ("each", "pac")])
def test_targets_of_rows_that_belong_together_calibrate_as_on_one_machine(targets, guarantee, whole, tmp_path):
    def with_patients(own, first):
        number = first + np.random.default_rng(first).integers(0, 150, len(own))
        return own.append_column("patient", pa.array([f"p{i}" for i in number]))

    training, others = with_patients(rows(600, 49, missing=0.0), 0), with_patients(whole, 1000)
    for i in range(3):
        parquet.write_table(others.slice(801 * i, 801), tmp_path / f"{i}.parquet")
    options = {"targets": targets, "guarantee": guarantee, "confidence_level": 0.7, "split_by": "patient"}
    columns = [*COLUMNS, "patient"]
    model = gb.IntervalRegressor(calibration_size=None, **options, **QUICK)
    model.fit(training.select(columns), targets_of(training))
    one = copy.copy(model).calibrate(others.select(columns), targets_of(others))
    many = gb.ray.calibrate(model, str(tmp_path / "*.parquet"), target=TARGETS)
    assert many.certificate_.promise == one.certificate_.promise
    np.testing.assert_array_equal(
        many.calibration_.found.arrays["threshold"], one.calibration_.found.arrays["threshold"]
    )
    with pytest.raises(ValueError, match=r"because they belong together\. Calibrate on 500 rows at most"):
        gb.ray.calibrate(model, str(tmp_path / "*.parquet"), target=TARGETS, keep_scores=500)
    with pytest.raises(ValueError, match="cannot audit several targets of rows that belong together"):
        gb.ray.audit(many, str(tmp_path / "*.parquet"), target=TARGETS)


@pytest.mark.parametrize("keep_scores", [500, 1 << 20])
@pytest.mark.parametrize("targets", ["joint", "each"])
def test_an_audit_counts_what_one_machine_counts(targets, keep_scores, fitted, alone, files, tmp_path):
    later = [rows(800, 60), rows(7, 61), rows(700, 62)]
    for i, own in enumerate(later):
        parquet.write_table(own, tmp_path / f"{i}.parquet")
    # A file in which nobody knows z is judged by the other target.
    later.append(later[0].slice(0, 40).set_column(5, "z", pa.nulls(40, pa.float64())))
    parquet.write_table(later[-1].cast(later[0].schema), tmp_path / "3.parquet")
    later = pa.concat_tables([own.cast(later[0].schema) for own in later])
    known = later.filter(targets_of(later).notna().any(axis=1).to_numpy())
    with pytest.warns(MissingTargetWarning):
        model = gb.ray.calibrate(fitted[targets], files, target=TARGETS, keep_scores=keep_scores)
    with pytest.warns(MissingTargetWarning):
        many = gb.ray.audit(model, str(tmp_path / "*.parquet"), target=TARGETS)
    one = alone[targets].audit(frame(known), targets_of(known))
    assert (many.verdict, many.sentence, many.p_value) == (one.verdict, one.sentence, one.p_value)
    assert many.levels == one.levels
    for own, other in zip(many.targets, one.targets, strict=True):
        assert (own.verdict, own.sentence, own.p_value) == (other.verdict, other.sentence, other.p_value)
        for found, wanted in zip(own.levels, other.levels, strict=True):
            assert (found.n, found.covered, found.low, found.high) == (
                wanted.n,
                wanted.covered,
                wanted.low,
                wanted.high,
            )
            np.testing.assert_allclose(found.mean_width, wanted.mean_width, rtol=1e-12)
    with pytest.warns(MissingTargetWarning):
        assert gb.ray.audit(model, files, target=TARGETS).verdict == "cannot judge"


@pytest.mark.parametrize("targets", ["joint", "each"])
def test_a_dataset_gets_the_boxes_of_one_machine(targets, alone, files, whole):
    found = gb.ray.predict(alone[targets], files)
    found = pa.concat_tables(list(found.iter_batches(batch_size=None, batch_format="pyarrow")))
    ends = alone[targets].predict_interval(frame(whole))
    for j, name in enumerate(TARGETS):
        np.testing.assert_array_equal(found[f"{name}_lower"], ends.lower[:, j])
        np.testing.assert_array_equal(found[f"{name}_upper"], ends.upper[:, j])


def test_a_rule_of_several_targets_is_that_of_one_machine(tmp_path):
    rng, n = np.random.default_rng(0), 1200
    point, Y = rng.standard_normal((n, 2)), rng.standard_normal((n, 2))
    Y[rng.random((n, 2)) < 0.05] = np.nan
    Y[:200] = rng.standard_normal((200, 2))  # a rule knows its columns by rows that have all targets
    columns = {f"{name}_point": own for name, own in zip("ab", point.T, strict=True)}
    given = pa.table({**columns, "a": Y[:, 0], "b": Y[:, 1]})
    for i in range(3):
        parquet.write_table(given.slice(400 * i, 400), tmp_path / f"{i}.parquet")
    known = ~np.isnan(Y).all(axis=1)
    for options in ({"targets": "joint", "scales": [1, 2]}, {"targets": "each"}):
        one, first = (
            gb.BandCalibrator("conf-fw", **options).fit(
                None, point[some], None, given.select(["a", "b"]).to_pandas()[some]
            )
            for some in (known, np.arange(n) < 200)
        )
        for keep_scores in (500, 5000):
            with pytest.warns(MissingTargetWarning):
                many = gb.ray.calibrate(first, str(tmp_path / "*.parquet"), target=["a", "b"], keep_scores=keep_scores)
            assert many.certificate.promise == one.certificate.promise
            found, wanted = (own.transform(None, point[:9], None) for own in (many, one))
            np.testing.assert_array_equal(found.upper, wanted.upper)


@pytest.mark.parametrize("targets", ["joint", "each"])
def test_a_fit_of_gathered_rows_is_that_of_one_machine(targets, files, whole):
    known = whole.filter(targets_of(whole).notna().any(axis=1).to_numpy())
    X, y = known.select(COLUMNS), targets_of(known).to_numpy()
    split = HashSplit(QUICK["random_state"], 0.25)
    parts = [divided(own) for own in in_order([joined(X, y, split.prints(read_table(X), y))], split)]
    (X, y), held_out = ((X, pa.table(dict(zip(TARGETS, y.T, strict=True)))) for X, y in parts)
    one = gb.IntervalRegressor(calibration_size=None, targets=targets, **QUICK).fit(X, y).calibrate(*held_out)
    with pytest.warns(MissingTargetWarning, match=f"{len(whole) - len(known)} of {len(whole):,} rows"):
        many = gb.ray.fit(files, target=TARGETS, columns=COLUMNS, targets=targets, **OPTIONS)
    assert many.fitted_.learned.encoder == one.fitted_.learned.encoder
    assert many.fitted_.learned.target == one.fitted_.learned.target
    np.testing.assert_array_equal(many.fitted_.training_prints, one.fitted_.training_prints)
    np.testing.assert_array_equal(many.fitted_.calibration_prints, one.fitted_.calibration_prints)
    assert many.calibration_.rule.target_names == tuple(TARGETS)
    np.testing.assert_allclose(
        many.predict_interval(frame(whole)).lower, one.predict_interval(frame(whole)).lower, rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": TARGETS}, 'Add targets="joint", or targets="each"'),
        ({"target": "y", "targets": "each"}, "is for several targets. Name several columns"),
        ({"target": ["y", "y"], "targets": "each"}, "must name different columns"),
        ({"target": TARGETS, "targets": "joint", "memory_limit": 9}, "Several targets need all rows in one process"),
    ],
)
def test_what_a_fit_of_several_targets_cannot_do_is_said_in_one_sentence(files, options, words):
    with pytest.raises(ValueError, match=words):
        gb.ray.fit(files, **(OPTIONS | options))


@pytest.mark.filterwarnings("ignore::guardband.exceptions.MissingTargetWarning")
def test_targets_that_are_not_those_of_the_model_are_refused(fitted, files, whole, tmp_path):
    for target in ("y", ["y", "a"]):
        with pytest.raises(ValueError, match="The model predicts 'y', 'z'"):
            gb.ray.calibrate(fitted["joint"], files, target=target)
    for targets, words in (("joint", "No calibration row has all targets"), ("each", "'z' is missing in every row")):
        empty = whole.set_column(5, "z", pa.nulls(len(whole), pa.float64()))
        parquet.write_table(empty, tmp_path / "e.parquet")
        with pytest.raises(ValueError, match=words):
            gb.ray.calibrate(fitted[targets], str(tmp_path / "e.parquet"), target=TARGETS, keep_scores=500)


def test_the_commands_take_several_targets_with_ray(whole, tmp_path, monkeypatch, capsys):
    def command(*words):
        monkeypatch.setattr("sys.argv", ["guardband", *map(str, words), "--ray", "auto", "--quiet"])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0

    known = whole.drop_columns(["id"]).filter(targets_of(whole).notna().any(axis=1).to_numpy())
    files, model = str(tmp_path / "in-*.parquet"), tmp_path / "m.guardband"
    for i in range(2):
        parquet.write_table(known.slice(400 * i, 400), tmp_path / f"in-{i}.parquet")
    assert command("fit", files, "--target", "y", "--target", "z", "--preset", "fast", "-o", model) == 0
    assert command("predict", model, files, "-o", tmp_path / "out") == 0
    written = pa.concat_tables([parquet.read_table(path) for path in sorted((tmp_path / "out").glob("*.parquet"))])
    assert len(written) == 800
    assert {"y_lower", "z_upper"} <= set(written.column_names)
    capsys.readouterr()
    parquet.write_table(known.slice(800), tmp_path / "later.parquet")
    assert command("audit", model, tmp_path / "later.parquet", "--json", "--significance", 1e-6) == 0
    assert set(json.loads(capsys.readouterr().out)["targets"]) == set(TARGETS)
