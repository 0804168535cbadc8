"""Intervals from behind pipelines, searches and transformed targets."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PowerTransformer, QuantileTransformer, StandardScaler

import guardband as gb
from guardband.doors.fit_rows import PREPARED_OUTSIDE

INF = np.inf
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=300), "lower": RNG.normal(size=300)}, index=range(1000, 1300))
Y = np.exp(X["a"].to_numpy() + 0.3 * RNG.normal(size=300))
NEW = X[200:]


def quick(**options):
    return gb.IntervalRegressor(hidden=(4,), network="plain", epochs=3, random_state=0, split_by=[], **options)


def fitted(model):
    return model.fit(X[:200], Y[:200])


class Known(RegressorMixin, BaseEstimator):
    """A model whose intervals are the three columns of its table."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return X[:, 1]

    def predict_interval(self, X):
        return gb.Intervals(*np.array(X, dtype=float).T, 0.9)


def mapped(rows, y, **transformed):
    """Return intervals of a transformed target, given as rows (lower, point, upper), in the units of y."""
    model = TransformedTargetRegressor(Known(), **transformed)
    rows = np.array(rows, dtype=float)
    return gb.predict_interval(model.fit(rows[:1].repeat(len(y), axis=0), np.asarray(y, dtype=float)), rows)


# ------------------------------------------------------------------------------------- pipelines


def test_a_model_is_asked_itself():
    model = fitted(quick())
    np.testing.assert_array_equal(gb.predict_interval(model, NEW).lower, model.predict_interval(NEW).lower)


def test_intervals_pass_through_pipelines_one_inside_another():
    pipe = fitted(make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), quick())))
    bands = gb.predict_interval(pipe, NEW)
    np.testing.assert_allclose(bands.point, pipe.predict(NEW))
    inner = pipe[-1][-1]
    np.testing.assert_array_equal(
        bands.upper, inner.predict_interval(pipe[-1][0].transform(pipe[0].transform(NEW))).upper
    )
    assert PREPARED_OUTSIDE in bands.certificate.notes
    assert len(gb.predict_interval(make_pipeline(inner), NEW.to_numpy())) == 100


def test_a_pipeline_keeps_the_rows_names_that_its_transformers_lose():
    pipe = fitted(make_pipeline(StandardScaler(), quick()))
    table = gb.predict_interval(pipe, NEW).to_pandas()
    assert list(table.index) == list(NEW.index)
    assert list(table.columns) == ["guardband_point", "guardband_lower", "guardband_upper"]  # "lower" is taken
    assert gb.predict_interval(pipe, pl.from_pandas(NEW)).to_polars().columns == list(table.columns)


def test_other_levels_may_be_asked_for():
    pipe = fitted(make_pipeline(StandardScaler(), quick()))
    assert gb.predict_interval(pipe, NEW, confidence_level=0.5).confidence_level == 0.5
    assert gb.predict_interval(pipe, NEW, alpha=[0.5, 0.2]).confidence_level == (0.5, 0.8)


def test_calibration_on_rows_from_outside_keeps_the_promise_behind_a_pipeline():
    pipe = make_pipeline(StandardScaler(), quick(calibration_size=None)).fit(X[:150], Y[:150])
    with pytest.raises(ValueError, match="not calibrated"):
        gb.predict_interval(pipe, NEW)
    pipe[-1].calibrate(pipe[:-1].transform(X[150:]), Y[150:])
    certificate = gb.predict_interval(pipe, NEW).certificate
    assert certificate.n_calibration == 150
    assert PREPARED_OUTSIDE not in certificate.notes


# -------------------------------------------------------------------------------------- searches


def test_a_search_is_asked_for_its_best_model():
    search = fitted(GridSearchCV(quick(), {"epochs": [1, 2]}, cv=2))
    bands = gb.predict_interval(search, NEW)
    np.testing.assert_array_equal(bands.lower, search.best_estimator_.predict_interval(NEW).lower)
    among = len(search.cv_results_["params"])  # what holds of the best of so many: the bound at delta over their number
    own = bands.certificate
    assert own.coverage_bound(0.1 / among) < own.coverage_bound(0.1)


