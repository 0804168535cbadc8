"""Intervals by cross-validation: a table, predictions from anywhere, and models of any library."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

import guardband as gb
from guardband.bands.cross_promise import CvMinmaxPromise, CvPlusPromise
from guardband.bands.promise import Promise
from guardband.learning import optimisers, presets

QUICK = {"hidden": (16,), "epochs": 5, "preset": "fast", "random_state": 0, "folds": 5}


def crossed(**asked):
    return gb.IntervalRegressor(**QUICK | {"calibration": "cv+"} | asked)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((303, 3)), columns=["a", "b", "c"])
    X["letter"] = rng.choice(list("uvw"), 303)
    X.loc[7, "letter"] = "once"  # which one fold alone lacks
    return X, 2 * X["a"].to_numpy() + rng.standard_normal(303)


@pytest.fixture(scope="module", params=["cv+", "cv-minmax"])
def model(request, rows):
    return crossed(calibration=request.param).fit(rows[0][:203], rows[1][:203])


def test_all_rows_calibrate_but_those_left_over(model, rows):
    own = model.certificate_
    assert own.kind == own.promise.kind == model.calibration
    assert own.n_calibration == 200
    assert own.promise.fold_sizes == (40,) * 5
    assert len(model.fitted_.training_prints) == 203
    assert len(model.fitted_.calibration_prints) == 200
    assert own.to_dict()["promise"]["left_over"] == 3
    assert "used 200 of the 203 rows for calibration" in str(own)
    assert "The other 3 only trained." in str(own)
    bands = model.predict_interval(rows[0][203:])
    assert np.isfinite(bands.lower).all()
    assert (bands.lower <= bands.point).all()
    assert (bands.point <= bands.upper).all()
    assert (model.predict(rows[0][203:]) == bands.point).all()


def test_no_row_decides_anything_about_the_networks_of_its_fold(rows):
    """Whatever the target of a row and its cells are, the networks that judge it are the same."""
    X, y = rows[0][:200], rows[1][:200]
    for early in (5, "early"):
        first = crossed(epochs=early, max_epochs=6).fit(X, y).fitted_
        row = 17
        other = X.assign(a=np.where(np.arange(200) == row, 2.5, X["a"]), letter=X["letter"].where(X.index != row, "v"))
        again = crossed(epochs=early, max_epochs=6).fit(other, np.where(np.arange(200) == row, 4.5, y)).fitted_
        folds = np.random.RandomState(0).permutation(200).reshape(5, -1)
        changed = [
            any(
                not np.array_equal(a.numpy(), b.numpy())
                for a, b in zip(one.members.snapshot().values(), another.members.snapshot().values(), strict=True)
            )
            for one, another in zip(first.learned.each, again.learned.each, strict=True)
        ]
        assert changed == [row not in fold for fold in folds.tolist()]
        k = changed.index(False)
        assert first.learned.each[k].encoder.to_dict() == again.learned.each[k].encoder.to_dict()
        assert first.learned.each[k].target.scales == again.learned.each[k].target.scales


@pytest.mark.parametrize("decisive", ["long tail", "loss"])
def test_no_fold_decides_how_its_own_networks_are_trained(decisive, monkeypatch, tmp_path):
    """Its targets have a long tail, which the other folds then do not leave to Muon, or speak against Muon."""
    monkeypatch.setattr(presets, "FEW_ROWS", 100)
    monkeypatch.setitem(presets.WITH_ADAM, "fast", presets.Preset((8,), 2))
    monkeypatch.setitem(presets.WITH_MUON, "fast", presets.Preset((4,), 2, muon=1.0))
    monkeypatch.setattr(optimisers, "AT_ONCE", 10**6 if decisive == "loss" else 0)
    if decisive == "loss":
        monkeypatch.setattr(optimisers, "_loss", lambda own: own.target.scales[0].center * own.architecture.hidden[0])
    rng, own = np.random.default_rng(0), np.random.RandomState(0).permutation(200).reshape(5, -1)[2]
    X, y = rng.standard_normal((200, 2)), rng.standard_normal(200) + 5
    other = y.copy()
    other[own] = np.exp(rng.uniform(0, 9, 40)) if decisive == "long tail" else -1000.0
    given = {"epochs": "early", "max_epochs": 2, "hidden": None, "split_by": []}
    first, again = (crossed(**given).fit(X, own) for own in (y, other))
    widths = [[own.architecture.hidden for own in model.fitted_.learned.each] for model in (first, again)]
    assert widths == [[(4,)] * 5, [(8,), (8,), (4,), (8,), (8,)]]
    before, now = (model.fitted_.learned.each[2].members.snapshot() for model in (first, again))
    assert all(np.array_equal(t.numpy(), now[name].numpy()) for name, t in before.items())
    again.save(tmp_path / "m.guardband")
    loaded = gb.load(tmp_path / "m.guardband").predict_interval(X[:9])
    assert np.array_equal(loaded.lower, again.predict_interval(X[:9]).lower)


def test_scores_are_those_of_the_networks_that_did_not_see_the_row(model, rows):
    X, y = rows[0][:203], rows[1][:203]
    fitted, folds = model.fitted_, np.random.RandomState(0).permutation(203)[:200].reshape(5, -1)
    table = model.read_rows(X)
    for k, fold in enumerate(folds):
        predicted = fitted.learned.each[k].predict(table.take(fold))
        scores = fitted.rule.score.of(predicted, y[fold])[0, 0]
        kept = fitted.calibrated.summary
        assert np.array_equal(kept.rows("score")[kept.rows("fold") == k], scores)


def test_a_saved_model_predicts_the_same_bits(model, rows, tmp_path):
    model.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband")
    for level in (None, 0.8):
        one, other = (own.predict_interval(rows[0][203:], confidence_level=level) for own in (model, again))
        assert np.array_equal(one.lower, other.lower)
        assert np.array_equal(one.upper, other.upper)
        assert np.array_equal(one.point, other.point)
        assert one.certificate == other.certificate
    assert again.certificate_ == model.certificate_


def test_the_certificate_says_what_is_proved_and_what_is_typical(model):
    own, text = model.certificate_, str(model.certificate_)
    assert text.startswith("Promise: on average over possible tables, at least ")
    assert "Typical is " in text
    assert "Not promised: 90% itself" in text
    assert own.expected_coverage < 0.9
    assert own.coverage_bound() < own.expected_coverage
    assert gb.Certificate.from_dict(own.to_dict()) == own
    assert Promise.from_dict(own.promise.to_dict()) == own.promise
    assert "possible tables" in own._repr_html_()
    assert isinstance(own.promise, CvPlusPromise if model.calibration == "cv+" else CvMinmaxPromise)


def test_an_audit_shows_coverage_and_cannot_judge(model, rows, tmp_path):
    audit = model.audit(rows[0][203:], rows[1][203:])
    assert audit.verdict == "cannot judge"
    assert "nobody knows how far" in str(audit)
    assert "rows (" in str(audit)
    page = model.report(tmp_path / "page.html", rows[0][203:], rows[1][203:]).read_text()
    assert "possible tables" in page
    assert "100 of 100 rows are among those that trained" in str(model.audit(rows[0][:100], rows[1][:100]))


def test_intervals_can_be_explained(model, rows):
    found = model.explain(rows[0][203:223], rows=[0], n_background=10, evaluations=500)
    assert found.in_words()


def test_what_needs_held_out_rows_is_refused(model, rows):
    X, y = rows[0][203:], rows[1][203:]
    for what in (lambda: model.calibrate(X, y), model.as_network, lambda: model.for_target(X)):
        with pytest.raises(ValueError, match="by cross-validation"):
            what()
    with pytest.raises(ValueError, match="cannot be monitored"):
        gb.Monitor(model)
    with pytest.raises(ValueError, match="start an online rule"):
        gb.OnlineCalibrator("aci", model=model)
    with pytest.raises(ValueError, match="combined with choose"):
        gb.choose([model, model], (X, y))


@pytest.mark.parametrize(
    ("asked", "given", "words"),
    [
        ({"guarantee": "pac"}, {}, "guarantee='pac'"),
        ({"side": "upper"}, {}, "without side and tails"),
        ({"tails": (0.02, 0.08)}, {}, "without side and tails"),
        ({"method": "pav"}, {}, 'needs method="conf-nn"'),
        ({"method": "bayes"}, {}, 'needs method="conf-nn"'),
        ({"groups": "letter"}, {}, "combined with groups"),
        ({"split_by": "letter"}, {}, "combined with split_by"),
        ({"split_by_time": "a"}, {}, "combined with split_by_time"),
        ({"calibration_size": 0.5}, {}, "Remove calibration_size"),
        ({"calibration_size": None}, {}, "Remove calibration_size"),
        ({}, {"sample_weight": np.ones(203)}, "combined with sample_weight"),
        ({}, {"entities": np.arange(203)}, "combined with entities"),
        ({"folds": 1}, {}, "folds must be"),
        ({"folds": 2.5}, {}, "folds must be"),
        ({"folds": 204}, {}, "204 folds need at least 204 rows"),
        ({"calibration": "loo"}, {}, "calibration must be one of"),
        ({"calibration": "split", "folds": 5}, {}, "folds=5 has no effect"),
    ],
)
def test_what_does_not_go_with_cross_validation_is_refused_before_training(asked, given, words, rows, monkeypatch):
    def never(*args, **more):
        raise AssertionError("it trained")

    monkeypatch.setattr("guardband.doors.fit_crossed.learn", never)
    monkeypatch.setattr("guardband.doors.fit_rows.learn", never)
    with pytest.raises(ValueError, match=words) as error:
        crossed(**asked).fit(rows[0][:203], rows[1][:203], **given)
    assert str(error.value).endswith(".")


def test_repeated_rows_are_refused_unless_they_stand_alone(rows):
    X, y = pd.concat([rows[0][:60]] * 2), np.tile(rows[1][:60], 2)
    with pytest.raises(ValueError, match="some rows of this table are repeated"):
        crossed().fit(X, y)
    assert crossed(split_by=[]).fit(X, y).certificate_.n_calibration == 120


@pytest.mark.parametrize("asked", [{"network": "plain", "preset": "default"}, {"confidence_level": [0.5, 0.9]}])
@pytest.mark.filterwarnings("ignore:.*nothing useful:guardband.InsufficientCalibrationWarning")
def test_other_networks_and_several_levels_work(asked, rows):
    bands = crossed(**asked).fit(rows[0][:203], rows[1][:203]).predict_interval(rows[0][203:])
    lower, upper = bands.per_level()
    assert (lower[:, -1] <= lower[:, 0]).all()
    assert (upper[:, -1] >= upper[:, 0]).all()


def test_targets_with_a_long_tail_are_learnt_on_two_scales(rows):
    y = np.exp(3 * rows[1])
    model = crossed(target_transform=None).fit(rows[0][:203], y[:203])
    assert {len(own.target.scales) for own in model.fitted_.learned.each} == {2}
    assert np.isfinite(model.predict_interval(rows[0][203:]).upper).all()


def test_a_fold_of_each_row_is_the_jackknife(rows):
    model = crossed(folds=12, calibration="cv-minmax").fit(rows[0][:12], rows[1][:12])
    assert model.certificate_.expected_coverage >= 0.9
    assert np.isfinite(model.predict_interval(rows[0][12:20]).lower).all()


# ------------------------------------------------------------------------------- predictions from anywhere


@pytest.fixture(scope="module")
def ridge():
    """Out-of-fold predictions of a ridge regression, and those of each fold's model for new rows."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4))
    y = X.sum(1) + rng.standard_normal(300)
    folds = np.array(["e", "b", "c", "a"])[np.arange(200) % 4]
    models = [Ridge().fit(X[:200][folds != k], y[:200][folds != k]) for k in "abce"]
    own = np.empty(200)
    for k, model in zip("abce", models, strict=True):
        own[folds == k] = model.predict(X[:200][folds == k])
    return X, y, folds, models, own, np.stack([model.predict(X[200:]) for model in models])


