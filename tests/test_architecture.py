"""What holds the package together: imports run one way and in no circle, public names stay, imports stay cheap."""

import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import architecture
import guardband as gb
from guardband.doors.model_file import save
from guardband.report.document import document
from imports import LAYERS, Package, part_of

PACKAGE = Package()
NAMES = [name for name in PACKAGE.files if part_of(name)]
LEVEL = {"": -1} | {part: level for level, layer in enumerate(LAYERS) for part in layer}

OPTIONAL = {
    *("pandas", "polars", "pyarrow", "matplotlib", "pooch", "PIL", "torchvision"),
    *("onnx", "onnxscript", "onnxruntime", "mlflow", "cryptography", "ray"),
}
BESIDE_TORCH_AND_SCIKIT_LEARN = {"guardband", "safetensors", "narwhals", "rich", "msgspec"}

PUBLIC = {
    *(
        "IntervalRegressor",
        "BandCalibrator",
        "Risk",
        "DistributionCalibrator",
        "OnlineCalibrator",
        "calibrate",
        "choose",
        "Choice",
        "train",
        "load",
        "predict_interval",
        "GuardedModel",
        "GuardedNetwork",
        "with_intervals",
        "export_onnx",
    ),
    *("Distribution", "Probabilities", "Selection"),
    *(
        "Intervals",
        "Certificate",
        "Explanation",
        "Monitor",
        "extend",
        "images",
        "nn",
        "metrics",
        "mlflow",
        "planning",
        "ray",
    ),
    *("Boxes", "Context", "Cut", "Head", "Method", "NetworkSpec", "Predicted", "Promise", "Request", "Score"),
    *("ModelFileError", "OverlapError", "InsufficientCalibrationError"),
    *("InsufficientCalibrationWarning", "DegenerateBandWarning", "RepeatedRowsWarning", "DependentRowsWarning"),
    *("SlowTrainingWarning", "TargetWarning", "MissingTargetWarning", "UnlikeRowsWarning"),
}


def heads(names):
    return {name.split(".")[0] for name in names}


def test_every_module_has_a_layer():
    assert {part_of(name) for name in NAMES} == {part for layer in LAYERS for part in layer}


@pytest.mark.parametrize("name", NAMES)
def test_imports_run_one_way(name):
    above = {other for other in PACKAGE.inside(name) if LEVEL[part_of(other)] > LEVEL[part_of(name)]}
    assert not above


