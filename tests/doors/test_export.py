"""The calibrated network elsewhere: state, compiled, exported, as ONNX, over several processes."""

from unittest.mock import Mock

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.multiprocessing as mp
from torch import nn

import guardband as gb
from guardband.methods.registry import method_named, method_names
from guardband.nn.heads import Gaussian

torch.manual_seed(0)
X = torch.randn(400, 6)
Y = X.sum(1) + torch.randn(400)
NETWORK = gb.nn.FullyConnected(6, (16,))


def guarded_by(name, **asked):
    heads = [spec.head for spec in method_named(name).networks(gb.Request())]
    gaussian = isinstance(heads[0], Gaussian)
    torch.manual_seed(1)
    networks = [gb.nn.FullyConnected(6, (8,), last=gb.nn.GaussianHead if gaussian else None) for _ in heads]
    return gb.calibrate(networks, (X, Y / 10), name, outputs="gaussian" if gaussian else "bands", **asked)


def run_onnx(path, **inputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert [out.name for out in session.get_outputs()] == ["lower", "point", "upper"]
    return session.run(None, inputs)


def assert_same(found, ours):
    for out, own in zip(found, ours.unbind(1), strict=True):
        np.testing.assert_allclose(out, own if out.ndim == own.ndim else own[:, 0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", method_names())
def test_onnx_runtime_gives_what_we_give_for_every_method(name, tmp_path):
    guarded = guarded_by(name)
    gb.export_onnx(guarded, X[:4], tmp_path / "net.onnx")
    for n in (1, 4, 77):
        assert_same(run_onnx(tmp_path / "net.onnx", x=X[:n].numpy()), guarded(X[:n]))
    model = onnx.load(tmp_path / "net.onnx")
    assert {entry.key: entry.value for entry in model.metadata_props}["guardband"] == str(guarded.certificate)
    assert [file.name for file in tmp_path.iterdir()] == ["net.onnx"]


def test_several_levels_are_columns(tmp_path):
    guarded = gb.calibrate(NETWORK, (X, Y), confidence_level=[0.8, 0.95])
    gb.export_onnx(guarded, X[:4], tmp_path / "net.onnx")
    found = run_onnx(tmp_path / "net.onnx", x=X[:9].numpy())
    assert [out.shape for out in found] == [(9, 2), (9,), (9, 2)]
    assert_same(found, guarded(X[:9]))


def test_a_convolutional_network_and_one_with_named_inputs(tmp_path):
    torch.manual_seed(0)
    conv = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), gb.nn.TripleHead(16)
    )
    images = torch.randn(300, 1, 8, 8)
    guarded = gb.calibrate(conv, (images, Y[:300]))
    gb.export_onnx(guarded, images[:3], tmp_path / "conv.onnx")
    assert_same(run_onnx(tmp_path / "conv.onnx", x=images[:50].numpy()), guarded(images[:50]))

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = gb.nn.TripleHead(6)

        def forward(self, left, right):
            return self.head(torch.tanh(left + right))

    guarded = gb.calibrate(Named(), [({"left": X, "right": X}, Y)])
    gb.export_onnx(guarded, {"left": X[:2], "right": X[:2]}, tmp_path / "named.onnx")
    found = run_onnx(tmp_path / "named.onnx", left=X[:30].numpy(), right=X[:30].numpy())
    assert_same(found, guarded(X[:30], X[:30]))


def test_images_of_any_size_by_free_axes(tmp_path):
    torch.manual_seed(0)
    conv = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), gb.nn.TripleHead(4))
    guarded = gb.calibrate(conv, (torch.randn(300, 1, 8, 8), Y[:300]))
    gb.export_onnx(guarded, torch.randn(3, 1, 9, 10), tmp_path / "any.onnx", free_axes=(2, 3))
    for shape in ((1, 1, 8, 8), (5, 1, 20, 7)):
        images = torch.randn(shape)
        assert_same(run_onnx(tmp_path / "any.onnx", x=images.numpy()), guarded(images))