@pytest.mark.parametrize("kind", ["cv+", "cv-minmax"])
def test_bands_and_models_agree(kind, ridge, tmp_path):
    X, y, folds, models, own, new = ridge
    rule = gb.BandCalibrator("conf-fw", calibration=kind).fit(None, own, None, y[:200], folds=folds)
    bands = rule.transform(None, new, None)
    guarded = gb.calibrate(models, (X[:200], y[:200]), calibration=kind, folds=folds)
    same = guarded.predict_interval(X[200:])
    assert np.allclose(bands.lower, same.lower, rtol=1e-12)
    assert np.allclose(bands.upper, same.upper, rtol=1e-12)
    assert rule.certificate.promise == guarded.certificate.promise
    residuals = np.abs(y[:200] - own)
    if kind == "cv+":  # MAPIE's formula
        number = np.unique(folds, return_inverse=True)[1]
        low, high = np.sort(new[number] - residuals[:, None], 0), np.sort(new[number] + residuals[:, None], 0)
        assert np.allclose(bands.lower, low[19])
        assert np.allclose(bands.upper, high[180])
    rule.save(tmp_path / "rule.guardband")
    again = gb.load(tmp_path / "rule.guardband")
    assert np.array_equal(again.transform(None, new, None).lower, bands.lower)
    guarded.save(tmp_path / "model.guardband")
    loaded = gb.load(tmp_path / "model.guardband", model=models)
    assert np.array_equal(loaded.predict_interval(X[200:]).lower, same.lower)
    with pytest.raises(gb.ModelFileError, match="not the model that was calibrated"):
        gb.load(tmp_path / "model.guardband", model=models[::-1])
    with pytest.raises(gb.ModelFileError, match="list of 4 models"):
        gb.load(tmp_path / "model.guardband", model=models[:3])


