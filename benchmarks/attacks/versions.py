"""The oldest and the newest versions of other packages, and other Pythons: an environment of each, and a short suite.

    python benchmarks/attacks/versions.py oldest FOLDER
    python benchmarks/attacks/versions.py newest FOLDER --python python3.13

``oldest`` installs the lowest version of every package that pyproject.toml allows, ``newest`` the highest that pip
finds. What pip takes is told, then the tests run, whose last lines are the result. An environment takes up to 8 GB,
since pip takes torch with its libraries for GPUs where no other build is offered. It stays in FOLDER, and is used
again if it is there.
"""

import argparse
import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
EXTRAS = ("tables", "plots", "sign")
TOLD = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "polars", "pyarrow", "safetensors", "msgspec", "narwhals")
TESTS = (
    *("tests/bands", "tests/calibration", "tests/methods", "tests/nn", "tests/training", "tests/learning"),
    "--ignore=tests/learning/test_table_network.py",  # needs onnx
    *("tests/monitor", "tests/audit", "tests/report", "tests/test_planning.py"),
    *("tests/doors/test_model_file.py", "tests/doors/test_signature.py", "tests/doors/test_signed_file.py"),
    *("tests/data/test_table.py", "tests/data/test_disk.py", "tests/data/test_codes.py"),
    *("tests/cli/test_predict.py", "tests/cli/test_audit.py", "tests/cli/test_sign.py"),
)


def needs(oldest: bool) -> list[str]:
    """Return what guardband needs, at its lowest or at any version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(need for name in EXTRAS for need in extras[name])]
    return [need.replace(">=", "==") if oldest else need for need in wanted]


def main() -> None:
    """Make the environment unless it is there, and run the tests in it; end with their exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", choices=("oldest", "newest"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("tests", nargs="*", default=TESTS)
    asked = parser.parse_args()
    own = asked.folder / "bin" / "python"
    pip = [own, "-m", "pip", "--disable-pip-version-check"]
    if not (asked.folder / "DONE").exists():
        subprocess.run([asked.python, "-m", "venv", asked.folder], check=True)
        install = [*pip, "install", "--quiet", *needs(asked.versions == "oldest"), "pytest", "hypothesis"]
        subprocess.run(install, check=True)
        (asked.folder / "DONE").touch()
    subprocess.run([own, "--version"], check=True)
    listed = subprocess.run([*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True).stdout
    print(*(line for line in listed.splitlines() if line.split("==")[0].lower() in TOLD))
    # A warning of another version is no failure: users do not run with warnings as errors.
    test = [own, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default", "--tb=line"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    sys.exit(
        subprocess.run([*test, "--disable-warnings", *asked.tests], cwd=ROOT, env=environment, check=False).returncode
    )


if __name__ == "__main__":
    main()
