"""A network's ONNX graph in a folder: it computes what torch does, and a graph from a stranger can do nothing else."""

import hashlib
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from torch import nn

import guardband as gb

onnx = pytest.importorskip("onnx", reason="needs onnx")
pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

from guardband.doors import served_graph  # noqa: E402
from guardband.doors.served_graph import CHECKSUM, GRAPH, ServedGraph, write_graph  # noqa: E402

OUTPUTS = ("lower", "point", "upper")
ROWS = np.ones((2, 6), np.float32)


def calibrated(network, x):
    return gb.calibrate(network, (x, x.flatten(1).sum(1)))


@pytest.fixture(scope="module")
def guarded():
    torch.manual_seed(0)
    return calibrated(gb.nn.FullyConnected(6, (32, 32)), torch.randn(400, 6))


@pytest.fixture(scope="module")
def folder(guarded, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    write_graph(guarded, torch.randn(3, 6), folder)
    return folder


def put(folder, body):
    """Write a graph as an intruder would, who also makes its checksum good."""
    (folder / GRAPH).write_bytes(body)
    (folder / CHECKSUM).write_text(f"{hashlib.sha256(body).hexdigest()}  {GRAPH}\n")


def assert_close(found, expected):
    """Sums of float32 in another order: a few units in the last place of the largest term."""
    scale = float(np.abs(expected).max())
    np.testing.assert_allclose(np.stack(found, 1), expected, rtol=0, atol=16 * np.finfo(np.float32).eps * scale)


@pytest.mark.parametrize("n", [1, 2, 3, 100])
def test_any_number_of_rows_gets_the_intervals_of_the_network(guarded, folder, n):
    x = torch.randn(n, 6, generator=torch.Generator().manual_seed(n))
    assert_close(ServedGraph(folder)(x.numpy()), guarded(x).numpy())


def test_rows_may_have_any_shape(tmp_path):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), gb.nn.TripleHead(144))
    x = torch.randn(200, 3, 8, 8)
    images = calibrated(net, x)
    write_graph(images, x[:2], tmp_path)
    assert_close(ServedGraph(tmp_path)(x[:5].numpy()), images(x[:5]).numpy())
    with pytest.raises(ValueError, match=r"rows of the shape \(3, 8, 8\), found \(3, 8, 9\)\. Change"):
        ServedGraph(tmp_path)(np.zeros((2, 3, 8, 9)))
    with pytest.raises(ValueError, match=r"found \(8,\)"):
        ServedGraph(tmp_path)(np.zeros((2, 8)))


