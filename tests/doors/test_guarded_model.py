"""Fitted models of any library, calibrated: what each predicts is found out, and the promise holds for it."""

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, QuantileRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import guardband as gb
from guardband.audit.audit import audit
from guardband.audit.evidence import Evidence

LEVELS = [0.05, 0.5, 0.95]


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + np.abs(X[:, 1]) * rng.normal(size=n)


TRAINING, CALIBRATION, NEW = draw(400, 0), draw(199, 1), draw(50, 2)


@cache
def quantile_models():
    return tuple(QuantileRegressor(quantile=level, alpha=0.0).fit(*TRAINING) for level in LEVELS)


def as_calibrated_bands(lower, point, upper, new, method="conf-nn"):
    rule = gb.BandCalibrator(method).fit(lower, point, upper, CALIBRATION[1])
    return rule.certificate, rule.transform(*new)


def test_a_point_model_gets_a_fixed_width():
    model = LinearRegression().fit(*TRAINING)
    guarded = gb.calibrate(model, CALIBRATION)
    bands = guarded.predict_interval(NEW[0])
    error = np.sort(np.abs(CALIBRATION[1] - model.predict(CALIBRATION[0])))[180 - 1]  # the 180th of 199
    np.testing.assert_allclose(bands.upper, model.predict(NEW[0]) + error)
    np.testing.assert_allclose(guarded.predict(NEW[0]), model.predict(NEW[0]))
    assert guarded.certificate.method == "conf-fw"
    assert guarded.certificate.rank == 180


@pytest.mark.parametrize("several", [2, 3])
def test_several_models_are_bounds_with_or_without_a_point(several):
    models = quantile_models()
    chosen = models if several == 3 else (models[0], models[2])
    guarded = gb.calibrate(chosen, CALIBRATION)
    lower, point, upper = (model.predict(CALIBRATION[0]) for model in models)
    new = [model.predict(NEW[0]) for model in models]
    if several == 2:
        point, new[1] = (lower + upper) / 2, (new[0] + new[2]) / 2
    certificate, expected = as_calibrated_bands(*np.sort([lower, point, upper], axis=0), np.sort(new, axis=0))
    assert guarded.certificate == certificate
    np.testing.assert_allclose(guarded.predict_interval(NEW[0]).lower, expected.lower)


@pytest.mark.parametrize(("columns", "method"), [(1, "conf-fw"), (2, "conf-nn"), (3, "conf-nn")])
def test_a_function_says_by_its_columns_what_it_predicts(columns, method):
    models = quantile_models()
    chosen = {1: models[1:2], 2: (models[0], models[2]), 3: models}[columns]

    def function(X):
        return np.stack([model.predict(X) for model in chosen], axis=1)

    guarded = gb.calibrate(function, CALIBRATION)
    direct = gb.calibrate(chosen if columns > 1 else chosen[0], CALIBRATION)
    assert guarded.certificate.method == method
    np.testing.assert_array_equal(guarded.predict_interval(NEW[0]).upper, direct.predict_interval(NEW[0]).upper)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda model: model,
        lambda model: make_pipeline(StandardScaler(), model),
        lambda model: GridSearchCV(model, {"alpha_1": [1e-6]}, cv=2),
    ],
)
def test_a_deviation_is_found_behind_pipelines_and_searches(wrapped):
    model = wrapped(BayesianRidge()).fit(*TRAINING)
    bands = gb.calibrate(model, CALIBRATION).predict_interval(NEW[0])
    inner = model.best_estimator_ if hasattr(model, "best_estimator_") else model
    mean, deviation = inner.predict(NEW[0], return_std=True)
    np.testing.assert_allclose(np.ptp((bands.upper - mean) / deviation), 0, atol=1e-9)


def test_a_gaussian_process_has_wide_intervals_where_it_knows_little():
    model = GaussianProcessRegressor(alpha=1.0).fit(TRAINING[0][:, :1], TRAINING[1])
    guarded = gb.calibrate(model, (CALIBRATION[0][:, :1], CALIBRATION[1]))
    near, far = guarded.predict_interval(np.array([[0.0], [9.0]])).upper - guarded.predict(np.array([[0.0], [9.0]]))
    assert far > 2 * near


