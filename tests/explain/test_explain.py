"""Explanations of models: closed forms, tables of every kind, and what is refused."""

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import guardband as gb

NAMES = ["a", "b", "c", "unused"]


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    return X, X[:, 0] * X[:, 2] + (1 + 2 * X[:, 1]) * rng.normal(size=n)


def bands(X):
    """Return bands with the half-width 1 + 2 b around a * c."""
    a, b, c = np.asarray(X)[:, :3].T
    return np.stack([a * c - 1 - 2 * b, a * c, a * c + 1 + 2 * b], axis=1)


def named_bands(X):
    columns = {name: np.asarray(X[name]) for name in NAMES[:3]}
    return bands(np.stack(list(columns.values()), axis=1))


(CALIBRATION, Y), (NEW, _) = draw(199, 0), draw(30, 1)


@cache
def guarded(**options):
    return gb.calibrate(bands, (CALIBRATION, Y), **options)


def frame(X, kind="pandas"):
    made = pd.DataFrame(X, columns=NAMES)
    if kind == "polars":
        return pl.from_pandas(made)
    return pa.Table.from_pandas(made) if kind == "arrow" else made


def closed_form(X, background, factor):
    """Return the contributions to the width, which is linear, and to the point, a product."""
    width, point = np.zeros((2, *X.shape))
    width[:, 1] = factor * (X[:, 1] - background[:, 1].mean())
    pairs = X[:, None] - background, X[:, None] + background
    for j, other in ((0, 2), (2, 0)):
        point[:, j] = (pairs[0][..., j] * pairs[1][..., other]).mean(1) / 2
    return width, point


@pytest.mark.parametrize("evaluations", [100_000, 1])
def test_a_known_formula_gets_its_closed_form(evaluations):
    found = guarded().explain(NEW, evaluations=evaluations)
    factor = 4 * found.widths[0] / (2 + 4 * NEW[0, 1])  # calibration multiplies all widths by one number
    width, point = closed_form(NEW, NEW, factor)
    np.testing.assert_allclose(found.width, width, atol=1e-12)
    np.testing.assert_allclose(found.point, point, atol=1e-12)
    assert (found.width[:, 3] == 0).all()
    assert (found.point[:, [1, 3]] == 0).all()
    assert found.exact == (evaluations > 1)


def test_widths_and_points_are_those_of_the_intervals():
    found, own = guarded().explain(NEW, rows=[3, 1]), guarded().predict_interval(NEW)
    np.testing.assert_array_equal(found.rows, [3, 1])
    np.testing.assert_array_equal(found.widths, own.width[[3, 1]])
    np.testing.assert_array_equal(found.points, own.point[[3, 1]])
    assert found.base_width == pytest.approx(own.width.mean())
    assert found.base_point == pytest.approx(own.point.mean())


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("background", [False, True])
def test_every_kind_of_table_gives_the_same(kind, background):
    model = gb.calibrate(named_bands, (frame(CALIBRATION, kind), Y))
    other = {"background": frame(CALIBRATION, kind)} if background else {}
    expected = guarded().explain(NEW, **({"background": CALIBRATION} if background else {}))
    found = model.explain(frame(NEW, kind), **other)
    np.testing.assert_allclose(found.width, expected.width, atol=1e-12)
    assert found.columns == tuple(NAMES)
    assert expected.columns == ("x0", "x1", "x2", "x3")


def test_tensors_and_lists_are_tables_too():
    expected = guarded().explain(NEW)
    np.testing.assert_allclose(guarded().explain(torch.tensor(NEW)).width, expected.width)
    np.testing.assert_allclose(guarded().explain(NEW.tolist()).width, expected.width)
    both = guarded().explain(torch.tensor(NEW[:2]), background=torch.tensor(NEW))
    np.testing.assert_allclose(both.width, expected.width[:2])


def test_the_order_of_columns_does_not_matter():
    model, X = gb.calibrate(named_bands, (frame(CALIBRATION), Y)), frame(NEW)
    one, other = model.explain(X, evaluations=1), model.explain(X[NAMES[::-1]].assign(more="text"), evaluations=1)
    assert one.columns == other.columns
    np.testing.assert_array_equal(one.point, other.point)


def test_the_rows_of_X_are_the_background_and_many_are_drawn_from():
    few, many = guarded().explain(NEW[:7]), guarded().explain(CALIBRATION, rows=0)
    assert (few.n_background, many.n_background) == (7, 100)
    assert guarded().explain(NEW, rows=0, n_background=5).n_background == 5
    assert guarded().explain(NEW, rows=0, background=CALIBRATION).n_background == 100
    all_rows = guarded().explain(CALIBRATION, rows=0, n_background=199)
    assert all_rows.base_width == pytest.approx(guarded().predict_interval(CALIBRATION).width.mean())


def test_a_row_is_explained_alike_with_a_background_of_its_own():
    within = guarded().explain(NEW, rows=4)
    apart = guarded().explain(NEW[4:5], background=NEW)
    np.testing.assert_allclose(within.point, apart.point, atol=1e-12)


@pytest.mark.parametrize("rows", [-1, [-1], slice(29, None), np.arange(30) == 29])
def test_rows_are_chosen_by_position(rows):
    assert guarded().explain(NEW, rows=rows).rows.tolist() == [29]


def test_the_same_seed_gives_the_same_result():
    rng = np.random.default_rng(0)
    X, y = rng.random((300, 5)), rng.normal(size=300)
    model = gb.calibrate(lambda X: np.stack([-X.prod(1), X.prod(1)], axis=1), (X, y))
    one, same, other, new = (model.explain(X, rows=3, evaluations=1, random_state=s).width for s in (1, 1, 2, None))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert (one != new).any()


