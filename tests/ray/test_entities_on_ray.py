"""On Ray rows that belong together calibrate as on one machine, to the bit, in whichever files they lie."""

import copy
import json
import warnings
from glob import glob

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import guardband as gb
from guardband.cli.process import main
from guardband.data.entities import entities_of_columns
from guardband.data.table import read_table
from guardband.doors.band_columns import BandColumns
from guardband.exceptions import DependentRowsWarning, OverlapError, RepeatedRowsWarning
from ray_rows import COLUMNS, QUICK, table

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    *(pytest.mark.filterwarnings(f"ignore::{name}") for name in ("DeprecationWarning", "ResourceWarning")),
    pytest.mark.filterwarnings("ignore::ray.util.annotations.RayDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SIZES = (900, 3, 700)
FORWARD, BACKWARD = (0, 1, 2), (2, 1, 0)
BOUNDS = BandColumns("interval", ("low", "mid", "high"))
WITH_PATIENT = [*COLUMNS, "patient"]


def of_patients(n, seed, first):
    """Return rows of patients, whose values depend on each other, with predictions."""
    rng, rows = np.random.default_rng(seed), table(n, seed)
    patient = first + rng.integers(0, 90, n) ** 2 // 90
    y = rows["y"].to_numpy() + np.random.default_rng(0).standard_normal(1000)[patient]
    a = rows["a"].to_numpy()
    own = {"patient": [f"p{i}" for i in patient], "y": y, "low": a - 1, "mid": a, "high": a + 1}
    return pa.table({name: rows[name] for name in COLUMNS} | own)


@pytest.fixture(scope="module")
def parts():
    """Return the rows of three files; a patient has rows in several of them."""
    return [of_patients(n, 20 + i, 500) for i, n in enumerate(SIZES)]


@pytest.fixture(scope="module")
def files(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("patients")
    for i, rows in enumerate(parts):
        parquet.write_table(rows, folder / f"{i}.parquet", row_group_size=400)
    return str(folder / "*.parquet")


@pytest.fixture(scope="module")
def trained():
    """Return a function that fits a small model on the rows of other patients, each once."""
    known, rows = {}, of_patients(600, 1, 0)

    def fit(split_by="patient", **options):
        key = repr((split_by, options))
        if key not in known:
            own = {} if split_by is None else {"split_by": split_by}
            made = gb.IntervalRegressor(calibration_size=None, **QUICK, **own, **options)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DependentRowsWarning)  # which is right without split_by
                known[key] = made.fit(rows.select(WITH_PATIENT).to_pandas(), np.array(rows["y"]))
        return known[key]

    return fit


def same(one, many, new, is_counted=False):
    said = many.certificate_.promise.statements(), one.certificate_.promise.statements()
    assert [part.promise for part in said[0]] == [part.promise for part in said[1]]
    own, other = one.predict_interval(new), many.predict_interval(new)
    np.testing.assert_array_equal(other.lower, own.lower)
    np.testing.assert_array_equal(other.upper, own.upper)
    if not is_counted:
        assert many.certificate_.notes == one.certificate_.notes
        np.testing.assert_array_equal(many.fitted_.calibration_entities, one.fitted_.calibration_entities)


@pytest.mark.parametrize(("keep_scores", "order"), [(1 << 20, FORWARD), (500, BACKWARD)])
@pytest.mark.parametrize(
    "options",
    [
        {"confidence_level": [0.5, 0.8]},
        {"tails": (0.1, 0.2)},
        {"guarantee": "pac"},
        {"groups": "letter", "confidence_level": 0.5},
    ],
)
def test_a_model_is_that_of_one_machine(options, keep_scores, order, trained, files, parts, tmp_path, monkeypatch):
    monkeypatch.setattr("guardband.ray.meeting.ROWS", 700)  # else one worker looks at all entities
    model = trained(**options)
    rows = pa.concat_tables([parts[i] for i in order])
    one = copy.copy(model).calibrate(rows.select(WITH_PATIENT).to_pandas(), np.array(rows["y"]))
    many = gb.ray.calibrate(model, [sorted(glob(files))[i] for i in order], target="y", keep_scores=keep_scores)
    new = of_patients(50, 99, 800).select(WITH_PATIENT).to_pandas()
    same(one, many, new, keep_scores == 500)
    many.save(tmp_path / "m.guardband")
    same(one, gb.load(tmp_path / "m.guardband"), new, keep_scores == 500)


@pytest.mark.parametrize("keep_scores", [1 << 20, 500])
def test_a_function_says_what_rows_belong_to(keep_scores, trained, files, parts):
    model = trained(lambda rows: np.array([int(cell[1:]) // 3 for cell in np.asarray(rows["patient"]).tolist()]))
    rows = pa.concat_tables(parts)
    one = copy.copy(model).calibrate(rows.select(WITH_PATIENT).to_pandas(), np.array(rows["y"]))
    many = gb.ray.calibrate(model, files, target="y", keep_scores=keep_scores)
    same(one, many, of_patients(50, 3, 0).select(WITH_PATIENT).to_pandas(), keep_scores == 500)


@pytest.mark.parametrize("keep_scores", [1 << 20, 500])
def test_rows_of_an_entity_that_score_alike_count_as_one_row(keep_scores, parts, tmp_path):
    once = parts[0].slice(0, 400)
    rows = pa.concat_tables([once] * 3).take(np.random.default_rng(0).permutation(1200))
    for i in range(3):
        own = rows.slice(400 * i, 400)
        number = [str(cell) for cell in own["y"].to_pylist()]  # one for each of the rows that were there once
        parquet.write_table(own.append_column("row", pa.array(number)), tmp_path / f"{i}.parquet")
    rule = gb.BandCalibrator().fit_table(once, once["y"], BOUNDS)
    many = gb.ray.calibrate(rule, str(tmp_path / "*"), target="y", split_by="row", keep_scores=keep_scores)
    for name, array in rule.calibration_.found.arrays.items():
        np.testing.assert_array_equal(many.calibration_.found.arrays[name], array)
    assert many.certificate.promise.rank == rule.certificate.promise.rank
    assert many.certificate.n_calibration == 400


@pytest.mark.parametrize("keep_scores", [1 << 20, 500])
@pytest.mark.parametrize("asked", [{}, {"split_by": "patient"}])
def test_a_rule_is_that_of_one_machine_by_its_own_columns_or_by_others(asked, keep_scores, files, parts, tmp_path):
    rows = pa.concat_tables(parts)
    one = gb.BandCalibrator().fit_table(
        rows,
        rows["y"],
        BOUNDS,
        entities=entities_of_columns(read_table(rows.select(["patient"])).columns),
        split_by=["patient"],
    )
    first = parts[0]
    own = {} if asked else {"split_by": ["patient"], "entities": np.array(first["patient"])}
    rule = gb.BandCalibrator().fit_table(first, first["y"], BOUNDS, **own)
    many = gb.ray.calibrate(rule, files, target="y", keep_scores=keep_scores, **asked)
    many.save(tmp_path / "a.rule")
    for found in (many, gb.load(tmp_path / "a.rule")):
        assert found.certificate.promise == one.certificate.promise
        assert found.belonging.keys == ("patient",)
        np.testing.assert_array_equal(
            found.transform([0.0], [1.0], [2.0]).upper, one.transform([0.0], [1.0], [2.0]).upper
        )


def test_what_must_meet_and_cannot_is_refused(trained, files, parts, tmp_path):
    with pytest.raises(ValueError, match="Weights are for rows that stand alone"):
        gb.ray.calibrate(trained(), files, target="y", weights="low")
    with pytest.raises(ValueError, match="There is no column 'nurse' for split_by"):
        gb.ray.calibrate(trained(None), files, target="y", split_by="nurse")
    with pytest.raises(ValueError, match="The model knows what rows belong to"):
        gb.ray.calibrate(trained(), files, target="y", split_by="letter")
    odd = parts[1].set_column(3, "patient", pa.array(["a", None, "b"]))
    parquet.write_table(odd, tmp_path / "odd.parquet")
    with pytest.raises(ValueError, match=r"Column 'patient' misses a value in .*odd\.parquet"):
        gb.ray.calibrate(trained(), str(tmp_path / "odd.parquet"), target="y")


@pytest.mark.parametrize("keep_scores", [1 << 20, 500])
def test_entities_that_trained_the_model_are_refused(keep_scores, trained, parts, tmp_path):
    own = pa.concat_tables([parts[0], of_patients(5, 7, 3)])
    parquet.write_table(own.slice(0, 800), tmp_path / "0.parquet")
    parquet.write_table(own.slice(800), tmp_path / "1.parquet")
    with pytest.raises(OverlapError, match="values of 'patient' in the calibration rows also occur in the training"):
        gb.ray.calibrate(trained(), str(tmp_path / "*"), target="y", keep_scores=keep_scores)


def test_rows_that_fit_found_repeated_count_once(parts, tmp_path):
    rng, rows = np.random.default_rng(0), table(300, 0)
    with pytest.warns(RepeatedRowsWarning):
        model = gb.IntervalRegressor(calibration_size=None, **QUICK).fit(
            pa.concat_tables([rows, rows]).select(COLUMNS).to_pandas(), np.tile(rows["y"], 2)
        )
    new = table(400, 1)
    new = pa.concat_tables([new, new, new]).take(rng.permutation(1200))
    one = copy.copy(model).calibrate(new.select(COLUMNS).to_pandas(), np.array(new["y"]))
    for i in range(3):
        parquet.write_table(new.slice(400 * i, 400), tmp_path / f"{i}.parquet")
    many = gb.ray.calibrate(model, str(tmp_path / "*"), target="y")
    same(one, many, new.select(COLUMNS).to_pandas())
    with pytest.raises(ValueError, match="raise keep_scores"):
        gb.ray.calibrate(model, str(tmp_path / "*"), target="y", keep_scores=500)


def test_an_audit_knows_the_entities_that_calibrated(trained, files, parts):
    model = gb.ray.calibrate(trained(), files, target="y", keep_scores=500)
    for rows, verdict in ((parts[0], "cannot judge"), (of_patients(600, 5, 700), "too few rows")):
        assert model.audit(rows.select(WITH_PATIENT).to_pandas(), np.array(rows["y"])).verdict == verdict


def test_an_audit_draws_the_rows_of_one_machine(trained, files, parts, tmp_path):
    model = gb.ray.calibrate(trained(confidence_level=[0.5, 0.8]), files, target="y")
    rows = [of_patients(n, 60 + i, 700) for i, n in enumerate(SIZES)]
    for i, own in enumerate(rows):
        parquet.write_table(own, tmp_path / f"{i}.parquet")
    rows = pa.concat_tables(rows)
    one = model.audit(rows.select(WITH_PATIENT).to_pandas(), np.array(rows["y"]))
    many = gb.ray.audit(model, str(tmp_path / "*"), target="y")
    assert (many.verdict, many.sentence, many.p_value) == (one.verdict, one.sentence, one.p_value)
    assert [(own.n, own.covered) for own in many.levels] == [(own.n, own.covered) for own in one.levels]
    assert many.notes[0] == one.notes[0]
    rule = gb.BandCalibrator().fit_table(
        parts[0], parts[0]["y"], BOUNDS, split_by=["patient"], entities=np.array(parts[0]["patient"])
    )
    matrix = [rows[name].to_numpy() for name in BOUNDS.names]
    one = rule.audit(*matrix, np.array(rows["y"]), entities=np.array(rows["patient"]))
    many = gb.ray.audit(rule, str(tmp_path / "*"), target="y")
    assert (many.verdict, [own.covered for own in many.levels]) == (one.verdict, [own.covered for own in one.levels])


def test_the_command_calibrates_entities_with_and_without_ray(files, tmp_path, monkeypatch, capfd):
    rules = tmp_path / "one.rule", tmp_path / "many.rule", tmp_path / "counted.rule"
    for rule, more in zip(rules, ([], ["--ray", "auto"], ["--ray", "auto", "--keep-scores", "500"]), strict=True):
        columns = ["--lower", "low", "--upper", "high", "--target", "y", "--split-by", "patient"]
        monkeypatch.setattr("sys.argv", ["guardband", "calibrate", files, *columns, "-o", str(rule), "--json", *more])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code in (None, 0)
        said = json.loads(capfd.readouterr().out)
        assert said["rows"] == {"read": sum(SIZES), "calibrated": said["certificate"]["n_calibration"]}
    one, *others = map(gb.load, rules)
    for many in others:
        assert many.certificate.promise == one.certificate.promise
        np.testing.assert_array_equal(many.transform([0.0], None, [2.0]).upper, one.transform([0.0], None, [2.0]).upper)
