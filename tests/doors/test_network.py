import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import guardband as gb
from guardband.bands.predicted import PredictedInterval
from guardband.data.artificial import PaperModel
from guardband.methods.registry import method_named

MODEL = PaperModel(n_features=6)


def rows(n, seed):
    X, y = MODEL.draw(n, seed)
    return torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


def loader(n=500, seed=2, batch_size=64):
    return DataLoader(TensorDataset(*rows(n, seed)), batch_size=batch_size)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), gb.nn.TripleHead(in_features=32))
    return gb.train(net, loader(1000, seed=1), gb.nn.IntervalLoss(tau=0.1), epochs=10, learning_rate=0.01)


def test_a_guarded_network_puts_out_lower_point_upper(network):
    guarded = gb.calibrate(network, loader(), method="conf-nn", confidence_level=0.9)
    x, _ = rows(100, 3)
    out = guarded(x)
    assert out.shape == (100, 3)
    assert (out.diff(dim=-1) >= 0).all()
    torch.testing.assert_close(out[:, 1], network(x)[:, 1])
    assert guarded.certificate.rank == 451


def test_calibration_rows_below_the_threshold_lie_inside_in_single_precision(network):
    guarded = gb.calibrate(network, loader(), confidence_level=0.9)
    x, y = rows(500, 2)
    out = guarded(x)
    assert ((out[:, 0] <= y) & (y <= out[:, 2])).sum() >= 451


def test_it_equals_the_other_door(network):
    x, y = rows(500, 2)
    bands = network(x).detach().double().numpy()
    rule = gb.BandCalibrator(confidence_level=[0.9, 0.5], guarantee="pac").fit(*bands.T, y.numpy())
    guarded = gb.calibrate(network, loader(), confidence_level=[0.9, 0.5], guarantee="pac")
    assert guarded.certificate == rule.certificate
    out = guarded(x)
    assert out.shape == (500, 3, 2)
    np.testing.assert_allclose(out[:, 0].detach(), rule.transform(*bands.T).lower, rtol=1e-5, atol=1e-5)


def test_later_training_does_not_reach_the_guarded_copy(network):
    original = nn.Sequential(nn.Dropout(0.5), network).train()
    guarded = gb.calibrate(original, loader())
    x, _ = rows(10, 3)
    before = guarded(x)
    assert original.training
    assert not any(module.training for module in guarded.train().modules())
    with torch.no_grad():
        network[0].weight += 1
    try:
        assert guarded(x).equal(before)
    finally:
        with torch.no_grad():
            network[0].weight -= 1


def test_state_dict_carries_setting_and_certificate(network, tmp_path):
    guarded = gb.calibrate(network, loader(), confidence_level=0.9, guarantee="pac")
    other = gb.calibrate(network, loader(300, seed=9), confidence_level=0.9, guarantee="pac")
    assert other.certificate != guarded.certificate
    torch.save(guarded.state_dict(), tmp_path / "state.pt")
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    x, _ = rows(10, 3)
    assert other(x).equal(guarded(x))
    assert other.certificate == guarded.certificate


@pytest.mark.parametrize("rule", ["paper", "fixed-sequence", "nested"])
def test_pav_takes_a_network_per_tau_in_any_order(rule):
    torch.manual_seed(0)
    taus = [0.01, 0.1]
    networks = [
        gb.train(
            gb.nn.FullyConnected(6, (32,)), loader(1000, 1), gb.nn.IntervalLoss(tau), epochs=15, learning_rate=0.01
        )
        for tau in taus
    ]
    guarded = gb.calibrate(networks, loader(), method="pav", taus=taus, rule=rule)
    x, y = rows(500, 2)
    bands = np.moveaxis(np.stack([n(x).detach().double().numpy() for n in networks]), -1, 0)
    same = gb.BandCalibrator("pav", taus=taus, rule=rule).fit(*bands, y.numpy())
    assert guarded.certificate == same.certificate
    np.testing.assert_allclose(guarded(x)[:, 2].detach(), same.transform(*bands).upper, rtol=1e-6)


def unordered_layer():
    """A layer whose bounds cross in every row, whatever its weights."""
    layer = nn.Linear(6, 3)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.copy_(torch.tensor([1.0, 0.0, -1.0]))
    return layer


