"""What a user asks of an IntervalRegressor, checked and sorted."""

import pytest

import guardband as gb
from guardband.data.artificial import PaperModel
from guardband.learning.options import FitOptions

X, Y = PaperModel(n_features=6).draw(300, seed=1)


@pytest.mark.parametrize("preset", ["quick", None, 0, -1, True, float("inf")])
def test_other_presets_are_refused(preset):
    with pytest.raises(ValueError, match=r"preset must be"):
        gb.IntervalRegressor(preset=preset).fit(X, Y)


def test_batches_and_patience_suit_the_rows():
    options = FitOptions.of(gb.IntervalRegressor().get_params())
    recipes = [options.recipe_for(n) for n in (100, 2000, 10_000, 1_000_000)]
    assert [recipe.batch_size for recipe in recipes] == [32, 64, 256, 256]
    assert [recipe.patience for recipe in recipes] == [67, 8, 8, 4]
    given = FitOptions.of(gb.IntervalRegressor(batch_size=10, patience=3).get_params()).recipe_for(100)
    assert (given.batch_size, given.patience) == (10, 3)


@pytest.mark.parametrize("preset", ["fast", "best", 10])
@pytest.mark.parametrize("network", ["plain", "paper", lambda d: gb.nn.FullyConnected(d, (4,))])
@pytest.mark.parametrize("method", ["conf-nn", "conf-fw", "pav"])
def test_a_preset_is_refused_for_other_networks(method, network, preset):
    with pytest.raises(ValueError, match=r'preset works with network="tabular" only. Remove preset='):
        gb.IntervalRegressor(method, network=network, preset=preset).fit(X, Y)
