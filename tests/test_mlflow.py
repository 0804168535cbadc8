"""Models in MLflow: saved, logged, loaded, and served on loopback."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

import guardband as gb
from guardband.data.artificial import PaperModel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow")

pytestmark = pytest.mark.filterwarnings("ignore")

X, Y = PaperModel(n_features=6).draw(400, seed=1)


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(X, columns=list("abcdef")).assign(kind=np.where(X[:, 0] > 0.5, "high", "low"))


@pytest.fixture(scope="module")
def model(frame):
    return gb.IntervalRegressor(hidden=(8,), epochs=3, preset="fast", random_state=0).fit(frame, Y)


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    monkeypatch.chdir(tmp_path)


def assert_same(found, bands):
    assert list(found.columns) == ["point", "lower", "upper"]
    for name in found.columns:
        np.testing.assert_allclose(found[name], getattr(bands, name))


def test_a_tables_model_is_saved_and_loaded_without_pickle(model, frame, tmp_path):
    gb.mlflow.save_model(model, tmp_path / "saved", example=frame.head())
    assert_same(mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(frame), model.predict_interval(frame))
    assert not list((tmp_path / "saved").rglob("*.pkl"))
    saved = mlflow.models.Model.load(str(tmp_path / "saved"))
    assert saved.signature.outputs.input_names() == ["point", "lower", "upper"]
    assert saved.metadata["certificate"] == str(model.certificate_)


def test_it_is_logged_to_a_run(model, frame):
    with mlflow.start_run():
        logged = gb.mlflow.log_model(model, "intervals", example=frame.head())
    assert_same(mlflow.pyfunc.load_model(logged.model_uri).predict(frame), model.predict_interval(frame))


def test_a_calibrated_network_takes_rows_of_numbers(tmp_path):
    torch.manual_seed(0)
    x = torch.tensor(X, dtype=torch.float32)
    guarded = gb.calibrate(gb.nn.FullyConnected(6, (8,)), (x, torch.tensor(Y)))
    gb.mlflow.save_model(guarded, tmp_path / "saved", example=x[:3])
    found = mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(X.astype(np.float32))
    np.testing.assert_allclose(found[["lower", "point", "upper"]].to_numpy(), guarded(x).numpy(), rtol=1e-6)


def test_what_cannot_be_saved_says_so(frame, tmp_path):
    with pytest.raises(TypeError, match="found dict"):
        gb.mlflow.save_model({}, tmp_path / "saved", example=frame)
    bare = gb.IntervalRegressor(hidden=(8,), epochs=1, calibration_size=None).fit(frame, Y)
    with pytest.raises(ValueError, match="not calibrated"):
        gb.mlflow.save_model(bare, tmp_path / "saved", example=frame)
    assert not (tmp_path / "saved").exists()


def test_a_server_answers(model, frame, tmp_path):
    gb.mlflow.save_model(model, tmp_path / "saved", example=frame.head())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", str(tmp_path / "saved")]
    command += ["--env-manager", "local", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    programs = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])  # mlflow starts uvicorn by name
    environment = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "PATH": programs}
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
    try:
        question = json.dumps({"dataframe_split": json.loads(frame.head(3).to_json(orient="split"))}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/invocations", question, {"Content-Type": "application/json"}
        )
        end = time.monotonic() + 300
        while True:
            assert server.poll() is None, (tmp_path / "log").read_text()
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    found = pd.DataFrame(json.load(answer)["predictions"])
                break
            except OSError:
                assert time.monotonic() < end, (tmp_path / "log").read_text()
                time.sleep(0.5)
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
        server.wait()
    assert_same(found, model.predict_interval(frame.head(3)))
