"""Quantiles, distributions, probabilities and selections through every way in, from fit to file."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import guardband as gb
from guardband.bands.placement import ByQuantiles, ByResidual, ByScale
from guardband.bands.ranks import covered_counts
from guardband.learning.options import FitOptions
from guardband.learning.placed import LEVELS
from laws import SIGNIFICANCE

QUICK = {"preset": "fast", "hidden": (8,), "max_epochs": 4, "random_state": 0, "verbose": False}


def rows(n, seed):
    """Return rows whose noise is skewed and grows with x."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 3))
    return x, 2 * x[:, 0] + (0.3 + x[:, 1]) * rng.exponential(size=n)


TRAIN, TEST = rows(800, 0), rows(1500, 1)


@pytest.fixture(scope="module")
def model():
    return gb.IntervalRegressor(distribution=True, **QUICK).fit(*TRAIN)


def keeps_its_law(own, p, y, n):
    """Raise if the number of rows at or below a quantile contradicts the exact law of its rank."""
    count, law = int((y <= own.quantile(p)).sum()), covered_counts(len(y), int(np.ceil(round(p * (n + 1), 9))), n)
    assert law[count] > SIGNIFICANCE
    assert 1 - (law[count - 1] if count else 0) > SIGNIFICANCE


def test_a_table_has_calibrated_quantiles(model):
    X, y = TEST
    own = model.predict_distribution(X)
    assert isinstance(own, gb.Distribution)
    for p in (0.05, 0.3, 0.5, 0.9, 0.99):
        keeps_its_law(own, p, y, 200)
    values = model.predict_quantiles(X, [0.05, 0.5, 0.95])
    np.testing.assert_array_equal(values, own.quantile([0.05, 0.5, 0.95]))
    assert (np.diff(values, axis=1) > 0).all()
    assert gb.metrics.pit_band(1500, 200, delta=SIGNIFICANCE).contains(gb.metrics.pit(y, own))