def test_widths_come_from_residuals_that_the_user_gives():
    model = LinearRegression().fit(*TRAINING)
    guarded = gb.calibrate(model, CALIBRATION, residuals=draw(800, 3))
    X = np.array([[0.0, 0.0, 0.0], [0.0, 2.5, 0.0]])
    bands = guarded.predict_interval(X)
    quiet, noisy = bands.upper - bands.lower
    assert guarded.certificate.method == "conf-nn"
    assert noisy > 2 * quiet


def test_bounds_that_cross_are_put_in_order():
    def function(X):
        half_width = np.where(X[:, 1] > 1, -1, 1)
        return np.stack([X[:, 0] - half_width, X[:, 0], X[:, 0] + half_width], axis=1)

    guarded = gb.calibrate(function, CALIBRATION)
    bands = guarded.predict_interval(NEW[0])
    assert (bands.lower <= bands.point).all()
    assert (bands.point <= bands.upper).all()


@pytest.mark.parametrize("columns", [[2, 0], [2, 1, 0]])
def test_bounds_the_wrong_way_round_are_refused(columns):
    models = tuple(quantile_models()[i] for i in columns)
    crossing = r"in 199 of 199 calibration rows\. Swap the "
    with pytest.raises(ValueError, match=f"{crossing}models: the lower bound comes first"):
        gb.calibrate(models, CALIBRATION)
    with pytest.raises(ValueError, match=f"{crossing}columns"):
        gb.calibrate(lambda X: np.stack([model.predict(X) for model in models], axis=1), CALIBRATION)


class Settings(BaseEstimator):
    """A model of a library that may not be here, by the settings that it says it has."""

    def __init__(self, settings):
        self.settings = settings

    def get_params(self, deep=True):
        return self.settings

    def predict(self, X):
        return X[:, 0]


ONE_QUANTILE = {
    "scikit-learn": QuantileRegressor(quantile=0.05, alpha=0.0),
    "boosted": GradientBoostingRegressor(loss="quantile", alpha=0.05, n_estimators=2),
    "by histograms": HistGradientBoostingRegressor(loss="quantile", quantile=0.05, max_iter=2),
    "behind a pipeline": make_pipeline(StandardScaler(), QuantileRegressor(quantile=0.05, alpha=0.0)),
    "lightgbm": Settings({"objective": "quantile", "alpha": 0.05}),
    "xgboost": Settings({"objective": "reg:quantileerror", "quantile_alpha": 0.05}),
    "xgboost, listed": Settings({"objective": "reg:quantileerror", "quantile_alpha": [0.05]}),
    "catboost": Settings({"loss_function": "Quantile:alpha=0.05"}),
}


@pytest.mark.parametrize("name", ONE_QUANTILE)
def test_one_quantile_alone_is_warned_of(name):
    model = ONE_QUANTILE[name]
    model = model if isinstance(model, Settings) else model.fit(*TRAINING)
    with pytest.warns(gb.TargetWarning, match=r"the 0\.05 quantile, .* Pass a pair of models \(lower, upper\)"):
        gb.calibrate(model, CALIBRATION)
    gb.calibrate(model, CALIBRATION, outputs="point")  # the user says so: no warning


@pytest.mark.parametrize(("side", "quantile"), [("lower", 0.1), ("upper", 0.9)])
def test_a_quantile_on_the_side_of_the_promise_is_not_warned_of(side, quantile):
    gb.calibrate(Settings({"quantile": quantile}), CALIBRATION, side=side)
    with pytest.warns(gb.TargetWarning, match="Pass a pair of models"):
        gb.calibrate(Settings({"quantile": 1 - quantile}), CALIBRATION, side=side)


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 0.05},
        {"loss": "huber", "alpha": 0.05},
        {"loss": "squared_error", "quantile": 0.05},
        {"quantile": 0.5},
        {"quantile": None},
        {"quantile": "lowest"},
        {"loss_function": "Quantile"},
    ],
)
def test_a_median_or_a_mean_is_not_warned_of(settings):
    assert gb.calibrate(Settings(settings), CALIBRATION).certificate.method == "conf-fw"


