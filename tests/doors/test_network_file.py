"""A calibrated network as a file: weights, calibration and certificate, but no code."""

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

import guardband as gb
from guardband.doors.file_format import _checksum

torch.manual_seed(0)
X = torch.randn(300, 4)
Y = X.sum(1) + torch.randn(300)
LEVELS = (0.005, 0.05, 0.5, 0.95, 0.995)


def bands(width=8, seed=9):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, width), nn.BatchNorm1d(width), gb.nn.TripleHead(width))


def quantiles(seed=9):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), gb.nn.QuantileHead(8, LEVELS))


def gaussian(seed=9):
    torch.manual_seed(seed)
    return gb.nn.FullyConnected(4, (8,), last=gb.nn.GaussianHead)


def assert_same(loaded, guarded):
    assert torch.equal(loaded(X), guarded(X))
    assert loaded.certificate == guarded.certificate
    assert str(loaded.certificate) == str(guarded.certificate)
    assert not any(module.training for module in loaded.modules())


@pytest.mark.parametrize(
    ("build", "asked"),
    [
        (bands, {}),
        (bands, {"confidence_level": [0.9, 0.5], "guarantee": "pac", "joint": True}),
        (bands, {"method": "cqr-r", "alpha": 0.2, "guarantee": "pac", "delta": 0.05}),
        (bands, {"method": "qreg-un"}),
        (quantiles, {"outputs": LEVELS, "tau": 0.01}),
        (quantiles, {"outputs": LEVELS, "method": "pav", "rule": "nested"}),
        (gaussian, {"outputs": "gaussian", "method": "bayes"}),
        (gaussian, {"outputs": "gaussian", "method": "neg-ll"}),
        (gaussian, {"outputs": "gaussian", "method": "conf-fw"}),
    ],
)
@pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")
def test_a_network_built_anew_comes_back_without_any_rows(build, asked, tmp_path):
    guarded = gb.calibrate(build(seed=1), (X, Y), **asked)
    guarded.save(tmp_path / "network")
    fresh = build()
    before = [own.clone() for own in fresh.parameters()]
    loaded = gb.load(tmp_path / "network", network=fresh)
    assert_same(loaded, guarded)
    assert all(map(torch.equal, before, fresh.parameters()))  # a copy was calibrated, and a copy is loaded
    loaded.save(tmp_path / "again")
    assert_same(gb.load(tmp_path / "again", network=build()), guarded)


def test_notes_come_back(tmp_path):
    with pytest.warns(gb.RepeatedRowsWarning):
        guarded = gb.calibrate(bands(seed=1), (X.repeat(2, 1), Y.repeat(2)))
    guarded.save(tmp_path / "network")
    assert "300 of 600" in gb.load(tmp_path / "network", network=bands()).certificate.notes[0]


def test_several_networks_come_back_in_their_order(tmp_path):
    taus, widths = (0.02, 0.3, 0.1), (4, 5, 6)
    guarded = gb.calibrate([bands(width, seed=1) for width in widths], (X, Y / 10), "pav", taus=taus)
    guarded.save(tmp_path / "networks")
    assert_same(gb.load(tmp_path / "networks", network=[bands(width) for width in widths]), guarded)
    for wrong in (bands(4), [bands(width) for width in widths[:2]]):
        with pytest.raises(gb.ModelFileError, match="it holds 3 calibrated network"):
            gb.load(tmp_path / "networks", network=wrong)
    with pytest.raises(gb.ModelFileError, match="shape"):
        gb.load(tmp_path / "networks", network=[bands(width) for width in reversed(widths)])


