"""A calibrated rule on disk, under audit, and on its page."""

import numpy as np
import pandas as pd
import pytest
import torch

import guardband as gb
from forged_models import RULES, bounds, forged, new_intervals
from guardband.bands.predicted import PredictedInterval
from guardband.doors.band_columns import BandColumns
from guardband.doors.file_format import read
from reported import is_headed


@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
@pytest.mark.parametrize("name", RULES)
def test_a_rule_comes_back_as_it_was(name, tmp_path):
    rule = RULES[name]()
    rule.save(tmp_path / "r")
    again = gb.load(tmp_path / "r")
    assert again.certificate == rule.certificate
    assert again.columns == rule.columns
    assert again.settings() == rule.settings()
    np.testing.assert_array_equal(np.asarray(new_intervals(again)), np.asarray(new_intervals(rule)))
    again.save(tmp_path / "twice")
    (entries, tensors), (own, held) = (read(tmp_path / name) for name in ("twice", "r"))
    assert entries == own
    assert all(torch.equal(tensors[name], held[name]) for name in tensors.keys() | held.keys())


def test_a_rule_can_be_had_at_other_levels_after_loading(tmp_path):
    rule = gb.BandCalibrator().fit(*bounds())
    rule.save(tmp_path / "r")
    new = bounds(5, seed=1)[:3]
    wider = gb.load(tmp_path / "r").transform(*new, confidence_level=0.95)
    np.testing.assert_array_equal(wider.upper, rule.transform(*new, confidence_level=0.95).upper)


def test_new_rows_judge_a_rule_and_its_own_rows_cannot(tmp_path):
    own = bounds(300)
    rule = gb.BandCalibrator().fit(*own)
    rule.save(tmp_path / "r")
    for judged in (rule, gb.load(tmp_path / "r")):
        assert judged.audit(*bounds(300, seed=1)).verdict == "consistent"
        found = judged.audit(*own)
        assert found.verdict == "cannot judge"
        assert "300 of 300 rows" in found.sentence
        lower, point, upper, y = bounds(300, seed=2)
        assert judged.audit(lower, point, upper, point + 3 * (y - point)).verdict == "broken"


def test_an_audit_tells_bounds_that_moved():
    rule = gb.BandCalibrator().fit(*bounds(500))
    lower, point, upper, y = bounds(500, seed=1)
    found = rule.audit(lower + 1, point + 1, upper + 1, y + 1, group=np.arange(500) % 2)
    assert {shift.name for shift in found.drift.columns if shift.drifted} == {"lower", "point", "upper"}
    assert [family.key for family in found.families if family.key == "group"] == ["group"]


@pytest.mark.parametrize("with_rows", [True, False])
def test_a_rule_has_a_page(with_rows, tmp_path):
    rule = gb.BandCalibrator("cqr", guarantee="pac").fit(*bounds(300))
    page = rule.report(tmp_path / "page.html", *(bounds(300, seed=1) if with_rows else ()))
    text = page.read_text()
    assert "lower, point and upper, from the columns" in text
    assert ("Not yet checked" in text) is not with_rows


def test_the_page_of_a_rule_takes_title_author_and_unit(tmp_path):
    rule = gb.BandCalibrator().fit(*bounds(300))
    page = rule.report(tmp_path / "p.html", *bounds(300, seed=1), title="Sales", author="A. Analyst", unit="EUR")
    assert is_headed(page.read_text(encoding="utf-8"))


def test_a_rule_for_entities_is_audited_by_new_ones(tmp_path):
    labels = np.arange(400) // 4
    gb.BandCalibrator().fit(*bounds(400), entities=labels).save(tmp_path / "r")
    rule = gb.load(tmp_path / "r")
    new = bounds(400, seed=1)
    with pytest.raises(ValueError, match="Pass entities="):
        rule.audit(*new)
    assert rule.audit(*new, entities=labels + 1000).n == 100
    assert rule.audit(*new, entities=labels).verdict == "cannot judge"


def test_a_table_with_names_must_have_a_number_in_every_cell():
    lower, point, upper, y = bounds(50)
    columns = BandColumns("interval", ("lo", "mid", "hi"))
    frame = pd.DataFrame({"hi": upper, "id": range(50), "lo": lower, "mid": point})
    rule = gb.BandCalibrator().fit_table(frame, y, columns)
    assert rule.certificate == gb.BandCalibrator().fit(lower, point, upper, y).certificate
    for value, what in ((np.nan, "a missing"), (np.inf, "an infinite")):
        with pytest.raises(ValueError, match=f"'mid' has {what} value in row 3. Fill it in, or remove the row."):
            rule.read_rows(frame.assign(mid=np.where(frame.index == 3, value, point)))
    with pytest.raises(ValueError, match="held numbers when"):
        rule.read_rows(frame.assign(mid="much"))
    with pytest.raises(ValueError, match="lacks 1 of"):
        rule.read_rows(frame.drop(columns="hi"))
    with pytest.raises(ValueError, match=r"rows 0, 1.* calibrate with crossing=.sort. \(on the command line"):
        gb.BandCalibrator().fit_table(frame.rename(columns={"hi": "lo", "lo": "hi"}), y, columns)


def test_bounds_and_a_point_come_in_the_form_that_fit_had():
    lower, point, upper, y = bounds(50)
    with pytest.raises(ValueError, match="Bring lower and upper, with or without a point, or a point alone"):
        gb.BandCalibrator().fit(lower, point, None, y)
    rule = gb.BandCalibrator("conf-fw").fit(None, point, None, y)
    with pytest.raises(ValueError, match="Bring point, as fit was given, found lower, point, upper"):
        rule.audit(lower, point, upper, y)
    halfway = gb.BandCalibrator().fit(lower, None, upper, y).transform(lower, None, upper)
    np.testing.assert_allclose(halfway.point, (lower + upper) / 2)


def test_a_file_cannot_lack_the_bound_that_its_promise_is_about(tmp_path):
    _, point, upper, y = bounds(100)
    gb.BandCalibrator(side="upper").fit(None, point, upper, y).save(tmp_path / "r")
    assert gb.load(tmp_path / "r").columns.names == ("point", "upper")
    entries, tensors = read(tmp_path / "r")[:2]
    with pytest.raises(gb.ModelFileError, match="lack a bound that its promise is about"):
        gb.load(forged(tmp_path / "forged", entries | {"form": "lower"}, tensors))


def test_predictions_of_a_kind_of_ones_own_are_not_saved(tmp_path):
    class Own(PredictedInterval):
        pass

    lower, point, upper, y = bounds(50)
    rule = gb.BandCalibrator().fit_predicted(Own(lower, point, upper), y)
    with pytest.raises(ValueError, match="a kind of your own cannot be saved"):
        rule.save(tmp_path / "r")
    assert not list(tmp_path.iterdir())


def test_load_takes_nothing_that_a_rule_does_not_need(tmp_path):
    gb.BandCalibrator().fit(*bounds()).save(tmp_path / "r")
    with pytest.raises(gb.ModelFileError, match="it holds no model: remove model="):
        gb.load(tmp_path / "r", model=print)
    with pytest.raises(gb.ModelFileError, match="its own method"):
        gb.load(tmp_path / "r", method=gb.Method)
