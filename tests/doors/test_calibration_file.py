"""A calibration comes back from entries and tensors as it was, and no number of its certificate can be another one."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import guardband as gb
from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedInterval
from guardband.bands.time_split import TimeSplit
from guardband.calibration.calibrated import Calibrated, Chosen
from guardband.calibration.conformal import Conformal
from guardband.calibration.cut import MarginalCut, PacCut
from guardband.calibration.grouped_cut import GroupedCut
from guardband.calibration.score import Scaled
from guardband.data.entities import entities_of_labels
from guardband.doors.calibration_file import calibration_entries, calibration_tensors, restored_calibration

N = 120
LEVELS = Levels.of([0.9, 0.5])
CUTS = {
    "rows": PacCut(),
    "entities": MarginalCut(),
    "groups": GroupedCut(PacCut(), ("a", "b"), "kind"),
    "chosen": PacCut(0.2 / 3),
}
LIKE = PredictedInterval(*(np.full((1, 1, 1), own) for own in (-1.0, 0.0, 1.0)))


def rows():
    rng = np.random.default_rng(0)
    parts = np.sort(rng.standard_normal((3, 1, 1, N)), axis=0)
    return PredictedInterval(*parts), rng.standard_normal(N)


def rule_of(cut):
    return Conformal("conf-nn", LEVELS, Scaled(), cut)


def calibrated(kind):
    predicted, y = rows()
    if kind == "entities":
        entities = entities_of_labels(np.repeat(np.arange(40), 3), N)
        return Calibrated.from_entities(rule_of(CUTS[kind]), (predicted, y, Context()), entities, ("a note",))
    rule = rule_of(CUTS[kind])
    group = np.repeat([[0], [1]], N // 2, axis=0) if kind == "groups" else None
    chosen = Chosen(3, 0.2) if kind == "chosen" else None
    summary = rule.summarise(predicted, y, Context(group=group))
    return Calibrated.by(rule, summary, ("a note",), "raise", chosen=chosen)


def restored(kind, entries, tensors, n_rows=N, on_insufficient="raise"):
    """Return what comes back; the rule is the one for rows, as a file names it."""
    saved = json.loads(json.dumps(entries))
    return restored_calibration(rule_of(CUTS[kind]), saved, tensors, LIKE, n_rows, on_insufficient)


@pytest.mark.parametrize("kind", ["rows", "entities", "groups", "chosen"])
def test_a_calibration_comes_back_as_it_was(kind):
    own = calibrated(kind)
    entries, tensors = calibration_entries(own), calibration_tensors(own)
    assert all(name.startswith("summary.") for name in tensors)
    found = restored(kind, entries, tensors | {"weights.other": torch.zeros(3)})
    assert found.certificate == own.certificate
    assert found.notes == ("a note",)
    assert (found.unit, found.chosen, found.on_insufficient) == (own.unit, own.chosen, "raise")
    assert ("chosen" in entries) == (kind == "chosen")
    assert (entries["unit"] is None) == (kind != "entities")
    for name, array in own.found.arrays.items():
        np.testing.assert_array_equal(found.found.arrays[name], array)
    predicted, _ = rows()
    new = Context(group=np.zeros((N, 1), dtype=np.int64)) if kind == "groups" else Context()
    for one, other in zip(found.ends(predicted, new), own.ends(predicted, new), strict=True):
        np.testing.assert_array_equal(one, other)
    # other levels are chosen after calibration, by both
    later = [each.at(0.7, None).certificate for each in (found, own)]
    assert later[0] == later[1]
    if kind != "groups":
        assert later[0].promise.chosen_after


def test_a_model_that_is_not_calibrated_has_no_certificate():
    assert calibration_entries(None) == {"notes": None, "certificate": None, "unit": None}


def test_the_time_of_rows_comes_back_with_the_certificate():
    split = TimeSplit("day", "2020-01-01", "2020-01-02", "2020-02-01")
    own = replace(calibrated("rows"), in_time=split)
    found = restored("rows", calibration_entries(own), calibration_tensors(own))
    assert found.certificate.in_time == split
    assert found.certificate == own.certificate


def numbers_in(entries, at=()):
    """Return the place of every number and truth value of a certificate's promise."""
    found = []
    for name, value in entries.items() if isinstance(entries, dict) else enumerate(entries):
        if isinstance(value, dict | list):
            found += numbers_in(value, (*at, name))
        elif isinstance(value, bool | int | float):
            found.append((*at, name))
    return found


