"""Builds the wheel, installs it into an empty environment and uses it there: ``make smoke``."""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
USE = """
import importlib.util, pathlib, tempfile, warnings
warnings.simplefilter("error")
assert importlib.util.find_spec("pandas") is None, "the environment is not empty"
import numpy as np, guardband as gb
rng = np.random.default_rng(0)
X = rng.random((300, 3)); y = X.sum(1) + rng.standard_normal(300)
for method in ("conf-nn", "pav"):
    model = gb.IntervalRegressor(method, epochs=5, random_state=0).fit(X, y)
    bands = model.predict_interval(X)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.guardband"
        model.save(path)
        assert (gb.load(path).predict_interval(X).upper == bands.upper).all()
    print(model.certificate_)
from guardband.audit.evidence import Evidence
from guardband.report.document import document
from guardband.report.page import render
new = rng.random((200, 3)); page = render(document(model, Evidence.of(model, new, new.sum(1))))
assert "<style>" in page and 'id="verdict"' in page
assert (pathlib.Path(gb.__file__).parent / "py.typed").exists()
np.savetxt("t.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,price", comments="")
"""


def build(source: Path, out: Path, environment: dict[str, str]) -> Path:
    """Return the wheel of a checkout."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    (wheel,) = out.glob("*.whl")
    return wheel


def build_elsewhere(place: Path, environment: dict[str, str]) -> Path:
    """Return the wheel of a copy: in another folder, with other times and rights, another time zone, order and seed."""
    copy = place / "copy"
    copy.mkdir()
    for name in ("src", "pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        kept = ROOT / name
        if kept.is_dir():
            shutil.copytree(
                kept, copy / name, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copyfile(kept, copy / name)
    for path in copy.rglob("*"):
        if path.is_file():
            path.chmod(0o600)
        os.utime(path, (10**9, 10**9))
    other = {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "LC_ALL": "C"}
    return build(copy, place / "again", environment | other)


def main() -> None:
    """Run the smoke test; any failure is an exception."""
    environment = os.environ | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        wheel = build(ROOT, place / "dist", environment)
        assert wheel.read_bytes() == build_elsewhere(place, environment).read_bytes(), "the wheel is not reproducible"
        venv.create(place / "empty", with_pip=True)
        python = place / "empty" / "bin" / "python"
        for package in ("torch==2.13.0", wheel):
            subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True, env=environment)
        subprocess.run([python, "-c", USE], check=True, cwd=place)
        guardband = place / "empty" / "bin" / "guardband"
        subprocess.run([guardband, "--version"], check=True, cwd=place)
        fit = [guardband, "fit", "t.csv", "--target", "price", "--preset", "fast"]
        refused = subprocess.run(fit, cwd=place, capture_output=True, text=True, check=False)
        assert refused.returncode == 2, refused
        assert "guardband[tables]" in refused.stderr, refused.stderr
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"{wheel}[tables]"], check=True, env=environment)
        subprocess.run(fit, check=True, cwd=place)
        assert (place / "t.guardband").exists()
        assert (place / "t.html").exists()
    print("The wheel works in an empty environment.")


if __name__ == "__main__":
    main()