def test_a_table_may_hold_what_the_model_understands():
    X, y = draw(300, 4)
    frame = pd.DataFrame(X, columns=list("abc")).assign(town=np.where(X[:, 2] > 0, "north", "south"))

    def model(table):
        return table["a"].to_numpy() + (table["town"] == "north")

    guarded = gb.calibrate(model, (frame, y))
    bands = guarded.predict_interval(frame[["town", "c", "b", "a"]].iloc[:5])
    assert list(bands.to_pandas().columns) == ["point", "lower", "upper"]
    with pytest.raises(ValueError, match="lacks 1 of the model's 4 columns: 'c'"):
        guarded.predict_interval(frame.drop(columns="c"))
    with pytest.raises(ValueError, match="X must have 4 columns"):
        guarded.predict_interval(X)


def test_other_levels_can_be_asked_for_later():
    guarded = gb.calibrate(quantile_models(), CALIBRATION)
    narrow = guarded.predict_interval(NEW[0], confidence_level=0.5)
    wide = guarded.predict_interval(NEW[0])
    assert (narrow.upper - narrow.lower < wide.upper - wide.lower).all()
    assert narrow.certificate.confidence_level == 0.5


def test_rows_of_one_entity_count_once():
    labels = np.repeat(np.arange(100), 2)[:199]
    guarded = gb.calibrate(LinearRegression().fit(*TRAINING), CALIBRATION, entities=labels)
    assert guarded.certificate.n_calibration == 100
    frame = pd.DataFrame(CALIBRATION[0], columns=list("abc")).assign(shop=labels.astype(str))
    named = gb.calibrate(lambda table: table["a"].to_numpy(), (frame, CALIBRATION[1]), split_by="shop")
    assert "shop" in str(named.certificate)


def test_the_audit_takes_any_calibrated_model():
    guarded = gb.calibrate(quantile_models(), CALIBRATION)
    X, y = draw(1000, 5)
    assert guarded.audit(X, y).verdict in ("consistent", "too few rows")
    assert guarded.audit(X, 3 * y, group=X[:, 2] > 0).verdict == "broken"
    assert guarded.audit(*CALIBRATION).verdict == "cannot judge"


def test_any_calibrated_model_has_a_page(tmp_path):
    guarded = gb.calibrate(quantile_models(), CALIBRATION)
    page = guarded.report(tmp_path / "page.html", *draw(1000, 5), significance=0.05)
    assert "Rows inside their interval" in page.read_text()
    promise = guarded.report(tmp_path / "promise.html").read_text()
    assert "Not yet checked" in promise
    assert "guardband audit" not in promise
    assert promise.count("model.audit(X, y) in Python") == 2


def test_models_are_named_with_what_each_predicts():
    models, point = quantile_models(), LinearRegression().fit(*TRAINING)
    names = {
        "LinearRegression": point,
        "QuantileRegressor (lower), QuantileRegressor (upper)": (models[0], models[2]),
        "QuantileRegressor (lower), LinearRegression (point), QuantileRegressor (upper)": (models[0], point, models[2]),
    }
    for name, model in names.items():
        assert gb.calibrate(model, CALIBRATION).made_by()[0] == ("Model", name)


def test_a_table_s_model_is_judged_in_the_same_way(tmp_path):
    model = gb.IntervalRegressor(hidden=(8,), epochs=2, random_state=0).fit(*TRAINING)
    X, y = draw(1000, 5)
    found = model.audit(X, y, significance=0.05)
    assert found.sentence == audit(Evidence.of(model, X, y), 0.05).sentence
    assert found.sentence.split(": ")[1] in model.report(tmp_path / "page.html", X, y, significance=0.05).read_text()


