"""A choice among candidates by their calibration rows keeps its promise, with every kind of candidate."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.stats import binom
from sklearn.linear_model import LinearRegression

import guardband as gb
from guardband.bands.ranks import average_coverage, coverage_bound, pac_rank
from guardband.calibration.calibrated import Chosen

ROWS = 300
SIGNIFICANCE = 1e-6 / 3
"""There are three limits."""


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * ROWS, 3))
    y = X[:, 0] + (1 + np.abs(X[:, 1])) * rng.standard_normal(2 * ROWS)
    return (X[:ROWS], y[:ROWS]), (X[ROWS:], y[ROWS:])


def zero(X):
    return 0 * X[:, 0]


def bounds(X):
    half = 1.6 * (1 + np.abs(X[:, 1]))
    return np.stack([X[:, 0] - half, X[:, 0], X[:, 0] + half], axis=1)


def candidates(training):
    return {"nothing": zero, "linear": LinearRegression().fit(*training), "bounds": bounds}


@pytest.mark.parametrize("delta", [0.1, 0.05])
def test_a_greedy_choice_keeps_the_promise_as_often_as_the_exact_law_says(delta):
    """The worst case: independent scores of the same law, of which the narrowest, and so the least covering, is taken.

    It fails with probability 1 - (1 - p)^K, where p is the chance that a rank fails; the union bound is nearly tight.
    With delta for each candidate in place of delta / K the promise is refuted.
    """
    rng, sets, n, level = np.random.default_rng(1), 2_000, 100, Fraction(9, 10)
    count = 8
    scores = np.sort(rng.random((sets, count, n)), axis=2)

    def failures(each):
        return int((scores[:, :, pac_rank(level, n, each) - 1].min(axis=1) < level).sum())

    k = pac_rank(level, n, Chosen(count, delta).of_each)
    exact = 1 - (1 - binom.sf(k - 1, n, float(level))) ** count
    assert exact <= delta
    assert binom.cdf(failures(delta / count), sets, exact) > SIGNIFICANCE
    assert binom.sf(failures(delta / count) - 1, sets, exact) > SIGNIFICANCE
    assert binom.sf(failures(delta) - 1, sets, delta) < SIGNIFICANCE


def test_the_narrowest_candidate_is_returned_with_a_promise_for_the_choice(rows):
    training, data = rows
    choice = gb.choose(candidates(training), data, delta=0.06, confidence_level=0.8)
    assert [line.rank for line in choice.table] == [1, 2, 3]
    assert [line.mean_width for line in choice.table] == sorted(line.mean_width for line in choice.table)
    assert choice.name == choice.table[0].name != "nothing"
    for name, own in choice.candidates.items():
        alone = gb.calibrate(candidates(training)[name], data, guarantee="pac", delta=0.02, confidence_level=0.8)
        assert own.certificate.rank == alone.certificate.rank == pac_rank(Fraction(4, 5), ROWS, 0.02)
        np.testing.assert_array_equal(own.predict_interval(data[0]).upper, alone.predict_interval(data[0]).upper)
    certificate = choice.certificate
    assert (certificate.kind, certificate.delta) == ("pac", 0.06)
    assert certificate.coverage_bound() == coverage_bound(0.02, certificate.rank, ROWS) >= 0.8
    assert certificate.expected_coverage == average_coverage(certificate.rank, ROWS, 3)
    assert "one of 3 candidates, chosen by these calibration rows. The promise holds for whichever" in str(certificate)
    assert "94% confidence" in str(certificate)
    assert choice.best.audit(*rows[0]).verdict is not None
    assert choice.best.predict_interval(data[0], confidence_level=0.7).certificate.promise.candidates == 3


def test_candidates_are_compared_by_what_is_asked(rows):
    training, data = rows
    narrow = gb.choose(candidates(training), data, by="score")
    assert narrow.name == min(narrow.table, key=lambda line: line.interval_score).name
    first = gb.choose(candidates(training), data, by=lambda y, bands: float(len(y) == ROWS))  # all alike
    assert first.name == "nothing"
    methods = gb.choose(bounds, data, methods=["conf-nn", "cqr", "conf-fw"])
    assert set(methods.candidates) == {"conf-nn", "cqr", "conf-fw"}
    assert methods.best.certificate.method == methods.name
    several = gb.choose([zero, bounds], data, confidence_level=[0.8, 0.9])
    assert several.name == "candidate 2"
    assert several.certificate.promise.candidates == 2
    text = repr(methods)
    assert text.splitlines()[0] == f"Chosen by width: {methods.name}"
    assert "rank  candidate  mean width  interval score" in text
    assert not hasattr(methods, "_repr_html_")


def test_groups_and_tails_share_delta_with_the_candidates(rows):
    _, data = rows
    grouped = gb.choose([zero, bounds], data, groups=lambda X: X[:, 2] > 0, delta=0.2, confidence_level=0.8)
    sizes = [line.n_calibration for line in grouped.certificate.groups]
    assert [line.rank for line in grouped.certificate.groups] == [pac_rank(Fraction(4, 5), n, 0.05) for n in sizes]
    assert grouped.certificate.delta == 0.2
    assert "one of 2 candidates" in str(grouped.certificate)
    tails = gb.choose([zero, bounds], data, tails=(0.1, 0.1), delta=0.2)
    assert [part.promise.rank for part in tails.certificate.promise.statements()] == [
        (pac_rank(Fraction(9, 10), ROWS, 0.05),)
    ] * 2


def test_too_few_rows_give_infinite_intervals_behind_finite_ones(rows):
    """What is said of all candidates is said once."""
    _, (X, y) = rows
    with pytest.warns(gb.InsufficientCalibrationWarning) as caught:
        choice = gb.choose([zero, bounds], (X[:25], y[:25]))
    assert len(caught) == 1
    assert "infinite" in repr(choice)

    def broken(X):
        return bounds(X) + np.array([[0, 0, np.inf]])

    with pytest.warns(gb.DegenerateBandWarning):
        choice = gb.choose({"broken": broken, "whole": bounds}, (X, y))
    assert choice.name == "whole"


def test_fitted_tables_are_chosen_among_and_saved(rows, tmp_path):
    training, data = rows
    models = {
        str(width): gb.IntervalRegressor(
            calibration_size=None, epochs=3, hidden=(width,), preset="fast", random_state=0
        ).fit(*training)
        for width in (4, 16)
    }
    choice = gb.choose(models, data)
    assert all(own.fitted_.calibrated is None for own in models.values())  # they stay as they were
    certificate = choice.best.certificate_
    assert (certificate.delta, certificate.promise.candidates) == (0.1, 2)
    choice.best.save(tmp_path / "best.guardband")
    again = gb.load(tmp_path / "best.guardband")
    assert again.certificate_ == certificate
    assert str(again.certificate_) == str(certificate)
    np.testing.assert_array_equal(again.predict_interval(data[0]).upper, choice.best.predict_interval(data[0]).upper)


def test_models_and_networks_are_saved_with_their_certificate(rows, tmp_path):
    _, data = rows
    model = gb.choose([zero, bounds], data)
    model.best.save(tmp_path / "model.guardband")
    assert gb.load(tmp_path / "model.guardband", model=bounds).certificate == model.certificate
    torch.manual_seed(0)
    nets = [torch.nn.Sequential(torch.nn.Linear(3, 8), gb.nn.TripleHead(8)) for _ in range(2)]
    tensors = tuple(torch.as_tensor(own, dtype=torch.float32) for own in data)
    choice = gb.choose(nets, tensors)
    assert isinstance(choice.best, gb.GuardedNetwork)
    assert choice.certificate.promise.candidates == 2
    choice.best.save(tmp_path / "net.guardband")
    built = torch.nn.Sequential(torch.nn.Linear(3, 8), gb.nn.TripleHead(8))
    assert gb.load(tmp_path / "net.guardband", network=built).certificate == choice.certificate


def test_what_cannot_be_promised_is_refused_in_one_sentence(rows):
    training, data = rows
    with pytest.raises(ValueError, match="on average over calibration sets says nothing of a candidate that these"):
        gb.choose([zero, bounds], data, guarantee="marginal")
    with pytest.raises(ValueError, match='by must be "width", "score" or a function'):
        gb.choose([zero, bounds], data, by="length")
    with pytest.raises(ValueError, match="at least one candidate"):
        gb.choose([], data)
    with pytest.raises(TypeError, match="mapping from names to models, or a sequence"):
        gb.choose(zero, data)
    with pytest.raises(ValueError, match="goes with one model"):
        gb.choose([zero, bounds], data, methods=["conf-nn"])
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        gb.choose([zero, bounds], data, delta=1.5)
    model = gb.IntervalRegressor(epochs=1, hidden=(4,), preset="fast", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*training)
    with pytest.raises(ValueError, match=r"calibrated already\. Fit it with calibration_size=None"):
        gb.choose([model, model], data)
    with pytest.raises(ValueError, match="confidence_level is fixed when an IntervalRegressor is fitted"):
        gb.choose([model, model], data, confidence_level=0.8)
