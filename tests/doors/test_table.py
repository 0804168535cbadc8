import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy.stats import betabinom
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import guardband as gb
from guardband.bands.ranks import average_rank
from guardband.data.artificial import PaperModel
from guardband.data.fingerprint import fingerprints
from guardband.data.table import read_table

QUICK = {"hidden": (16,), "epochs": 5, "random_state": 0}


def quick(**asked):
    few = {"preset": "fast"} if asked.get("network", "tabular") == "tabular" else {}
    own = {"hidden": None} if callable(asked.get("network")) else {}
    return gb.IntervalRegressor(**QUICK | few | own | asked)


@pytest.fixture(scope="module")
def model(small):
    return quick().fit(*small)


def test_fit_splits_a_quarter_off_for_calibration(model, small):
    assert model.certificate_.n_calibration == 100
    assert model.certificate_.rank == 91
    bands = model.predict_interval(small[0])
    assert bands.lower.shape == bands.upper.shape == bands.point.shape == (400,)
    assert (model.predict(small[0]) == bands.point).all()
    assert bands.certificate == model.certificate_


@pytest.mark.parametrize(("size", "rows"), [(0.5, 200), (37, 37), (0.001, 1)])
@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_calibration_size_is_a_share_or_a_number(size, rows, small):
    assert quick(calibration_size=size).fit(*small).certificate_.n_calibration == rows


@pytest.mark.parametrize("size", [0, 1.0, -0.2, 399, 1000])
def test_other_calibration_sizes_are_refused(size, small):
    with pytest.raises(ValueError, match="calibration_size must be"):
        quick(calibration_size=size).fit(*small)


def test_d2_can_be_brought(small):
    X, y = small
    model = quick(calibration_size=None).fit(X[:300], y[:300])
    with pytest.raises(NotFittedError, match=r"call calibrate\(X, y\)"):
        model.predict_interval(X)
    assert model.predict(X).shape == (400,)
    model.calibrate(X[300:], y[300:])
    assert model.certificate_.n_calibration == 100
    assert model.certificate_.notes == ()
    first = model.predict_interval(X).upper
    assert (model.conformalize(X[300:350], y[300:350]).predict_interval(X).upper != first).any()
    assert model.certificate_.n_calibration == 50


def test_rows_that_trained_are_refused_as_d2(small):
    X, y = small
    model = quick(calibration_size=None).fit(X, y)
    with pytest.raises(gb.OverlapError, match="100 of 100 calibration rows also occur in the training rows"):
        model.calibrate(X[:100], y[:100])


def test_a_few_twins_are_noted_in_the_certificate(small):
    X, y = small
    model = quick(calibration_size=None).fit(X[:300], y[:300])
    model.calibrate(np.r_[X[300:], X[:3]], np.r_[y[300:], y[:3]])
    assert "3 of 103 calibration rows also occur among the training rows" in str(model.certificate_)


def test_same_seed_same_intervals(model, small):
    again = quick().fit(*small)
    assert (again.predict_interval(small[0]).upper == model.predict_interval(small[0]).upper).all()
    other = quick(random_state=1).fit(*small)
    assert (other.predict_interval(small[0]).upper != model.predict_interval(small[0]).upper).any()


def test_predict_before_fit_says_so(small):
    for call in (lambda m: m.predict(small[0]), lambda m: m.predict_interval(small[0]), lambda m: m.calibrate(*small)):
        with pytest.raises(NotFittedError):
            call(quick())


@pytest.mark.filterwarnings("ignore:.*side of no width")
@pytest.mark.parametrize(("method", "ordering"), [("conf-nn", "softplus"), ("conf-nn", "relu"), ("pav", "softplus")])
def test_intervals_follow_a_change_of_units(method, ordering, small):
    X, y = small
    asked = {"method": method, "ordering": ordering, "hidden": (64,), "epochs": 30, "dropout": 0.1}
    plain = quick(**asked).fit(X, y).predict_interval(X)
    assert np.isfinite(plain.upper).all()
    moved = quick(**asked).fit(X, 64 * y + 1024).predict_interval(X)
    np.testing.assert_allclose(moved.lower, 64 * plain.lower + 1024, rtol=1e-3)
    np.testing.assert_allclose(moved.upper, 64 * plain.upper + 1024, rtol=1e-3)


