"""Networks of any kind through Door 2: what they take and what they put out is declared."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import guardband as gb
from guardband.bands.predicted import PredictedGaussian

torch.manual_seed(0)
X = torch.randn(400, 6)
Y = X.sum(1) + torch.randn(400)
LEVELS = (0.005, 0.025, 0.05, 0.1, 0.5, 0.9, 0.95, 0.975, 0.995)


def net(outputs, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, outputs))


class Ordered(nn.Module):
    """Bounds in order, from a linear layer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = nn.Linear(6, 2)

    def forward(self, x):
        a, b = self.layer(x).unbind(-1)
        return torch.stack([a - b.abs(), a + b.abs()], -1)


class Gaussian(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = nn.Linear(6, 2)

    def forward(self, x):
        mean, raw = self.layer(x).unbind(-1)
        return torch.stack([mean, nn.functional.softplus(raw)], -1)


def test_bounds_have_their_point_halfway():
    guarded = gb.calibrate(Ordered(), (X, Y), outputs="bounds")
    lower, upper = (side.detach().double().numpy() for side in Ordered()(X).unbind(-1))
    rule = gb.BandCalibrator().fit(lower, (lower + upper) / 2, upper, Y.numpy())
    (stretched,) = guarded.certificate.notes  # its bounds were never trained
    assert "times as wide" in stretched
    assert guarded.certificate == rule.certificate.with_notes(stretched)
    np.testing.assert_allclose(guarded(X)[:, 2], rule.transform(lower, (lower + upper) / 2, upper).upper, rtol=1e-5)


@pytest.mark.parametrize("method", ["bayes", "neg-ll", "conf-fw"])
def test_a_mean_and_a_deviation_are_a_gaussian(method):
    guarded = gb.calibrate(Gaussian(), (X, Y), method, outputs="gaussian")
    gaussian = PredictedGaussian(*(side.detach().double().numpy() for side in Gaussian()(X).unbind(-1)))
    rule = gb.BandCalibrator(method).fit_predicted(gaussian, Y.numpy())
    assert guarded.certificate == rule.certificate
    np.testing.assert_allclose(guarded(X)[:, 0], rule.transform_predicted(gaussian).lower, rtol=1e-4, atol=1e-5)


def test_a_gaussian_is_a_band_of_one_deviation_for_rules_that_take_bands():
    def band(out):
        mean, deviation = out.unbind(-1)
        return torch.stack([mean - deviation, mean, mean + deviation], -1)

    guarded = gb.calibrate(Gaussian(), (X, Y), outputs="gaussian")
    assert torch.equal(guarded(X), gb.calibrate(Gaussian(), (X, Y), outputs=band)(X))
    sides = band(Gaussian()(X)).detach().double().numpy().T
    rule = gb.BandCalibrator().fit(*sides, Y.numpy())
    assert guarded.certificate == rule.certificate
    np.testing.assert_allclose(guarded(X)[:, 0], rule.transform(*sides).lower, rtol=1e-4, atol=1e-5)


def test_a_function_reads_anything():
    class Dictionary(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = gb.nn.FullyConnected(6, (8,))

        def forward(self, x):
            return {"bands": self.inner(x), "hidden": x}

    network = Dictionary()
    guarded = gb.calibrate(network, (X, Y), outputs=lambda out: out["bands"])
    torch.testing.assert_close(guarded(X), gb.calibrate(network.inner, (X, Y))(X))


def quantile_network():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), gb.nn.QuantileHead(16, LEVELS))


def test_pav_takes_one_network_with_many_levels_nested_by_construction():
    network = quantile_network()
    gb.train(network, (X, Y), gb.nn.QuantileLoss(LEVELS), epochs=30, learning_rate=0.01)
    guarded = gb.calibrate(network, (X, Y), "pav", outputs=LEVELS)
    certificate = guarded.certificate
    (tau,) = certificate.promise.tau
    assert certificate.promise.candidates == 4
    assert tau in (0.2, 0.1, 0.05, 0.01)
    column = LEVELS.index(tau / 2)
    torch.testing.assert_close(guarded(X)[:, 0], network(X)[:, column].detach())
    # the same as a list of networks, one for each pair
    taus = (0.2, 0.1, 0.05, 0.01)
    out = network(X).detach().double().numpy()
    sides = [np.stack([out[:, LEVELS.index(q(t))] for t in taus]) for q in (lambda t: t / 2, lambda t: 0.5)]
    upper = np.stack([out[:, len(LEVELS) - 1 - LEVELS.index(t / 2)] for t in taus])
    rule = gb.BandCalibrator("pav", taus=taus).fit(*sides, upper, Y.numpy())
    assert rule.certificate == certificate


def test_a_grid_in_any_order_takes_its_own_quantiles():
    network = quantile_network()
    some = gb.calibrate(network, (X, Y / 10), "pav", outputs=LEVELS, taus=[0.05, 0.2])
    other = gb.calibrate(network, (X, Y / 10), "pav", outputs=LEVELS, taus=[0.2, 0.05])
    torch.testing.assert_close(some(X), other(X))


