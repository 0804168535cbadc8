"""An argument that would have no effect is refused, whichever way in it comes."""

import numpy as np
import pytest
import torch

import guardband as gb

X = np.random.default_rng(0).standard_normal((60, 2))
Y = X.sum(1)


def table(method="conf-nn", **asked):
    outputs = {"network": "plain", "hidden": (4,), "epochs": 1}
    return gb.IntervalRegressor(method, **outputs, **asked).fit(X, Y)


def network(method="conf-nn", **asked):
    data = torch.tensor(X, dtype=torch.float32), torch.tensor(Y)
    return gb.calibrate(gb.nn.FullyConnected(2, (4,)), data, method, **asked)


def bands(method="conf-nn", **asked):
    return gb.BandCalibrator(method, **asked).fit(Y - 1, Y, Y + 1, Y + X[:, 0])


EVERY_WAY = pytest.mark.parametrize("way", [table, network, bands])


@EVERY_WAY
@pytest.mark.parametrize("method", ["conf-nn", "cqr", "conf-fw"])
@pytest.mark.parametrize("rule", ["paper", "nested", "fixed-sequence"])
def test_pavs_rule_is_pavs(way, method, rule):
    with pytest.raises(ValueError, match=f'method="{method}" does not use rule. Remove rule={rule!r}'):
        way(method, rule=rule)


@EVERY_WAY
@pytest.mark.parametrize("method", ["conf-nn", "cqr-r", "conf-fw"])
@pytest.mark.parametrize("delta", [0.1, 0.05])
def test_a_promise_on_average_has_no_delta(way, method, delta):
    with pytest.raises(ValueError, match='delta has no effect with guarantee="marginal"'):
        way(method, delta=delta)


@EVERY_WAY
@pytest.mark.parametrize("method", ["qreg-un", "bayes", "neg-ll", "high-q"])
def test_no_promise_has_no_delta(way, method):
    with pytest.raises(ValueError, match=f'method="{method}" does not use delta'):
        way(method, delta=0.05)


@EVERY_WAY
@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_pac_has_a_delta(way):
    model = way(guarantee="pac", delta=0.2)
    certificate = model.certificate_ if way is table else model.certificate
    assert certificate.delta == 0.2


@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_pav_has_a_delta_of_its_own():
    certificate = gb.BandCalibrator("pav", taus=[0.1], delta=0.2).fit(Y - 1, Y, Y + 1, Y + X[:, 0]).certificate
    assert certificate.delta == 0.2


@pytest.mark.parametrize("outputs", ["bands", lambda out: out])
def test_tau_chooses_among_quantiles_and_nothing_else(outputs):
    with pytest.raises(ValueError, match="tau chooses a pair of quantiles, and outputs declares none"):
        network(outputs=outputs, tau=0.1)


def test_delta_beside_a_cut_and_a_cut_for_another_option_are_refused():
    cut = gb.extend.PacCut(0.05)
    with pytest.raises(ValueError, match="delta has no effect"):
        gb.BandCalibrator(guarantee=cut, delta=0.3)
    with pytest.raises(ValueError, match="on_insufficient must be one of"):
        gb.BandCalibrator(on_insufficient=cut)
    with pytest.raises(ValueError, match=r"or a gb.Cut, such as PacCut\(\)"):
        gb.BandCalibrator(guarantee=gb.extend.PacCut)


def test_what_is_no_network_or_no_pair_is_refused_by_its_name():
    net, x, y = torch.nn.Linear(2, 3), torch.zeros(5, 2), torch.zeros(5)
    with pytest.raises(TypeError, match=r"data must be a pair \(X, y\) .* found Linear"):
        gb.calibrate((x, y), net)
    with pytest.raises(TypeError, match=r"Pass inputs and true values, as \(x, y\)"):
        gb.calibrate(net, x)
