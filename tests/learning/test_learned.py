"""What a rule sees of several copies: their average, or each of them."""

import numpy as np
import pytest

import guardband as gb
from guardband.bands.predicted import PredictedInterval
from guardband.calibration.conformal import Conformal
from guardband.data.artificial import PaperModel
from guardband.methods.conf_nn import ConfNN

X, Y = PaperModel(n_features=3).draw(300, seed=1)
QUICK = {"network": "tabular", "preset": "fast", "hidden": (8,), "epochs": 3, "random_state": 0}


class Union(Conformal):
    """The band from the lowest lower to the highest upper bound of all copies; it notes how many it saw."""

    each_copy = True
    seen = []  # noqa: RUF012

    def joined(self, predicted, xp):
        self.seen.append(predicted.copies)
        low, high = (xp.stack([own[k] for k in range(len(own))]) for own in (predicted.lower, predicted.upper))
        low, high = (low.amin(0), high.amax(0)) if xp is not np else (low.min(0), high.max(0))
        return PredictedInterval(low[None], predicted.point.mean(0)[None], high[None])

    def scores(self, predicted, y, context):
        return super().scores(self.joined(predicted, np), y, context)

    def ends(self, predicted, context, arrays, xp=np):
        return super().ends(self.joined(predicted, xp), context, arrays, xp)


class Average(Union):
    each_copy = False


class OfCopies(ConfNN):
    def __init__(self, kind, name):
        self.kind, self.name = kind, name

    def rule(self, request):
        return self.kind(self.name, request.levels, self.score, request.cut)


@pytest.mark.parametrize(("kind", "copies"), [(Union, 2), (Average, 1)])
def test_a_rule_sees_every_copy_if_it_asks_for_each(kind, copies, tmp_path):
    Union.seen.clear()
    method = OfCopies(kind, "of-copies")
    model = gb.IntervalRegressor(method, **QUICK).fit(X, Y)
    bands = model.predict_interval(X)
    network = model.as_network()
    out = network(network.rows(X)).numpy()
    model.predict(X)
    assert len(Union.seen) >= 4  # calibrating, intervals, the network, and points
    assert set(Union.seen) == {copies}
    np.testing.assert_allclose(out[:, 0], bands.lower, rtol=1e-5)
    model.save(tmp_path / "m")
    again = gb.load(tmp_path / "m", method=method)
    assert (again.predict_interval(X).upper == bands.upper).all()


def test_the_copies_that_a_rule_sees_are_those_that_were_averaged():
    model = gb.IntervalRegressor(**QUICK).fit(X, Y)
    table = model.read_rows(X)
    each, one = model.fitted_.learned.predict(table, each_copy=True), model.fitted_.learned.predict(table)
    assert (each.copies, one.copies) == (2, 1)
    assert not np.array_equal(each.lower[0], each.lower[1])
    np.testing.assert_allclose(each.lower.mean(0)[None], one.lower, rtol=1e-9)