@pytest.mark.parametrize(
    ("net", "batches", "words"),
    [
        (nn.Linear(6, 2), None, r"put out \(n, 3\).*found \(64, 2\)"),
        (unordered_layer(), None, r"lower <= point <= upper must hold in every row, found \d+ where"),
        (gb.nn.FullyConnected(6), [], "There are no calibration rows"),
        (gb.nn.FullyConnected(6), [(torch.zeros(2, 6), torch.zeros(2, 1))], r"shape \(n,\)"),
        (gb.nn.FullyConnected(6), [(torch.zeros(2, 6), torch.tensor([0.0, torch.nan]))], "NaN.*row 1"),
        ([gb.nn.FullyConnected(6)] * 2, None, r"conf-nn takes 1 interval"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(net, batches, words):
    torch.manual_seed(0)
    with pytest.raises(ValueError, match=words):
        gb.calibrate(net, loader() if batches is None else batches)


def test_a_state_of_another_calibration_is_refused(network):
    here = gb.calibrate(network, loader(), confidence_level=0.9)
    other = gb.calibrate(network, loader(), confidence_level=0.8)
    with pytest.raises(ValueError, match=r"same way.\nHere: .*Fraction\(9, 10\).*\nFound: .*Fraction\(4, 5\)"):
        here.load_state_dict(other.state_dict())


def test_half_precision_and_named_rows(network):
    narrow = gb.calibrate(copy.deepcopy(network).bfloat16(), [(x.bfloat16(), y.bfloat16()) for x, y in loader()])
    assert narrow(rows(3, 0)[0].bfloat16()).shape == (3, 3)
    x, y = rows(100, 0)
    y[70] = torch.nan
    with pytest.raises(ValueError, match=r"NaN.*row 70"):
        gb.calibrate(network, [(x[:64], y[:64]), (x[64:], y[64:])])


def test_empty_batches_hold_no_rows(network):
    with pytest.raises(ValueError, match="There are no calibration rows"):
        gb.calibrate(network, [(torch.zeros(0, 6), torch.zeros(0))])


class Tuple(nn.Module):
    def forward(self, x):
        return x, x


def test_other_outputs_are_named():
    with pytest.raises(ValueError, match="found tuple"):
        gb.calibrate(Tuple(), loader())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("method", ["conf-nn", "cqr", "cqr-r", "conf-fw"])
def test_narrow_numbers_have_intervals_in_single_precision(method, dtype):
    """Outputs in few digits are numbers like others: rounding outward is by the digits of the interval."""
    torch.manual_seed(0)
    net = gb.nn.FullyConnected(6, (16,)).to(dtype)
    x, y = rows(500, 2)
    x, y = x.to(dtype), y - 10
    guarded = gb.calibrate(net, (x, y), method)
    guarded.to(dtype)  # what is narrow already stays the same, and the threshold is no output
    out = guarded(x)
    assert out.dtype == torch.float32
    same = net(x).detach().float()
    wide = gb.calibrate(nn.Identity(), (same, y), method)
    assert wide.certificate == guarded.certificate
    lengths = [own[:, 2] - own[:, 0] for own in (out, wide(same))]
    assert (lengths[0] <= 1.01 * lengths[1]).all()
    score = method_named(method).rule(gb.Request()).score
    bands = PredictedInterval(*(side[None, None].double().numpy() for side in same.unbind(1)))
    scores = score.of(bands, y.double().numpy())[0, 0]
    threshold = np.sort(scores)[guarded.certificate.rank - 1]
    inside = ((out[:, 0] <= y) & (y <= out[:, 2])).numpy()
    assert inside[scores <= threshold].all()
    assert (scores <= threshold).sum() >= 451


@pytest.mark.parametrize("method", ["conf-nn", "pav"])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda guarded: pickle.loads(pickle.dumps(guarded))])
def test_a_network_read_by_levels_can_be_pickled_and_copied(method, again):
    levels = (0.01, 0.05, 0.5, 0.95, 0.99)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), gb.nn.QuantileHead(8, levels))
    x, y = rows(500, 2)
    guarded = gb.calibrate(net, (x, y / 100), method, outputs=levels)
    twin = again(guarded)
    assert twin(x).equal(guarded(x))
    assert twin.certificate == guarded.certificate
    assert not twin.training


def test_a_network_whose_bounds_are_far_too_near_is_named_in_the_certificate(network):
    class Shrunk(nn.Module):
        """The same point, with bounds that are so many times as near."""

        def __init__(self, times):
            super().__init__()
            self.network, self.times = network, times

        def forward(self, x):
            bands = self.network(x)
            return bands[:, 1:2] + (bands - bands[:, 1:2]) / self.times

    fine = gb.calibrate(network, rows(500, 2))
    factor = fine.state_dict()["calibration.threshold"].item()
    assert not any("times as wide" in note for note in fine.certificate.notes)
    near, far = (gb.calibrate(Shrunk(times / factor), rows(500, 2)) for times in (9.9, 74))
    assert not any("times as wide" in note for note in near.certificate.notes)
    assert "conf-nn made the network's intervals 74 times as wide" in str(far.certificate)
    other = gb.calibrate(Shrunk(74 / factor), rows(500, 2), method="cqr")
    assert not any("times as wide" in note for note in other.certificate.notes)
