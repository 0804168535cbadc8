"""A command ends with 0, 1, 2, 3 or 130 and without a traceback, whatever becomes of its streams."""

import io
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

from guardband.cli.standard_streams import IN_ASCII, Lenient

CODES = {0, 1, 2, 3, 130}


def process(arguments, redirect, **more):
    """Run a command as a shell does that closes or redirects its streams."""
    words = ["bash", "-c", f'exec "$@" {redirect}', "bash", sys.executable, "-m", "guardband", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, **more)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done


@pytest.mark.parametrize(
    ("name", "redirect"),
    [(name, redirect) for name in ("--help", "plan --json") for redirect in (">&-", ">/dev/full")]
    + [("--version", ">/dev/full"), ("plan", ">&-"), ("predict", ">/dev/full")],
)
def test_a_result_that_cannot_be_written_is_not_called_done(small_model, name, redirect):
    arguments = ["predict", small_model.model_path, small_model.path] if name == "predict" else name.split()
    done = process(arguments, redirect)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("guardband: Standard output cannot be written: "), done.stderr
    assert done.stderr.count("guardband: ") == 1


def test_no_message_goes_into_a_file_that_takes_the_place_of_a_closed_stream(small_model, tmp_path):
    """The next file that is opened gets the number of a closed stream."""
    arguments = ["predict", small_model.model_path, small_model.path, "-o", "out.csv"]
    assert process(arguments, "<&- >&- 2>&-", cwd=tmp_path).returncode == 0
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert len(lines) == 1 + small_model.table.num_rows
    assert {line.count(",") for line in lines} == {7}
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full"])
def test_remarks_that_cannot_be_written_change_no_exit_code(redirect):
    assert process(["plan", "--nothing"], redirect).returncode == 2
    assert process(["plan"], redirect).returncode == 0


def test_a_current_folder_that_was_removed_is_a_sentence(small_model, tmp_path):
    """Libraries below torch would end the process, with a line of their own."""
    (tmp_path / "gone").mkdir()
    arguments = ["predict", small_model.model_path, small_model.path]
    done = process(arguments, "", cwd=tmp_path / "gone", preexec_fn=(tmp_path / "gone").rmdir)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == "guardband: The current folder was removed. Change to another one."


def test_closed_standard_input_is_a_sentence(small_model):
    done = process(["predict", small_model.model_path, "-"], "<&-")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("guardband: ")


