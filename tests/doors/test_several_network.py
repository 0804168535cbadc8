"""A torch network with several targets."""

import json

import numpy as np
import pytest
import torch
from scipy.stats import betabinom
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import guardband as gb
from forged_models import forged, opened
from laws import SIGNIFICANCE


class Ends(nn.Module):
    """Three numbers in order for each of two targets."""

    def __init__(self, shape=(6,)):
        super().__init__()
        self.linear, self.shape = nn.Linear(3, 2), shape

    def forward(self, x):
        point = self.linear(x)
        return torch.stack([point - 1, point, point + 2], dim=-1).reshape(len(x), *self.shape)


def rows(n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=generator)
    return x, x[:, :2] + torch.randn(n, 2, generator=generator) @ torch.tensor([[1.0, 0.8], [0.0, 0.6]])


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Ends()


def test_all_targets_lie_inside_as_often_as_the_exact_law_says(network):
    guarded = gb.calibrate(network, rows(400), targets="joint")
    x, y = rows(2000, 1)
    lower, point, upper = guarded(x).unbind(-1)
    torch.testing.assert_close(point, network.linear(x))
    k = guarded.certificate.rank
    law = betabinom(2000, k, 401 - k)
    inside = int(((lower <= y) & (y <= upper)).all(dim=1).sum())
    assert law.ppf(SIGNIFICANCE) <= inside <= law.isf(SIGNIFICANCE)
    found = guarded.audit(x, y, significance=SIGNIFICANCE)
    assert found.levels[0].covered == inside
    assert found.verdict == "consistent"
    assert guarded.audit(*rows(400)).verdict == "cannot judge"


@pytest.mark.parametrize("targets", ["joint", "each"])
def test_loaders_datasets_and_shapes_give_one_calibration(network, targets, tmp_path):
    x, y = rows(300)
    y[::9, 1] = torch.nan
    asked = {"targets": targets, "confidence_level": [0.8, 0.9]}
    other = Ends((2, 3))
    other.load_state_dict(network.state_dict())
    every = [
        gb.calibrate(network, (x, y), **asked),
        gb.calibrate(other, (x, y), **asked),
        gb.calibrate(network, TensorDataset(x, y), batch_size=64, **asked),
        gb.calibrate(network, DataLoader(TensorDataset(x, y), 64), **asked),
        gb.calibrate(network, iter([(x[:100], y[:100]), (x[100:], y[100:])]), **asked),
    ]
    new, truth = rows(50, 1)
    assert every[0](new).shape == (50, 2, 3, 2)
    for own in every:
        torch.testing.assert_close(own(new), every[0](new), rtol=0, atol=0)
        assert own.certificate == every[0].certificate
    every[0].save(tmp_path / "n.guardband")
    again = gb.load(tmp_path / "n.guardband", network=Ends())
    torch.testing.assert_close(again(new), every[0](new), rtol=0, atol=0)
    assert again.certificate == every[0].certificate
    assert '<h2 id="target-1">target 2</h2>' in again.report(tmp_path / "p.html", new, truth).read_text()


@pytest.mark.parametrize("targets", ["joint", "each"])
def test_a_forged_certificate_is_refused(network, targets, tmp_path):
    gb.calibrate(network, rows(300), targets=targets).save(tmp_path / "n.guardband")
    entries, tensors = opened(tmp_path / "n.guardband")
    own = json.dumps(entries)
    for change in (
        lambda e: e["certificate"]["promise"].update(n_calibration=3000),
        lambda e: e["certificate"]["promise"].update(confidence_level=[0.99]),
        lambda e: e["arguments"].update(targets="each" if targets == "joint" else "joint"),
        lambda e: e["arguments"].update(targets=None),
        lambda e: e.update(several=None),
        lambda e: e.update(several=["a", "b", "c"]),
        lambda e: (e["certificate"]["promise"].get("of_each") or [e["certificate"]["promise"]])[0].update(rank=[299]),
        lambda e: (e["certificate"]["promise"].get("of_each") or [e["certificate"]["promise"]])[0].update(shared_by=3),
    ):
        changed = json.loads(own)
        change(changed)
        with pytest.raises(gb.ModelFileError):
            gb.load(forged(tmp_path / "f.guardband", changed, tensors), network=Ends())


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"targets": "all"}, 'targets must be "joint", "each" or None'),
        ({"targets": "joint", "method": "pav"}, "takes 10 interval|Several targets need method"),
        ({"targets": "joint", "side": "upper"}, "no promise for one side"),
        ({"targets": "joint", "groups": lambda x: x[:, 0] > 0}, "cannot use groups"),
        ({"targets": "joint", "weights": lambda x: x[:, 0].exp()}, "cannot use weights"),
        ({"targets": "joint", "scales": [1.0]}, "one positive number for each of 2 targets"),
        ({"scales": [1.0, 1.0]}, 'scales are for targets="joint"'),
        ({}, "Calibrate several targets with targets="),
    ],
)
def test_what_cannot_be_is_refused(network, asked, says):
    with pytest.raises(ValueError, match=says):
        gb.calibrate(network, rows(100), **asked)


def test_other_shapes_and_uses_are_refused(network, tmp_path):
    x, y = rows(100)
    with pytest.raises(ValueError, match=r"one column for each, \(n, q\), found shape \(100,\)"):
        gb.calibrate(network, (x, y[:, 0]), targets="joint")
    with pytest.raises(ValueError, match=r"must put out \(n, 9\)"):
        gb.calibrate(network, (x, torch.cat([y, y[:, :1]], dim=1)), targets="joint")
    with pytest.raises(ValueError, match="need one network"):
        gb.calibrate([network, network], (x, y), targets="joint")
    guarded = gb.calibrate(network, (x, y), targets="joint")
    for refused in (
        lambda: gb.Monitor(guarded),
        lambda: gb.OnlineCalibrator("aci", model=guarded),
        lambda: gb.export_onnx(guarded, x, tmp_path / "m.onnx"),
    ):
        with pytest.raises(ValueError, match="one target"):
            refused()


def test_what_is_put_out_is_what_boxes_of_the_same_predictions_are(network):
    x, y = rows(200)
    guarded = gb.calibrate(network, (x, y), targets="joint", scales=[1.0, 2.0])
    bands = network(x).detach().double().numpy().reshape(200, 2, 3)
    rule = gb.BandCalibrator(targets="joint", scales=[1.0, 2.0]).fit(*np.moveaxis(bands, -1, 0), y.numpy())
    boxes = rule.transform(*np.moveaxis(bands, -1, 0))
    np.testing.assert_allclose(guarded(x).detach().numpy()[..., 2], boxes.upper, rtol=1e-5)