def test_calibration_rows_must_not_have_trained():
    model = LinearRegression().fit(*TRAINING)
    with pytest.raises(gb.OverlapError):
        gb.calibrate(model, TRAINING, training=TRAINING)
    twice = "199 of 199 calibration rows also occur in the residual rows.* Use different rows for the two"
    with pytest.raises(gb.OverlapError, match=twice):
        gb.calibrate(model, CALIBRATION, residuals=CALIBRATION)
    twice = "400 of 400 residual rows also occur in the training rows.* Use different rows for the two"
    with pytest.raises(gb.OverlapError, match=twice):
        gb.calibrate(model, CALIBRATION, residuals=TRAINING, training=TRAINING)


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (LinearRegression().fit(*TRAINING), {"method": "conf-nn"}, 'Use method="conf-fw", or pass residuals'),
        (BayesianRidge().fit(*TRAINING), {"residuals": draw(50, 6)}, "needs no residuals"),
        (lambda X: np.zeros((len(X), 5)), {}, "returns 5 columns, and guardband knows"),
        (lambda X: np.zeros(3), {}, "one row of numbers for each of 199 rows"),
        ((len, len, len, len), {}, r"\(lower, upper\) or \(lower, point, upper\), found 4"),
        (LinearRegression().fit(*TRAINING), {"process_group": 1}, "process_group is for torch networks"),
        (LinearRegression().fit(*TRAINING), {"outputs": "bands"}, "must predict 3 numbers"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(model, options, words):
    with pytest.raises(ValueError, match=words):
        gb.calibrate(model, CALIBRATION, **options)


def test_something_that_predicts_nothing_is_refused():
    with pytest.raises(TypeError, match="a fitted model with predict, a function"):
        gb.calibrate("a model", CALIBRATION)
    with pytest.raises(TypeError, match="a pair"):
        gb.calibrate(LinearRegression().fit(*TRAINING), CALIBRATION[0])


class Point(nn.Module):
    def forward(self, x):
        return x[:, 0]


class MeanAndVariance(nn.Module):
    def forward(self, x):
        return x[:, 0], x[:, 1] ** 2 + 0.1


def test_a_network_may_put_out_a_point():
    X, y = (torch.tensor(own, dtype=torch.float32) for own in CALIBRATION)
    guarded = gb.calibrate(Point(), (X, y), outputs="point")
    assert guarded.certificate.method == "conf-fw"
    lower, point, upper = guarded(X).unbind(1)
    np.testing.assert_allclose(upper - point, point - lower, rtol=1e-4)


def test_a_network_may_put_out_mean_and_variance_as_a_tuple():
    X, y = (torch.tensor(own, dtype=torch.float32) for own in CALIBRATION)
    guarded = gb.calibrate(MeanAndVariance(), (X, y), outputs="variance")
    _, point, upper = guarded(X).unbind(1)
    ratio = (upper - point) / (X[:, 1] ** 2 + 0.1).sqrt()
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)


def saved_models():
    """Return calibrated models, and what each needs again when it is loaded."""
    labels = np.repeat(np.arange(100), 2)[:199].astype(str)
    frame = pd.DataFrame(CALIBRATION[0], columns=list("abc")).assign(shop=labels)
    point, rows, twice = LinearRegression().fit(*TRAINING), draw(300, 3), np.repeat(np.arange(199), 2)

    def by_name(table):
        return table["a"].to_numpy()

    asked = {"confidence_level": [0.5, 0.9], "guarantee": "pac", "delta": 0.2}
    deviation = BayesianRidge().fit(*TRAINING)
    return {
        "point": (gb.calibrate(point, CALIBRATION), {"model": point}, NEW[0]),
        "levels": (gb.calibrate(quantile_models(), CALIBRATION, **asked), {"model": quantile_models()}, NEW[0]),
        "deviation": (gb.calibrate(deviation, CALIBRATION), {"model": deviation}, NEW[0]),
        "declared": (
            gb.calibrate(deviation.predict, CALIBRATION, outputs="point"),
            {"model": deviation.predict},
            NEW[0],
        ),
        "residuals": (
            gb.calibrate(point, CALIBRATION, residuals=rows),
            {"model": point, "residuals": rows},
            NEW[0],
        ),
        "entities": (gb.calibrate(by_name, (frame, CALIBRATION[1]), split_by="shop"), {"model": by_name}, frame),
        "repeated": (
            gb.calibrate(point, (CALIBRATION[0][twice], CALIBRATION[1][twice])),
            {"model": point},
            NEW[0],
        ),
    }


@pytest.mark.filterwarnings("ignore::guardband.RepeatedRowsWarning")
def test_what_is_saved_is_the_calibration(tmp_path):
    for name, (guarded, again, rows) in saved_models().items():
        guarded.save(tmp_path / name)
        loaded = gb.load(tmp_path / name, **again)
        assert loaded.certificate == guarded.certificate
        np.testing.assert_array_equal(loaded.predict_interval(rows).lower, guarded.predict_interval(rows).lower)
        if rows is NEW[0]:
            assert loaded.audit(*CALIBRATION).verdict == "cannot judge"