def test_conf_nn_takes_the_pair_at_tau():
    network = quantile_network()
    at_alpha = gb.calibrate(network, (X, Y), outputs=LEVELS)
    at_wider = gb.calibrate(network, (X, Y), outputs=LEVELS, tau=0.05)
    assert not torch.equal(at_alpha(X), at_wider(X))
    with pytest.raises(ValueError, match=r"needs the quantiles 0.15 and 0.85, found \[0.005"):
        gb.calibrate(network, (X, Y), outputs=LEVELS, alpha=0.3)
    with pytest.raises(ValueError, match=r"must hold 0\.5 and pairs"):
        gb.calibrate(network, (X, Y), outputs=[0.1, 0.5])
    with pytest.raises(ValueError, match="must come from one network"):
        gb.calibrate([network, network], (X, Y), outputs=LEVELS)


@pytest.mark.parametrize(
    ("network", "outputs", "words"),
    [
        (net(2), "bands", r"\(n, 3\) = lower, point, upper, found \(400, 2\). Declare what it puts out"),
        (net(3), "bounds", r"\(n, 2\) = lower, upper, found \(400, 3\)"),
        (net(3), "gaussian", r"\(n, 2\) = mean, standard deviation, found \(400, 3\)"),
        (net(4), LEVELS, r"\(n, 9\) = quantiles, found \(400, 4\)"),
        (net(3), "triples", "outputs must be one of bands, bounds, gaussian"),
    ],
)
def test_other_outputs_than_declared_are_refused(network, outputs, words):
    with pytest.raises(ValueError, match=words):
        gb.calibrate(network, (X, Y), outputs=outputs)


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.left, self.right = nn.Linear(4, 8), nn.Linear(2, 8)
        self.head = gb.nn.TripleHead(8)

    def forward(self, left, right):
        return self.head(torch.relu(self.left(left) + self.right(right)))


LEFT, RIGHT = X[:, :4], X[:, 4:]


class Rows(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, i):
        return {"left": LEFT[i], "right": RIGHT[i], "labels": Y[i]}


@pytest.mark.parametrize(
    "data",
    [
        ((LEFT, RIGHT), Y),
        [((LEFT, RIGHT), Y)],
        [({"left": LEFT, "right": RIGHT}, Y)],
        DataLoader(TensorDataset(LEFT, RIGHT, Y), batch_size=64, collate_fn=lambda rows: _collate(rows)),
        Rows(),
        DataLoader(Rows(), batch_size=64),
        ((LEFT.numpy(), RIGHT.numpy()), Y.numpy()),
    ],
    ids=["tensors", "tuples", "names", "loader", "dataset", "loader of mappings", "arrays"],
)
def test_several_inputs_come_in_any_form(data):
    network = TwoInputs()
    guarded = gb.calibrate(network, data, target="labels")
    assert guarded.certificate.n_calibration == 400
    expected = gb.calibrate(network, [((LEFT, RIGHT), Y)])(LEFT, RIGHT)
    torch.testing.assert_close(guarded(LEFT, RIGHT), expected)
    torch.testing.assert_close(guarded(left=LEFT, right=RIGHT), expected)


def _collate(rows):
    left, right, y = (torch.stack(column) for column in zip(*rows, strict=True))
    return (left, right), y


@pytest.mark.parametrize("form", ["tuple", "mapping"])
def test_networks_with_several_inputs_train(form):
    if form == "tuple":
        data = [((LEFT[i : i + 50], RIGHT[i : i + 50]), Y[i : i + 50]) for i in range(0, 400, 50)]
    else:
        data = DataLoader(Rows(), batch_size=50)
    network = TwoInputs()
    loss = gb.nn.IntervalLoss(0.1)
    before = loss(network(LEFT, RIGHT), Y).item()
    gb.train(network, data, loss, epochs=10, learning_rate=0.01, target="labels", validation=data)
    assert loss(network(LEFT, RIGHT), Y).item() < 0.7 * before


def test_bad_batches_are_named():
    network = TwoInputs()
    with pytest.raises(ValueError, match=r"no entry 'y' for y, found \['left', 'right', 'labels'\]"):
        gb.calibrate(network, DataLoader(Rows(), batch_size=50))
    with pytest.raises(ValueError, match=r"pairs \(x, y\), or mappings, found tuple of 3"):
        gb.calibrate(network, [(LEFT, RIGHT, Y)])
    with pytest.raises(TypeError, match="data must be tensors"):
        gb.calibrate(network, 3)
    with pytest.raises(ValueError, match=r"one row for each of y's 400, found 10"):
        gb.calibrate(network, [((LEFT[:10], RIGHT[:10]), Y)])


def test_only_scores_and_prints_stay_in_memory():
    """A million rows from a generator: far less memory than their inputs would take."""
    import tracemalloc

    network = gb.nn.FullyConnected(6, (4,))

    def stream():
        for seed in range(200):
            generator = torch.Generator().manual_seed(seed)
            x = torch.randn(5000, 6, generator=generator)
            yield x, x.sum(1)

    tracemalloc.start()
    guarded = gb.calibrate(network, stream())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert guarded.certificate.n_calibration == 1_000_000
    assert peak < 4.1 * 8 * 1_000_000  # prints, and scores, joined, parted; numpy's memory is what is traced