def circle(graph):
    """Return names that lead from one to the next and back to the first, if there are such."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return set(error.args[1])
    return set()


def circle_of_modules(package):
    return circle({name: package.loads(name) for name in package.files})


def test_no_module_waits_for_itself_to_load():
    assert not circle_of_modules(PACKAGE)


def test_no_part_of_the_package_imports_itself_by_way_of_others():
    assert not circle(architecture.parts(PACKAGE))


@pytest.fixture
def toy(tmp_path):
    """Return a function that makes a package from the text of its modules."""

    def make(**texts):
        folder = tmp_path / "toy"
        for name, text in {"__init__": "", "low/__init__": "", "high/__init__": "", **texts}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).with_suffix(".py").write_text(text)
        return Package(folder)

    return make


@pytest.mark.parametrize(
    ("statement", "means"),
    [
        ("import toy.high.b", "toy.high.b"),
        ("import toy.high.b as b", "toy.high.b"),
        ("from toy import high", "toy.high"),
        ("from toy import __version__", "toy"),
        ("from toy import Lazy", "toy.high.b"),
        ("from toy.high import b", "toy.high.b"),
        ("from toy.high import Name", "toy.high"),
        ("from toy.high.b import Name", "toy.high.b"),
        ("from . import c", "toy.low.c"),
        ("from .c import Name", "toy.low.c"),
        ("from ..high import b", "toy.high.b"),
        ("from .. import high", "toy.high"),
        ("def late():\n    from toy.high import b", "toy.high.b"),
        ("if TYPE_CHECKING:\n    from toy.high import b", "toy.high.b"),
        ("try:\n    import torch.nn\nexcept ImportError:\n    pass", "torch.nn"),
    ],
)
def test_every_form_of_import_is_seen(toy, statement, means):
    root = "if TYPE_CHECKING:\n    from toy.high.b import Lazy as Lazy"
    package = toy(**{"__init__": root, "low/a": statement, "low/c": "", "high/b": ""})
    assert package.imports("toy.low.a") == {means}
    is_late = statement.startswith(("def", "if"))
    assert package.imports("toy.low.a", loading=True) == (set() if is_late else {means})


def test_a_name_used_through_the_package_is_seen(toy):
    root = "if TYPE_CHECKING:\n    from toy.high.b import Lazy as Lazy"
    package = toy(**{"__init__": root, "low/a": "import toy as t\nt.Lazy()\nt.__version__", "high/b": ""})
    assert package.imports("toy.low.a") == {"toy", "toy.high.b"}


def test_relative_imports_of_a_package_begin_at_itself(toy):
    package = toy(**{"low/__init__": "from . import a\nfrom ..high import b", "low/a": "", "high/b": ""})
    assert package.imports("toy.low") == {"toy.low.a", "toy.high.b"}


def test_a_circle_is_found(toy):
    texts = {"low/a": "from toy.low.b import x", "low/b": "from toy.high import c", "high/c": "import toy.low.a"}
    assert circle_of_modules(toy(**texts)) == {"toy.low.a", "toy.low.b", "toy.high.c"}
    texts["high/c"] = "def late():\n    import toy.low.a"
    assert not circle_of_modules(toy(**texts))


def test_a_circle_through_the_package_around_a_module_is_found(toy):
    texts = {"low/__init__": "from toy.low import a", "low/a": "import toy.high.b", "low/c": ""}
    assert not circle_of_modules(toy(**texts, **{"high/b": ""}))
    assert circle_of_modules(toy(**texts, **{"high/b": "import toy.low.c"})) == {"toy.low", "toy.low.a", "toy.high.b"}


def test_the_picture_of_the_layers_shows_the_imports():
    found = architecture.BLOCK.search(architecture.PAGE.read_text()).group()
    assert found == architecture.drawn(PACKAGE), "the imports have changed: python tests/architecture.py --write"


def test_the_picture_leaves_out_what_follows():
    graph = {"a": {"b", "c", "d"}, "b": {"c"}, "c": set(), "d": {"c"}}
    assert architecture.reduced(graph) == {"a": {"b", "d"}, "b": {"c"}, "c": set(), "d": {"c"}}


@pytest.mark.parametrize("part", ["nn", "training"])
def test_code_that_trains_imports_nothing_beyond_torch_and_numpy(part):
    allowed = {"torch", "numpy", "guardband", *sys.stdlib_module_names}
    for name in NAMES:
        if part_of(name) == part:
            assert heads(PACKAGE.imports(name)) <= allowed


def test_public_names_are_these_and_all_import():
    assert set(gb.__all__) == PUBLIC
    assert all(getattr(gb, name) is not None for name in PUBLIC)
    assert set(dir(gb)) >= PUBLIC
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gb.nothing  # noqa: B018


def test_every_optional_package_is_imported_where_it_is_used():
    for name in PACKAGE.files:
        assert not heads(PACKAGE.imports(name, loading=True)) & OPTIONAL


@cache
def loaded_by(code, given=""):
    """Return the modules that a program loads in a process of its own, beyond the standard library's and ``given``."""
    code = f"{given}\nimport sys; had = {{*sys.modules}}\n{code}\nprint(*{{*sys.modules}} - had)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return {name for name in done.stdout.splitlines()[-1].split() if name.split(".")[0] not in sys.stdlib_module_names}


def test_import_loads_no_other_package():
    """``benchmarks/import_time.py`` measures what that saves."""
    assert loaded_by("import guardband") == {"guardband"}


def test_the_public_names_load_little_beside_torch_and_scikit_learn():
    """No optional package, and of torch, scikit-learn and scipy no part that they do not load themselves."""
    beside = loaded_by("import guardband as gb; [getattr(gb, name) for name in gb.__all__]", "import torch, sklearn")
    assert "guardband.doors.table" in beside
    assert heads(beside) <= BESIDE_TORCH_AND_SCIKIT_LEARN


