"""On Ray rows count by their weights as on one machine, to the bit, whether scores are kept or only counted."""

import copy
from glob import glob

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import guardband as gb
from guardband.cli.process import main
from guardband.doors.band_columns import BandColumns
from ray_rows import COLUMNS, table

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    *(pytest.mark.filterwarnings(f"ignore::{name}") for name in ("DeprecationWarning", "ResourceWarning")),
    pytest.mark.filterwarnings("ignore::ray.util.annotations.RayDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SIZES = (900, 3, 700)
BOUNDS = BandColumns("interval", ("low", "mid", "high"))
MOST = 6.0
FORWARD, BACKWARD = (0, 1, 2), (2, 1, 0)


def with_bounds(rows, weights):
    """Return rows with predictions and weights."""
    a = rows["a"].to_numpy()
    return (
        rows.append_column("w", pa.array(weights))
        .select([*COLUMNS, "y", "w"])
        .append_column("low", pa.array(a - 1))
        .append_column("mid", pa.array(a))
        .append_column("high", pa.array(a + 1))
    )


@pytest.fixture(scope="module")
def parts():
    """Return the rows of three files, some of weight 0."""
    rng = np.random.default_rng(0)
    weights = [np.minimum(np.exp(rng.standard_normal(n)), MOST) * (rng.random(n) < 0.9) for n in SIZES]
    return [with_bounds(table(n, 20 + i), own) for i, (n, own) in enumerate(zip(SIZES, weights, strict=True))]


@pytest.fixture(scope="module")
def files(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    for i, rows in enumerate(parts):
        parquet.write_table(rows, folder / f"{i}.parquet", row_group_size=400)
    return str(folder / "*.parquet")


weigh = lambda rows: np.exp(np.asarray(rows["b"], dtype=np.float64))  # noqa: E731 - which workers get by its value


def same(one, many, new):
    said = many.certificate_.promise.statements(), one.certificate_.promise.statements()
    assert [own.promise for own in said[0]] == [own.promise for own in said[1]]
    own, other = one.predict_interval(new), many.predict_interval(new)
    np.testing.assert_array_equal(other.lower, own.lower)
    np.testing.assert_array_equal(other.upper, own.upper)


@pytest.mark.parametrize(("keep_scores", "order"), [(1 << 20, FORWARD), (500, BACKWARD)])
@pytest.mark.parametrize(
    ("options", "weights", "max_weight"),
    [
        ({"confidence_level": [0.8, 0.9]}, "w", None),
        ({}, weigh, None),
        ({"guarantee": "pac", "groups": "letter"}, "w", MOST),
    ],
)
def test_a_model_is_that_of_one_machine(
    options, weights, max_weight, keep_scores, order, fitted, files, parts, tmp_path
):
    model = fitted(**options)
    rows = pa.concat_tables([parts[i] for i in order])
    known = {"weights": weights, "max_weight": max_weight}
    one = copy.copy(model).calibrate(rows.select([*COLUMNS, "w"]).to_pandas(), np.array(rows["y"]), **known)
    paths = [sorted(glob(files))[i] for i in order]
    many = gb.ray.calibrate(model, paths, target="y", keep_scores=keep_scores, **known)
    new = with_bounds(table(60, 99), 10.0 ** np.random.default_rng(1).uniform(-9, 6, 60)).to_pandas()
    same(one, many, new)
    many.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband", **({"weights": weights} if callable(weights) else {}))
    same(one, again, new)


@pytest.mark.parametrize("keep_scores", [500, 1 << 20])
@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
def test_a_rule_is_that_of_one_machine_by_its_own_weights_or_by_others(guarantee, keep_scores, files, parts):
    rows = pa.concat_tables(parts)
    known = {"weights": "w"} if guarantee == "marginal" else {"weights": "w", "max_weight": MOST}
    one = gb.BandCalibrator(guarantee=guarantee).fit_table(rows, rows["y"], BOUNDS, **known)
    plain = gb.BandCalibrator(guarantee=guarantee).fit_table(parts[0], parts[0]["y"], BOUNDS)
    weighed = gb.BandCalibrator(guarantee=guarantee).fit_table(parts[0], parts[0]["y"], BOUNDS, **known)
    for rule, more in ((weighed, {}), (plain, known)):
        many = gb.ray.calibrate(rule, files, target="y", keep_scores=keep_scores, **more)
        assert many.certificate.promise == one.certificate.promise
        for name, array in one.calibration_.found.arrays.items():
            if guarantee == "pac":
                np.testing.assert_array_equal(many.calibration_.found.arrays[name], array)
        weights = np.linspace(0, 400, 50) if guarantee == "marginal" else None
        new = np.tile([[-1.0], [0.0], [1.0]], 50)
        np.testing.assert_array_equal(
            many.transform(*new, weights=weights).upper, one.transform(*new, weights=weights).upper
        )
        assert many.weighting.column == "w"


def test_rows_are_predicted_and_judged_by_their_weights(fitted, files, parts):
    model = gb.ray.calibrate(fitted(), files, target="y", weights="w", keep_scores=500)
    rows = pa.concat_tables(parts)
    found = pa.concat_tables(list(gb.ray.predict(model, files).iter_batches(batch_size=None, batch_format="pyarrow")))
    own = model.predict_interval(rows.select([*COLUMNS, "w"]).to_pandas())
    np.testing.assert_array_equal(found["upper"], own.upper)
    new = with_bounds(table(400, 50), np.ones(400))
    one = model.audit(new.select([*COLUMNS, "w"]).to_pandas(), np.array(new["y"]))
    parquet.write_table(new, files.replace("*.parquet", "new"))
    many = gb.ray.audit(model, files.replace("*.parquet", "new"), target="y")
    assert (many.verdict, many.sentence) == (one.verdict, one.sentence)
    assert [own.covered for own in many.levels] == [own.covered for own in one.levels]


MANY = 1 << 20


@pytest.mark.parametrize(
    ("weights", "words", "keep_scores"),
    [
        ([1.0, -2.0, 1.0], r"there is the weight .2 in .*bad\.parquet\. Correct it, or remove the row", MANY),
        ([1.0, np.nan, 1.0], r"there is a missing weight in .*bad\.parquet", MANY),
        ([1.0, np.inf, 1.0], r"there is the weight ∞ in .*bad\.parquet", MANY),
        (["1", "two", "3"], r"column 'w'.* 'two' in row 2 of .*bad\.parquet", MANY),
        ([0.0, 0.0, 0.0], "All weights are 0", MANY),
        ([0.0, 0.0, 0.0], "All weights are 0", 1),
        ([1.0, 3.0, 1.0], "The largest weight is 3, and max_weight is 2", MANY),
        ([1.0, 3.0, 1.0], "The largest weight is 3, and max_weight is 2", 1),
        (None, r"There is no column 'w' of weights\. The columns are .*Name one", MANY),
    ],
)
def test_what_is_no_weight_is_said_in_one_sentence(weights, words, keep_scores, fitted, tmp_path):
    rows = table(3, 60)
    rows = rows if weights is None else rows.append_column("w", pa.array(weights))
    parquet.write_table(rows, tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=words):
        gb.ray.calibrate(
            fitted(guarantee="pac"),
            str(tmp_path / "bad.parquet"),
            target="y",
            weights="w",
            max_weight=2.0,
            keep_scores=keep_scores,
        )


def test_weights_of_a_rule_that_are_numbers_have_no_column(files):
    rule = gb.BandCalibrator().fit(-np.ones(50), np.zeros(50), np.ones(50), np.arange(50) / 9, weights=np.ones(50))
    with pytest.raises(ValueError, match="Name their column with weights="):
        gb.ray.calibrate(rule, files, target="y")


def test_the_command_calibrates_by_weights_with_and_without_ray(files, tmp_path, monkeypatch):
    rules = tmp_path / "one.rule", tmp_path / "many.rule"
    for rule, more in zip(rules, ([], ["--ray", "auto", "--keep-scores", "500"]), strict=True):
        columns = ["--lower", "low", "--upper", "high", "--target", "y", "--weights", "w", "--independent-rows"]
        monkeypatch.setattr("sys.argv", ["guardband", "calibrate", files, *columns, "-o", str(rule), "-q", *more])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code in (None, 0)
    one, many = map(gb.load, rules)
    assert many.certificate.promise == one.certificate.promise
    bounds = np.tile([[-1.0], [1.0]], 9)
    ends = [own.transform(bounds[0], None, bounds[1], weights=np.arange(9.0)).upper for own in (one, many)]
    np.testing.assert_array_equal(*ends)
