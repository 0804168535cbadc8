"""``guardband export``: a graph is written where it puts out what the model does."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_graph_is_compared_with_the_model(command, small_model, tmp_path):
    said = command("export", small_model.model_path, "--onnx", tmp_path / "m.onnx", "--json")
    assert said.code == 0, said.err
    found = said.json
    assert found["columns"] == ["size", "town", "day", "sold"]
    assert found["compared"]["largest_difference"] <= 1e-3 * found["compared"]["median_width"]
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    X = small_model.table.drop_columns("price")
    lower, _, upper = session.run(None, {"x": small_model.model.as_network().rows(X).numpy()})
    bands = small_model.model.predict_interval(X)
    np.testing.assert_allclose(lower, bands.lower, atol=1e-3)
    np.testing.assert_allclose(upper, bands.upper, atol=1e-3)


@pytest.fixture
def another_graph(monkeypatch):
    """A graph of the right form, and in no time, that is not the model's: the share of missing cells in a row."""
    nodes = [helper.make_node("IsNaN", ["x"], ["missing"]), helper.make_node("Cast", ["missing"], ["one"], to=1)]
    ends = ("lower", "point", "upper")
    nodes += [helper.make_node("ReduceMean", ["one"], [end], axes=[1], keepdims=0) for end in ends]
    rows = helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["n", 4])
    out = [helper.make_tensor_value_info(end, TensorProto.FLOAT, ["n"]) for end in ends]
    opset = helper.make_opsetid("", 17)
    graph = helper.make_model(helper.make_graph(nodes, "other", [rows], out), opset_imports=[opset], ir_version=8)
    monkeypatch.setattr("guardband.doors.export.export_onnx", lambda model, rows, path: onnx.save(graph, path))


@pytest.mark.usefixtures("another_graph")
def test_without_onnxruntime_it_says_so(command, small_model, tmp_path, monkeypatch):
    monkeypatch.setattr("guardband.cli.export.find_spec", lambda name: None)
    said = command("export", small_model.model_path, "--onnx", tmp_path / "m.onnx")
    assert "To do so, run: pip install onnxruntime" in said.out
    assert "1 column is a category." in said.out
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.usefixtures("another_graph")
def test_a_graph_that_differs_is_not_written(command, small_model, tmp_path):
    said = command("export", small_model.model_path, "--onnx", tmp_path / "m.onnx")
    assert "The graph differs from the model by" in said.complaint
    assert list(tmp_path.iterdir()) == []


def test_bad_places_are_one_line(command, small_model, tmp_path):
    assert "folder that exists" in command("export", small_model.model_path, "--onnx", tmp_path).complaint
