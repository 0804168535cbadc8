"""On Ray rows that belong together calibrate as on one machine, to the bit, in whichever files they lie."""

import copy
from glob import glob

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import guardband as gb
from guardband.doors.band_columns import BandColumns
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
            known[key] = made.fit(rows.select(WITH_PATIENT).to_pandas(), np.array(rows["y"]))
        return known[key]

    return fit


def same(one, many, new):
    assert many.certificate_.promise == one.certificate_.promise
    assert many.certificate_.notes == one.certificate_.notes
    own, other = one.predict_interval(new), many.predict_interval(new)
    np.testing.assert_array_equal(other.lower, own.lower)
    np.testing.assert_array_equal(other.upper, own.upper)
    np.testing.assert_array_equal(many.fitted_.calibration_entities, one.fitted_.calibration_entities)


@pytest.mark.parametrize("order", [FORWARD, BACKWARD])
@pytest.mark.parametrize("options", [{"confidence_level": [0.5, 0.8]}, {"guarantee": "pac"}, {"tails": (0.1, 0.2)}])
def test_a_model_is_that_of_one_machine(options, order, trained, files, parts, tmp_path):
    model = trained(**options)
    rows = pa.concat_tables([parts[i] for i in order])
    one = copy.copy(model).calibrate(rows.select(WITH_PATIENT).to_pandas(), np.array(rows["y"]))
    many = gb.ray.calibrate(model, [sorted(glob(files))[i] for i in order], target="y")
    new = of_patients(50, 99, 800).select(WITH_PATIENT).to_pandas()
    same(one, many, new)
    many.save(tmp_path / "m.guardband")
    same(one, gb.load(tmp_path / "m.guardband"), new)


def test_a_function_says_what_rows_belong_to(trained, files, parts):
    first = lambda rows: np.array([str(cell)[:2] for cell in np.asarray(rows["patient"])])  # noqa: E731
    model = copy.copy(trained(None))
    model.split_by = first
    model.fitted_ = copy.copy(model.fitted_)
    model.fitted_.params["split_by"] = first
    rows = pa.concat_tables(parts)
    one = copy.copy(model).calibrate(rows.select(WITH_PATIENT).to_pandas(), np.array(rows["y"]))
    same(one, gb.ray.calibrate(model, files, target="y"), rows.select(WITH_PATIENT).to_pandas())
