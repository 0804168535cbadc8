"""Muon or Adam: what is learnt twice, and which of both is kept."""

from types import SimpleNamespace

import numpy as np
import pytest

import guardband as gb
from guardband.learning import optimisers
from guardband.learning.optimisers import AT_ONCE, learn_by_better
from guardband.learning.options import FitOptions
from guardband.learning.presets import WITH_ADAM, WITH_MUON, Preset

OPTIONS = FitOptions.of(gb.IntervalRegressor().get_params())


def learnt(epochs, losses, left_out=True):
    return SimpleNamespace(epochs=epochs, losses=losses, left_out=np.zeros(3) if left_out else None)


def calls(*outcomes, n=10_000, long_tail=False, limited=False):
    """Return by which ways rows were learnt, and what is kept, if they teach these outcomes in turn."""
    muons, rest = [], list(outcomes)

    def learn(ways):
        ((i, (_, recipe, _)),) = ways.items()
        muons.append(recipe.muon > 0)
        return {i: rest.pop(0)}

    (kept,) = learn_by_better(learn, OPTIONS, n, [long_tail], limited=limited)
    return muons, [own is kept for own in outcomes]


LATE, AT_FIRST = learnt((9, 1, 12), (1.0, 1.0, 1.0)), learnt((AT_ONCE, 1, 12), (1.0, 1.2, 1.1))


def test_copies_that_go_on_learning_are_kept():
    assert calls(LATE) == ([True], [True])


@pytest.mark.parametrize(("losses", "kept"), [((1.05, 1.1), [False, True]), ((1.2, 1.05), [True, False])])
def test_if_copies_stop_at_once_the_lower_loss_on_rows_they_did_not_see_decides(losses, kept):
    assert calls(AT_FIRST, learnt((2, 2), losses)) == ([True, False], kept)


def test_nothing_is_tried_twice_with_a_time_limit_or_without_rows_to_judge_by():
    assert calls(AT_FIRST, limited=True) == ([True], [True])
    unseen = learnt((1, 1), (1.0, 1.0), left_out=False)
    assert calls(unseen) == ([True], [True])


def test_few_rows_and_long_tails_are_learnt_by_adam_alone():
    assert calls(AT_FIRST, n=100) == ([False], [True])
    assert calls(AT_FIRST, long_tail=True) == ([False], [True])


def test_each_of_several_sets_decides_for_itself():
    taught = {True: [LATE, AT_FIRST, AT_FIRST], False: [None, learnt((1,), (1.05,)), learnt((1,), (1.2,)), LATE]}
    asked = []

    def learn(ways):
        asked.append({i: recipe.muon > 0 for i, (_, recipe, _) in ways.items()})
        return {i: taught[recipe.muon > 0][i] for i, (_, recipe, _) in ways.items()}

    kept = learn_by_better(learn, OPTIONS, 10_000, [False, False, False, True], limited=False)
    assert asked == [{0: True, 1: True, 2: True, 3: False}, {1: False, 2: False}]
    wanted = [LATE, taught[False][1], AT_FIRST, LATE]
    assert all(own is other for own, other in zip(kept, wanted, strict=True))


@pytest.mark.parametrize("way", [{}, {"calibration": "cv+", "folds": 2}])
def test_what_adam_learnt_in_place_of_muon_is_saved_and_loaded(tmp_path, monkeypatch, way):
    monkeypatch.setattr(optimisers, "AT_ONCE", 10**6)
    monkeypatch.setattr(optimisers, "_loss", lambda learned: -learned.architecture.dropout)
    monkeypatch.setitem(WITH_ADAM, "fast", Preset((8,), 2, 0.5))
    monkeypatch.setitem(WITH_MUON, "fast", Preset((8,), 3, muon=1.0))
    x = np.random.default_rng(0).standard_normal((8400, 2))
    given = {"preset": "fast", "max_epochs": 1, "random_state": 0, "split_by": []}
    model = gb.IntervalRegressor(**given, **way).fit(x, x[:, 0])
    learned = model.fitted_.learned
    one = learned.each[0] if way else learned
    assert (one.architecture.dropout, one.copies) == (0.5, 2)
    model.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband").predict_interval(x[:5])
    assert np.array_equal(again.lower, model.predict_interval(x[:5]).lower)
