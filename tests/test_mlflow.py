"""Models in MLflow: saved, logged, loaded, and served on loopback."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
import zipfile
from pathlib import Path

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


DATA = "data/data"
XT = torch.tensor(X, dtype=torch.float32)


@pytest.fixture(scope="module")
def guarded():
    torch.manual_seed(0)
    return gb.calibrate(gb.nn.FullyConnected(6, (8,)), (XT, torch.tensor(Y)))


@pytest.fixture(scope="module")
def saved_network(guarded, tmp_path_factory):
    folder = tmp_path_factory.mktemp("network") / "saved"
    gb.mlflow.save_model(guarded, folder, example=XT[:3])
    return folder


@pytest.fixture
def network_folder(saved_network, tmp_path):
    return Path(shutil.copytree(saved_network, tmp_path / "copy"))


def test_a_calibrated_network_takes_rows_of_numbers(guarded, saved_network):
    loaded = mlflow.pyfunc.load_model(str(saved_network))
    expected = guarded(XT).numpy()
    for rows in (X.astype(np.float32), X[:1].astype(np.float32)):
        found = loaded.predict(rows)
        assert list(found.columns) == ["point", "lower", "upper"]
        found = found[["lower", "point", "upper"]].to_numpy()
        assert np.abs(found - expected[: len(rows)]).max() < 1e-6 * np.abs(expected).max()
    needed = (saved_network / "requirements.txt").read_text()
    assert all(name in needed for name in ("guardband[tables]", "torch==", "onnx==", "onnxruntime=="))


def test_a_networks_folder_holds_no_pickle(saved_network):
    names = {path.name for path in (saved_network / DATA).iterdir()}
    assert names == {"network.onnx", "network.onnx.sha256"}


def forged(archive, payload, *, by):
    """Return the bytes of an archive of torch.export that runs a line of Python when it is read."""

    class Runs:
        def __reduce__(self):
            return exec, (payload,)

    out = io.BytesIO()
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(out, "w") as changed:
        for name in whole.namelist():
            body = whole.read(name)
            if "sample_inputs" in name and by == "a pickle":
                pickled = io.BytesIO()
                torch.save(Runs(), pickled)
                body = pickled.getvalue()
            elif "sample_inputs" in name:
                body = b""  # and so the archive holds no pickle at all
            elif name.endswith("models/model.json") and by == "a shape":
                body = re.sub(rb'(?<="expr_str": )"[^"]*"', json.dumps(f"exec({payload!r})").encode(), body, count=1)
            changed.writestr(name, body)
    return out.getvalue()


@pytest.mark.parametrize("by", ["a pickle", "a shape"])
def test_no_code_runs_from_an_archive_of_torch(guarded, network_folder, tmp_path, by):
    """Networks were once archives of ``torch.export``, which run code, by a pickle and even without one."""
    fired = tmp_path / "fired"
    rows = {0: torch.export.Dim.AUTO}
    torch.export.save(torch.export.export(guarded, (XT[:3],), dynamic_shapes={"args": (rows,)}), tmp_path / "good.pt2")
    archive = forged(tmp_path / "good.pt2", f"open({str(fired)!r}, 'w').close()", by=by)
    (tmp_path / "forged.pt2").write_bytes(archive)
    with contextlib.suppress(Exception):
        torch.export.load(tmp_path / "forged.pt2")
    assert fired.exists()  # else this test could not fail
    fired.unlink()
    for others in (True, False):  # beside a good graph, and alone
        (network_folder / DATA / "network.pt2").write_bytes(archive)
        with pytest.raises(gb.ModelFileError, match=r"network\.pt2 was written by an older.*Save the network again"):
            mlflow.pyfunc.load_model(str(network_folder))
        if others:
            shutil.rmtree(network_folder / DATA)
            (network_folder / DATA).mkdir()
    (network_folder / DATA / "network.pt2").rename(network_folder / DATA / "network.onnx")
    with pytest.raises(gb.ModelFileError):  # under another name
        mlflow.pyfunc.load_model(str(network_folder))
    assert not fired.exists()


def test_a_folder_with_neither_or_both_is_refused(network_folder, model):
    data = network_folder / DATA
    model.save(data / "model.guardband")
    with pytest.raises(gb.ModelFileError, match=r"found both\. Save the model again"):
        mlflow.pyfunc.load_model(str(network_folder))
    shutil.rmtree(data)
    data.mkdir()
    with pytest.raises(gb.ModelFileError, match=r"There is no model\.guardband and no network\.onnx in .* Save"):
        mlflow.pyfunc.load_model(str(network_folder))


def test_a_damaged_network_is_refused(network_folder):
    file = network_folder / DATA / "network.onnx"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(gb.ModelFileError, match=r"checksum does not match\. Save the model again"):
        mlflow.pyfunc.load_model(str(network_folder))


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