def test_a_reader_that_goes_does_not_hide_a_broken_promise(small_model, tmp_path):
    """The exit code is the verdict's, not that of whoever read the first lines."""
    lines = small_model.path.read_text().splitlines()
    moved = [",".join([*line.split(",")[:-1], str(1000 + i)]) for i, line in enumerate(lines[1:])]
    (tmp_path / "t.csv").write_text("\n".join([lines[0], *moved]) + "\n")
    reader, writer = os.pipe()
    os.close(reader)
    program = [sys.executable, "-m", "guardband", "audit", small_model.model_path, "t.csv", "-t", "price"]
    done = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_broken_import_is_no_traceback(tmp_path):
    (tmp_path / "typer.py").write_text("raise ImportError('cannot open libnothing.so')")
    path = {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    done = process(["plan"], "", env=os.environ | path)
    assert done.returncode == 3
    assert done.stderr.startswith("guardband: This is guardband's own fault: ImportError: cannot open libnothing.so (")
    (tmp_path / "typer.py").write_text("import nothing_at_all")
    done = process(["plan"], "", env=os.environ | path)
    assert done.returncode == 2
    assert done.stderr.startswith("guardband: No module named 'nothing_at_all'. Install it")


@contextmanager
def speaking(encoding, monkeypatch):
    """Make standard output and error ones of an encoding that has no minus sign."""
    with ExitStack() as files, monkeypatch.context() as patch:
        for name, number in (("stdout", 1), ("stderr", 2)):
            patch.setattr(sys, name, files.enter_context(os.fdopen(os.dup(number), "w", encoding=encoding)))
        yield


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_every_command_speaks_in_every_encoding(command, small_model, tmp_path, monkeypatch, encoding):
    model, table = small_model.model_path, small_model.path
    for arguments in (
        ["--help"],
        ["fit", "--help"],
        ["plan"],
        ["audit", model, table, "-t", "price", "--force", "--report-by", "town", "--time", "day"],
        ["audit", model, table, "-t", "price", "--force", "--json"],
        ["predict", model, table, "-o", tmp_path / "out.csv"],
        ["predict", model, tmp_path / "größe \u2212.csv"],
        ["fit", table, "-t", "größe"],
    ):
        with speaking(encoding, monkeypatch):
            said = command(*arguments)
        assert said.code in CODES - {3}, said
        assert "Traceback" not in said.err
        assert (said.out + said.err).isascii() or encoding != "ascii"


def test_our_own_signs_have_plain_ones(command, monkeypatch):
    def fail(*_):
        raise RuntimeError("".join(IN_ASCII) + "\u65e5")

    monkeypatch.setattr("guardband.cli.plan.needed", fail)
    with speaking("ascii", monkeypatch):
        assert f": {''.join(IN_ASCII.values())}\\u65e5 (" in command("plan").err


def test_a_stream_that_must_not_wait_is_waited_for():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    size = 1 << 20
    program = [sys.executable, "-c", f"import sys; print(len(sys.stdin.buffer.read({size})))"]
    with subprocess.Popen(program, stdin=reader, stdout=subprocess.PIPE) as slow:
        os.close(reader)
        with Lenient(writer, "w") as raw, io.BufferedWriter(raw) as file:
            file.write(bytes(size))
            file.flush()
            assert raw.failure is None
        assert int(slow.communicate()[0]) == size


NASTY = [
    ["fit", "no.csv", "-t", "price"],
    ["fit", "", "-t", "price"],
    ["fit", ".", "-t", "price"],
    ["fit", "rubbish.csv", "-t", "price"],
    ["fit", "rubbish.parquet", "-t", "price"],
    ["fit", "rubbish.xlsx", "-t", "price"],
    ["fit", "s.csv", "-t", ""],
    ["fit", "s.csv", "-t", "two\nlines\x1b[31m"],
    ["fit", "s.csv", "-t", "price", "--level", "nan"],
    ["fit", "s.csv", "-t", "price", "--level", "inf"],
    ["fit", "s.csv", "-t", "price", "--level", ""],
    ["fit", "s.csv", "-t", "price", "--level", "9" * 400],
    ["fit", "s.csv", "-t", "price", "--check", "nan"],
    ["fit", "s.csv", "-t", "price", "--delta", "nan", "--guarantee", "pac"],
    ["fit", "s.csv", "-t", "price", "--preset", "nan"],
    ["fit", "s.csv", "-t", "price", "--y-min", "nan"],
    ["fit", "s.csv", "-t", "price", "--device", "nothing"],
    ["fit", "s.csv", "-t", "price", "--device", "cuda:99"],
    ["fit", "s.csv", "-t", "price", "--device", "meta"],
    ["fit", "s.csv", "-t", "price", "-o", "n" * 300],
    ["fit", "s.csv", "-t", "price", "-o", "loop"],
    ["fit", "s.csv", "-t", "price", "-o", "pipe"],
    ["fit", "\udcff.csv", "-t", "price"],
    ["fit", "bytes-\udcff.csv", "-t", "price", "--level", "2"],
    ["predict", "rubbish.csv", "s.csv"],
    ["predict", "m.guardband", "\udcff.csv"],
    ["predict", "m.guardband", "rubbish.parquet"],
    ["predict", "m.guardband", "s.csv", "-o", "\udcff.csv", "--level", "nan"],
    ["predict", "m.guardband", "s.csv", "-o", "pipe.csv"],
    ["predict", "m.guardband", "s.csv", "--level", "nan"],
    ["predict", "m.guardband", "s.csv", "--no-formulas", "-o", "a.parquet"],
    ["audit", "m.guardband", "s.csv", "--significance", "nan"],
    ["audit", "m.guardband", "s.csv", "-t", "price", "--report-by", "\x1b[31m"],
    ["plan", "--level", "nan"],
    ["plan", "--level", "9" * 400],
    ["plan", "--level", "1e-320"],
    ["plan", "--delta", "nan"],
    ["plan", "--delta", "1e-320"],
    ["plan", "--epsilon", "nan"],
    ["plan", "--epsilon", "1e-320"],
    ["plan", "--rows", "9" * 400],
    ["plan", "--rows", "9" * 20],
    ["plan", "--level", "0.9", "--level", "0.8"],
    ["report", "\x1b[31m"],
    ["report", "s.csv"],
    ["report", "."],
    ["export", "rubbish.csv", "--onnx", "x.onnx"],
    ["demo", "--rows", "9" * 400],
    ["reproduce", "\x1b[31m"],
    ["\x1b[31m"],
    ["--nothing\x1b[31m"],
    [""],
]


@pytest.fixture(scope="module")
def rubbish(small_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rubbish")
    for ending in ("csv", "parquet", "xlsx"):
        (folder / f"rubbish.{ending}").write_bytes(np.random.default_rng(0).bytes(2000))
    for name in ("s.csv", "bytes-\udcff.csv"):
        (folder / name).write_bytes(small_model.path.read_bytes())
    (folder / "m.guardband").write_bytes(small_model.model_path.read_bytes())
    (folder / "loop").symlink_to("loop")
    for name in ("pipe", "pipe.csv"):
        os.mkfifo(folder / name)
    return folder


@pytest.mark.parametrize("arguments", NASTY, ids=lambda words: ascii(" ".join(words))[1:40])
def test_nasty_command_lines_are_refused_in_one_line(command, rubbish, monkeypatch, arguments):
    monkeypatch.chdir(rubbish)
    before = sorted(os.listdir(rubbish))
    said = command(*arguments)
    assert said.code in {0, 2}, said
    assert "Traceback" not in said.err + said.out
    assert sum(line.startswith("guardband: ") for line in said.err.splitlines()) == (1 if said.code else 0), said
    assert not any(sign in said.err + said.out for sign in ("\x1b", "\x07", "\udcff"))
    assert sorted(os.listdir(rubbish)) == before
