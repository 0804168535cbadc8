"""A table with several targets: one network, one promise for all of them or one for each."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import betabinom

import guardband as gb
from guardband.exceptions import MissingTargetWarning
from laws import SIGNIFICANCE
from notebook_html import Read

QUICK = {"preset": "fast", "random_state": 0, "verbose": False}
SMALL = QUICK | {"hidden": (8,), "epochs": 2}


def rows(n, seed=0, missing=0.0):
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.standard_normal((n, 3)), columns=list("abc"))
    noise = random.standard_normal((n, 2)) @ np.array([[1, 0.8], [0, 0.6]])
    Y = pd.DataFrame({"price": X["a"] + (1 + X["b"].abs()) * noise[:, 0], "days": np.exp(X["c"] / 2 + noise[:, 1] / 2)})
    return X, Y.assign(days=Y["days"].mask(random.random(n) < missing))


@pytest.fixture(scope="module")
def fitted():
    return {
        targets: gb.IntervalRegressor(targets=targets, **QUICK).fit(*rows(1500, missing=0.03))
        for targets in ("joint", "each")
    }


def test_all_targets_lie_inside_as_often_as_the_exact_law_says(fitted):
    X, Y = rows(1000, 1)
    model = fitted["joint"]
    boxes = model.predict_interval(X)
    assert boxes.targets == ("price", "days")
    assert boxes.lower.shape == model.predict(X).shape == (1000, 2)
    k, n = model.certificate_.rank, model.certificate_.n_calibration
    law = betabinom(1000, k, n + 1 - k)
    assert law.ppf(SIGNIFICANCE) <= boxes.contains(Y).sum() <= law.isf(SIGNIFICANCE)


def test_the_certificate_of_one_target_says_that_all_of_them_share_the_calibration(fitted):
    boxes = fitted["joint"].predict_interval(rows(10, 1)[0])
    own, both = boxes["days"].certificate, boxes.certificate
    counted = f"to contain both targets in {both.rank} of the {both.n_calibration} calibration rows"
    assert counted in str(both)
    assert f"{counted}. For this target alone, coverage is at least as high." in str(own)
    assert "at least 90% of new rows fall inside their intervals." in str(own)
    assert (own.rank, own.coverage_bound()) == (both.rank, both.coverage_bound())
    assert gb.Certificate.from_dict(own.to_dict()) == own
    alone = fitted["each"].predict_interval(rows(10, 1)[0])["days"].certificate
    assert "both targets" not in str(alone)


def test_each_target_has_its_own_law_and_its_own_rows(fitted):
    X, Y = rows(1000, 1)
    boxes = fitted["each"].predict_interval(X)
    ranks = set()
    for name, certificate in zip(boxes.targets, boxes.certificates, strict=True):
        k, n = certificate.rank, certificate.n_calibration
        ranks.add(n)
        law = betabinom(1000, k, n + 1 - k)
        assert law.ppf(SIGNIFICANCE) <= boxes[name].contains(Y[name]).sum() <= law.isf(SIGNIFICANCE)
    assert len(ranks) == 2
    assert "for each target separately" in str(fitted["each"].certificate_)


def test_rows_that_lack_a_target_train_and_are_counted_in_the_certificate():
    X, Y = rows(400, missing=0.2)
    Y.loc[:10] = np.nan
    with pytest.warns(MissingTargetWarning, match="rows are left out because their target y is missing"):
        model = gb.IntervalRegressor(targets="joint", **SMALL).fit(X, Y)
    note = next(note for note in model.certificate_.notes if "lack a target" in note)
    left_out, given = (int(word) for word in note.split() if word.isdigit())
    assert model.certificate_.n_calibration == given - left_out
    used = len(model.fitted_.training_prints) + given
    assert used == int(Y.notna().any(axis=1).sum())


def test_a_saved_model_predicts_the_same_bits(fitted, tmp_path):
    X, Y = rows(200, 1)
    for model in fitted.values():
        model.save(tmp_path / "m.guardband")
        again = gb.load(tmp_path / "m.guardband")
        a, b = model.predict_interval(X), again.predict_interval(X)
        for side in ("lower", "point", "upper"):
            np.testing.assert_array_equal(getattr(a, side), getattr(b, side))
        assert a.certificate == b.certificate
        assert a.certificates == b.certificates
        assert again.calibrate(X, Y).certificate_.n_calibration == 200


def test_an_audit_judges_all_targets_and_shows_each(fitted):
    X, Y = rows(1000, 1)
    found = fitted["joint"].audit(X, Y, significance=SIGNIFICANCE)
    assert found.verdict == "consistent"
    assert "had both targets inside their 90% intervals" in found.sentence
    assert found.levels[0].covered == fitted["joint"].predict_interval(X).contains(Y).sum()
    assert found["price"].levels[0].covered >= found.levels[0].covered
    entries = found.to_dict()
    assert entries["targets"].keys() == {"price", "days"}
    assert "Each target alone is shown for information" in Read(found._repr_html_()).text
    shifted = fitted["joint"].audit(X, Y.assign(days=Y["days"] + 3))
    assert shifted.verdict == "broken"
    own = fitted["each"].audit(X, Y.assign(days=Y["days"] + 3))
    assert own.sentence.startswith("Promise broken: for 'days', only")
    assert "Each target has a promise of its own" in Read(own._repr_html_()).text
    assert fitted["each"].audit(X, Y, significance=SIGNIFICANCE).verdict != "broken"


def test_rows_that_made_the_model_cannot_judge_it(fitted):
    for model in fitted.values():
        assert model.audit(*rows(1500, missing=0.03)).verdict == "cannot judge"


def test_an_audit_takes_rows_that_lack_a_target(fitted):
    X, Y = rows(600, 2, missing=0.3)
    found = fitted["joint"].audit(X, Y)
    assert found.n == int(Y.notna().all(axis=1).sum())
    assert found["days"].n == int(Y["days"].notna().sum())
    with pytest.raises(ValueError, match="'days' is missing in every row"):
        fitted["joint"].audit(X, Y.assign(days=np.nan))


def test_a_page_has_a_section_for_each_target(fitted, tmp_path):
    X, Y = rows(300, 1)
    for name, model in fitted.items():
        text = model.report(tmp_path / f"{name}.html", X, Y).read_text()
        assert '<h2 id="target-0">price</h2>' in text
        assert '<h2 id="target-1">days</h2>' in text
        assert "Bars are the intervals of 120 of 300 rows in order" in text
        alone = model.report(tmp_path / "alone.html").read_text()
        assert "target" in alone


def test_each_target_may_have_a_scale_and_limits_of_its_own():
    X, Y = rows(300)
    Y["days"] = Y["days"].round()
    model = gb.IntervalRegressor(targets="joint", y_min=[None, 0], integer=[False, None], **SMALL).fit(X, Y)
    boxes = model.predict_interval(X)
    assert (boxes["days"].lower >= 0).all()
    assert (boxes["days"].upper % 1 == 0).all()
    assert (boxes["price"].upper % 1 != 0).any()
    for wrong in ({"y_min": [0]}, {"target_transform": ["log", None, None]}):
        with pytest.raises(ValueError, match="must have 2 entries"):
            gb.IntervalRegressor(targets="joint", **wrong, **SMALL).fit(X, Y)
    with pytest.raises(ValueError, match="Target 'price': y must be positive"):
        gb.IntervalRegressor(targets="joint", target_transform="log", **SMALL).fit(X, Y)


@pytest.mark.parametrize("method", ["conf-nn", "cqr", "cqr-r", "conf-fw"])
@pytest.mark.parametrize("network", ["tabular", "plain"])
def test_every_method_that_ranks_takes_several_targets(method, network, tmp_path):
    X, Y = rows(300)
    asked = SMALL if network == "tabular" else {"hidden": (8,), "epochs": 2, "random_state": 0, "verbose": False}
    levels = {"confidence_level": [0.8, 0.9], "guarantee": "pac"}
    model = gb.IntervalRegressor(method, network=network, targets="joint", **asked, **levels).fit(X, Y.to_numpy())
    model.save(tmp_path / "m.guardband")
    boxes = gb.load(tmp_path / "m.guardband").predict_interval(X)
    assert boxes.targets == ("target 1", "target 2")
    assert boxes.lower.shape == (300, 2, 2)
    np.testing.assert_array_equal(boxes.lower, model.predict_interval(X).lower)
    assert model.predict_interval(X, confidence_level=0.5).width.mean() < boxes.width[..., 0].mean()


def test_polars_and_rows_that_belong_together_are_taken():
    X, Y = rows(400)
    X["who"] = np.repeat(np.arange(100), 4).astype(str)
    for targets in ("joint", "each"):
        model = gb.IntervalRegressor(targets=targets, split_by="who", **SMALL).fit(pl.DataFrame(X), pl.DataFrame(Y))
        promise = model.certificate_.promise
        assert promise.entity == "'who'"
        assert model.predict_interval(pl.DataFrame(X)).to_polars().columns[0] == "price_point"
        X2, Y2 = rows(400, 3)
        X2["who"] = np.repeat(np.arange(100, 200), 4).astype(str)
        assert model.audit(X2, Y2).n == 100


@pytest.mark.parametrize("targets", ["joint", "each"])
def test_entities_that_no_column_names_are_asked_for_again(targets, tmp_path):
    X, Y = rows(400, missing=0.1)
    model = gb.IntervalRegressor(targets=targets, **SMALL).fit(X, Y, entities=np.arange(400) // 4)
    assert model.certificate_.promise.entity == "entity"
    assert model.certificate_.n_calibration == 25
    model.save(tmp_path / "m.guardband")
    model, new = gb.load(tmp_path / "m.guardband"), rows(400, 3)
    assert model.audit(*new, entities=np.arange(400, 800) // 4).n == 100
    assert model.audit(*new, entities=np.arange(400) // 4).verdict == "cannot judge"
    with pytest.raises(ValueError, match="Pass entities= here too"):
        model.audit(*new)
    again = model.calibrate(*new, entities=np.arange(400, 800) // 4)
    assert again.certificate_.n_calibration == 100


def in_time(n, seed, begin, end):
    """Return rows that came at random between two times, on which nothing depends."""
    X, Y = rows(n, seed)
    return X.assign(time=np.random.default_rng(seed).uniform(begin, end, n)), Y


@pytest.mark.parametrize("targets", ["joint", "each"])
def test_the_latest_rows_calibrate_if_the_split_is_by_time(targets, tmp_path):
    parts = [in_time(900, 0, 0, 3), in_time(300, 1, 3, 4)]
    X, Y = (pd.concat(own, ignore_index=True).sample(frac=1, random_state=0) for own in zip(*parts, strict=True))
    model = gb.IntervalRegressor(targets=targets, split_by_time="time", **QUICK).fit(X, Y)
    assert model.certificate_.n_calibration == 300
    assert float(model.certificate_.in_time.trained_until) < 3 < float(model.certificate_.in_time.calibrated_from)
    one = gb.IntervalRegressor(split_by_time="time", **QUICK | {"epochs": 1}).fit(X, Y["price"])
    assert model.certificate_.in_time == one.certificate_.in_time
    model.save(tmp_path / "m.guardband")
    assert gb.load(tmp_path / "m.guardband").certificate_ == model.certificate_
    found = model.audit(*in_time(1000, 2, 3, 4), time="time", significance=SIGNIFICANCE)
    assert found.verdict != "broken"
    assert [family.key for family in found["days"].families if family.key == "time"] == ["time"]


def test_time_and_entities_exclude_each_other():
    X, Y = in_time(100, 0, 0, 1)
    with pytest.raises(ValueError, match="exclude each other"):
        gb.IntervalRegressor(targets="joint", split_by_time="time", **SMALL).fit(X, Y, entities=np.arange(100) // 4)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"targets": "both"}, 'targets must be "joint", "each" or None'),
        ({"targets": "joint", "method": "pav"}, "Several targets need method="),
        ({"targets": "joint", "method": "bayes"}, "Several targets need method="),
        ({"targets": "joint", "side": "upper"}, "no promise for one side. Remove side"),
        ({"targets": "joint", "tails": (0.05, 0.05)}, "no promise for one side. Remove tails"),
        ({"targets": "joint", "groups": "a"}, "no promise for each group"),
        ({"targets": "each", "groups": "auto"}, "no promise for each group"),
        ({"targets": "each", "network": "paper"}, 'need network="tabular" or "plain"'),
        ({"targets": "each", "network": lambda d: None}, 'need network="tabular" or "plain"'),
        ({"targets": "each", "ordering": "relu"}, 'need network="tabular" or "plain"'),
    ],
)
def test_what_several_targets_do_not_have_is_refused_before_training(asked, says, monkeypatch):
    monkeypatch.setattr("guardband.doors.fit_rows.learn", None)
    with pytest.raises(ValueError, match=says):
        gb.IntervalRegressor(verbose=False, **asked).fit(*rows(100))


def test_one_target_is_still_one_column():
    X, Y = rows(100)
    with pytest.raises(ValueError, match=r"y must be one column of shape \(n,\)"):
        gb.IntervalRegressor(**SMALL).fit(X, Y)
    with pytest.raises(ValueError, match="at least 2 columns in y, found 1"):
        gb.IntervalRegressor(targets="joint", **SMALL).fit(X, Y[["price"]])


def test_what_takes_one_target_says_so(fitted, tmp_path):
    X, Y = rows(60, 1)
    model, point = fitted["joint"], np.zeros((60, 2))
    rule = gb.BandCalibrator("conf-fw", targets="each").fit(None, point, None, Y)
    for refused in (
        lambda: gb.Monitor(rule),
        lambda: gb.Monitor(fitted["each"].certificate_),
        lambda: gb.OnlineCalibrator("aci", model=rule),
        lambda: model.predict_quantiles(X, [0.5]),
        lambda: model.explain(X),
        lambda: model.for_target(X),
        lambda: gb.Monitor(model),
        lambda: gb.Monitor(model.certificate_),
        lambda: gb.OnlineCalibrator("aci", model=model),
        lambda: model.as_network(),
        lambda: gb.export_onnx(model, X, tmp_path / "m.onnx"),
        lambda: gb.choose([gb.IntervalRegressor(targets="joint", calibration_size=None, **SMALL).fit(X, Y)], (X, Y)),
    ):
        with pytest.raises(ValueError, match="one target"):
            refused()
    with pytest.raises(ValueError, match="cannot use weights"):
        model.calibrate(*rows(60, 5), weights=np.ones(60))


def test_a_promise_for_each_target_says_what_it_leaves_out_and_how_many_rows_each_has(fitted, tmp_path):
    model = fitted["each"]
    assert "Not promised: coverage of all targets at once, coverage for a single row" in str(model.certificate_)
    assert "up to 375 calibration rows" in repr(model.certificate_)
    price, days = (own.n_calibration for own in model.certificate_.promise.of_each)
    assert days < price
    for labelled in ((), rows(300, 1)):
        page = model.report(tmp_path / "page.html", *labelled).read_text()
        assert f"{price} for &#39;price&#39;, {days} for &#39;days&#39;" in page


def test_targets_of_one_name_are_refused_in_a_sentence():
    X, Y = rows(100)
    with pytest.raises(ValueError, match=r"y has two columns 'a'. Rename one"):
        gb.IntervalRegressor(targets="joint", **SMALL).fit(X, Y.set_axis(["a", "a"], axis=1))


def test_targets_decide_only_if_each_has_a_promise(fitted):
    X, Y = rows(300, 1)
    for name, model in fitted.items():
        entries = model.audit(X, Y).to_dict()["targets"]
        assert {own["for_information"] for own in entries.values()} == {name == "joint"}