def test_the_network_learns_the_levels_of_distributions_and_of_its_intervals():
    def quantiles(**asked):
        (spec,) = FitOptions.of(gb.IntervalRegressor(distribution=True, **asked).get_params()).specs
        return spec.head.quantiles

    assert quantiles() == LEVELS
    assert {0.1, 0.9, 0.005, 0.995} <= set(quantiles(confidence_level=[0.8, 0.99]))
    uneven = quantiles(tails=(0.02, 0.08))
    assert {0.02, 0.08, 0.92, 0.98} <= set(uneven)
    assert uneven[len(uneven) // 2] == 0.5


def test_tails_are_fitted_on_training_rows_that_copies_left_out(model):
    own = model.fitted_.placement
    assert isinstance(own, ByQuantiles)
    assert (own.below, own.above) != (ByQuantiles.of(own.levels).below, ByQuantiles.of(own.levels).above)


def test_intervals_come_as_without_a_distribution(model):
    X, y = TEST
    law = covered_counts(len(y), model.certificate_.rank, 200)
    count = int(model.predict_interval(X).contains(y).sum())
    assert SIGNIFICANCE < law[count] < 1 - SIGNIFICANCE


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ({}, ByQuantiles),
        ({"method": "conf-fw"}, ByResidual),
        ({"method": "bayes"}, ByScale),
        ({"method": "pav"}, ByQuantiles),
        ({"side": "upper"}, ByQuantiles),
        ({"guarantee": "pac"}, ByQuantiles),
        ({"network": "plain", "preset": "default", "point": "mean"}, ByQuantiles),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_without_distribution_they_come_from_what_there_is(asked, kind):
    own = gb.IntervalRegressor(**(QUICK | asked)).fit(*TRAIN)
    assert type(own.fitted_.placement) is kind
    found = own.predict_distribution(TEST[0])
    for p in (0.1, 0.5, 0.9):
        keeps_its_law(found, p, TEST[1], 200)


@pytest.mark.parametrize("name", ["log", "sqrt"])
def test_a_transform_is_undone(name):
    X, y = TRAIN
    own = gb.IntervalRegressor(distribution=True, target_transform=name, **QUICK).fit(X, y)
    found = own.predict_distribution(TEST[0])
    keeps_its_law(found, 0.9, TEST[1], 200)
    assert (found.quantile(0.05) >= 0).all()
    assert np.isfinite(found.crps(TEST[1])).all()
    np.testing.assert_allclose(found.cdf(found.quantile(0.5) + 1e-9), 101 / 201, atol=1e-12)


def test_bounds_and_whole_numbers_are_respected():
    X, y = TRAIN
    own = gb.IntervalRegressor(distribution=True, y_min=0, y_max=4, **QUICK).fit(X, np.minimum(y, 4).round())
    found = own.predict_distribution(TEST[0])
    values = found.quantile([0.02, 0.5, 0.98])
    assert ((values == values.round()) & (values >= 0) & (values <= 4)).all()
    assert (found.cdf(-1) == 0).all()
    assert (found.cdf(4) == 1).all()
    assert (found.sample(2) <= 4).all()
    assert (np.asarray(own.predict_probability(TEST[0], above=4)) == 0).all()


def test_probabilities_and_selections_of_a_table(model):
    X, _ = TEST
    stated = model.predict_probability(X, above=2.0)
    np.testing.assert_allclose(np.asarray(stated), 200 / 201 - model.predict_distribution(X).cdf(2.0))
    assert stated.certificate.kind == "probability"
    found = model.select(X, above=1.0, fdr=0.3)
    assert found.certificate.kind == "fdr"
    assert len(found) > 0
    assert (found.mask == (found.p_values <= found.p_values[found.mask].max())).all()


def test_the_index_of_a_frame_is_kept(model):
    frame = pd.DataFrame(TRAIN[0], columns=["a", "b", "c"], index=[f"r{i}" for i in range(800)])
    own = gb.IntervalRegressor(**QUICK).fit(frame, TRAIN[1])
    assert list(own.predict_distribution(frame[:3]).to_pandas([0.5]).index) == ["r0", "r1", "r2"]
    assert list(own.predict_probability(frame[:3], below=1).to_pandas().index) == ["r0", "r1", "r2"]


def test_rows_unlike_all_training_rows_are_warned_of(model):
    with pytest.warns(gb.UnlikeRowsWarning):
        model.predict_quantiles(TEST[0][:3] + 1000, [0.5])


def test_a_saved_model_says_the_same_bits(model, tmp_path):
    X, _ = TEST
    model.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband")
    levels = [0.01, 0.5, 0.99]
    np.testing.assert_array_equal(again.predict_quantiles(X, levels), model.predict_quantiles(X, levels))
    a, b = (own.select(X, above=1.5, fdr=0.2) for own in (model, again))
    np.testing.assert_array_equal(a.p_values, b.p_values)
    assert a.certificate == b.certificate
    assert again.predict_distribution(X).certificate == model.predict_distribution(X).certificate
    assert again.certificate_ == model.certificate_


def test_without_distribution_the_networks_are_asked_once(monkeypatch):
    """What the rule sees is what the placement sees, to the bit."""
    own = gb.IntervalRegressor(calibration_size=None, **QUICK).fit(*TRAIN)
    X, y = rows(60, 9)
    learned = own.fitted_.learned
    columns = learned.columns_encoded(learned.encoder.encode(own.read_rows(X)))
    monkeypatch.setattr(type(learned), "columns_encoded", lambda *a: pytest.fail("asked again"))
    np.testing.assert_array_equal(own.calibrate(X, y).fitted_.places.kept, columns)


def test_rows_that_belong_together_count_once(tmp_path):
    X, y = TRAIN
    own = gb.IntervalRegressor(distribution=True, **QUICK).fit(X, y, entities=np.arange(800) // 4)
    certificate = own.predict_distribution(X[:2]).certificate
    assert certificate.n_calibration == 50
    own.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband")
    assert again.predict_distribution(X[:2]).certificate == certificate


def test_calibrating_again_replaces_the_places():
    own = gb.IntervalRegressor(distribution=True, calibration_size=None, **QUICK).fit(*TRAIN)
    with pytest.raises(Exception, match="trained but not calibrated"):
        own.predict_quantiles(TEST[0], [0.5])
    for n in (50, 80):
        X, y = rows(n, 5 + n)
        assert own.calibrate(X, y).predict_distribution(X).certificate.n_calibration == n


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"network": "plain"}, 'needs network="tabular"'),
        ({"method": "bayes"}, "a method that learns quantiles"),
        ({"point": "mean"}, 'point="median"'),
        ({"power": 2}, "power=1"),
        ({"distribution": "all"}, "must be True or False, found 'all'"),
        ({"ordering": "relu"}, 'ordering="softplus"'),
        ({"groups": lambda X: X[:, 0] > 0.5}, "Remove one of them"),
    ],
)
def test_what_a_distribution_cannot_go_with_is_refused_before_training(asked, said, monkeypatch):
    monkeypatch.setattr("guardband.doors.fit_rows.learn", lambda *a, **b: pytest.fail("trained"))
    with pytest.raises(ValueError, match=said):
        gb.IntervalRegressor(**{"distribution": True} | asked).fit(*TRAIN)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_has_no_promise_for_quantiles_is_refused():
    X, y = TRAIN
    grouped = gb.IntervalRegressor(groups=lambda X: X[:, 0] > 0.5, **QUICK).fit(X, y)
    several = gb.IntervalRegressor(method="neg-ll", **QUICK).fit(X, y)
    plain = gb.IntervalRegressor(**QUICK | {"calibration_size": None}).fit(X, y)
    weighted = plain.calibrate(*rows(300, 7), weights=lambda X: 1 + X[:, 0])
    for own, said in ((grouped, "Fit without groups"), (several, "several networks"), (weighted, "without weights")):
        for ask in ("predict_distribution", "select", "predict_probability"):
            with pytest.raises(ValueError, match=said):
                getattr(own, ask)(X[:5], **({} if ask == "predict_distribution" else {"above": 1.0}))


