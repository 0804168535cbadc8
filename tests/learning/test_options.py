"""What a user asks of an IntervalRegressor, checked and sorted."""

from dataclasses import dataclass

import numpy as np
import pytest

import guardband as gb
from guardband.calibration.selection import ShortestCovering
from guardband.data.artificial import PaperModel
from guardband.learning.options import FitOptions
from guardband.nn.heads import Median, NestedTriples, Triple

X, Y = PaperModel(n_features=6).draw(300, seed=1)


@pytest.mark.parametrize("preset", ["quick", None, 0, -1, True, float("inf")])
def test_other_presets_are_refused(preset):
    with pytest.raises(ValueError, match=r"preset must be"):
        gb.IntervalRegressor(preset=preset).fit(X, Y)


def of(**given):
    return FitOptions.of(gb.IntervalRegressor(**given).get_params())


def recipe_for(n, **given):
    return of(**given).training_for(n)[1]


def copies_for(n, **given):
    return of(**given).training_for(n)[2].copies


def test_batches_and_patience_suit_the_rows():
    recipes = [recipe_for(n) for n in (100, 2000, 10_000, 1_000_000)]
    assert [recipe.batch_size for recipe in recipes] == [32, 64, 256, 256]
    assert [recipe.patience for recipe in recipes] == [67, 8, 6, 4]
    given = recipe_for(100, batch_size=10, patience=3)
    assert (given.batch_size, given.patience) == (10, 3)


@pytest.mark.parametrize(("preset", "few", "many"), [("fast", 2, 3), ("default", 8, 16), (20, 8, 16), ("best", 24, 24)])
def test_muon_and_more_copies_are_for_many_rows(preset, few, many):
    assert recipe_for(3999, preset=preset).muon == 0 < recipe_for(4000, preset=preset).muon
    assert [copies_for(n, preset=preset) for n in (3999, 4000)] == [few, many]


@pytest.mark.parametrize("preset", ["fast", "default", "best"])
def test_adam_has_other_networks(preset):
    shape, recipe, effort = of(preset=preset).training_for(10**6, muon=False)
    with_decay = of(preset=preset, weight_decay=0.1).training_for(10**6)
    assert (recipe.muon, shape, effort) == (0, with_decay[0], with_decay[2])
    assert effort.copies == copies_for(1, preset=preset)


@pytest.mark.parametrize(
    "given",
    [
        {"network": "plain"},
        {"method": "conf-fw"},
        {"power": 2},
        {"ordering": "relu"},
        {"weight_decay": 0.1},
    ],
)
def test_muon_and_more_copies_are_for_quantiles_without_decay_alone(given):
    assert recipe_for(10**6, **given).muon == 0
    assert copies_for(10**6, **given) == copies_for(1, **given)


def test_what_is_given_counts_with_every_number_of_rows():
    given = {"hidden": (30,), "dropout": 0.2, "learning_rate": 0.01}
    for n, muon in ((1, True), (10**6, True), (10**6, False)):
        shape, recipe, _ = of(**given).training_for(n, muon=muon)
        assert (shape.hidden, shape.dropout, recipe.learning_rate) == tuple(given.values())


def test_folds_of_a_table_share_their_copies_whatever_the_rows():
    assert recipe_for(10**6, calibration="cv+").muon > 0
    assert copies_for(10**6, calibration="cv+") == copies_for(1, calibration="cv+")


@pytest.mark.parametrize("preset", ["fast", "best", 10])
@pytest.mark.parametrize("network", ["plain", "paper", lambda d: gb.nn.FullyConnected(d, (4,))])
@pytest.mark.parametrize("method", ["conf-nn", "conf-fw", "pav"])
def test_a_preset_is_refused_for_other_networks(method, network, preset):
    with pytest.raises(ValueError, match=r'preset works with network="tabular" only. Remove preset='):
        gb.IntervalRegressor(method, network=network, preset=preset).fit(X, Y)


def test_only_plain_triples_are_nested_in_one_network():
    @dataclass(frozen=True)
    class Own(Triple):
        pass

    class Several(gb.Method):
        name = "several"

        def __init__(self, *specs):
            self.specs = specs

        def networks(self, request):
            return self.specs

        def rule(self, request):
            return ShortestCovering(self.name, request.levels, request.levels)

    def heads(*specs):
        options = FitOptions.of(gb.IntervalRegressor(Several(*specs)).get_params(deep=False))
        return [type(spec.head) for spec in options.specs]

    assert heads(gb.NetworkSpec(Triple(0.1)), gb.NetworkSpec(Triple(0.2))) == [NestedTriples]
    assert heads(gb.NetworkSpec(Own(0.1))) == [Own]
    assert heads(gb.NetworkSpec(Triple(0.1), 0.0), gb.NetworkSpec(Triple(0.1), 1.0)) == [Triple, Triple]
    assert heads(gb.NetworkSpec(Triple(0.1)), gb.NetworkSpec(Triple(0.1), copy=1)) == [Triple, Triple]
    with pytest.raises(ValueError, match="must be of one kind"):
        heads(gb.NetworkSpec(Triple(0.1)), gb.NetworkSpec(Own(0.1)))
    with pytest.raises(ValueError, match="needs lower, point and upper, and its networks predict a point"):
        heads(gb.NetworkSpec(Median()))
    with pytest.raises(ValueError, match="has its own shape"):
        FitOptions.of(gb.IntervalRegressor(network=lambda n: None, dropout=0.5).get_params(deep=False))


def test_patience_beside_a_number_of_epochs_is_refused():
    with pytest.raises(ValueError, match='patience works with epochs="early" or "cv"'):
        FitOptions.of(gb.IntervalRegressor(epochs=5, patience=3).get_params(deep=False))


def test_what_fit_settled_of_the_promise_cannot_be_changed_before_calibrate():
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = gb.IntervalRegressor("qreg-un", network="plain", epochs=1, calibration_size=None).fit(x, x[:, 0])
    with pytest.raises(ValueError, match="confidence_level was changed after fit"):
        model.set_params(confidence_level=0.5).calibrate(x + 1, x[:, 0])


@pytest.mark.parametrize(
    ("preset", "folds", "copies"), [("default", 8, 2), ("default", 4, 4), ("best", 8, 6), ("fast", 8, 2)]
)
def test_folds_share_twice_the_copies_of_one_table_and_each_copy_keeps_most_of_its_rows(preset, folds, copies):
    params = gb.IntervalRegressor(preset=preset, calibration="cv+", folds=folds).get_params(deep=False)
    effort = FitOptions.of(params).effort
    assert (effort.copies, effort.folds >= 8) == (copies, True)