def test_a_function_of_outputs_is_brought_again(tmp_path):
    def double(out):
        return 2 * out

    guarded = gb.calibrate(bands(seed=1), (X, Y), outputs=double)
    guarded.save(tmp_path / "network")
    with pytest.raises(gb.ModelFileError, match=r"pass it as load\(..., outputs=...\)"):
        gb.load(tmp_path / "network", network=bands())
    assert_same(gb.load(tmp_path / "network", network=bands(), outputs=double), guarded)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("networks") / "network"
    gb.calibrate(bands(seed=1), (X, Y)).save(path)
    return path


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (None, "build the network anew and pass network="),
        ([], "build the network anew and pass network="),
        (lambda d: bands(), "build the network anew and pass network="),
        (bands(width=9), "shape"),
        (nn.Sequential(*bands(), nn.Linear(3, 3)), "must hold all of a calibrated network and nothing else"),
        (gb.nn.FullyConnected(4, (8,)), "must hold all of a calibrated network and nothing else"),
    ],
)
def test_another_network_is_refused(saved, network, words):
    with pytest.raises(gb.ModelFileError, match=words):
        gb.load(saved, network=network)


def rewritten(path, out, change, signed):
    with safe_open(path, framework="pt") as file:
        tensors, metadata = {k: file.get_tensor(k) for k in file.keys()}, file.metadata()  # noqa: SIM118
    change(tensors, metadata)
    if signed:
        metadata["sha256"] = _checksum(metadata["guardband"], tensors)
    save_file(tensors, out, metadata)


def other_threshold(tensors, metadata):
    tensors["calibration.threshold"] = tensors["calibration.threshold"] / 2


def other_level(tensors, metadata):
    metadata["guardband"] = metadata["guardband"].replace("0.9", "0.99")


def no_threshold(tensors, metadata):
    del tensors["calibration.threshold"]


def no_certificate(tensors, metadata):
    metadata["guardband"] = metadata["guardband"].replace('"certificate"', '"paper"')


@pytest.mark.parametrize(
    ("change", "signed"),
    [(other_threshold, False), (other_level, False), (no_threshold, False), (no_certificate, True)],
)
def test_a_changed_file_is_refused(saved, tmp_path, change, signed):
    rewritten(saved, tmp_path / "changed", change, signed)
    with pytest.raises(gb.ModelFileError):
        gb.load(tmp_path / "changed", network=bands())


def test_a_cut_file_is_refused(saved, tmp_path):
    (tmp_path / "cut").write_bytes(saved.read_bytes()[:-10])
    with pytest.raises(gb.ModelFileError, match="damaged or cut short"):
        gb.load(tmp_path / "cut", network=bands())


class Renamed(gb.Method):
    """A method of the same name as one that was saved, with another score and guarantee."""

    name = "mine"

    def __init__(self, score, cut):
        self.score, self.cut = score, cut

    def networks(self, request):
        return (gb.NetworkSpec(gb.extend.Triple(0.1)),)

    def rule(self, request):
        return gb.extend.Conformal(self.name, request.levels, self.score, self.cut)


def test_a_method_or_guarantee_brought_to_a_file_must_be_the_one_that_was_saved(tmp_path):
    x, y = torch.randn(200, 3), torch.randn(200)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), gb.nn.TripleHead(4))
    saved = Renamed(gb.extend.Scaled(), gb.extend.MarginalCut())
    gb.calibrate(net, (x, y), saved).save(tmp_path / "net.guardband")
    gb.load(tmp_path / "net.guardband", network=net, method=Renamed(gb.extend.Scaled(), gb.extend.MarginalCut()))
    for other in (Renamed(gb.extend.Additive(), saved.cut), Renamed(saved.score, gb.extend.PacCut())):
        with pytest.raises(gb.ModelFileError, match="was calibrated as"):
            gb.load(tmp_path / "net.guardband", network=net, method=other)


def test_tied_weights_are_saved_and_what_a_file_has_no_use_for_is_refused(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3), gb.nn.TripleHead(3)
            self.two.weight = self.one.weight

        def forward(self, x):
            return self.head(self.two(self.one(x)))

    x, y = torch.randn(200, 3), torch.randn(200)
    guarded = gb.calibrate(Tied(), (x, y))
    guarded.save(tmp_path / "tied.guardband")
    assert torch.equal(gb.load(tmp_path / "tied.guardband", network=Tied())(x), guarded(x))
    with pytest.raises(gb.ModelFileError, match="remove outputs="):
        gb.load(tmp_path / "tied.guardband", network=Tied(), outputs="gaussian")
