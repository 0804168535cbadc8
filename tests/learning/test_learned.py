"""What a rule sees of several copies: their average, or each of them."""

from dataclasses import replace

import numpy as np
import pytest

import guardband as gb
from guardband.bands.predicted import PredictedInterval
from guardband.calibration.conformal import Conformal
from guardband.data.artificial import PaperModel
from guardband.learning import learned as module
from guardband.methods.conf_nn import ConfNN
from guardband.training.predict import predict_parts

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


@pytest.mark.parametrize(
    ("asked", "scales"),
    [({}, 1), ({"y": np.exp(4 * Y)}, 2), ({"method": "pav"}, 1), ({"y": np.stack([Y, np.exp(4 * Y)], 1)}, 3)],
    ids=["one scale", "two scales", "several heads", "several targets"],
)
def test_each_row_is_predicted_by_the_copy_that_did_not_see_it_and_by_no_other(asked, scales, monkeypatch):
    asked = {**QUICK, "epochs": "early", "max_epochs": 2, "split_by": []} | asked
    y = asked.pop("y", Y)
    learned = gb.IntervalRegressor(**asked, targets="each" if y.ndim > 1 else None).fit(X, y).fitted_.learned
    assert len(learned.target.scales) == scales
    x = np.random.default_rng(0).standard_normal((len(learned.left_out), learned.in_features)).astype(np.float32)
    left_out = np.where(np.arange(len(x)) % 7 == 0, -1, learned.left_out)
    rows = np.flatnonzero(left_out >= 0)
    whole = learned.predict_encoded(x[rows], each_copy=True).of_copy(left_out[rows])
    predicted = []

    def counted(members, n, *others):
        predicted.append(members.size * n)
        return predict_parts(members, n, *others)

    monkeypatch.setattr(module, "predict_parts", counted)
    own, which = replace(learned, left_out=left_out).predict_left_out(x)
    np.testing.assert_array_equal(which, rows)
    assert sum(predicted) == len(rows) * len(learned.heads)
    for one, other in zip(own.parts, whole.parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_no_row_that_is_left_out_is_no_prediction():
    learned = gb.IntervalRegressor(**QUICK | {"epochs": "early"}).fit(X, Y).fitted_.learned
    nobody = replace(learned, left_out=np.full(5, -1))
    predicted, rows = nobody.predict_left_out(np.zeros((5, learned.in_features), dtype=np.float32))
    assert (len(predicted), len(rows)) == (0, 0)
