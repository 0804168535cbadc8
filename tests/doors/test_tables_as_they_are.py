"""Tables as they are: missing targets, other columns, odd cells, and rows unlike all that was seen."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import guardband as gb
from cli_tables import small_table
from guardband.data.encoder import TableEncoder

QUICK = {"preset": "fast", "max_epochs": 2, "random_state": 0}


def small(n=300, seed=0):
    frame = small_table(n, seed).to_pandas()
    return frame.drop(columns="price"), frame["price"]


@pytest.fixture(scope="module")
def model():
    return gb.IntervalRegressor(**QUICK).fit(*small())


def same(first, second):
    np.testing.assert_array_equal(first.lower, second.lower)
    np.testing.assert_array_equal(first.upper, second.upper)


# ------------------------------------------------------------------------------------------------ missing targets


@pytest.mark.parametrize(
    "as_given",
    [
        lambda y: y,
        lambda y: y.astype("Float64"),
        lambda y: pl.Series(y.tolist()).fill_nan(None),
        lambda y: pa.array(y, from_pandas=True),
        lambda y: [None if v != v else v for v in y],
        lambda y: np.array(["NA" if v != v else str(v) for v in y], dtype=object),
    ],
    ids=["NaN", "pandas.NA", "polars", "Arrow", "None", "text"],
)
def test_rows_without_a_target_are_left_out_and_counted(as_given):
    X, y = small()
    X.index = X.index + 1000
    y.index = X.index
    gone = np.arange(len(y)) % 10 == 3
    weight = np.linspace(1, 2, len(y))
    clean = gb.IntervalRegressor(**QUICK).fit(X[~gone], y[~gone], sample_weight=weight[~gone])
    with pytest.warns(gb.MissingTargetWarning, match="^30 of 300 rows are left out because their target y is missing."):
        holes = gb.IntervalRegressor(**QUICK).fit(X, as_given(y.mask(gone)), sample_weight=weight)
    same(clean.predict_interval(X[:50]), holes.predict_interval(X[:50]))
    assert clean.certificate_ == holes.certificate_


def test_calibration_rows_without_a_target_are_left_out_too():
    X, y = small(600)
    model = gb.IntervalRegressor(**QUICK, calibration_size=None).fit(X[:400], y[:400])
    new, known = X[400:], y[400:].mask(np.arange(200) % 4 == 0)
    with pytest.warns(gb.MissingTargetWarning, match="50 of 200 rows"):
        model.calibrate(new, known)
    assert model.certificate_.n_calibration == 150
    with pytest.raises(ValueError, match="The target y is missing in every row: pass rows whose target is known"):
        model.calibrate(new, known * np.nan)


def test_infinite_targets_and_words_are_still_refused():
    X, y = small(50)
    with pytest.raises(ValueError, match="Input y contains infinity"):
        gb.IntervalRegressor(**QUICK).fit(X, y.where(y.index != 7, np.inf))
    with pytest.raises(ValueError, match="'dear' is not a number"):
        gb.IntervalRegressor(**QUICK).fit(X, ["dear", *y[1:]])
    with pytest.raises(ValueError, match="y must hold numbers"):
        gb.IntervalRegressor(**QUICK).fit(X, [datetime.date(2024, 1, 1)] * 50)


# --------------------------------------------------------------------------------------------------- other columns


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_columns_are_taken_by_name_in_any_order_among_others(model, library):
    X, _ = small(40, seed=1)
    other = X[["sold", "day", "size", "town"]].assign(point=1.0, note=[{"no": "cell"}] * 40)
    if library is pl.from_pandas:
        other = other.drop(columns="note")
    bands = model.predict_interval(library(other))
    same(bands, model.predict_interval(X))
    assert list(bands.to_pandas()) == ["guardband_point", "guardband_lower", "guardband_upper"]
    np.testing.assert_array_equal(model.predict(library(other)), model.predict(X))


def test_columns_that_are_missing_are_named(model):
    X, y = small(40, seed=1)
    words = "X lacks 2 of the model's 4 columns: 'town', 'sold'. Add them, or fit a model without them."
    for call in (model.predict, model.predict_interval, lambda X: model.calibrate(X, y)):
        with pytest.raises(ValueError, match=words):
            call(X.drop(columns=["sold", "town"]))


def test_arrays_must_have_as_many_columns(model):
    X, y = np.arange(200.0).reshape(100, 2), np.arange(100.0)
    plain = gb.IntervalRegressor(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but IntervalRegressor is expecting 2"):
        plain.predict(np.ones((4, 3)))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(small(4)[0].to_numpy(dtype=object))


# ----------------------------------------------------------------------------------------------- what a column is


def test_text_in_calibration_rows_alone_is_seen_with_every_seed():
    """Which rows train is chance: what a column is must not be."""
    X, y = small(120)
    X = X.assign(code=np.arange(120) % 7).astype({"code": object})
    X.loc[5, "code"] = "unknown"
    for seed in range(6):
        model = gb.IntervalRegressor(**QUICK | {"random_state": seed}).fit(X, y)
        assert model.fitted_.learned.encoder.kinds[-1] == "category"


def test_text_that_comes_later_is_the_same_error_with_every_seed():
    X, y = small(120)
    X = X.assign(code=np.arange(120) % 7).astype({"code": object})
    later = X.copy()
    later.loc[5, "code"] = "unknown"
    for seed in range(3):
        model = gb.IntervalRegressor(**QUICK | {"random_state": seed}).fit(X, y)
        for call in (model.predict_interval, lambda X, model=model: model.calibrate(X, y)):
            with pytest.raises(ValueError, match="'code' held numbers when the model was fitted, but now "):
                call(later)


def messy(n=240):
    """Return columns as a CSV holds them, and the same cells as Python's objects."""
    random = np.random.default_rng(3)
    size = [f"{v:.2f}".replace(".", ",") for v in random.uniform(0, 9, n)]
    whole = [str(v) for v in random.integers(0, 50, n)]
    truth = random.choice(["yes", "no"], n).tolist()
    flag = random.choice(["True", "False"], n).tolist()
    day = [str(datetime.date(2024, 1, 1) + datetime.timedelta(int(d))) for d in random.integers(0, 300, n)]
    town = random.choice([" Wien", "Graz ", "Linz"], n).tolist()
    stray = [*(str(i) for i in range(n - 1)), "broken"]
    text = {"size": size, "whole": whole, "truth": truth, "flag": flag, "day": day, "town": town, "stray": stray}
    for i, cells in enumerate(text.values()):
        cells[3 + i], cells[30 + i], cells[60 + i] = "", "NA", " "
    objects = {name: list(cells) for name, cells in text.items()}
    objects["size"][::2] = [_number(cell) for cell in size[::2]]
    objects["whole"][::2] = [_number(cell) for cell in whole[::2]]
    objects["flag"] = [{"True": True, "False": False}.get(cell) for cell in flag]
    objects["day"][::2] = [datetime.date.fromisoformat(c) if c.startswith("2") else None for c in day[::2]]
    objects["stray"][::2] = [_number(cell) for cell in stray[::2]]
    y = [f"{v:.3f}" for v in random.standard_normal(n)]
    y[7] = "NA"
    return text, {name: np.array(cells, dtype=object) for name, cells in objects.items()}, y