@pytest.mark.parametrize(("network", "members"), [("plain", 10), ("tabular", 2)])
def test_pav_trains_its_grid_as_one_stack(small, network, members):
    """A fully connected network for each tau, or copies of one network that has them all."""
    model = quick(method="pav", network=network).fit(*small)
    assert model.fitted_.learned.members.size == members
    assert model.certificate_.promise.candidates == 10
    assert model.certificate_.promise.tau[0] in {0.0, *(round(0.01 * j, 2) for j in range(1, 11))}
    above = quick(method="pav", network=network, taus=[0.3, 0.2, 0.05]).fit(*small)
    assert above.certificate_.promise.candidates == 3


def test_several_levels_at_once_and_others_later(small):
    model = quick(confidence_level=[0.9, 0.5]).fit(*small)
    bands = model.predict_interval(small[0])
    assert bands.lower.shape == (400, 2)
    assert model.certificate_.rank == (91, 51)
    later = model.predict_interval(small[0], confidence_level=0.8)
    assert later.lower.shape == (400,)
    assert later.certificate.promise.chosen_after
    assert "you chose this level after calibration" in str(later.certificate)


def test_door_one_passes_its_wishes_on(small):
    pav = {"method": "pav", "epochs": 30, "rule": "paper", "network": "plain"}
    average = quick(**pav, average="sharp").fit(*small).certificate_
    assert (average.promise.aim, average.rank) == ("average", average_rank(Fraction(9, 10), 100, 10))
    levels = {"confidence_level": [0.9, 0.5], "guarantee": "pac"}
    joint, apart = (quick(**levels, joint=joint).fit(*small).certificate_ for joint in (True, False))
    assert joint.promise.joint
    assert joint.rank > apart.rank
    slow, fast = (quick(learning_rate=rate).fit(*small).predict(small[0]) for rate in (1e-6, 1e-2))
    assert np.ptp(slow) < np.ptp(fast)


def test_fit_leaves_the_callers_randomness_alone(small):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    quick(dropout=0.1, random_state=1).fit(*small)
    assert torch.equal(torch.get_rng_state(), before)


def test_rows_that_fit_held_out_itself_are_noted_when_they_come_again(small):
    X, y = small
    model = quick().fit(X, y)
    held_out = ~np.isin(fingerprints(read_table(X), y), model.fitted_.training_prints)
    model.calibrate(X[held_out], y[held_out])
    assert "100 of 100 calibration rows were also given to fit" in str(model.certificate_)


def test_tau_defaults_to_alpha_and_the_smallest_of_several():
    from guardband.bands.levels import Levels
    from guardband.methods.conf_nn import ConfNN

    for request, tau in (
        (gb.Request(Levels.of(0.9)), 0.1),
        (gb.Request(Levels.of([0.8, 0.95])), 0.05),
        (gb.Request(Levels.of(0.9), tau=0.3), 0.3),
    ):
        assert [spec.head.tau for spec in ConfNN().networks(request)] == [tau]


def test_a_method_of_ones_own(small):
    from guardband.methods.conf_nn import ConfNN
    from guardband.nn.heads import Triple

    class Wider(ConfNN):
        name = "wider"

        def networks(self, request):
            return (gb.NetworkSpec(Triple(0.02)),)

    model = quick(method=Wider()).fit(*small)
    assert model.certificate_.method == "wider"
    assert [head.taus for head in model.fitted_.learned.heads] == [(0.02,)]


# ---------------------------------------------------------------------------------------- tables


