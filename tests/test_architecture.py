"""What holds the package together: imports run one way, public names stay, imports stay cheap."""

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

import guardband as gb

SOURCE = Path(gb.__file__).parent

# Lower layers first; a file may import from its own layer and from those before it.
LAYERS = [
    ("exceptions", "words", "progress"),
    ("bands", "planning", "metrics"),
    ("data",),
    ("nn",),
    ("training",),
    ("images",),
    ("calibration",),
    ("methods",),
    ("doors",),
    ("audit",),
    ("report",),
    ("experiments", "mlflow"),
    ("cli", "__main__"),
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

OPTIONAL = {"pandas", "polars", "pyarrow", "matplotlib", "pooch", "onnx", "onnxscript", "mlflow", "PIL", "torchvision"}

PUBLIC = {
    *(
        "IntervalRegressor",
        "BandCalibrator",
        "calibrate",
        "train",
        "load",
        "GuardedNetwork",
        "with_intervals",
        "export_onnx",
    ),
    *("Intervals", "Certificate", "Method", "Wish", "images", "nn", "metrics", "mlflow", "planning"),
    *("ModelFileError", "OverlapError", "InsufficientCalibrationError"),
    *("InsufficientCalibrationWarning", "DegenerateBandWarning", "SlowTrainingWarning", "TargetWarning"),
}


def imported(path, top_level_only=False):
    tree = ast.parse(path.read_text())
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def layer_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_run_one_way(path):
    own = LEVEL[layer_of(path)]
    for name in imported(path):
        if name.startswith("guardband."):
            assert LEVEL[name.split(".")[1]] <= own, f"{path} imports {name}"


@pytest.mark.parametrize("layer", ["nn", "training"])
def test_code_that_trains_imports_nothing_beyond_torch_and_numpy(layer):
    allowed = {"torch", "numpy", "guardband", *sys.stdlib_module_names}
    for path in FILES:
        if layer_of(path) == layer:
            assert {name.split(".")[0] for name in imported(path)} <= allowed


def test_public_names_are_these_and_all_import():
    assert set(gb.__all__) == PUBLIC
    assert all(getattr(gb, name) is not None for name in PUBLIC)
    assert set(dir(gb)) >= PUBLIC
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gb.nothing  # noqa: B018


def test_every_optional_package_is_imported_where_it_is_used():
    for path in FILES:
        heads = {name.split(".")[0] for name in imported(path, top_level_only=True)}
        assert not heads & OPTIONAL


def seconds(*programs, repeat=5):
    """Return each program's least time, taken in turns so that a busy machine slows all alike."""
    times = [[] for _ in programs]
    for _ in range(repeat):
        for own, code in zip(times, programs, strict=True):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            own.append(time.perf_counter() - started)
    return [min(own) for own in times]


def test_import_costs_little_more_than_torch_and_scikit_learn():
    all_names = "import guardband as gb; [getattr(gb, name) for name in gb.__all__]"
    base, ours, every = seconds("import torch, sklearn", "import guardband", all_names)
    print(f"import torch, sklearn {base:.2f} s; guardband {ours / base:.2f} x, all its names {every / base:.2f} x")
    assert ours <= 1.3 * base
    assert every <= 1.3 * base


def test_help_needs_no_torch():
    code = "import sys; sys.argv = ['guardband', '--help']\nfrom guardband.cli import main\n"
    code += "try: main()\nexcept SystemExit: assert 'torch' not in sys.modules and 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
