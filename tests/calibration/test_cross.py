"""cv+ and cv-minmax against their definition, written down entry by entry."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from guardband.bands.levels import Levels
from guardband.bands.predicted import Context, PredictedInterval
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.conformal import Conformal
from guardband.calibration.cross import FOLDS, CrossConformal, check_kind, crossed, need_held_out, refusal
from guardband.calibration.cut import MarginalCut, PacCut
from guardband.calibration.score import Additive, Residual, Scaled, Score
from guardband.calibration.sided import Sided
from guardband.doors.bands import BandCalibrator
from guardband.exceptions import InsufficientCalibrationWarning

SCORES = [Scaled(), Residual(), Additive(), Additive(relative=True)]
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def _interval(rng: np.random.Generator, *shape: int, step: float = 0.0) -> PredictedInterval:
    point = rng.standard_normal(shape)
    below, above = np.exp(0.3 * rng.standard_normal((2, *shape)))
    if step:  # ties, and sides of no width
        point, below, above = (step * np.round(own / step) for own in (point, below, above))
    return PredictedInterval(point - below, point, point + above)


def _by_definition(
    rule: CrossConformal, scores: np.ndarray, fold: np.ndarray, new: PredictedInterval, level: Fraction
) -> tuple[np.ndarray, np.ndarray]:
    n, each = len(scores), []
    for score, k in zip(scores, fold, strict=True):
        own = PredictedInterval(*(part[:, k : k + 1] for part in new.parts))
        each.append([end[0, 0] for end in rule.score.interval(own, score)])
    low, high = np.sort(np.array(each), axis=0).transpose(1, 0, 2)
    r = math.ceil(level * (n + 1))
    if rule.kind == "cv-minmax":
        q = np.sort(scores)[r - 1] if r <= n else np.inf
        ends = [rule.score.interval(PredictedInterval(*(p[:, k : k + 1] for p in new.parts)), q) for k in set(fold)]
        low, high = np.array([[one[0, 0] for one in own] for own in ends]).transpose(1, 0, 2)
        lower, upper = low.min(0), high.max(0)
    elif r > n:
        lower, upper = np.full(low.shape[1], -np.inf), np.full(low.shape[1], np.inf)
    else:
        lower, upper = low[math.floor((1 - level) * (n + 1)) - 1], high[r - 1]
    point = new.point[0].mean(0)
    finite = new.finite()[0].all(0)
    return (
        np.where(finite, np.minimum(lower, point), -np.inf),
        np.where(finite, np.maximum(upper, point), np.inf),
    )


@pytest.mark.parametrize("kind", ["cv+", "cv-minmax"])
@pytest.mark.parametrize("score", SCORES, ids=str)
@pytest.mark.parametrize("step", [0.0, 0.5], ids=["distinct", "ties"])
@pytest.mark.filterwarnings("ignore:.*nothing useful:guardband.InsufficientCalibrationWarning")
def test_intervals_are_those_of_the_definition_to_the_bit(kind: str, score: Score, step: float) -> None:
    for seed, (n, folds) in enumerate([(60, 2), (61, 4), (90, 3), (50, 7), (200, 8), (30, 30)]):
        rng = np.random.default_rng(seed)
        fold = rng.permutation(np.arange(n) % folds)
        held_out, y = _interval(rng, 1, 1, n, step=step), 2 * rng.standard_normal(n)
        if step:
            y = step * np.round(y / step)
        new = _interval(rng, 1, folds, 40, step=step)
        new.upper[0, 0, :2] = np.inf  # a model that predicts no number
        levels = Levels.of([0.5, 0.8, 0.9])
        rule = CrossConformal("conf-nn", levels, score, kind, folds)
        calibrated = Calibrated.from_blocks(rule, [(held_out, y, Context(fold=fold))])
        lower, point, upper = calibrated.ends(new, Context())
        scores = rule.scores(held_out, y, Context())
        for i, level in enumerate(levels.values):
            low, high = _by_definition(rule, scores, fold, new, level)
            assert np.array_equal(lower[:, i], low)
            assert np.array_equal(upper[:, i], high)
        assert np.array_equal(point, new.point[0].mean(0))


def test_an_infinite_score_counts_as_one_that_is_never_reached() -> None:
    rng, n = np.random.default_rng(0), 99
    held_out, y, fold = _interval(rng, 1, 1, n), rng.standard_normal(n), np.arange(n) % 3
    held_out.lower[0, 0, :9] = -np.inf  # nine infinite scores: at 0.9 the 90th of 99 is still finite
    rule = CrossConformal("conf-nn", Levels.of([0.9, 0.95]), Scaled(), "cv+", 3)
    with pytest.warns(UserWarning, match="more than this level allows"):
        calibrated = Calibrated.from_blocks(rule, [(held_out, y, Context(fold=fold))])
    lower, _, upper = calibrated.ends(_interval(rng, 1, 3, 10), Context())
    assert np.isfinite(lower[:, 0]).all()
    assert np.isfinite(upper[:, 0]).all()
    assert np.isinf(lower[:, 1]).all()
    assert np.isinf(upper[:, 1]).all()
    assert calibrated.found.promise.whole_line == (False, True)


@pytest.mark.parametrize(("n", "infinite"), [(9, False), (8, True)])
def test_intervals_are_finite_from_the_row_on_that_the_rank_needs(n: int, infinite: bool) -> None:
    rng = np.random.default_rng(1)
    block = (_interval(rng, 1, 1, n), rng.standard_normal(n), Context(fold=np.arange(n) % 2))
    rule = CrossConformal("conf-nn", Levels.of(0.9), Scaled(), "cv+", 2)
    if infinite:
        with pytest.warns(InsufficientCalibrationWarning, match="at least 9 calibration rows"):
            calibrated = Calibrated.from_blocks(rule, [block])
    else:
        calibrated = Calibrated.from_blocks(rule, [block])
    lower, _, upper = calibrated.ends(_interval(rng, 1, 2, 5), Context())
    assert (np.isinf(lower) & np.isinf(upper)).all() == infinite
    assert calibrated.found.promise.rank == (9,)


def test_minmax_contains_plus_and_a_higher_level_contains_a_lower_one() -> None:
    rng, n = np.random.default_rng(2), 120
    block = (_interval(rng, 1, 1, n), rng.standard_normal(n), Context(fold=np.arange(n) % 4))
    new, ends = _interval(rng, 1, 4, 50), {}
    for kind in ("cv+", "cv-minmax"):
        rule = CrossConformal("conf-nn", Levels.of([0.8, 0.95]), Scaled(), kind, 4)
        ends[kind] = Calibrated.from_blocks(rule, [block]).ends(new, Context())
        assert (ends[kind][0][:, 1] <= ends[kind][0][:, 0]).all()
        assert (ends[kind][2][:, 1] >= ends[kind][2][:, 0]).all()
    assert (ends["cv-minmax"][0] <= ends["cv+"][0]).all()
    assert (ends["cv-minmax"][2] >= ends["cv+"][2]).all()


def test_blocks_of_rows_give_what_all_rows_give() -> None:
    rng, n = np.random.default_rng(3), 64
    held_out, y, fold = _interval(rng, 1, 1, n), rng.standard_normal(n), np.arange(n) % 4
    rule = CrossConformal("cqr", Levels.of(0.9), Additive(), "cv+", 4)
    whole = Calibrated.from_blocks(rule, [(held_out, y, Context(fold=fold))])
    cuts = [slice(0, 10), slice(10, 11), slice(11, n)]
    parts = Calibrated.from_blocks(rule, [(held_out.rows(s), y[s], Context(fold=fold[s])) for s in cuts])
    new = _interval(rng, 1, 4, 20)
    for one, other in zip(whole.ends(new, Context()), parts.ends(new, Context()), strict=True):
        assert np.array_equal(one, other)


def test_a_level_that_is_asked_for_later_is_said_to_be() -> None:
    rng, n = np.random.default_rng(4), 64
    block = (_interval(rng, 1, 1, n), rng.standard_normal(n), Context(fold=np.arange(n) % 4))
    rule = CrossConformal("conf-nn", Levels.of(0.9), Scaled(), "cv+", 4)
    later = Calibrated.from_blocks(rule, [block]).at(0.8, None)
    first = Calibrated.from_blocks(replace(rule, levels=Levels.of(0.8)), [block])
    new = _interval(rng, 1, 4, 20)
    assert np.array_equal(later.ends(new, Context())[0], first.ends(new, Context())[0])
    assert later.certificate.promise.chosen_after
    assert not first.certificate.promise.chosen_after
    assert "you chose this level after calibration" in str(later.certificate)


def test_what_cannot_be_crossed_is_refused() -> None:
    levels = Levels.of(0.9)
    with pytest.raises(ValueError, match="guarantee='pac'"):
        crossed(Conformal("conf-nn", levels, Scaled(), PacCut()), "cv+", 4)
    with pytest.raises(ValueError, match="without side and tails"):
        crossed(Sided.of("conf-nn", levels, Scaled(), MarginalCut(), "upper"), "cv+", 4)
    with pytest.raises(ValueError, match="folds must be at least 2"):
        crossed(Conformal("conf-nn", levels, Scaled(), MarginalCut()), "cv+", 1)
    rule = crossed(Conformal("conf-nn", levels, Scaled(), MarginalCut()), "cv+", 4)
    with pytest.raises(ValueError, match="groups"):
        rule.for_groups(("a",))
    with pytest.raises(ValueError, match="weights"):
        rule.for_weights()


def test_rows_without_their_fold_or_with_another_number_of_models_are_refused() -> None:
    rng = np.random.default_rng(5)
    rule = CrossConformal("conf-nn", Levels.of(0.9), Scaled(), "cv+", 3)
    rows, y = _interval(rng, 1, 1, 30), rng.standard_normal(30)
    with pytest.raises(ValueError, match="needs the fold of every row"):
        Calibrated.from_blocks(rule, [(rows, y, Context())])
    with pytest.raises(ValueError, match="Each of 3 folds needs at least one row"):
        Calibrated.from_blocks(rule, [(rows, y, Context(fold=np.arange(30) % 2))])
    with pytest.raises(ValueError, match="from 0 to 2"):
        Calibrated.from_blocks(rule, [(rows, y, Context(fold=np.arange(30) % 4))])
    calibrated = Calibrated.from_blocks(rule, [(rows, y, Context(fold=np.arange(30) % 3))])
    with pytest.raises(ValueError, match="a prediction of each fold's model, 3 in all, found 1"):
        calibrated.ends(rows, Context())


def test_a_level_at_which_nothing_useful_is_proved_is_warned_of() -> None:
    rule = BandCalibrator("conf-fw", confidence_level=0.5, calibration="cv+")
    with pytest.warns(InsufficientCalibrationWarning, match=r"nothing useful at 50%\. Ask for a higher level"):
        rule.fit(None, np.zeros(40), None, np.arange(40.0), folds=np.arange(40) % 4)


def test_what_goes_with_a_rule_by_cross_validation_is_kept() -> None:
    plain = Conformal("conf-nn", Levels.of(0.9), Scaled(), MarginalCut())
    assert crossed(plain, "cv+", 4).left_over == 0
    assert CrossConformal("conf-nn", Levels.of(0.9), Scaled(), "cv+", 4).left_over == 0
    rule = crossed(plain, "cv+", 4, left_over=3)
    rng, fold = np.random.default_rng(6), np.arange(64) % 4
    rows, y = _interval(rng, 1, 1, 64), rng.standard_normal(64)
    summary = rule.summarise(rows, y, Context(fold=fold))
    assert rule.calibrate(summary).promise.left_over == 3  # type: ignore[attr-defined]
    np.testing.assert_array_equal(rule.calibration_scores(summary), rule.scores(rows, y, Context()))
    assert FOLDS == 8  # a file that does not say the number means this one


def test_folds_below_zero_are_refused_in_a_sentence() -> None:
    rule = CrossConformal("conf-nn", Levels.of(0.9), Scaled(), "cv+", 3)
    rows, fold = _interval(np.random.default_rng(7), 1, 1, 30), np.arange(30) % 3
    with pytest.raises(ValueError, match=r"The folds of calibration rows must be numbers from 0 to 2\."):
        rule.calibrate(rule.summarise(rows, np.zeros(30), Context(fold=np.where(fold == 2, -1, fold))))


def test_a_useless_level_is_told_in_a_sentence() -> None:
    rule = CrossConformal("conf-fw", Levels.of((0.9, 0.5)), Residual(), "cv+", 4)
    rows, fold = _interval(np.random.default_rng(8), 1, 1, 40), np.arange(40) % 4
    (remark,) = rule.calibrate(rule.summarise(rows, np.arange(40.0), Context(fold=fold))).remarks
    assert remark.in_words() == (
        'calibration="cv+" proves nothing useful at 50%. Ask for a higher level, or use calibration="split" '
        "(--calibration split)."
    )
    assert not remark.infinite


def test_refusals_name_what_was_asked_and_what_to_use() -> None:
    assert refusal("cv-minmax", "groups") == (
        'calibration="cv-minmax" cannot be combined with groups. Remove it, or use calibration="split" (--calibration '
        "split)."
    )
    with pytest.raises(ValueError, match=r'calibration must be one of "split", "cv\+", "cv-minmax", found \'cv\'\.'):
        check_kind("cv")
    plain = Conformal("conf-nn", Levels.of(0.9), Scaled(), MarginalCut())
    need_held_out(plain, "monitor it")
    with pytest.raises(ValueError, match=r'Use calibration="split" \(--calibration split\) to monitor it\.'):
        need_held_out(crossed(plain, "cv+", 4), "monitor it")


@pytest.mark.parametrize("kind", ["cv+", "cv-minmax"])
def test_with_many_folds_rows_are_predicted_one_by_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, fold = np.random.default_rng(9), np.arange(64) % 4
    rule = CrossConformal("conf-nn", Levels.of(0.9), Scaled(), kind, 4)
    summary = rule.summarise(_interval(rng, 1, 1, 64), rng.standard_normal(64), Context(fold=fold))
    arrays, new = rule.calibrate(summary).arrays, _interval(rng, 1, 4, 5)
    whole = rule.ends(new, Context(), arrays)
    monkeypatch.setattr("guardband.calibration.cross.ENTRIES_AT_A_TIME", 2)
    for one, other in zip(rule.ends(new, Context(), arrays), whole, strict=True):
        np.testing.assert_array_equal(one, other)