def messy(n=300, seed=0):
    rng = np.random.default_rng(seed)
    size, town = rng.normal(100, 30, n), rng.choice(["Wien", "Graz", "Linz"], n)
    y = size / 10 + (town == "Wien") * 5 + rng.standard_normal(n)
    size[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({"size": size, "town": town, "same": 1, "day": pd.Timestamp("2024-01-01")}), y


def test_messy_tables_of_every_kind_fit_alike():
    frame, y = messy()
    bands = quick().fit(frame, y).predict_interval(frame)
    assert np.isfinite(bands.upper).all()
    for other in (pl.from_pandas(frame), pl.from_pandas(frame).to_arrow()):
        assert (quick().fit(other, y).predict_interval(other).upper == bands.upper).all()


def test_unseen_categories_are_unknown_not_an_error():
    frame, y = messy()
    model = quick().fit(frame, y)
    new = frame.head(3).assign(town=["Paris", None, "Wien"])
    with pytest.warns(gb.UnlikeRowsWarning, match="'Paris' in row 0"):
        assert np.isfinite(model.predict_interval(new).upper).all()


def test_tensors_and_arrays_fit_alike(model, small):
    X, y = (torch.tensor(v) for v in small)
    assert (quick().fit(X, y).predict(X) == model.predict(small[0])).all()


def test_tables_out_keep_the_index_and_avoid_taken_names():
    frame, y = messy()
    frame = frame.rename(columns={"size": "lower"}).set_index(pd.Index(range(1000, 1300)))
    table = quick().fit(frame, y).predict_interval(frame.head(5)).to_pandas()
    assert list(table.columns) == ["guardband_point", "guardband_lower", "guardband_upper"]
    assert list(table.index) == [1000, 1001, 1002, 1003, 1004]


def test_missing_columns_at_predict_are_refused_and_others_do_no_harm():
    frame, y = messy()
    model = quick().fit(frame, y)
    point = model.predict(frame)
    assert (model.predict(frame.assign(extra=1)) == point).all()
    assert (model.predict(frame[frame.columns[::-1]]) == point).all()
    with pytest.raises(ValueError, match=r"X lacks 1 of the model's \d columns: 'town'"):
        model.predict(frame.drop(columns="town"))
    with pytest.raises(ValueError, match="expecting 6 features"):
        quick().fit(np.zeros((40, 6)) + np.arange(40)[:, None], np.arange(40.0)).predict(np.zeros((2, 5)))


# ------------------------------------------------------------------------------------- responses


def test_log_targets_and_bounds(small):
    X, y = small
    positive = np.exp(y / 5)
    bands = quick(target_transform="log").fit(X, positive).predict_interval(X)
    assert (bands.lower > 0).all()
    assert ((bands.lower <= bands.point) & (bands.point <= bands.upper)).all()
    with pytest.warns(gb.InsufficientCalibrationWarning):
        whole = quick(target_transform="log", calibration_size=5).fit(X, positive).predict_interval(X)
    assert (whole.lower == 0).all()
    assert np.isposinf(whole.upper).all()
    cut = quick(y_min=y.min(), y_max=y.max()).fit(X, y).predict_interval(X)
    assert cut.lower.min() >= y.min()
    assert cut.upper.max() <= y.max()


def test_a_constant_response_fits_with_a_warning(small):
    with pytest.warns(gb.TargetWarning, match="constant"):
        model = quick(epochs=60).fit(small[0], np.full(400, 7.0))
    bands = model.predict_interval(PaperModel(n_features=6).draw(1000, seed=5)[0])
    covered = ((bands.lower <= 7) & (bands.upper >= 7)).sum()
    assert covered >= betabinom.ppf(0.001, 1000, 91, 10)


def test_weights_weigh_training(small):
    X, y = small
    shifted = np.where(X[:, 0] < 0.5, y, y + 100)
    weight = (X[:, 0] < 0.5).astype(float)
    model = quick(epochs=40).fit(X, shifted, sample_weight=weight)
    assert abs(np.median(model.predict(X)) - np.median(y)) < 15
    huge = quick().fit(X, y, sample_weight=np.full(400, 1e39)).predict(X)
    assert (huge == quick().fit(X, y, sample_weight=np.full(400, 1e-46)).predict(X)).all()
    few = np.zeros(400)
    few[:120] = 1
    assert quick(epochs="early", max_epochs=40).fit(X, y, sample_weight=few).n_iter_ > 1
    with pytest.raises(ValueError, match=r"Only [01] training rows have a positive sample_weight"):
        quick().fit(X, y, sample_weight=np.eye(400)[0])
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        quick().fit(X, y, sample_weight=-weight)


@pytest.mark.parametrize(("power", "point"), [(2, "median"), (1, "mean")])
def test_other_losses_fit(power, point, small):
    bands = quick(power=power, point=point).fit(*small).predict_interval(small[0])
    assert np.isfinite(bands.upper).all()


# --------------------------------------------------------------------------------------- networks


def test_the_papers_network(small):
    model = quick(network="paper", epochs=None, max_epochs=15, patience=3).fit(*small)
    assert model.fitted_.learned.architecture.ordering == "relu"
    assert model.n_iter_ <= 15


def test_a_network_of_ones_own(small):
    X, y = small

    def build(in_features):
        return nn.Sequential(nn.Linear(in_features, 8), nn.Tanh(), gb.nn.TripleHead(8))

    assert np.isfinite(quick(network=build).fit(X, y).predict_interval(X).upper).all()
    broken = X.copy()
    broken[5, 2] = np.nan
    with pytest.raises(ValueError, match=r"The column 'x2' has missing values .NaN. in row 5"):
        quick(network=build, calibration_size=None).fit(broken, y)
    with pytest.raises(ValueError, match=r"found \(256, 2\)"):
        quick(network=lambda d: nn.Linear(d, 2)).fit(X, y)
    with pytest.raises(ValueError, match="bounds that cross"):
        quick(network=lambda d: nn.Linear(d, 3)).fit(X, y)
    with pytest.raises(TypeError, match="must build a torch"):
        quick(network=lambda d: None).fit(X, y)


# -------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "wrong",
    [
        {"confidence_level": 0},
        {"confidence_level": 1},
        {"confidence_level": 90},
        {"confidence_level": -0.1},
        {"confidence_level": 0.9, "alpha": 0.1},
        {"method": "magic"},
        {"network": "transformer"},
        {"tau": 1.5},
        {"delta": 2},
        {"epochs": 0},
        {"dropout": 1.0},
        {"activation": "magic"},
        {"ordering": "sort"},
        {"hidden": (0,)},
        {"target_transform": "sqrt"},
        {"y_min": 3, "y_max": 2},
        {"device": "nowhere"},
        {"batch_size": 0},
        {"batch_size": 32.5},
        {"max_epochs": 2.5},
        {"epochs": True},
        {"hidden": 16},
        {"network": nn.Linear(3, 3)},
        {"y_min": float("nan")},
        {"device": "cuda:99"},
        {"joint": True},
        {"taus": [0.1, 0.05]},
        {"average": "sharp"},
        {"method": "pav", "tau": 0.1},
    ],
)
def test_bad_arguments_are_refused_and_nothing_is_fitted(wrong, small):
    model = quick(**wrong)
    with pytest.raises(ValueError, match=r"must|not both|does not use"):
        model.fit(*small)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_training_that_diverges_is_refused(small):
    with pytest.raises(ValueError, match="Training diverged"):
        quick(learning_rate=1e30).fit(*small)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_too_few_rows_to_split_are_refused(n):
    with pytest.raises(ValueError, match=rf"At least 4 rows.*n_samples={n}"):
        quick().fit(np.zeros((n, 2)), np.zeros(n))


