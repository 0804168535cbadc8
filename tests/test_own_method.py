"""The page "Write your own method": what it builds works everywhere, installed as a package of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import guardband as gb
from guardband.cli.app import app
from guardband.methods.registry import GROUP

PAGE = Path(__file__).parent.parent / "docs" / "own-method.md"
EXAMPLE = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL).group(1)
ENTRY = re.search(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL).group(1)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the page's module, and what pip writes of its entry point."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "proportion.py").write_text(EXAMPLE)
    about = folder / "proportion-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: proportion\nVersion: 1.0\n")
    name, where = re.search(r'^(\S+) = "(\S+)"$', ENTRY, re.MULTILINE).groups()
    assert GROUP in ENTRY
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {where}\n")
    return folder


@pytest.fixture
def method(installed, monkeypatch):
    monkeypatch.syspath_prepend(str(installed))
    return "in-proportion"


def rows(n=400):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    return X, np.exp(2 + 0.5 * X[:, 0] + 0.2 * random.normal(size=n))


def test_a_method_of_ones_own_takes_thirty_lines():
    lines = [line for line in EXAMPLE.splitlines() if line.strip() and not re.match(r"from|import", line)]
    assert len(lines) <= 30


def test_an_installed_method_is_known_by_name_and_its_files_need_no_object(method, tmp_path):
    X, y = rows()
    model = gb.IntervalRegressor(method, network="plain", epochs=5, random_state=0).fit(X, y)
    bands = model.predict_interval(X)
    assert bands.certificate.kind == "odds"
    shares = (bands.upper - bands.point) / np.abs(bands.point)
    np.testing.assert_allclose(shares, shares[0])
    model.save(tmp_path / "model.guardband")
    again = gb.load(tmp_path / "model.guardband")
    np.testing.assert_array_equal(again.predict_interval(X).lower, bands.lower)
    assert again.certificate_ == model.certificate_


def test_it_joins_the_command_lines_list(installed):
    paths = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    program = [sys.executable, "-m", "guardband", "fit", "--help"]
    assert "in-proportion" in subprocess.check_output(program, env=os.environ | {"PYTHONPATH": paths}, text=True)


def test_it_fits_on_the_command_line(method, tmp_path):
    X, y = rows()
    lines = [",".join(f"{v:.6g}" for v in (*x, own)) for x, own in zip(X, y, strict=True)]
    half = len(lines) // 2
    (tmp_path / "table.csv").write_text("\n".join(["a,b,c,y", *lines[:half]]))
    (tmp_path / "new.csv").write_text("\n".join(["a,b,c,y", *lines[half:]]))

    def run(*words):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        return done.stdout

    model = str(tmp_path / "model.guardband")
    words = ("--target", "y", "--method", method, "--preset", "fast", "-o", model, "--no-report", "--json")
    found = json.loads(run("fit", str(tmp_path / "table.csv"), *words))
    assert found["certificate"]["kind"] == "odds"
    assert "Promise: of 100 new rows, 90 or more" in found["certificate_in_words"]
    audited = json.loads(run("audit", model, str(tmp_path / "new.csv"), "--json"))
    assert audited["levels"][0]["n"] == len(X) - half


def test_packages_that_clash_or_break_are_named(installed, monkeypatch):
    monkeypatch.syspath_prepend(str(installed))
    for name, where in (("twice_a", "proportion:InProportion"), ("twice_b", "proportion:OddsCut")):
        about = installed / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{GROUP}]\ntwice = {where}\nbroken-{name} = nowhere:Method\n")
    with pytest.raises(ValueError, match="Several packages bring a method 'twice'"):
        gb.BandCalibrator("twice")
    with pytest.raises(ValueError, match="'broken-twice_a' of nowhere:Method cannot be used"):
        gb.BandCalibrator("broken-twice_a")
