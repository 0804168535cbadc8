"""Builds the wheel, installs it into an empty environment and uses it there: ``make smoke``."""

import os
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
assert (pathlib.Path(gb.__file__).parent / "py.typed").exists()
"""


def main() -> None:
    """Run the smoke test; any failure is an exception."""
    environment = os.environ | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place / "dist", ROOT]
        subprocess.run(build, check=True, env=environment, stdout=subprocess.DEVNULL)
        (wheel,) = (place / "dist").glob("*.whl")
        venv.create(place / "empty", with_pip=True)
        python = place / "empty" / "bin" / "python"
        for package in ("torch==2.13.0", wheel):
            subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True, env=environment)
        subprocess.run([python, "-c", USE], check=True, cwd=place)
        subprocess.run([place / "empty" / "bin" / "guardband", "--version"], check=True, cwd=place)
    print("The wheel works in an empty environment.")


if __name__ == "__main__":
    main()