def test_bands_can_be_audited_and_shown(ridge, tmp_path):
    X, y, folds, models, own, new = ridge
    rule = gb.BandCalibrator(calibration="cv+").fit(own - 1, own, own + 1, y[:200], folds=folds)
    audit = rule.audit(new - 1, new, new + 1, y[200:])
    assert audit.verdict == "cannot judge"
    assert "possible tables" in rule.report(tmp_path / "page.html", new - 1, new, new + 1, y[200:]).read_text()
    guarded = gb.calibrate(models, (X[:200], y[:200]), calibration="cv+", folds=folds)
    assert guarded.audit(X[200:], y[200:]).verdict == "cannot judge"
    assert "4 models, one for each fold" in guarded.report(tmp_path / "own.html").read_text()
    assert guarded.explain(X[200:220], rows=[0], n_background=5, evaluations=300).in_words()
    with pytest.raises(ValueError, match="to use for_target"):
        guarded.for_target(X[200:])


def test_folds_of_bands_are_checked(ridge):
    _, y, folds, _, own, new = ridge
    rule = gb.BandCalibrator("conf-fw", calibration="cv+")
    for wrong, words in (
        (None, "needs the fold of every row"),
        (folds[:-1], "one label for each of 200 rows"),
        (np.zeros(200), "at least 2 folds"),
        (np.where(np.arange(200), 1.0, np.nan), "missing labels"),
    ):
        with pytest.raises(ValueError, match=words):
            rule.fit(None, own, None, y[:200], folds=wrong)
    with pytest.raises(ValueError, match="combined with groups"):
        rule.fit(None, own, None, y[:200], folds=folds, groups=folds)
    with pytest.raises(ValueError, match="folds has no effect"):
        gb.BandCalibrator("conf-fw").fit(None, own, None, y[:200], folds=folds)
    with pytest.raises(ValueError, match="guarantee='pac'"):
        gb.BandCalibrator(calibration="cv+", guarantee="pac")
    rule.fit(None, own, None, y[:200], folds=folds)
    with pytest.raises(ValueError, match=r"Expected 4 band\(s\)"):
        rule.transform(None, new[:3], None)


