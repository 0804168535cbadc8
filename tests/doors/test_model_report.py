import numpy as np
import pytest
from safetensors import safe_open
from safetensors.torch import save_file

import guardband as gb
from guardband.doors.file_format import _checksum
from guardband.doors.kept_report import read_report
from guardband.doors.model_file import save


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    return gb.IntervalRegressor(hidden=(8,), epochs=2, network="plain", random_state=0).fit(X, X.sum(1))


def test_a_report_comes_back_as_it_was(model, tmp_path):
    report = {"title": "Ä </script>", "numbers": [1, 2.5, None]}
    save(model, tmp_path / "m", report=report)
    assert read_report(tmp_path / "m") == report
    assert gb.load(tmp_path / "m").certificate_ == model.certificate_


def test_without_a_report_there_is_none(model, tmp_path):
    model.save(tmp_path / "m")
    assert read_report(tmp_path / "m") is None


def test_a_report_must_be_json(model, tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        save(model, tmp_path / "m", report={"x": float("nan")})
    assert not (tmp_path / "m").exists()


def test_a_changed_report_is_refused(model, tmp_path):
    save(model, tmp_path / "m", report={"kept": False})
    with safe_open(tmp_path / "m", framework="pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    tensors["report"] = tensors["report"].clone()
    tensors["report"][3] ^= 1
    save_file(tensors, tmp_path / "changed", metadata=metadata)
    with pytest.raises(gb.ModelFileError, match="checksum"):
        read_report(tmp_path / "changed")
    metadata["sha256"] = _checksum(metadata["guardband"], tensors)
    tensors["report"][0] = 0
    metadata["sha256"] = _checksum(metadata["guardband"], tensors)
    save_file(tensors, tmp_path / "strange", metadata=metadata)
    with pytest.raises(gb.ModelFileError, match="holds a report that"):
        read_report(tmp_path / "strange")


def test_the_summary_of_d1_is_kept(model, tmp_path):
    model.save(tmp_path / "m")
    assert gb.load(tmp_path / "m").fitted_.reference == model.fitted_.reference
