"""risk= through every way in: tables, networks, models, predictions, files, audits and pages."""

import json
import math

import numpy as np
import pytest
import torch

import guardband as gb
from forged_models import forged, opened
from guardband.bands.risk_bounds import risk_budget
from guardband.report.page import render
from guardband.report.schema import checked

RISK = gb.Risk(limit=0.2, cap=3)
ASKED = [{}, {"guarantee": "pac", "delta": 0.2}]


def skewed(n, seed):
    """Return rows whose noise is skewed and grows with x."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 2)).astype(np.float32)
    return x, (2 * x[:, 0] + (0.5 + x[:, 0]) * rng.exponential(size=n)).astype(np.float64)


def half_as_bad_above(y, lower, upper):
    return np.minimum(np.maximum(np.maximum(lower - y, (y - upper) / 2), 0), 3.0)


@pytest.fixture(scope="module")
def rows():
    return skewed(1600, 0), skewed(4000, 1)


def model_with(**asked):
    return gb.IntervalRegressor(network="plain", hidden=(8,), epochs=4, random_state=0, **asked)


@pytest.fixture(scope="module")
def fitted(rows):
    (x, y), _ = rows
    return {str(asked): model_with(risk=RISK, **asked).fit(x, y) for asked in ASKED}


@pytest.fixture(scope="module")
def bands(rows):
    """Return bounds of calibration rows and of new rows, with their true values."""
    return [(x[:, 0] * 2 - 1.0, x[:, 0] * 2.0, x[:, 0] * 2 + 1.0, y) for x, y in rows]


class Three(torch.nn.Module):
    def forward(self, x):
        middle = 2 * x[:, 0]
        return torch.stack([middle - 1, middle, middle + 1], 1)


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_table_keeps_its_risk(rows, fitted, asked):
    model, (x, y) = fitted[str(asked)], rows[1]
    found = model.audit(x, y)
    bands = model.predict_interval(x)
    assert bands.confidence_level is None
    assert found.risk.mean_loss == pytest.approx(RISK.losses(y, bands.lower, bands.upper).mean())
    assert found.verdict == "consistent", found
    assert found.risk.mean_loss <= found.risk.breaking


def test_the_calibration_rows_use_up_their_budget_in_the_unit_of_the_target(rows):
    (x, y), (x2, y2) = rows
    for more in ({"target_transform": "log"}, {"y_min": 0.0}, {"integer": True}):
        own = np.round(20 * y) + 1, np.round(20 * y2[:500]) + 1
        model = model_with(risk=gb.Risk(2, 40), calibration_size=None, **more).fit(x, own[0])
        bands = model.calibrate(x2[:500], own[1]).predict_interval(x2[:500])
        total = gb.Risk(2, 40).losses(own[1], bands.lower, bands.upper).sum()
        budget = risk_budget(2, 40, 500)
        assert total <= budget + 1e-6
        assert total > budget - (500 if more.get("integer") or not more.get("y_min") else 1)


def test_the_best_score_for_a_risk_is_chosen_on_the_training_rows(rows):
    (x, y), _ = rows
    model = gb.IntervalRegressor(risk=RISK, preset="fast", max_epochs=3, random_state=0, target_transform="log1p")
    model.fit(x, y)
    assert model.certificate_.method in ("conf-nn", "cqr", "cqr-r")
    assert not model.certificate_.whole_line


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_predictions_from_anywhere_and_their_file(tmp_path, bands, asked):
    rule = gb.BandCalibrator("cqr", risk=RISK, **asked).fit(*bands[0])
    found = rule.audit(*bands[1])
    assert found.verdict == "consistent", found
    rule.save(tmp_path / "own.rule")
    again = gb.load(tmp_path / "own.rule")
    assert again.certificate == rule.certificate
    np.testing.assert_array_equal(again.transform(*bands[1][:3]).upper, rule.transform(*bands[1][:3]).upper)


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_saved_table_predicts_the_same_bits(tmp_path, rows, fitted, asked):
    model, (x, _) = fitted[str(asked)], rows[1]
    model.save(tmp_path / "own.guardband")
    again = gb.load(tmp_path / "own.guardband")
    assert again.risk == RISK
    assert again.certificate_ == model.certificate_
    np.testing.assert_array_equal(again.predict_interval(x).lower, model.predict_interval(x).lower)


def test_a_saved_table_on_another_scale_loads(tmp_path, rows):
    (x, y), (x2, _) = rows
    model = model_with(risk=RISK, target_transform="log1p", y_max=50.0).fit(x, y)
    model.save(tmp_path / "own.guardband")
    again = gb.load(tmp_path / "own.guardband")
    assert again.certificate_ == model.certificate_
    np.testing.assert_array_equal(again.predict_interval(x2).upper, model.predict_interval(x2).upper)


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own["arguments"].update(risk={"limit": 0.1, "cap": 3.0}),
        lambda own: own["arguments"].update(risk=None),
        lambda own: own["arguments"].update(risk={"limit": 5.0, "cap": 3.0}),
        lambda own: own["arguments"].update(guarantee="pac"),
        lambda own: own["certificate"]["promise"].update(limit=0.01),
        lambda own: own["certificate"]["promise"].update(cap=1.0),
        lambda own: own["certificate"]["promise"].update(n_calibration=10),
        lambda own: own["certificate"]["promise"].update(covered=[10_000]),
        lambda own: own["certificate"]["promise"].update(whole_line=[True]),
    ],
)
@pytest.mark.parametrize("kind", ["rule", "network"])
def test_a_tampered_file_is_refused(tmp_path, bands, rows, kind, change):
    path = tmp_path / "own"
    (x, y), _ = rows
    if kind == "rule":
        gb.BandCalibrator(risk=RISK).fit(*bands[0]).save(path)
        more = {}
    else:
        gb.calibrate(Three(), (torch.from_numpy(x), torch.from_numpy(y)), risk=RISK).save(path)
        more = {"network": Three()}
    assert gb.load(path, **more) is not None
    entries, tensors = opened(path)
    change(entries)
    forged(path, entries, tensors)
    with pytest.raises(gb.ModelFileError):
        gb.load(path, **more)


def test_a_network_in_torch_and_its_audit(rows, tmp_path):
    (x, y), (x2, y2) = rows
    guarded = gb.calibrate(Three(), (torch.from_numpy(x), torch.from_numpy(y)), risk=RISK)
    plain = gb.BandCalibrator(risk=RISK).fit(2 * x[:, 0] - 1.0, 2.0 * x[:, 0], 2 * x[:, 0] + 1.0, y)
    out = guarded(torch.from_numpy(x2))
    np.testing.assert_allclose(
        out[:, 2], plain.transform(2 * x2[:, 0] - 1.0, 2.0 * x2[:, 0], 2 * x2[:, 0] + 1.0).upper, rtol=1e-5
    )
    found = guarded.audit(torch.from_numpy(x2), torch.from_numpy(y2))
    assert found.verdict == "consistent", found
    guarded.report(tmp_path / "page.html", torch.from_numpy(x2), torch.from_numpy(y2))
    assert "Mean distance from the interval" in (tmp_path / "page.html").read_text()


def test_another_model_and_its_file(rows, tmp_path):
    (x, y), (x2, y2) = rows

    def model(rows):
        return np.stack([2 * rows[:, 0] - 1, 2 * rows[:, 0] + 1], 1)

    guarded = gb.calibrate(model, (x.astype(float), y), risk=RISK)
    assert guarded.audit(x2.astype(float), y2).verdict == "consistent"
    guarded.save(tmp_path / "own")
    again = gb.load(tmp_path / "own", model=model)
    assert again.certificate == guarded.certificate
    explained = guarded.explain(x2[:20].astype(float), rows=[0, 1])
    assert explained.confidence_level is None


def test_a_loss_of_your_own_is_kept_and_brought_again(bands, tmp_path):
    risk = gb.Risk(0.2, 3, loss=half_as_bad_above)
    rule = gb.BandCalibrator(risk=risk).fit(*bands[0])
    assert "the mean of your loss over new rows is at most 0.2" in str(rule.certificate)
    found = rule.audit(*bands[1])
    assert found.verdict == "consistent"
    own = rule.transform(*bands[1][:3])
    assert found.risk.mean_loss == pytest.approx(half_as_bad_above(bands[1][3], own.lower, own.upper).mean())
    assert own.width.mean() < gb.BandCalibrator(risk=RISK).fit(*bands[0]).transform(*bands[1][:3]).width.mean()
    rule.save(tmp_path / "own.rule")
    with pytest.raises(gb.ModelFileError, match=r"a risk of your own: pass it as load\(..., risk=...\)"):
        gb.load(tmp_path / "own.rule")
    again = gb.load(tmp_path / "own.rule", risk=risk)
    assert again.certificate == rule.certificate
    with pytest.raises(gb.ModelFileError):
        gb.load(tmp_path / "own.rule", risk=gb.Risk(0.1, 3, loss=half_as_bad_above))


def test_an_audit_breaks_a_promise_that_others_rows_do_not_keep(bands):
    rule = gb.BandCalibrator(risk=RISK).fit(*bands[0])
    lower, point, upper, y = bands[1]
    found = rule.audit(lower, point, upper, 3 * y)
    assert found.verdict == "broken"
    assert found.p_value < 0.01
    assert "Promise broken: the mean distance of 4,000 rows from their intervals is" in found.sentence
    assert "mean loss" in found._repr_html_()
    few = rule.audit(lower[:10], point[:10], upper[:10], y[:10])
    assert few.verdict == "too few rows"
    assert few.more_rows is not None
    json.dumps(found.to_dict())


def test_a_network_of_few_rows_cannot_be_judged_by_many(rows):
    (x, y), new = ([torch.from_numpy(own) for own in part] for part in rows)
    found = gb.calibrate(Three(), (x[:40], y[:40]), risk=gb.Risk(0.3, 3)).audit(*new)
    assert found.verdict == "too few rows"
    assert found.reason == "few calibration rows"


def test_infinite_intervals_are_no_use_and_the_page_says_how_many_rows_it_takes(bands, tmp_path):
    few = [own[:10] for own in bands[0]]
    with pytest.warns(gb.InsufficientCalibrationWarning, match="at least 14 calibration rows, but there are 10"):
        rule = gb.BandCalibrator(risk=RISK).fit(*few)
    found = rule.audit(*bands[1])
    assert found.verdict == "cannot judge"
    assert "this risk needs 14" in found.sentence
    rule.report(tmp_path / "page.html", *bands[1])
    page = (tmp_path / "page.html").read_text()
    assert "Collect 4 more calibration rows" in page
    assert "90%" not in page.split('id="steps"')[1].split("</section>")[0]


@pytest.mark.parametrize("broken", [False, True])
def test_the_page_says_what_is_promised_and_what_was_found(fitted, rows, tmp_path, broken):
    model, (x, y) = fitted["{}"], rows[1]
    model.report(tmp_path / "page.html", x, 3 * y if broken else y)
    page = (tmp_path / "page.html").read_text()
    assert "Prediction intervals with a limited loss for the outcome" in page
    assert "Mean distance from the interval" in page
    assert "nothing is promised of this share" in page
    assert "confidence level" not in page.split("<script")[0].lower().replace("coverage at every level", "")
    if broken:
        assert "The mean loss of new rows is larger than promised." in page


def test_a_stored_page_is_checked(fitted, rows):
    from guardband.audit.evidence import Evidence
    from guardband.report.document import document

    model, (x, y) = fitted["{}"], rows[1]
    made = json.loads(json.dumps(document(model, Evidence.of(model, x, y))))
    assert render(checked(made)) == render(made)
    made["audit"]["risk"]["mean_loss"] = "many"
    with pytest.raises(gb.ModelFileError):
        checked(made)


def test_cards_show_the_risk(fitted, bands):
    for own in (fitted["{}"], gb.BandCalibrator(risk=RISK).fit(*bands[0])):
        html = own._repr_html_()
        assert "Mean distance" in html
        assert "90%" not in html.split("Not promised")[0].replace("with 90% confidence", "")
    own = gb.BandCalibrator(risk=RISK).fit(*bands[0]).transform([0.0], [1.0], [2.0])
    assert repr(own).startswith("1 interval\n")
    assert "1 interval<" in own._repr_html_()


def test_rows_that_belong_together_count_once(bands):
    labels = np.arange(1600) // 4
    rule = gb.BandCalibrator(risk=RISK).fit(*bands[0], entities=labels)
    assert rule.certificate.n_calibration == 400
    assert "one from each new" in str(rule.certificate)


def test_a_score_that_needs_a_level_asks_for_one(bands):
    own = gb.BandCalibrator(risk=RISK).fit(*bands[0]).transform(*bands[1][:3])
    with pytest.raises(ValueError, match="promise a risk, and no level"):
        gb.metrics.interval_score(bands[1][3], own)
    assert math.isfinite(gb.metrics.interval_score(bands[1][3], own, confidence_level=0.9))
    assert 0 < gb.metrics.coverage(bands[1][3], own) < 1


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"confidence_level": 0.9}, "takes the place of a confidence level. Remove confidence_level=0.9, or risk"),
        ({"alpha": 0.1}, "Remove alpha=0.1"),
        ({"tails": (0.05, 0.05)}, "Remove tails="),
        ({"side": "upper"}, "does not go with side='upper'. Remove side, or risk"),
        ({"joint": True, "guarantee": "pac"}, "does not go with joint=True"),
        ({"groups": "x0"}, "none for each group. Remove groups"),
        ({"groups": "auto"}, "none for each group. Remove groups"),
        ({"method": "pav"}, 'method="pav" has no promise for a risk. Remove risk, or use method="conf-nn"'),
        ({"method": "bayes"}, 'method="bayes" has no promise for a risk'),
        ({"delta": 0.1}, "delta has no effect"),
        ({"risk": 5}, r"risk must be a gb.Risk, such as gb.Risk\(limit=5, cap=100\)"),
        ({"risk": (5, 100)}, "risk must be a gb.Risk"),
    ],
)
def test_what_does_not_go_with_a_risk_is_refused_before_anything_is_trained(monkeypatch, rows, asked, words):
    from guardband.doors import fit_rows

    monkeypatch.setattr(fit_rows, "learn", None)
    with pytest.raises((ValueError, TypeError), match=words.replace("(", r"\(") if "gb.Risk" not in words else words):
        model_with(**{"risk": RISK} | asked).fit(*rows[0])


def test_a_guarantee_of_your_own_does_not_go_with_a_risk():
    from guardband.calibration.cut import PacCut

    with pytest.raises(ValueError, match='A risk needs guarantee="marginal" or "pac"'):
        gb.BandCalibrator(risk=RISK, guarantee=PacCut(0.1))


def test_other_levels_weights_and_populations_are_refused(fitted, rows, bands):
    model, (x, y) = fitted["{}"], rows[1]
    for level in (0.9, 0.8):
        with pytest.raises(ValueError, match="has no confidence level"):
            model.predict_interval(x, confidence_level=level)
    with pytest.raises(ValueError, match="cannot use weights"):
        model_with(risk=RISK, calibration_size=None).fit(*rows[0]).calibrate(x, y, weights=np.ones(len(y)))
    with pytest.raises(ValueError, match="cannot be moved to another population"):
        model.for_target(x)
    with pytest.raises(ValueError, match="cannot use weights"):
        gb.BandCalibrator(risk=RISK).fit(*bands[0], weights=np.ones(1600))
    with pytest.raises(ValueError, match="none for each group"):
        gb.BandCalibrator(risk=RISK).fit(*bands[0], groups=np.arange(1600) % 2)


def test_monitors_online_rules_and_choices_are_refused(fitted, rows):
    model, (x, y) = fitted["{}"], rows[1]
    with pytest.raises(ValueError, match="cannot be monitored"):
        gb.Monitor(model)
    with pytest.raises(ValueError, match="this model limits a mean loss"):
        gb.OnlineCalibrator("aci", model=model)

    def middle(rows):
        return 2 * rows[:, 0]

    with pytest.raises(ValueError, match="cannot use a risk"):
        gb.choose({"a": middle, "b": middle}, (x.astype(float), y), risk=RISK)


def test_a_split_by_time_and_repeated_rows_keep_the_risk(rows):
    (x, y), _ = rows
    model = model_with(risk=RISK, split_by_time=True).fit(x, y, time=np.arange(len(y)))
    assert "Split" in str(model.certificate_) or model.certificate_.in_time is not None
    with pytest.warns(gb.RepeatedRowsWarning):
        again = model_with(risk=RISK).fit(np.r_[x, x[:400]], np.r_[y, y[:400]])
    assert "that repeat no row" in str(again.certificate_)


def test_a_graph_holds_the_risk(rows, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    (x, y), (new, _) = rows
    guarded = gb.calibrate(Three(), (torch.from_numpy(x), torch.from_numpy(y)), risk=RISK)
    gb.export_onnx(guarded, torch.from_numpy(x[:5]), tmp_path / "m.onnx")
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: new})
    expected = guarded(torch.from_numpy(new)).numpy()
    for one, two in zip(found, expected.T, strict=True):
        np.testing.assert_allclose(one.reshape(-1), two, rtol=1e-5)
