import numpy as np
import pytest
import torch

import guardband as gb
from guardband.bands.predicted import Predicted, PredictedGaussian, PredictedInterval, PredictedPoint

COPIES, CANDIDATES, N = 2, 3, 5
RNG = np.random.default_rng(0)


def made(kind, copies=COPIES, candidates=CANDIDATES, n=N):
    count = {PredictedInterval: 3, PredictedGaussian: 2, PredictedPoint: 1}[kind]
    parts = np.sort(RNG.standard_normal((count, copies, candidates, n)), axis=0)
    return kind(*(parts if kind is not PredictedGaussian else (parts[0], np.exp(parts[1]))))


KINDS = (PredictedInterval, PredictedGaussian, PredictedPoint)
EVERY = pytest.mark.parametrize("own", [made(kind) for kind in KINDS], ids=lambda own: type(own).__name__)


def assert_same(one, two):
    assert type(one) is type(two)
    for a, b in zip(one.parts, two.parts, strict=True):
        np.testing.assert_array_equal(a, b)


@EVERY
def test_it_knows_its_copies_candidates_and_rows(own):
    assert (own.copies, own.candidates, len(own)) == (COPIES, CANDIDATES, N)
    assert all(part.shape == own.point.shape for part in own.parts)


def test_the_point_of_a_gaussian_is_its_mean():
    own = made(PredictedGaussian)
    assert own.point is own.mean


@EVERY
def test_map_changes_every_part_and_keeps_the_kind(own):
    assert_same(own.map(lambda part: 2 * part), type(own)(*(2 * part for part in own.parts)))


@EVERY
@pytest.mark.parametrize("index", [slice(1, 4), np.array([3, 0, 0]), np.arange(N) % 2 == 0], ids=str)
def test_rows_are_those_asked_for_in_their_order(own, index):
    assert_same(own.rows(index), type(own)(*(part[:, :, index] for part in own.parts)))


@EVERY
def test_of_copy_takes_each_row_from_its_own_copy(own):
    which = np.array([0, 1, 1, 0, 1])
    found = own.of_copy(which)
    assert (found.copies, found.candidates, len(found)) == (1, CANDIDATES, N)
    for i, copy in enumerate(which):
        assert_same(found.rows([i]), own.rows([i]).map(lambda part, copy=copy: part[copy : copy + 1]))


def test_moved_is_the_prediction_of_a_response_in_other_units():
    interval, gaussian, point = (made(kind) for kind in KINDS)
    assert_same(interval.moved(7, 2), PredictedInterval(*(7 + 2 * part for part in interval.parts)))
    assert_same(point.moved(7, 2), PredictedPoint(7 + 2 * point.point))
    assert_same(gaussian.moved(7, 2), PredictedGaussian(7 + 2 * gaussian.mean, 2 * gaussian.deviation))


@EVERY
def test_side_by_side_keeps_all_candidates_in_their_order(own):
    other = made(type(own), candidates=1)
    both = Predicted.side_by_side([own, other, own])
    assert both.candidates == 2 * CANDIDATES + 1
    assert_same(both.map(lambda part: part[:, :CANDIDATES]), own)
    assert_same(both.map(lambda part: part[:, CANDIDATES : CANDIDATES + 1]), other)
    assert_same(both.map(lambda part: part[:, CANDIDATES + 1 :]), own)
    assert Predicted.side_by_side([own]) is own


@EVERY
def test_torch_and_numpy_give_the_same(own):
    theirs = own.map(torch.from_numpy)
    for change in (lambda one: one.rows(slice(1, 3)), lambda one: one.moved(1, 3)):
        assert_same(change(theirs).map(lambda part: part.numpy()), change(own))
    joined = Predicted.side_by_side([theirs, theirs], torch)
    assert_same(joined.map(lambda part: part.numpy()), Predicted.side_by_side([own, own]))
    np.testing.assert_array_equal(theirs.finite(torch).numpy(), own.finite())


@EVERY
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_finite_is_where_every_part_is(own, value):
    for i in range(len(own.parts)):
        broken = own.map(np.copy)
        broken.parts[i][1, 2, 3] = value
        assert np.argwhere(~broken.finite()).tolist() == [[1, 2, 3]]
    assert own.finite().all()


@pytest.mark.parametrize("deviation", [0.0, -1.0])
def test_a_gaussian_is_finite_with_a_positive_deviation_only(deviation):
    own = made(PredictedGaussian)
    own.deviation[0, 1, 2] = deviation
    assert np.argwhere(~own.finite()).tolist() == [[0, 1, 2]]


def test_bounds_that_cross_are_faults():
    own = made(PredictedInterval)
    own.lower[0, 1, 2] = own.point[0, 1, 2] + 1
    own.upper[1, 2, 4] = own.point[1, 2, 4] - 1
    own.lower[:, :, 0] = own.upper[:, :, 0] = own.point[:, :, 0]
    faults, holds = own.faults()
    assert faults.tolist() == [False, False, True, False, True]
    assert holds == "lower <= point <= upper"


def test_a_bound_that_is_no_number_is_no_fault_and_hides_none_beside_it():
    own = made(PredictedInterval)
    own.lower[0, 0, 1], own.upper[0, 0, 1] = np.nan, own.point[0, 0, 1] - 1
    own.lower[0, 0, 3], own.upper[1, 1, 3] = np.nan, own.point[1, 1, 3] - 1
    assert own.faults()[0].tolist() == [False, False, False, True, False]


def test_deviations_that_are_not_positive_are_faults():
    own = made(PredictedGaussian)
    own.deviation[0, 1, 2], own.deviation[1, 0, 3], own.deviation[0, 0, 4] = 0.0, -1.0, np.nan
    faults, holds = own.faults()
    assert faults.tolist() == [False, False, True, True, False]
    assert holds == "deviation > 0"


def test_a_point_has_no_faults():
    assert not PredictedPoint(np.full((1, 1, 4), np.nan)).faults()[0].any()


GROUP = np.array(["a", "b", "a", "b", "b"])


def test_context_is_what_was_brought():
    own = gb.Context(group=GROUP, weight=np.arange(5.0))
    assert list(own.given()) == ["group", "weight"]
    some = own.rows(np.array([4, 0]))
    assert some.group.tolist() == ["b", "a"]
    assert some.weight.tolist() == [4, 0]
    assert some.time is None
    assert gb.Context().given() == {}


def test_a_context_with_just_what_is_used_passes():
    gb.Context().check(frozenset(), 5, "conf-nn")
    gb.Context(group=GROUP).check(frozenset({"group"}), 5, "conf-nn")


def test_what_is_missing_of_a_context_is_asked_for():
    with pytest.raises(ValueError, match=r"conf-nn needs the group of every row\. Bring context=Context\(group="):
        gb.Context(weight=np.ones(5)).check(frozenset({"group", "weight"}), 5, "conf-nn")


def test_what_a_context_holds_in_vain_is_refused():
    with pytest.raises(ValueError, match=r"conf-nn does not use the time of rows\. Remove time from the context"):
        gb.Context(group=GROUP, time=np.arange(5)).check(frozenset({"group"}), 5, "conf-nn")


@pytest.mark.parametrize("group", [GROUP[:4], GROUP[None], GROUP[:, None, None]], ids=lambda group: str(group.shape))
def test_a_context_of_another_length_is_refused(group):
    with pytest.raises(ValueError, match=r"group must have one entry for each of 5 rows, found shape \("):
        gb.Context(group=group).check(frozenset({"group"}), 5, "conf-nn")