def test_models_are_checked(ridge):
    X, y, folds, models, _, _ = ridge
    data = (X[:200], y[:200])
    with pytest.raises(ValueError, match="list of 4 models, each trained without one fold"):
        gb.calibrate(models[:2], data, calibration="cv+", folds=folds)
    with pytest.raises(ValueError, match="Found Ridge"):
        gb.calibrate(models[0], data, calibration="cv+", folds=folds)
    with pytest.raises(ValueError, match="combined with training"):
        gb.calibrate(models, data, calibration="cv+", folds=folds, training=data)
    with pytest.raises(ValueError, match="folds has no effect"):
        gb.calibrate(models[0], data, folds=folds)
    mixed = [*models[:3], lambda rows: np.column_stack([rows[:, 0] - 1, rows[:, 0] + 1])]
    with pytest.raises(ValueError, match="same kind of numbers"):
        gb.calibrate(mixed, data, calibration="cv+", folds=folds)


def test_rows_without_a_target_leave_their_fold(ridge):
    X, y, folds, models, _, _ = ridge
    some = np.where(np.arange(200) < 5, np.nan, y[:200])
    with pytest.warns(gb.MissingTargetWarning):
        guarded = gb.calibrate(models, (X[:200], some), calibration="cv+", folds=folds)
    assert guarded.certificate.promise.fold_sizes == (49, 49, 49, 48)


def test_pairs_of_models_make_bounds(ridge):
    X, y, folds, _, _, _ = ridge
    pairs = []
    for k in "abce":
        near = KNeighborsRegressor(20).fit(X[:200][folds != k], y[:200][folds != k])
        pairs.append((lambda rows, near=near: near.predict(rows) - 1, lambda rows, near=near: near.predict(rows) + 1))
    guarded = gb.calibrate(pairs, (X[:200], y[:200]), calibration="cv+", folds=folds)
    bands = guarded.predict_interval(X[200:])
    assert 0.75 < gb.metrics.coverage(y[200:], bands) <= 1


@pytest.mark.parametrize(
    ("labels", "words"), [([0, 1, None, 1], "missing labels"), ([0, 1, "a", 1], "labels of one kind")]
)
def test_labels_that_no_fold_can_have_are_refused(labels, words):
    folds = np.array(labels, dtype=object)
    with pytest.raises(ValueError, match=words):
        gb.BandCalibrator("conf-fw", calibration="cv+").fit(None, np.zeros(4), None, np.arange(4.0), folds=folds)


@pytest.mark.filterwarnings("ignore::guardband.DependentRowsWarning")
def test_what_to_do_about_dependent_rows_can_be_done():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(60), 8)
    X = pd.DataFrame({"person": person.astype(str), "a": rng.standard_normal(480)})
    doubts = crossed().fit(X, 3 * rng.standard_normal(60)[person] + rng.standard_normal(480)).fitted_.doubts
    assert doubts
    assert all("Also use calibration=" in own for own in doubts)