def test_a_halving_search_of_a_pipeline_scores_intervals():
    search = HalvingGridSearchCV(
        make_pipeline(StandardScaler(), quick()),
        {"intervalregressor__epochs": [1, 2]},
        scoring=gb.metrics.interval_score_scorer,
        min_resources=100,
        cv=2,
        random_state=0,
        error_score="raise",
    )
    assert len(gb.predict_interval(fitted(search), NEW)) == 100
    assert -INF < search.best_score_ < 0


def test_a_search_without_calibration_rows_is_calibrated_afterwards():
    search = GridSearchCV(quick(calibration_size=None), {"epochs": [1, 2]}, cv=2).fit(X[:150], Y[:150])
    search.best_estimator_.calibrate(X[150:], Y[150:])
    assert gb.predict_interval(search, NEW).certificate.n_calibration == 150


def test_a_whole_pipeline_of_intervals_is_calibrated_from_outside():
    pipe = make_pipeline(StandardScaler(), quick(confidence_level=[0.8, 0.5])).fit(X[:150], Y[:150])
    guarded = gb.calibrate(pipe, (X[150:], Y[150:]))
    assert guarded.certificate.method == "conf-nn"
    assert guarded.certificate.n_calibration == 150
    width = guarded.predict_interval(NEW).width
    ratio = width / gb.predict_interval(pipe, NEW).width[:, 0]
    assert np.ptp(width) > 0.01  # of one width they would be if the point alone were used
    np.testing.assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LinearRegression(), "LinearRegression predicts no intervals. .* gb.calibrate"),
        (make_pipeline(StandardScaler(), LinearRegression()), "LinearRegression predicts no intervals"),
        (VotingRegressor([("a", quick())]), "VotingRegressor predicts no intervals"),
        (GridSearchCV(quick(), {"epochs": [1, 2]}, cv=2, refit=False), "refit is False. Set refit=True"),
    ],
)
def test_a_model_without_intervals_is_refused(model, message):
    with pytest.raises(TypeError, match=message):
        gb.predict_interval(fitted(model), NEW)


@pytest.mark.parametrize("model", [GridSearchCV(quick(), {"epochs": [1]}), TransformedTargetRegressor(quick())])
def test_a_model_that_is_not_fitted_is_refused(model):
    with pytest.raises(TypeError, match=r"is not fitted. Call fit\(X, y\) first."):
        gb.predict_interval(model, NEW)


# ---------------------------------------------------------------------------- transformed targets

LOG = {"func": np.log, "inverse_func": np.exp}
FALLING = {"func": lambda y: -np.log(y), "inverse_func": lambda t: np.exp(-t)}


def test_ends_are_mapped_by_the_inverse():
    bands = mapped([[0, 1, 2], [-INF, 0, INF]], [1.0, 2.0], **LOG)
    np.testing.assert_allclose(bands.lower, [1, -INF])
    np.testing.assert_allclose(bands.point, np.exp([1, 0]))
    np.testing.assert_allclose(bands.upper, [np.exp(2), INF])


def test_ends_change_places_if_the_inverse_falls():
    bands = mapped([[0, 1, 2], [-INF, 0, 1]], [1.0, 2.0], **FALLING)
    np.testing.assert_allclose(bands.lower, np.exp([-2, -1]))
    np.testing.assert_allclose(bands.point, np.exp([-1, 0]))
    np.testing.assert_allclose(bands.upper, [1, INF])


def test_no_transformation_changes_nothing():
    rows = RNG.normal(size=(50, 3))
    rows.sort(axis=1)
    np.testing.assert_array_equal(np.asarray(mapped(rows, [1.0, 2.0])), rows)