def test_a_file_without_its_model_says_what_to_bring(tmp_path):
    point, rows = LinearRegression().fit(*TRAINING), draw(300, 3)
    gb.calibrate(point, CALIBRATION, residuals=rows).save(tmp_path / "model")
    with pytest.raises(gb.ModelFileError, match=r"pass the model as load\(\.\.\., model=\.\.\.\)"):
        gb.load(tmp_path / "model")
    with pytest.raises(gb.ModelFileError, match=r"pass residuals=\(X, y\)"):
        gb.load(tmp_path / "model", model=point)
    with pytest.raises(gb.ModelFileError, match="needs no residuals"):
        gb.load(tmp_path / "model", model=quantile_models(), residuals=rows)
    gb.IntervalRegressor(hidden=(4,), epochs=1, random_state=0).fit(*TRAINING).save(tmp_path / "table")
    with pytest.raises(gb.ModelFileError, match="holds its own model"):
        gb.load(tmp_path / "table", model=point)


def test_another_model_than_the_calibrated_one_is_refused(tmp_path):
    point, names = LinearRegression().fit(*TRAINING), [f"c{i}" for i in range(TRAINING[0].shape[1])]
    gb.calibrate(point, CALIBRATION).save(tmp_path / "array")
    frame = pd.DataFrame(TRAINING[0], columns=names)
    named = LinearRegression().fit(frame, TRAINING[1])
    gb.calibrate(named, (pd.DataFrame(CALIBRATION[0], columns=names), CALIBRATION[1])).save(tmp_path / "frame")
    gb.load(tmp_path / "frame", model=named)
    other = LinearRegression().fit(TRAINING[0], TRAINING[1] + 1)
    narrow = LinearRegression().fit(TRAINING[0][:, :1], TRAINING[1])
    for path, model, words in (
        (
            "array",
            other,
            r"not the model that was calibrated\. For the same row it predicts .* instead of .* Pass",
        ),
        ("array", narrow, r"not the model that was calibrated: it cannot predict the rows of the other one"),
        ("frame", LinearRegression().fit(frame, -TRAINING[1]), "For the same row it predicts"),
    ):
        with pytest.raises(gb.ModelFileError, match=words):
            gb.load(tmp_path / path, model=model)


def test_nothing_is_compared_that_cannot_be(tmp_path):
    """A function may be a costly service, a model may draw random numbers, and text has no middle."""
    asked = []

    def service(rows):
        asked.append(len(rows))
        return rows[:, 0]

    class Random:
        def predict(self, rows):
            return rows[:, 0] + np.random.default_rng().normal(size=len(rows))

    class Strict:
        def predict(self, rows):
            if len(rows) < 10:
                raise KeyError("made up")
            return rows[:, 0]

    guarded = gb.calibrate(service, CALIBRATION)
    before = len(asked)
    guarded.save(tmp_path / "service")
    gb.load(tmp_path / "service", model=service)
    assert len(asked) == before
    for model in (Random(), Strict()):
        gb.calibrate(model, CALIBRATION).save(tmp_path / "model")
        gb.load(tmp_path / "model", model=LinearRegression().fit(*TRAINING))


# ------------------------------------------------------------------------------------------- the real libraries


def with_quantiles(levels):
    """Models of libraries that may not be here, by name: how to make one that predicts quantiles at some levels."""
    alphas = ",".join(map(str, levels))
    return {
        "xgboost": lambda lib: lib.XGBRegressor(
            objective="reg:quantileerror", quantile_alpha=levels, n_estimators=20, n_jobs=1
        ),
        "catboost": lambda lib: lib.CatBoostRegressor(
            loss_function=f"MultiQuantile:alpha={alphas}", iterations=20, verbose=0, thread_count=1
        ),
        "quantile_forest": lambda lib: lib.RandomForestQuantileRegressor(n_estimators=20, random_state=0),
    }


@pytest.mark.parametrize("name", with_quantiles(LEVELS))
def test_quantiles_of_other_libraries_are_found(name):
    library = pytest.importorskip(name, reason=f"{name} is not here")
    model = with_quantiles(LEVELS)[name](library).fit(*TRAINING)
    asked = {"quantiles": LEVELS} if name == "quantile_forest" else {}
    guarded = gb.calibrate(model, CALIBRATION)
    bands = np.sort(np.asarray(model.predict(CALIBRATION[0], **asked), dtype=np.float64), axis=1).T
    new = np.sort(np.asarray(model.predict(NEW[0], **asked), dtype=np.float64), axis=1).T
    certificate, expected = as_calibrated_bands(*bands, new)
    assert guarded.certificate == certificate
    np.testing.assert_allclose(guarded.predict_interval(NEW[0]).upper, expected.upper)