def test_the_first_level_is_explained_or_the_one_asked_for():
    two, one = guarded(confidence_level=(0.5, 0.9)), guarded(confidence_level=0.5)
    assert two.explain(NEW).confidence_level == 0.5
    np.testing.assert_allclose(two.explain(NEW).width, one.explain(NEW).width)
    np.testing.assert_allclose(one.explain(NEW, confidence_level=0.9).width, guarded().explain(NEW).width)


def test_fixed_widths_have_no_reasons():
    model = gb.calibrate(lambda X: X[:, 0], (CALIBRATION, Y))
    found = model.explain(NEW)
    np.testing.assert_allclose(found.width, 0, atol=1e-12)
    np.testing.assert_allclose(found.point[:, 0], NEW[:, 0] - NEW[:, 0].mean())


# ------------------------------------------------------------------------------------ a network


def mixed_table(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "area": np.where(rng.random(n) < 0.1, np.nan, 100 * rng.random(n)),
            "district": pd.Series(rng.choice(["old town", "north", None], n), dtype=object),
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D"),
            "garden": rng.random(n) < 0.5,
            "owner": [f"owner {i // 2}" for i in range(n)],
        }
    )
    return X, np.nan_to_num(X["area"].to_numpy()) + 10 * rng.normal(size=n)


@cache
def fitted():
    X, y = mixed_table(300, 0)
    return gb.IntervalRegressor(network="plain", hidden=(8,), epochs=3, random_state=0, split_by="owner").fit(X, y)


@pytest.mark.parametrize("evaluations", [100_000, 1])
def test_categories_dates_truth_and_missing_values_are_explained(evaluations):
    X, _ = mixed_table(40, 1)
    found, own = fitted().explain(X, evaluations=evaluations), fitted().predict_interval(X)
    assert found.exact == (evaluations > 1)
    for added, values in ((found.width, own.width), (found.point, own.point)):
        np.testing.assert_allclose(added.sum(1), values - values.mean(), atol=1e-9)
        assert np.ptp(added[:, :4], axis=0).all()
    by_name = dict(zip(found.columns, zip(*found.cells, strict=True), strict=True))
    assert by_name["sold"][0] == str(X["sold"][0].date())
    assert set(by_name["district"]) == {"old town", "north", "missing"}
    assert set(by_name["garden"]) == {"yes", "no"}


def test_a_column_that_is_not_learnt_from_adds_nothing_and_may_be_absent():
    X, _ = mixed_table(40, 1)
    found = fitted().explain(X)
    owner = found.columns.index("owner")
    assert not found.width[:, owner].any()
    assert not found.point[:, owner].any()
    np.testing.assert_array_equal(fitted().explain(X.drop(columns="owner")).width, found.width)


def test_a_network_explains_frames_with_columns_in_any_order_and_polars_alike():
    X, _ = mixed_table(40, 1)
    found = fitted().explain(X, rows=[0, 1])
    np.testing.assert_array_equal(fitted().explain(X[X.columns[::-1]], rows=[0, 1]).width, found.width)
    np.testing.assert_allclose(fitted().explain(pl.from_pandas(X), rows=[0, 1]).width, found.width, atol=1e-9)
    apart = fitted().explain(X[:2], background=X)
    np.testing.assert_allclose(apart.width, found.width, atol=1e-9)


def test_widths_are_in_the_units_of_the_target():
    X, y = mixed_table(300, 0)
    model = gb.IntervalRegressor(
        network="plain", hidden=(8,), epochs=3, random_state=0, split_by=[], target_transform="asinh", y_max=200
    ).fit(X.drop(columns="owner"), y)
    found, own = model.explain(X[:20]), model.predict_interval(X[:20])
    np.testing.assert_allclose(found.widths, own.width)
    np.testing.assert_allclose(found.width.sum(1), own.width - own.width.mean(), atol=1e-9)


# ------------------------------------------------------------------------------------- refusals


def test_one_row_needs_a_background():
    with pytest.raises(ValueError, match="One row has no other rows to be compared with: pass background="):
        guarded().explain(NEW[:1])


def test_infinite_intervals_are_refused_with_what_to_do():
    with pytest.warns(gb.InsufficientCalibrationWarning):
        model = gb.calibrate(bands, (CALIBRATION[:5], Y[:5]))
    with pytest.raises(ValueError, match="calibrate the model on more rows, or pass a lower confidence_level"):
        model.explain(NEW)
    assert np.isfinite(model.explain(NEW, confidence_level=0.5).width).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": []}, "rows must name at least one row"),
        ({"n_background": 0}, "must be at least 1"),
        ({"evaluations": 0}, "must be at least 1"),
        ({"background": NEW[:, :3]}, "same columns"),
        ({"background": NEW[:0]}, "at least one row"),
    ],
)
def test_bad_arguments_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        guarded().explain(NEW, **options)


@pytest.mark.parametrize("rows", [30, [0, 99], ["a"]])
def test_rows_beyond_the_table_are_refused(rows):
    with pytest.raises(IndexError, match="rows must be positions in X, from 0 to 29, found"):
        guarded().explain(NEW, rows=rows)


@pytest.mark.parametrize("X", [NEW[0], pd.Series(NEW[0]), 3.0])
def test_what_is_no_table_is_refused(X):
    with pytest.raises(ValueError, match="Expected 2D array"):
        guarded().explain(X)


def test_a_model_that_is_not_calibrated_says_so():
    model = gb.IntervalRegressor(network="plain", hidden=(4,), epochs=1, calibration_size=None, random_state=0)
    with pytest.raises(ValueError, match="not fitted"):
        model.explain(NEW)
    with pytest.raises(ValueError, match="not calibrated"):
        model.fit(CALIBRATION, Y).explain(NEW)
