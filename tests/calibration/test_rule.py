"""What every rule owes: it refuses what it cannot use, lets a side be infinite, and calibrates without side effects."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import guardband as gb
from guardband.bands.levels import Levels
from guardband.bands.predicted import Predicted, PredictedGaussian, PredictedInterval, PredictedPoint
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.conformal import Conformal
from guardband.calibration.cut import MarginalCut, PacCut
from guardband.calibration.score import Scaled
from guardband.methods.conf_nn import ConfNN
from guardband.methods.method import Request
from guardband.methods.registry import method_named, method_names
from predictions import predictions, predictions_for

KINDS = (PredictedInterval, PredictedGaussian, PredictedPoint)
EVERY = pytest.mark.parametrize("name", method_names())


def rule_of(name):
    return method_named(name).rule(Request.of([0.9, 0.5]))


WRONG = [(name, kind) for name in method_names() for kind in KINDS if not issubclass(kind, rule_of(name).takes)]


def test_every_rule_but_that_of_a_point_alone_takes_one_kind():
    taken = {name: rule_of(name).takes for name in method_names()}
    assert [name for name, kind in taken.items() if kind is Predicted] == ["conf-fw"]
    assert [name for name, kind in taken.items() if kind is PredictedGaussian] == ["neg-ll", "bayes"]
    assert len(WRONG) == 2 * (len(taken) - 1)


@pytest.mark.parametrize(("name", "kind"), WRONG)
def test_another_kind_of_prediction_is_refused_with_what_to_bring(name, kind):
    rule = rule_of(name)
    predicted, y = predictions(kind, 20, rule.candidates or 6)
    message = f"{name} needs {rule.takes.what}, found {kind.what}. {rule.takes.hint}"
    for refuse in (
        lambda: rule.check(predicted, gb.Context()),
        lambda: Calibrated.from_blocks(rule, [(predicted, y, gb.Context())]),
    ):
        with pytest.raises(ValueError) as refused:  # noqa: PT011
            refuse()
        assert str(refused.value) == message
        assert "\n" not in message


@EVERY
def test_new_rows_of_another_kind_are_refused(name):
    rule = rule_of(name)
    predicted, y = predictions_for(rule, 100)
    calibrated = Calibrated.from_blocks(rule, [(predicted, y, gb.Context())])
    for kind in [kind for own, kind in WRONG if own == name]:
        with pytest.raises(ValueError, match=f"{name} needs {rule.takes.what}, found {kind.what}"):
            calibrated.ends(predictions(kind, 5, predicted.candidates)[0], gb.Context())


@pytest.mark.parametrize("name", ["neg-ll", "bayes"])
def test_a_gaussian_is_asked_for_where_plain_intervals_come(name):
    predicted, y = predictions(PredictedInterval, 50)
    with pytest.raises(ValueError, match=f"{name} needs mean and standard deviation.*bring a PredictedGaussian"):
        gb.BandCalibrator(name).fit(*(part[0] for part in predicted.parts), y)


def test_intervals_are_asked_for_where_a_gaussian_comes():
    predicted, y = predictions(PredictedGaussian, 50)
    with pytest.raises(ValueError, match=r"conf-nn needs lower, point and upper.*TripleHead, or bring intervals"):
        gb.BandCalibrator("conf-nn").fit_predicted(predicted.map(lambda part: part[0]), y)


@EVERY
def test_another_number_of_candidates_is_refused_with_the_number_that_is_taken(name):
    rule = rule_of(name)
    predicted, _ = predictions_for(rule, 20)
    if rule.candidates is not None:
        taken = rf"{name} takes {rule.candidates} candidate\(s\), found"
    elif name == "high-q":
        taken = "high-q takes as many candidates for each of 2 levels, found"
    else:
        assert name == "neg-ll"  # any number
        rule.check(predicted.map(lambda part: part[:, :1]), gb.Context())
        return
    found = predicted.candidates + 1
    more = predicted.map(lambda part: np.concatenate([part, part[:, :1]], 1))
    with pytest.raises(ValueError, match=rf"^{taken} {found}\.$"):
        rule.check(more, gb.Context())


@EVERY
def test_what_is_known_of_rows_in_vain_is_refused(name):
    rule = rule_of(name)
    predicted, _ = predictions_for(rule, 20)
    with pytest.raises(ValueError, match=f"{name} does not use the group of rows. Remove group from the context"):
        rule.check(predicted, gb.Context(group=np.zeros(20)))


def test_a_context_that_is_too_long_is_refused_however_many_blocks_there_are(monkeypatch):
    monkeypatch.setattr("guardband.doors.fit_bands.ROWS_AT_A_TIME", 4)

    class Grouped(MarginalCut):
        uses = frozenset({"group"})

    rule = gb.BandCalibrator(guarantee=Grouped(), confidence_level=0.5)
    bands = np.zeros(8), np.ones(8), np.full(8, 2.0)
    with pytest.raises(ValueError, match="group must have one entry for each of 8 rows"):
        rule.fit(*bands, np.arange(8.0), context=gb.Context(group=np.zeros(9)))
    rule.fit(*bands, np.arange(8.0), context=gb.Context(group=np.zeros(8)))


@dataclass(frozen=True)
class Above(gb.Score):
    """How far y lies above the upper bound: its intervals have no lower end."""

    takes = PredictedInterval

    def distance(self, predicted, y):
        return y - predicted.upper

    def around(self, predicted, threshold, xp=np):
        upper = predicted.upper + threshold
        return xp.full_like(upper, -xp.inf), upper


class OneSided(ConfNN):
    name = "one-sided"
    score = Above()


@pytest.mark.parametrize("cut", [MarginalCut(), PacCut(0.1)], ids=repr)
def test_a_one_sided_score_has_one_side_infinite_and_the_other_finite(cut):
    rule = Conformal("one-sided", Levels.of([0.9, 0.5]), Above(), cut)
    predicted, y = predictions(PredictedInterval, 199)
    calibrated = Calibrated.from_blocks(rule, [(predicted, y, gb.Context())])  # without a warning
    lower, point, upper = calibrated.ends(predicted, gb.Context())
    assert (lower == -np.inf).all()
    assert np.isfinite(upper).all()
    np.testing.assert_array_equal(point, predicted.point[0, 0])
    promise = calibrated.found.promise
    assert not any(promise.whole_line)
    assert tuple((y[:, None] <= upper).sum(0)) == promise.rank


def test_a_one_sided_score_passes_through_a_method_of_ones_own():
    predicted, y = predictions(PredictedInterval, 199)
    bands = tuple(part[0, 0] for part in predicted.parts)
    rule = gb.BandCalibrator(OneSided()).fit(*bands, y)
    out = rule.transform(*bands)
    assert (out.lower == -np.inf).all()
    assert np.isfinite(out.upper).all()
    assert gb.metrics.coverage(y, out) == rule.certificate.rank / 199
    assert rule.certificate.method == "one-sided"


TOO_FEW = ("conf-nn", "conf-fw", "cqr", "cqr-r", "pav", "bayes")


@EVERY
@pytest.mark.parametrize("n", [1, 200])
def test_calibrating_warns_of_nothing_and_changes_nothing(name, n):
    rule = rule_of(name)
    predicted, y = predictions_for(rule, n)
    summary = rule.summarise(predicted, y + 100 * (n == 1), gb.Context())
    before = {name: array.copy() for name, array in summary.to_arrays().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, two = rule.calibrate(summary), rule.calibrate(summary)
    for own, array in summary.to_arrays().items():
        np.testing.assert_array_equal(array, before[own])
    for own, array in one.arrays.items():
        np.testing.assert_array_equal(array, two.arrays[own])
    assert one.promise == two.promise
    assert [own.in_words() for own in one.remarks] == [own.in_words() for own in two.remarks]
    assert bool(one.remarks) == (n == 1 and name in TOO_FEW)


@pytest.mark.parametrize("name", TOO_FEW)
def test_what_a_rule_remarks_is_warned_of_by_what_calibrates_or_refused(name):
    rule = rule_of(name)
    predicted, y = predictions_for(rule, 1)
    y = y + 100
    with pytest.warns(gb.InsufficientCalibrationWarning) as caught:
        Calibrated.from_blocks(rule, [(predicted, y, gb.Context())])
    remarks = rule.calibrate(rule.summarise(predicted, y, gb.Context())).remarks
    assert len(caught) == len(remarks)
    assert all(str(w.message).endswith(remark.in_words()) for w, remark in zip(caught, remarks, strict=True))
    with pytest.raises(gb.InsufficientCalibrationError):
        Calibrated.from_blocks(rule, [(predicted, y, gb.Context())], on_insufficient="raise")


def test_scores_and_cuts_are_objects_and_a_score_says_what_it_takes():
    levels = Levels.of(0.9)
    with pytest.raises(TypeError, match="a Score and a Cut, as objects"):
        Conformal("mine", levels, Scaled(), PacCut)

    class Silent(gb.Score):
        def distance(self, predicted, y):
            return y

        def around(self, predicted, threshold, xp=np):
            return threshold, threshold

    with pytest.raises(TypeError, match="must say what kind of prediction it takes"):
        Conformal("mine", levels, Silent(), PacCut())
