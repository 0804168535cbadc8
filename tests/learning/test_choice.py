"""method="auto": the score is chosen on the training rows, by copies that did not see them."""

import numpy as np
import pytest

import guardband as gb
from guardband.bands.predicted import PredictedInterval
from guardband.data.artificial import PaperModel
from guardband.doors import fit_rows
from guardband.learning.choice import SCORES, sharpest

X, Y = PaperModel(n_features=6).draw(1500, seed=1)
SMALL = {"hidden": (32, 32), "random_state": 0}


def test_auto_takes_a_score_by_rows_that_did_not_train(tmp_path):
    x, y = PaperModel(n_features=2).draw(1000, seed=4)
    model = gb.IntervalRegressor("auto", preset="fast", **SMALL).fit(x, y)
    left_out = model.fitted_.learned.left_out
    assert left_out.shape == model.fitted_.training_prints.shape  # every row of D1 by the copy that did not see it
    assert set(left_out) == {0, 1}
    chosen = model.certificate_.method
    assert chosen in SCORES
    assert model.fitted_.learned.choices == f"the epochs of 2 copies, the score {chosen}"
    model.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband")
    assert again.certificate_ == model.certificate_
    np.testing.assert_array_equal(again.predict_interval(x).lower, model.predict_interval(x).lower)
    assert again.calibrate(*PaperModel(n_features=2).draw(100, seed=9)).certificate_.method == chosen


@pytest.mark.parametrize("best", SCORES)
def test_the_choice_is_the_least_interval_score(best):
    """Bands made so that one score undoes what is wrong with them."""
    rng = np.random.default_rng(0)
    width = rng.uniform(0.2, 2, 5000)
    y = rng.uniform(-1, 1, 5000)
    y *= np.where((y > 0) & (best == "conf-nn"), 3 * width, width)
    bands = {
        "conf-nn": (-width / 3, 0 * width, width),  # too narrow by a factor on each side of the point
        "cqr": (-width + 0.15, 0 * width, width - 0.15),  # by a constant
        "cqr-r": (-width / 3, -width / 4, width / 3),  # by a share of the whole width
    }[best]
    assert sharpest(gb.Request(), PredictedInterval(*(side[None, None] for side in bands)), y).name == best


@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
@pytest.mark.parametrize("n", [12, 60])
def test_auto_does_with_few_rows(n):
    model = gb.IntervalRegressor("auto", calibration_size=None, on_insufficient="raise", max_epochs=5, **SMALL)
    assert model.fit(X[:n], Y[:n]).calibrate(X[100:200], Y[100:200]).certificate_.method in SCORES


@pytest.mark.filterwarnings("ignore::guardband.DegenerateBandWarning")
@pytest.mark.parametrize("asked", [{"network": "plain"}, {"epochs": 5}, {"point": "mean"}, {"ordering": "relu"}])
def test_auto_is_conf_nn_where_no_rows_are_left_out_or_no_quantiles_are_learnt(asked):
    model = gb.IntervalRegressor("auto", max_epochs=2, **SMALL, **asked).fit(X, Y)
    assert model.certificate_.method == "conf-nn"


def test_some_of_many_rows_choose_with_their_own_targets(monkeypatch):
    seen = {}

    def choose(request, predicted, y, to_units):
        seen.update(point=predicted.point[0, 0], y=y)
        return sharpest(request, predicted, y, to_units)

    monkeypatch.setattr(fit_rows, "MOST_TO_CHOOSE", 300)
    monkeypatch.setattr(fit_rows, "sharpest", choose)
    gb.IntervalRegressor(preset="fast", **SMALL).fit(X, 50 * X[:, 0] + Y / 100)
    assert 200 < len(seen["y"]) <= 300
    assert np.corrcoef(seen["point"], seen["y"])[0, 1] > 0.9


def test_the_first_is_kept_if_all_do_equally_well():
    rng = np.random.default_rng(0)
    y, one = rng.uniform(-1, 1, 5000), np.ones((1, 1, 5000))
    assert sharpest(gb.Request(), PredictedInterval(-one, 0 * one, one), y).name == SCORES[0]