def test_sequences_of_any_length_among_several_inputs_in_another_opset(tmp_path):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = gb.nn.TripleHead(6)

        def forward(self, words, about):
            return self.head(words.mean(1) + about)

    guarded = gb.calibrate(Two(), [((X[:, None].expand(-1, 3, -1), X), Y)])
    words = torch.randn(4, 5, 6)
    gb.export_onnx(guarded, (words, X[:4]), tmp_path / "two.onnx", free_axes={"x0": (1,)}, opset_version=20)
    assert {own.domain: own.version for own in onnx.load(tmp_path / "two.onnx").opset_import}[""] == 20
    longer = torch.randn(7, 11, 6)
    found = run_onnx(tmp_path / "two.onnx", x0=longer.numpy(), x1=X[:7].numpy())
    assert_same(found, guarded(longer, X[:7]))
    for axes, said in (
        ((1,), "must name the inputs, such as"),
        ({"words": (1,)}, "names the input 'words', found 'x0', 'x1'"),
        ({"x1": (2,)}, "axes of 'x1' from 1 to 1"),
        ({"x0": (0,)}, "axes of 'x0' from 1 to 2"),
    ):
        with pytest.raises(ValueError, match=said):
            gb.export_onnx(guarded, (words, X[:4]), tmp_path / "no.onnx", free_axes=axes)
    assert not (tmp_path / "no.onnx").exists()


def test_a_version_that_cannot_be_had_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.onnx.export", lambda *_, **__: Mock(model=Mock(opset_imports={"": 18})))
    with pytest.raises(ValueError, match=r"opset_version=9, the exporter gives 18\. Use opset_version=18, or leave"):
        gb.export_onnx(gb.calibrate(NETWORK, (X, Y)), X[:4], tmp_path / "net.onnx", opset_version=9)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_exported_leaves_nothing(tmp_path):
    with pytest.raises(TypeError, match=r"takes what gb\.calibrate returns"):
        gb.export_onnx(NETWORK, X[:2], tmp_path / "a.onnx")
    with pytest.raises(OSError, match="a folder that exists"):
        gb.export_onnx(gb.calibrate(NETWORK, (X, Y)), X[:2], tmp_path / "no" / "a.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", method_names())
def test_the_whole_forward_pass_compiles_and_exports(name):
    """One graph, no part left to Python; the backend that runs it as it is needs no C++ compiler."""
    guarded = guarded_by(name)
    torch._dynamo.reset()
    compiled = torch.compile(guarded, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(X), guarded(X))
    exported = torch.export.export(guarded, (X,), dynamic_shapes={"args": ({0: torch.export.Dim("n")},)})
    torch.testing.assert_close(exported.module()(X[:7]), guarded(X[:7]))


def test_the_state_carries_the_calibration():
    guarded = gb.calibrate(NETWORK, (X, Y))
    other = gb.calibrate(gb.nn.FullyConnected(6, (16,)), (X, 5 * Y))
    other.load_state_dict(guarded.state_dict())
    torch.testing.assert_close(other(X), guarded(X))
    assert other.certificate == guarded.certificate
    assert guarded.double()(X.double()).dtype == torch.float64


def _process(rank, file, network, results):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    own = slice(0, 150) if rank == 0 else slice(150, 400)
    guarded = gb.calibrate(network, (X[own], Y[own]), guarantee="pac", process_group=torch.distributed.group.WORLD)
    results[rank] = (guarded.certificate, guarded(X[:9]))
    torch.distributed.destroy_process_group()


def test_two_processes_calibrate_as_one(tmp_path):
    with mp.Manager() as manager:
        results = manager.dict()
        mp.spawn(_process, (str(tmp_path / "meeting"), NETWORK, results), nprocs=2)
        found = [results[0], results[1]]
    alone = gb.calibrate(NETWORK, (X, Y), guarantee="pac")
    for certificate, out in found:
        assert certificate == alone.certificate
        assert torch.equal(out, alone(X[:9]))