@pytest.mark.parametrize("name", ["xgboost", "catboost"])
def test_the_nearest_pair_of_quantiles_is_taken(name):
    library = pytest.importorskip(name, reason=f"{name} is not here")
    levels = [0.1, 0.25, 0.5, 0.75, 0.9]
    model = with_quantiles(levels)[name](library).fit(*TRAINING)
    guarded = gb.calibrate(model, CALIBRATION, confidence_level=0.6)
    bands = np.sort(np.asarray(model.predict(CALIBRATION[0]), dtype=np.float64), axis=1)[:, [1, 2, 3]].T
    rule = gb.BandCalibrator(confidence_level=0.6).fit(*bands, CALIBRATION[1])
    assert guarded.certificate == rule.certificate


def test_a_distribution_of_ngboost_is_found():
    library = pytest.importorskip("ngboost", reason="ngboost is not here")
    model = library.NGBRegressor(n_estimators=20, verbose=False).fit(*TRAINING)
    bands = gb.calibrate(model, CALIBRATION).predict_interval(NEW[0])
    np.testing.assert_allclose(bands.point, model.pred_dist(NEW[0]).ppf(0.5))


def test_mean_and_variance_of_catboost_are_found():
    library = pytest.importorskip("catboost", reason="catboost is not here")
    model = library.CatBoostRegressor(loss_function="RMSEWithUncertainty", iterations=20, verbose=0).fit(*TRAINING)
    bands = gb.calibrate(model, CALIBRATION).predict_interval(NEW[0])
    mean, variance = model.predict(NEW[0]).T
    ratio = (bands.upper - mean) / np.sqrt(variance)
    np.testing.assert_allclose(ratio, ratio[0])


def test_lightgbm_with_categories_in_its_own_table():
    library = pytest.importorskip("lightgbm", reason="lightgbm is not here")
    X, y = draw(300, 4)
    frame = pd.DataFrame(X, columns=list("abc")).assign(town=pd.Categorical(np.where(X[:, 2] > 0, "north", "south")))
    lower, upper = (
        library.LGBMRegressor(objective="quantile", alpha=level, n_estimators=20, verbose=-1, n_jobs=1).fit(frame, y)
        for level in (0.05, 0.95)
    )
    held_out, outcomes = draw(199, 7)
    held_out = pd.DataFrame(held_out, columns=list("abc")).assign(
        town=pd.Categorical(np.where(held_out[:, 2] > 0, "north", "south"))
    )
    guarded = gb.calibrate((lower, upper), (held_out, outcomes))
    assert guarded.certificate.rank == 180
    assert guarded.predict_interval(frame).index is not None


def test_boosted_quantiles_of_scikit_learn_behind_a_transformed_target():
    model = TransformedTargetRegressor(
        GradientBoostingRegressor(n_estimators=5), func=np.arcsinh, inverse_func=np.sinh
    ).fit(*TRAINING)
    assert gb.calibrate(model, CALIBRATION).certificate.method == "conf-fw"


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_model_that_finds_columns_by_place_gets_them_in_the_order_of_the_calibration_rows(library):
    def first(X):
        return np.asarray(X)[:, 0]

    def frame(X):
        return library({name: X[:, i] for i, name in enumerate("abc")})

    guarded = gb.calibrate(first, (frame(CALIBRATION[0]), CALIBRATION[1]))
    new = frame(NEW[0])
    others = library({"more": np.ones(len(NEW[0]))} | {name: new[name] for name in "cba"})
    np.testing.assert_array_equal(guarded.predict(others), NEW[0][:, 0])
    assert guarded.audit(others, NEW[1]).to_dict() == guarded.audit(new, NEW[1]).to_dict()


@pytest.mark.parametrize(
    "transformed", [{"func": np.arcsinh, "inverse_func": np.sinh}, {"transformer": StandardScaler()}]
)
def test_a_deviation_behind_a_transformed_target_is_not_used(transformed):
    model = TransformedTargetRegressor(BayesianRidge(), **transformed).fit(*TRAINING)
    guarded = gb.calibrate(make_pipeline(StandardScaler(), model).fit(*TRAINING), CALIBRATION)
    assert guarded.certificate.method == "conf-fw"
    assert gb.calibrate(model, CALIBRATION).certificate.method == "conf-fw"