# What a model from a file is loaded and asked without; most of it takes longer to load than ten rows to predict.
NEVER_TO_PREDICT = {
    *("polars", "matplotlib", "jinja2", "IPython", "torchvision", "onnx", "onnxruntime", "mlflow", "sympy"),
    *("torch._dynamo", "torch._inductor", "torch.onnx", "guardband.experiments"),
}
# What only an estimator of scikit-learn needs, and training.
ONLY_TO_FIT = {
    *("sklearn", "joblib", "scipy.stats", "scipy.optimize", "scipy.sparse", "scipy.linalg"),
    *("guardband.doors.table", "guardband.doors.fit_rows", "guardband.learning.learn", "guardband.training.epochs"),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return a folder with a model, with the same model and its page, with a rule, and with a table of new rows."""
    folder = tmp_path_factory.mktemp("small")
    x, y = np.random.default_rng(0).standard_normal((2, 200))
    model = gb.IntervalRegressor(network="plain", hidden=(4,), epochs=1, random_state=0).fit(pa.table({"x": x}), y)
    model.save(folder / "m.guardband")
    save(model, folder / "page.guardband", report=document(model, None))
    gb.BandCalibrator().fit(x - 1, x, x + 1, y).save(folder / "rule.guardband")
    csv.write_csv(pa.table({"x": x / 2, "y": y}), folder / "t.csv")
    return folder


def loaded_beside_torch(code):
    loaded = loaded_by(code)
    assert "torch" in loaded
    return loaded - loaded_by("import torch")


def loaded_by_commands(folder, *commands):
    """Return the modules that commands load, each to its end, one after another in a folder."""
    code = f"import os; os.chdir({str(folder)!r}); from guardband.cli.app import app"
    for command in commands:
        run = f"app({command.split()}, standalone_mode=False)"
        code += f"\ntry: {run}\nexcept SystemExit as end: assert not end.code"
    return loaded_beside_torch(code)


def test_commands_that_predict_load_no_more_than_that(small):
    """``benchmarks/import_time.py`` measures what that saves: scikit-learn alone takes as long to load as torch."""
    loaded = loaded_by_commands(
        small,
        "predict m.guardband t.csv -o out.csv --quiet",
        "predict m.guardband t.csv -o out.parquet --level 0.8,0.9 --unlike",
        "explain m.guardband t.csv --rows 1,2 --quiet --json",
        "audit m.guardband t.csv --target y --quiet --json",
    )
    assert not loaded & (NEVER_TO_PREDICT | ONLY_TO_FIT)


def test_a_page_that_a_file_keeps_is_written_without_the_model(small):
    loaded = loaded_by_commands(small, "report page.guardband -o page.html")
    assert not loaded & (NEVER_TO_PREDICT - {"jinja2"} | ONLY_TO_FIT)
    assert not heads(loaded) & OPTIONAL
    assert "guardband.doors.model_file" not in loaded


def test_load_and_predict_interval_load_little_beside_torch_and_scikit_learn(small):
    path = str(small / "m.guardband")
    asked = f"gb.load({path!r}).predict_interval(pa.table({{'x': [0.0, 1.0]}}))"
    given = "import torch, sklearn, pyarrow as pa, pyarrow.compute; pa.array([1.0])"
    assert heads(loaded_by(f"import guardband as gb; {asked}", given)) <= BESIDE_TORCH_AND_SCIKIT_LEARN
    assert not loaded_by(f"import pyarrow as pa, guardband as gb; {asked}") & NEVER_TO_PREDICT


def test_a_rule_is_loaded_and_used_without_scikit_learn(small):
    path = str(small / "rule.guardband")
    loaded = loaded_beside_torch(f"import guardband as gb; gb.load({path!r}).transform([0.0], [1.0], [2.0])")
    assert not loaded & (NEVER_TO_PREDICT | ONLY_TO_FIT)
    assert not heads(loaded) & OPTIONAL


def test_no_file_but_a_promises_own_asks_for_its_kind():
    asks = re.compile(r"(certificate_?|promise)\.kind\b|isinstance\([^)]*Promise|\.kind\b.*\"(none|marginal|pac|pav)\"")
    own = {"promise", "rank_promise", "pav_promise", "parted_promise", "kept_promise", "group_widths", "certificate"}
    found = [
        f"{path.name}: {line.strip()}"
        for path in PACKAGE.files.values()
        for line in path.read_text().splitlines()
        if path.stem not in own and asks.search(line)
    ]
    assert not found
