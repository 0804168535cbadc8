import numpy as np
import onnxruntime
import pytest


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


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_without_onnxruntime_it_says_so(command, small_model, tmp_path, monkeypatch):
    monkeypatch.setattr("guardband.cli.export.find_spec", lambda name: None)
    said = command("export", small_model.model_path, "--onnx", tmp_path / "m.onnx")
    assert "Not compared with the model: that needs onnxruntime" in said.out
    assert "1 of them is a category" in said.out


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_graph_that_differs_is_not_written(command, small_model, tmp_path, monkeypatch):
    monkeypatch.setattr("guardband.cli.export.AGREEMENT", -1.0)
    said = command("export", small_model.model_path, "--onnx", tmp_path / "m.onnx")
    assert "The graph must put out what the model does" in said.complaint
    assert list(tmp_path.iterdir()) == []


def test_bad_places_are_one_line(command, small_model, tmp_path):
    assert "folder that exists" in command("export", small_model.model_path, "--onnx", tmp_path).complaint