def test_no_rows_get_no_intervals_from_any_network(tmp_path):
    class Recurrent(nn.Module):  # whose operation in onnxruntime ends the process if there are no rows
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(4, 8, batch_first=True), gb.nn.TripleHead(8)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    write_graph(calibrated(Recurrent(), torch.randn(50, 5, 4)), torch.randn(2, 5, 4), tmp_path)
    program = f"""
        from pathlib import Path
        import numpy as np
        from guardband.doors.served_graph import ServedGraph
        print([end.shape for end in ServedGraph(Path({str(tmp_path)!r}))(np.zeros((0, 5, 4)))])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.stdout == "[(0,), (0,), (0,)]\n", done.stderr


def test_a_graph_does_not_tell_where_it_was_made(folder):
    body = (folder / GRAPH).read_bytes()
    assert not [name for name in (b".py", b"/src/", os.getcwd().encode(), b"stack_trace") if name in body]


def test_a_network_that_torch_cannot_write_says_so(tmp_path):
    class Odd(nn.Module):
        def forward(self, x):
            return torch.special.bessel_j0(x[:, :3]).cumsum(1)

    odd = calibrated(Odd(), torch.rand(100, 6))
    with pytest.raises(ValueError, match=r"^This network cannot be written .*: .*bessel_j0.*save method\.$"):
        write_graph(odd, torch.rand(3, 6), tmp_path)


def test_every_changed_bit_is_found(folder, tmp_path):
    whole, line = (folder / GRAPH).read_bytes(), (folder / CHECKSUM).read_bytes()
    for name, body in ((GRAPH, whole), (CHECKSUM, line)):
        (tmp_path / GRAPH).write_bytes(whole)
        (tmp_path / CHECKSUM).write_bytes(line)
        for bit in np.random.default_rng(0).permutation(8 * len(body))[:100]:
            damaged = bytearray(body)
            damaged[bit // 8] ^= 1 << (bit % 8)
            (tmp_path / name).write_bytes(damaged)
            with pytest.raises(gb.ModelFileError, match=r"checksum does not match\. Save the model again"):
                ServedGraph(tmp_path)
    for end in (0, 1, len(whole) // 2, len(whole) - 1):
        (tmp_path / GRAPH).write_bytes(whole[:end])
        with pytest.raises(gb.ModelFileError, match="checksum does not match"):
            ServedGraph(tmp_path)
    (tmp_path / CHECKSUM).unlink()
    with pytest.raises(gb.ModelFileError, match=f"no file {CHECKSUM} in .* Save the model again"):
        ServedGraph(tmp_path)


def graph(nodes, numbers=(), opsets=(("", 20),), **settings):
    takes = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])]
    gives = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in OUTPUTS]
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [1])
    means = [helper.make_node("ReduceMean", ["y", "axis"], [name], keepdims=0) for name in OUTPUTS]
    whole = helper.make_graph([*nodes, *means], "graph", takes, gives, [axis, *numbers])
    versions = [helper.make_opsetid(*own) for own in opsets]
    return helper.make_model(whole, opset_imports=versions, ir_version=10, **settings)


def elsewhere(location):
    """Return numbers that lie in another file."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[6], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


ADD = helper.make_node("Add", ["x", "w"], ["y"])
SAME = helper.make_node("Identity", ["x"], ["y"])


def inside(tensor):
    """Return a choice of which one side holds a tensor in a graph of its own."""
    constant = helper.make_node("Constant", [], ["z"])
    constant.attribute.add(name="value", type=onnx.AttributeProto.TENSOR, t=tensor)
    side = helper.make_graph([constant], "side", [], [helper.make_tensor_value_info("z", TensorProto.FLOAT, [6])])
    yes = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    return [helper.make_node("If", ["yes"], ["w"], then_branch=side, else_branch=side), ADD], [yes]


def without_end():
    """Return a loop whose condition stays true, for 2^63 - 1 rounds."""
    kinds = {"i": TensorProto.INT64, "go": TensorProto.BOOL, "on": TensorProto.BOOL}
    takes, gives = (
        [helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), []) for name in names]
        for names in (("i", "go", "a"), ("on", "b"))
    )
    nodes = [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["a"], ["b"])]
    body = helper.make_graph(nodes, "round", takes, gives)
    numbers = [
        helper.make_tensor("most", TensorProto.INT64, [], [2**63 - 1]),
        helper.make_tensor("yes", TensorProto.BOOL, [], [True]),
        helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0]),
    ]
    loop = helper.make_node("Loop", ["most", "yes", "zero"], ["w"], body=body)
    return [loop, ADD], numbers


def defined(domain):
    """Return an operation of the graph's own, which calls itself."""
    itself = helper.make_node("Again", ["a"], ["b"], domain=domain)
    own = helper.make_function(domain, "Again", ["a"], ["b"], [itself], [helper.make_opsetid("", 20)])
    return graph([helper.make_node("Again", ["x"], ["y"], domain=domain)], functions=[own])


