"""What all commands share: help, versions, exit codes, and where they speak."""

import os
import subprocess
import sys

import pytest

import guardband
from guardband.cli.app import app

COMMANDS = (
    "demo",
    "fit",
    "calibrate",
    "predict",
    "audit",
    "monitor",
    "explain",
    "plan",
    "report",
    "export",
    "keys",
    "sign",
    "verify",
    "reproduce",
)


def test_version_and_help(command):
    assert command("--version").out.strip() == f"guardband {guardband.__version__}"
    shown = command("--help").out
    assert all(name in shown for name in COMMANDS)
    assert {own.callback.__name__ for own in app.registered_commands} == set(COMMANDS)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "reproduce"])
def test_help_teaches_by_example(command, name):
    shown = command(name, "--help").out
    assert f"guardband {name}" in shown.replace("Usage: guardband", "")
    assert "\x1b[" not in shown


def test_help_names_every_method():
    from guardband.cli.fit_options import METHODS
    from guardband.methods.registry import method_names

    assert set(METHODS) == {*method_names(), "auto"}


def process(*arguments, **more):
    return subprocess.run([sys.executable, "-m", "guardband", *arguments], capture_output=True, text=True, **more)


def test_bad_usage_is_exit_code_2_with_one_line_and_nothing_written(tmp_path):
    few = process("demo", "--rows", "3")
    assert few.returncode == 2
    assert few.stderr.startswith("guardband: Invalid value for '--rows'")
    assert len(few.stderr.splitlines()) == 1
    assert few.stdout == ""
    (tmp_path / "file").write_text("")
    refused = process("demo", "--rows", "400", "-o", str(tmp_path / "file" / "folder"))
    assert refused.returncode == 2
    assert refused.stderr.strip().splitlines()[-1].startswith("guardband: ")
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit"], "guardband: Name a table, for example: guardband fit sales.csv --target price"),
        (["fit", "t.csv"], "Missing option '--target' / '-t'. For example: guardband fit sales.csv --target price"),
        (["predict"], "guardband: Name a model, for example: guardband predict sales.guardband new.csv -o"),
        (["predict", "t.csv", "m.guardband"], "guardband: The model comes first: guardband predict MODEL TABLE."),
        (["audit", "t.csv", "m.guardband"], "guardband: The model comes first: guardband audit MODEL TABLE."),
        (["audit", "m", "t", "--level", "0.8"], "audit uses the model's own levels. Fit a model with --level 0.8,0.9."),
        (["predict", "m.guardband", "my", "t.csv"], "no table at my: check the path. Put names with spaces in quotes."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_arguments_say_what_to_type(command, arguments, words):
    assert words in command(*arguments).complaint


def test_a_mistake_of_ours_is_not_hidden(command, monkeypatch):
    monkeypatch.setattr("guardband.cli.plan.needed", lambda *_: 1 / 0)
    said = command("plan")
    assert said.code == 3
    assert said.err.startswith("guardband: This is guardband's own fault: ZeroDivisionError: division by zero (")
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("name", ["plan", "predict"])
def test_who_stops_reading_ends_the_command_quietly(small_model, name):
    arguments = ["plan"] if name == "plan" else ["predict", str(small_model.model_path), str(small_model.path), "-q"]
    reader, writer = os.pipe()
    os.close(reader)
    program = [sys.executable, "-m", "guardband", *arguments]
    done = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_command_help_is_all_there_is(command):
    said = command()
    assert "Usage: " in said.out
    assert (said.code, said.err) == (2, "")


@pytest.mark.parametrize("arguments", [("--help",), ("fit", "--help"), ("plan", "--epsilon", "0.01")], ids=" ".join)
def test_plan_and_help_load_no_heavy_package(arguments):
    """``benchmarks/import_time.py`` measures what that saves."""
    spared = {"torch", "sklearn", "narwhals", "pandas", "polars", "pyarrow", "matplotlib", "mlflow", "onnx", "PIL"}
    spared |= {"numpy", "scipy"} if "--help" in arguments else {"scipy.stats", "scipy.optimize"}
    code = f"import sys; sys.argv = ['guardband', *{arguments}]\nfrom guardband.cli import main\ntry: main()\n"
    code += f"except SystemExit as end: sys.exit(end.code or ' '.join({spared} & {{*sys.modules}}) or None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_completion_offers_methods():
    from guardband.cli.fit_options import methods_like

    assert methods_like("cqr") == ["cqr", "cqr-r"]
    shown = process("--show-completion", env={"SHELL": "/bin/bash", "PATH": "/usr/bin:/bin"})
    assert shown.returncode in (0, 2)  # 2: the shell cannot be told in a test


def test_the_end_of_the_process_looks_through_no_objects():
    code = "import atexit, gc, sys; sys.argv = ['guardband', '--version']\n"
    code += "atexit.register(lambda: print(gc.get_freeze_count() > 0, gc.isenabled()))\n"
    code += "from guardband.cli import program; program()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "True False"