def test_a_deviation_of_zero_is_one_that_is_very_small():
    model = GaussianProcessRegressor(optimizer=None).fit(*TRAINING)
    guarded = gb.calibrate(model, CALIBRATION)
    bands = guarded.predict_interval(TRAINING[0])
    assert (bands.lower < bands.upper).all()
    assert gb.calibrate(DummyRegressor().fit(*TRAINING), CALIBRATION).certificate.method == "conf-nn"


class Quantiles(BaseEstimator):
    def __init__(self, quantile_alpha=None, loss_function=None, objective=None):
        self.quantile_alpha, self.loss_function, self.objective = quantile_alpha, loss_function, objective

    def predict(self, X):
        levels = [0.05, 0.95] if self.quantile_alpha is None else self.quantile_alpha
        return np.stack([X[:, 0] + 3 * (level - 0.5) for level in levels], axis=1)


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({"quantile_alpha": [0.05, 0.95]}, "conf-nn"),
        ({"quantile_alpha": [0.5]}, "conf-fw"),
        ({"objective": "MultiQuantile:alpha=0.05,0.95"}, "conf-nn"),
    ],
)
def test_a_pair_of_quantiles_needs_no_median_and_a_single_one_is_a_point(settings, method):
    guarded = gb.calibrate(Quantiles(**settings), CALIBRATION)
    assert guarded.certificate.method == method


def test_a_distribution_is_found_at_the_end_of_a_pipeline():
    class Distributions(LinearRegression):
        def pred_dist(self, X):
            return norm(self.predict(X), 1 + np.abs(X[:, 1]))

    model = make_pipeline(StandardScaler(), Distributions()).fit(*TRAINING)
    bands = gb.calibrate(model, CALIBRATION).predict_interval(NEW[0])
    assert np.ptp(bands.upper - bands.lower) > 1


def test_a_class_is_no_fitted_model():
    with pytest.raises(TypeError, match="calibrates a fitted model"):
        gb.calibrate(LinearRegression, CALIBRATION)


def _linear(y=TRAINING[1]):
    return LinearRegression().fit(TRAINING[0], y)


@pytest.mark.parametrize(
    ("make", "asked", "words"),
    [
        (
            lambda: (_linear(), _linear()),
            {"method": "pav"},
            r'several levels.* predicts one\. Use method="conf-nn"',
        ),
        (lambda: _linear(), {"method": "pav"}, r'several levels.* predicts none\. Use method="conf-fw"'),
        (
            lambda: _linear(),
            {"method": "bayes"},
            r'mean and a standard deviation.* a point\. Use method="conf-fw", or',
        ),
        (
            lambda: (_linear(), _linear()),
            {"method": "neg-ll"},
            r'predicts bounds\. Use method="conf-nn"',
        ),
        (
            lambda: _linear(np.stack([TRAINING[1]] * 2, 1)),
            {},
            r"2 numbers for each row.* Calibrate a model for each target\.",
        ),
        (lambda: _linear(), {"outputs": "bands"}, r"3 numbers .* found 1\. Correct outputs"),
        (lambda: lambda rows: np.zeros((len(rows), 4)), {}, r"returns 4 columns.* pass the levels of quantiles"),
    ],
)
def test_a_method_that_does_not_suit_the_model_says_which_does(make, asked, words):
    with pytest.raises(ValueError, match=words):
        gb.calibrate(make(), CALIBRATION, **asked)


def test_a_classifier_is_refused():
    classes = (TRAINING[1] > 0).astype(int)
    alone = LogisticRegression().fit(TRAINING[0], classes)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(TRAINING[0], classes)
    for model in (alone, pipeline, (alone, _linear())):
        with pytest.raises(TypeError, match="LogisticRegression predicts classes, and intervals are for numbers"):
            gb.calibrate(model, (CALIBRATION[0], (CALIBRATION[1] > 0).astype(float)))


def test_rows_that_belong_together_are_asked_for_again():
    guarded = gb.calibrate(_linear(), CALIBRATION, entities=np.arange(199) // 2)
    with pytest.raises(ValueError, match="do not say what they belong to"):
        guarded.audit(*NEW)