def test_a_model_chosen_by_its_calibration_rows_is_refused():
    X, y = rows(300, 8)
    untold = QUICK | {"calibration_size": None, "method": "conf-nn"}
    candidates = {str(tau): gb.IntervalRegressor(tau=tau, **untold).fit(*TRAIN) for tau in (0.1, 0.2)}
    chosen = gb.choose(candidates, (X, y)).best
    with pytest.raises(ValueError, match="chosen by its calibration rows"):
        chosen.predict_quantiles(X, [0.5])


class Quantiles:
    """A model with five quantiles, two of which cross."""

    def predict(self, X):
        return X[:, :1] * 2 + np.array([0.0, 0.6, 0.5, 1.5, 3.0])


LEVELS_OF_FIVE = [0.05, 0.25, 0.5, 0.75, 0.95]


@pytest.mark.parametrize(
    ("make", "options", "kind"),
    [
        (lambda: LinearRegression().fit(*TRAIN), {}, ByResidual),
        (Quantiles, {"outputs": LEVELS_OF_FIVE}, ByQuantiles),
        (lambda: lambda X: np.column_stack([X[:, 0], X[:, 0] + 1, X[:, 0] + 4]), {}, ByQuantiles),
        (lambda: lambda X: np.column_stack([X[:, 0], X[:, 0] + 3]), {}, ByQuantiles),
        (lambda: lambda X: np.column_stack([X[:, 0], 1 + X[:, 1]]), {"outputs": "gaussian"}, ByScale),
    ],
)
def test_models_of_any_library_have_them_too(make, options, kind, tmp_path):
    model = make()
    own = gb.calibrate(model, rows(200, 3), **options)
    X, y = TEST
    found = own.predict_distribution(X)
    assert type(found.placement) is kind
    for p in (0.1, 0.5, 0.9):
        keeps_its_law(found, p, y, 200)
    own.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband", model=model)
    np.testing.assert_array_equal(again.predict_quantiles(X, [0.2, 0.8]), own.predict_quantiles(X, [0.2, 0.8]))
    assert again.select(X, above=1, fdr=0.2).certificate == own.select(X, above=1, fdr=0.2).certificate


def test_predictions_that_are_not_finite_are_refused():
    own = gb.calibrate(lambda X: np.where(X[:, 0] > 0.99, np.nan, X[:, 0]), rows(200, 3))
    with pytest.raises(ValueError, match="predictions were not finite"):
        own.predict_quantiles(TEST[0], [0.5])
    late = gb.calibrate(lambda X: np.where(X[:, 0] > 2, np.nan, X[:, 0]), rows(200, 3))
    with pytest.raises(ValueError, match="no finite numbers for"):
        late.predict_quantiles(TEST[0] + 2, [0.5])
