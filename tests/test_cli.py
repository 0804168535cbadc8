import subprocess
import sys

from typer.testing import CliRunner

import guardband
from guardband.cli import app

RUN = CliRunner()


def test_version_and_help():
    assert RUN.invoke(app, ["--version"]).output.strip() == f"guardband {guardband.__version__}"
    shown = RUN.invoke(app, ["--help"]).output
    assert "demo" in shown


def test_demo_prints_table_and_certificates_and_writes_a_figure(tmp_path):
    result = RUN.invoke(app, ["demo", "--rows", "2000", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    for part in ("oracle", "conf-nn", "pav", "coverage", "length / oracle", "MAE", "Promise:", "Assumes:"):
        assert part in result.output
    assert (tmp_path / "out" / "demo.png").read_bytes().startswith(b"\x89PNG")


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "guardband", *arguments], capture_output=True, text=True)


def test_bad_usage_is_exit_code_2_with_one_line_and_nothing_written(tmp_path):
    few = command("demo", "--rows", "3")
    assert few.returncode == 2
    assert few.stderr.startswith("guardband: Invalid value for '--rows'")
    assert len(few.stderr.splitlines()) == 1
    assert few.stdout == ""
    (tmp_path / "file").write_text("")
    refused = command("demo", "--rows", "400", "-o", str(tmp_path / "file" / "folder"))
    assert refused.returncode == 2
    assert refused.stderr.strip().splitlines()[-1].startswith("guardband: ")
    assert "Traceback" not in refused.stderr