def _number(cell):
    try:
        return float(cell.replace(",", "."))
    except ValueError:
        return None


def test_the_command_line_and_python_read_a_messy_table_alike(tmp_path, monkeypatch, capfd):
    from guardband.cli import main

    text, objects, y = messy()
    lines = [";".join([*text, "y"]), *(";".join(row) for row in zip(*text.values(), y, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    arguments = ["fit", "t.csv", "-t", "y", "--preset", "fast", "--check", "0", "--seed", "0", "--no-report", "-q"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["guardband", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code, capfd.readouterr().err
    from_file = gb.load("t.guardband")
    X = pd.DataFrame(objects, dtype=object)
    with pytest.warns(gb.MissingTargetWarning):
        model = gb.IntervalRegressor(preset="fast", random_state=0).fit(X, y)
    kinds = ("number", "number", "boolean", "boolean", "date", "category", "category")
    assert model.fitted_.learned.encoder.kinds == from_file.fitted_.learned.encoder.kinds == kinds
    assert isinstance(model.fitted_.learned.encoder, TableEncoder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gb.UnlikeRowsWarning)
        same(model.predict_interval(X), from_file.predict_interval(X))
    assert model.certificate_ == from_file.certificate_


def test_a_comma_in_doubt_is_no_number():
    X, y = small(60)
    thousands = X.assign(pay=np.array([*["1,234", "2,500"] * 29, 950, 7], dtype=object))
    model = gb.IntervalRegressor(**QUICK).fit(thousands, y)
    assert model.fitted_.learned.encoder.kinds[-1] == "category"
    decimals = X.assign(pay=np.array([*["1,5", "2,25"] * 29, 950, 7], dtype=object))
    model = gb.IntervalRegressor(**QUICK).fit(decimals, y)
    assert model.fitted_.learned.encoder.kinds[-1] == "number"
    with pytest.raises(ValueError, match=r"'1,234' may mean 1234 or 1\.234: write 1234 or 1\.2340"):
        model.predict(thousands[:1])


# ---------------------------------------------------------------------------------------- rows unlike all training


def test_rows_unlike_training_are_counted_in_one_warning_and_answered(model, tmp_path):
    X, _ = small(50, seed=2)
    X.loc[3, "town"] = "Bern"
    X.loc[[3, 8], "size"] = 1e9
    words = r"^2 of 50 rows are unlike all training rows. 'size': 2 rows far .* 1,000,000,000 in row 3. 'town': 1 row"
    model.save(tmp_path / "m.guardband")
    for own in (model, gb.load(tmp_path / "m.guardband")):
        with pytest.warns(gb.UnlikeRowsWarning, match=words) as caught:
            bands = own.predict_interval(X)
        assert len(caught) == 1
        assert str(caught[0].message) == bands.unlike_words
        assert np.flatnonzero(bands.unlike).tolist() == [3, 8]
        assert np.isfinite(bands.upper).all()
        table = bands.to_pandas(unlike=True)
        assert table["unlike"][[2, 3, 8]].tolist() == ["", "size, town", "size"]
        assert bands.to_polars(unlike=True)["unlike"].to_list() == table["unlike"].tolist()
        assert "unlike" not in bands.to_pandas()


def test_a_column_that_is_missing_and_never_was_is_named(model):
    X, _ = small(50, seed=2)
    with pytest.warns(gb.UnlikeRowsWarning, match="'day' is missing in every row, and never was in training"):
        bands = model.predict_interval(X.assign(day=pd.NaT))
    assert bands.unlike.all()


def test_rows_like_training_are_silent(model):
    bands = model.predict_interval(small(200, seed=3)[0])
    assert not bands.unlike.any()
    assert bands.unlike_words == ""
    assert set(bands.to_pandas(unlike=True)["unlike"]) == {""}


def test_bands_from_elsewhere_know_nothing_of_training_rows():
    one = np.ones(1)
    bands = gb.Intervals(one, one, one, 0.9)
    assert bands.unlike is None
    with pytest.raises(ValueError, match="remove unlike=True"):
        bands.to_pandas(unlike=True)


def test_numbers_too_large_for_sums_are_named_before_any_training():
    X = pd.DataFrame({"size": np.arange(40.0), "odd": np.full(40, 1e308)})
    with pytest.raises(ValueError, match=r"The column 'odd' holds 1e\+308, which is too large to compute with"):
        gb.IntervalRegressor(preset="fast").fit(X, np.arange(40.0))