@pytest.mark.parametrize("kind", ["rows", "entities", "groups", "chosen"])
def test_no_number_of_a_promise_can_be_another_one(kind):
    own = calibrated(kind)
    tensors, text = calibration_tensors(own), json.dumps(calibration_entries(own))
    whole = json.loads(text)
    places = [place for place in numbers_in(whole["certificate"]["promise"]) if "width" not in str(place[-1])]
    places = [place for place in places if not {"width", "plain_width"} & set(map(str, place))]
    assert len(places) > 5
    for place in places:
        entries = json.loads(text)
        inner = entries["certificate"]["promise"]
        for name in place[:-1]:
            inner = inner[name]
        before = inner[place[-1]]
        inner[place[-1]] = (
            (not before) if isinstance(before, bool) else before + (1 if isinstance(before, int) else 1e-9)
        )
        with pytest.raises((ValueError, TypeError)):
            restored(kind, entries, tensors)


@pytest.mark.filterwarnings("ignore::guardband.DegenerateBandWarning")
def test_a_score_that_was_changed_contradicts_the_certificate_only_if_it_moves_a_number():
    """The threshold is calibrated again from the scores: the certificate tells how many of them are infinite."""
    own = calibrated("rows")
    entries, tensors = calibration_entries(own), calibration_tensors(own)
    scores = tensors["summary.rows.score"].clone()
    scores[: N // 2 + 1] = np.inf
    with pytest.raises(ValueError, match="what is calibrated here is not what the saved certificate promises"):
        restored("rows", entries, tensors | {"summary.rows.score": scores}, on_insufficient="inf")


@pytest.mark.parametrize("n_rows", [1, N - 1])
def test_more_rows_than_there_are_prints_for_are_refused(n_rows):
    own = calibrated("rows")
    with pytest.raises(ValueError, match="its number of calibration rows does not fit"):
        restored("rows", calibration_entries(own), calibration_tensors(own), n_rows)


@pytest.mark.parametrize("n_rows", [N - 1, N + 1])
def test_entities_have_as_many_rows_as_the_model(n_rows):
    own = calibrated("entities")
    with pytest.raises(ValueError, match="its number of calibration rows does not fit"):
        restored("entities", calibration_entries(own), calibration_tensors(own), n_rows)


def test_arrays_that_cannot_be_written_to_are_kept_as_they_are():
    own = calibrated("rows")
    whole = own.summary.rows("score").copy()
    whole.flags.writeable = False
    scores = whole[:]  # rows of a larger array, which are not copied
    summary = replace(own.summary, blocks=({"score": scores},))
    tensors = calibration_tensors(replace(own, summary=summary))
    assert torch.equal(tensors["summary.rows.score"], calibration_tensors(own)["summary.rows.score"])
    first = scores[0]
    tensors["summary.rows.score"][0] = first + 1
    assert scores[0] == first


def test_a_loaded_model_with_too_few_rows_does_not_look_for_how_many_it_needs():
    """That may take long, and the file may be a stranger's."""
    predicted, y = rows()
    few = predicted.rows(slice(10))
    summary = rule_of(PacCut()).summarise(few, y[:10], Context())
    with pytest.warns(gb.InsufficientCalibrationWarning, match="need at least 22 calibration rows, but there are 10"):
        own = Calibrated.by(rule_of(PacCut()), summary, (), "inf")
    entries, tensors = calibration_entries(own), calibration_tensors(own)
    with pytest.warns(
        gb.InsufficientCalibrationWarning, match="The model was calibrated on too few rows for this level"
    ):
        restored("rows", entries, tensors, 10, "inf")


@pytest.mark.parametrize(
    ("width", "fits"), [([0.0, 1.5], True), (None, True), ([-1.0, 1.0], False), ([0.5, np.inf], False)]
)
def test_widths_of_groups_are_kept_as_they_were_and_are_no_negative_numbers(width, fits):
    own = calibrated("groups")
    entries, tensors = json.loads(json.dumps(calibration_entries(own))), calibration_tensors(own)
    for part in entries["certificate"]["promise"]["parts"]:
        part["width"] = width
    if fits:
        found = restored("groups", entries, tensors)
        wanted = None if width is None else tuple(width)
        assert [part.width for part in found.certificate.promise.statements()] == [wanted] * 2
    else:
        with pytest.raises((ValueError, TypeError)):
            restored("groups", entries, tensors)