@pytest.mark.parametrize(
    "transformed",
    [
        LOG,
        FALLING,
        {"func": np.log1p, "inverse_func": np.expm1},
        {"transformer": StandardScaler()},
        {"transformer": PowerTransformer()},
        {"transformer": PowerTransformer(method="box-cox")},
        {"transformer": QuantileTransformer(n_quantiles=50)},
        {"transformer": QuantileTransformer(n_quantiles=50, output_distribution="normal")},
        {"transformer": MinMaxScaler(clip=True)},
    ],
    ids=["log", "falling", "log1p", "scaler", "yeo-johnson", "box-cox", "quantiles", "normal scores", "cuts off"],
)
def test_an_interval_holds_y_if_it_held_the_transformed_y(transformed):
    """The promise is of the transformed y. Whole numbers lie on ends, and some y lie outside all that fit has seen."""
    rng = np.random.default_rng(1)
    seen = rng.integers(1, 40, 200).astype(float)
    new = np.concatenate([seen, [0.5, 45.0, 200.0, 1e4]])
    model = TransformedTargetRegressor(Known(), **transformed).fit(np.zeros((200, 3)), seen)
    there = model.transformer_.transform(new.reshape(-1, 1)).ravel()
    ends = rng.choice(there, (400, 2)) + rng.choice([0.0, 0.1 * np.ptp(there)], (400, 2))
    rows = np.column_stack([ends.min(axis=1), rng.choice(there[:200], 400), ends.max(axis=1)])
    bands = gb.predict_interval(model, rows)
    held = (rows[:, [0]] <= there) & (there <= rows[:, [2]])
    holds = (bands.lower[:, None] <= new) & (new <= bands.upper[:, None])
    assert holds[held].all()
    if len(np.unique(there)) == len(np.unique(new)):  # otherwise some values are cut off
        assert not holds[~held].any()


def test_an_end_beyond_all_transformed_values_is_infinite():
    bands = mapped([[-0.1, 0.5, 1.1], [0.2, 0.5, 0.8]], np.arange(101.0), transformer=MinMaxScaler(clip=True))
    assert (bands.lower[0], bands.upper[0]) == (-INF, INF)
    np.testing.assert_allclose((bands.lower[1], bands.upper[1]), (20, 80))


def test_several_levels_are_mapped():
    class Two(Known):
        def predict_interval(self, X):
            return gb.Intervals(np.array([[0.0, 0.5]]), np.ones(1), np.array([[2.0, 1.5]]), (0.9, 0.5))

    model = TransformedTargetRegressor(Two(), **FALLING).fit(np.zeros((2, 3)), [1.0, 2.0])
    bands = gb.predict_interval(model, np.zeros((1, 3)))
    np.testing.assert_allclose(bands.lower, np.exp([[-2, -1.5]]))
    np.testing.assert_allclose(bands.upper, np.exp([[0, -0.5]]))


@pytest.mark.parametrize(
    ("rows", "transformed", "message"),
    [
        ([[-0.5, 1, 2]], {"func": np.sqrt, "inverse_func": np.square}, "rises in some places and falls in others"),
        ([[-0.5, 1, 2]], {"func": np.sinh, "inverse_func": np.sqrt, "check_inverse": False}, "gives no number"),
    ],
)
def test_a_way_back_that_is_none_is_refused(rows, transformed, message):
    with pytest.raises(ValueError, match=f"{message}.* Use target_transform"):
        mapped(rows, [1.0, 4.0], **transformed)


def test_a_transformed_target_of_a_search_of_a_pipeline():
    pipe = make_pipeline(StandardScaler(), GridSearchCV(quick(), {"epochs": [1, 2]}, cv=2))
    model = fitted(TransformedTargetRegressor(pipe, **LOG))
    bands = gb.predict_interval(model, NEW)
    np.testing.assert_allclose(bands.point, model.predict(NEW))
    assert (bands.lower > 0).all()
    assert list(bands.index) == list(NEW.index)