HOSTILE = {
    "a loop without end": (graph(*without_end()), "the operation 'Loop', which can run without end"),
    "an operation that calls itself": (defined(""), "defines operations of its own"),
    "an absolute path": (graph([ADD], [elsewhere("/etc/hostname")]), "numbers in another file"),
    "a path upwards": (graph([ADD], [elsewhere("../secret")]), "numbers in another file"),
    "a path in the folder": (graph([ADD], [elsewhere("secret")]), "numbers in another file"),
    "a path in a graph in the graph": (graph(*inside(elsewhere("secret"))), "numbers in another file"),
    "an operation of a library": (
        graph(
            [helper.make_node("FusedMatMul", ["x", "x"], ["y"], domain="com.microsoft", transB=1)],
            opsets=(("", 20), ("com.microsoft", 1)),
        ),
        "the operation 'FusedMatMul'",
    ),
    "more memory than there is": (
        graph(
            [
                helper.make_node("ConstantOfShape", ["size"], ["zeros"]),
                helper.make_node("ReduceMean", ["zeros"], ["mean"], keepdims=0),
                helper.make_node("Add", ["x", "mean"], ["y"]),
            ],
            [helper.make_tensor("size", TensorProto.INT64, [2], [10**9, 10**9])],
        ),
        "cannot be computed for these rows",
    ),
    "other outputs": (
        helper.make_model(
            helper.make_graph(
                [SAME],
                "graph",
                [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 6])],
            ),
            opset_imports=[helper.make_opsetid("", 20)],
            ir_version=10,
        ),
        "not a graph of intervals",
    ),
    "other rows": (
        helper.make_model(
            helper.make_graph(
                [
                    helper.make_node(
                        "Constant", [], [name], value=helper.make_tensor("", TensorProto.FLOAT, [3], [0] * 3)
                    )
                    for name in OUTPUTS
                ],
                "graph",
                [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
                [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in OUTPUTS],
            ),
            opset_imports=[helper.make_opsetid("", 20)],
            ir_version=10,
        ),
        "one interval for each row",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_graph_that_reaches_outside_its_file_is_refused(tmp_path, monkeypatch, name):
    model, said = HOSTILE[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(np.arange(6, dtype=np.float32).tobytes())
    put(tmp_path, model.SerializeToString())
    with pytest.raises(gb.ModelFileError, match=f"{said}.*Save the model again, or get the folder anew"):
        ServedGraph(tmp_path)(ROWS)


def test_a_graph_is_never_taken_for_another_format(tmp_path):
    """onnxruntime takes bytes for its own format, which nothing here checks, if these letters are in their place."""
    body = graph([SAME], producer_name="ORTM and more").SerializeToString()
    assert body[4:8] == b"ORTM"
    put(tmp_path, body)
    np.testing.assert_array_equal(np.stack(ServedGraph(tmp_path)(ROWS)), np.ones((3, 2)))


def test_a_network_that_becomes_a_loop_is_not_written(folder, tmp_path, monkeypatch):
    """What could not be read again."""

    def export(guarded, example, path):
        path.write_bytes(graph(*without_end()).SerializeToString())

    monkeypatch.setattr(served_graph, "export_onnx", export)
    with pytest.raises(ValueError, match=r"cannot be written as an ONNX graph: it asks for .*'Loop'.* save method\.$"):
        write_graph(calibrated(gb.nn.FullyConnected(6, (4,)), torch.randn(100, 6)), torch.randn(3, 6), tmp_path)
    assert list(tmp_path.iterdir()) == []


DAMAGE = """
    import hashlib, pathlib, sys
    import numpy as np
    import guardband as gb
    from guardband.doors.served_graph import CHECKSUM, GRAPH, ServedGraph
    folder, whole = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_bytes()
    random, refused = np.random.default_rng(0), 0
    for number in range(80):
        place = random.integers(len(whole))
        new = bytes(random.integers(0, 256, random.integers(0, 4), dtype=np.uint8))
        body = whole[:place] + new + whole[place + 1:]
        (folder / GRAPH).write_bytes(body)
        (folder / CHECKSUM).write_text(f"{hashlib.sha256(body).hexdigest()}  {GRAPH}" + chr(10))
        try:
            ServedGraph(folder)(np.ones((2, 6), np.float32))
        except gb.ModelFileError:
            refused += 1
    print(refused > 30)
"""


def test_a_damaged_graph_with_a_good_checksum_ends_no_process(folder, tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(DAMAGE), str(tmp_path), str(folder / GRAPH)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stdout + done.stderr