def test_bad_responses_are_refused(small):
    X, y = small
    with pytest.raises(ValueError, match="same number of rows, found 400 and 399"):
        quick().fit(X, y[1:])
    with pytest.raises(ValueError, match=r"contains infinity.*row 7"):
        quick().fit(X, np.where(np.arange(400) == 7, np.inf, y))
    with pytest.raises(ValueError, match="missing in every row"):
        quick().fit(X, np.full(400, np.nan))
    with pytest.raises(ValueError, match="requires y"):
        quick().fit(X, None)


def test_a_failed_fit_leaves_the_old_model(small):
    X, y = small
    model = quick().fit(X, y)
    before = model.predict_interval(X).upper
    with pytest.raises(ValueError, match="activation"):
        model.set_params(activation="magic").fit(X[:, :3], y)
    with pytest.raises(gb.InsufficientCalibrationError):
        model.set_params(activation="relu", on_insufficient="raise", calibration_size=5).fit(X[:, :3], y)
    assert (model.predict_interval(X).upper == before).all()


def test_the_row_at_fault_is_named_as_the_user_counts(small):
    X, y = small
    with pytest.raises(ValueError, match="found -1: see row 250"):
        quick(target_transform="log").fit(X, np.where(np.arange(400) == 250, -1, np.exp(y / 9)))
    hole = X.copy()
    hole[333, 1] = np.nan
    with pytest.raises(ValueError, match="in row 333"):
        quick(network=lambda d: gb.nn.FullyConnected(d)).fit(hole, y)


def test_a_failed_calibration_leaves_the_old_one(small):
    X, y = small
    model = quick().fit(X, y)
    before = model.predict_interval(X).upper
    with pytest.raises(ValueError, match="missing in every row"):
        model.calibrate(X[:5], np.full(5, np.nan))
    assert (model.predict_interval(X).upper == before).all()


# ------------------------------------------------------------------------------ scikit-learn's ways


def test_clone_copies_arguments_alone(model):
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "n_features_in_")


def test_pipeline_passes_intervals_through(small):
    X, y = small
    pipe = make_pipeline(StandardScaler(), quick()).fit(X, y)
    bands = pipe.predict(X, return_intervals=True)
    assert isinstance(bands, gb.Intervals)
    assert (bands.point == pipe.predict(X)).all()
    assert "recalibrate on fresh rows" in str(pipe[-1].certificate_)


def test_cross_validation_and_grid_search(small):
    X, y = small
    assert len(cross_val_score(quick(), X, y, cv=3)) == 3
    assert GridSearchCV(quick(), {"epochs": np.arange(2, 6, 2)}, cv=2, error_score="raise").fit(X, y).best_score_
    search = GridSearchCV(
        quick(), {"hidden": [(4,), (8,)]}, cv=2, scoring=gb.metrics.interval_score_scorer, error_score="raise"
    ).fit(X, y)
    assert search.best_params_["hidden"] in [(4,), (8,)]
    assert search.best_score_ < 0


def test_pickle_round_trip(model, small):
    assert (pickle.loads(pickle.dumps(model)).predict(small[0]) == model.predict(small[0])).all()


def test_progress_is_shown_only_when_asked(small, capsys, monkeypatch):
    monkeypatch.setattr("guardband.progress.PATIENCE_S", 0)
    quick(verbose=True).fit(*small)
    assert "epoch 5 of at most 5" in capsys.readouterr().err
    quick().fit(*small)
    quick(verbose=False).fit(*small)
    assert capsys.readouterr().err == ""


def test_defaults_predict_well_and_cover():
    model = PaperModel(n_features=10)
    X, y = model.draw(4000, 0)
    X_new, y_new = model.draw(4000, 1)
    bands = gb.IntervalRegressor(random_state=0).fit(X, y).predict_interval(X_new)
    oracle = model.oracle(X_new)
    assert gb.metrics.interval_score(y_new, bands) < 1.15 * gb.metrics.interval_score(y_new, oracle)


@pytest.mark.parametrize("device", ["cuda"])
def test_a_gpu_gives_intervals_too(device, small):
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    bands = quick(device=device).fit(*small).predict_interval(small[0])
    assert np.isfinite(bands.upper).all()


@pytest.mark.parametrize(
    "build",
    [
        lambda d: torch.nn.Sequential(torch.nn.Linear(d, 4), gb.nn.TripleHead(4)).double(),
        lambda d: torch.nn.Sequential(torch.nn.LazyLinear(4), gb.nn.TripleHead(4)),
    ],
)
def test_a_network_of_other_numbers_or_of_no_shape_yet_is_refused(build, small):
    with pytest.raises(ValueError, match="parameters of known shape in float32"):
        gb.IntervalRegressor(network=build).fit(*small)
