"""A run can be stopped, killed and gone on with; the same seed gives the same numbers, however many jobs."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from guardband.cli import main
from guardband.cli.app import app
from guardband.experiments.reproduce import cells
from guardband.experiments.reproduce.cells import Cell
from guardband.experiments.reproduce.contest import contest
from guardband.experiments.reproduce.folder import RESULTS, Folder
from guardband.experiments.reproduce.run import _run_cell, run
from guardband.experiments.reproduce.setting import EVERYONE, Setting

SETTING = Setting("tuned", (8,), EVERYONE, max_epochs=3, batch_size=100)
CELLS = [
    Cell("simulation", SETTING, (0, 1), 600, 300),
    Cell("simulation", replace(SETTING, name="plain"), (0, 1), 600, 300),
    Cell("supplement", replace(SETTING, name="n=600"), (0,), 600, 300),
]
SETTINGS = {"seed": 0, "quick": True, "repetitions": 2}


def folder_at(path):
    folder = Folder(path)
    folder.open(SETTINGS, {"command": "here"})
    return folder


def numbers(folder):
    frame = folder.tables()["results"].drop(columns="seconds")
    return frame.sort_values(list(RESULTS[:4])).reset_index(drop=True)


def test_jobs_and_order_do_not_change_a_number(tmp_path):
    one, two = (folder_at(tmp_path / name) for name in ("one", "two"))
    run(CELLS, one, seed=7, verbose=False)
    run(CELLS[::-1], two, seed=7, jobs=2, verbose=False)
    pd.testing.assert_frame_equal(numbers(one), numbers(two))
    assert tuple(one.tables()["results"].columns) == RESULTS


def test_what_is_done_is_not_done_again_and_what_is_half_written_is(tmp_path, monkeypatch):
    folder = folder_at(tmp_path / "run")
    run(CELLS[:1], folder, verbose=False)
    half = folder.path / "cells" / CELLS[1].name
    half.mkdir()
    (half / "rows.csv").write_text("experiment,sett")
    trained = []

    def counted(problems, setting, *rest):
        trained.append(setting.name)
        return contest(problems, setting, *rest)

    monkeypatch.setattr("guardband.experiments.reproduce.outcome.contest", counted)
    run(CELLS, folder, verbose=False)
    assert trained == ["plain", "n=600"]
    assert set(folder.tables()["results"]["setting"]) == {"tuned", "plain", "n=600"}


def test_a_cell_that_has_changed_is_run_again(tmp_path):
    folder = folder_at(tmp_path / "run")
    run(CELLS[2:], folder, verbose=False)
    expected, cell = numbers(folder), folder.path / "cells" / CELLS[2].name
    for name in ("rows.csv", "DONE"):
        body = bytearray((cell / name).read_bytes())
        body[-3] ^= 1
        (cell / name).write_bytes(body)
        assert not folder.is_done(CELLS[2])
        with pytest.raises(ValueError, match=r"has changed since it was written\. Remove it"):
            folder.tables()
        run(CELLS[2:], folder, verbose=False)
        pd.testing.assert_frame_equal(numbers(folder), expected)
    (cell / "DONE").write_bytes(b"")  # as earlier versions marked it
    assert folder.is_done(CELLS[2])


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    """Killed outright after the first cell; the rest is then the same as in a run that was never stopped."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\nfrom test_run import CELLS, folder_at, run\n"
        "run(CELLS, folder_at(Path(sys.argv[1])), verbose=False)\n"
    )
    path = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", code, str(path), os.path.dirname(__file__)])
    while not (path / "cells" / CELLS[0].name / "DONE").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    folder, whole = folder_at(path), folder_at(tmp_path / "whole")
    assert not all(folder.is_done(cell) for cell in CELLS)
    run(CELLS, folder, verbose=False)
    run(CELLS, whole, verbose=False)
    pd.testing.assert_frame_equal(numbers(folder), numbers(whole))


def test_a_folder_of_another_run_is_refused(tmp_path):
    folder_at(tmp_path / "run")
    with pytest.raises(ValueError, match=r"holds a run with seed 0, .* cannot go on with seed 1"):
        Folder(tmp_path / "run").open(SETTINGS | {"seed": 1}, {})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="must be a new or empty folder"):
        Folder(tmp_path / "mine").open(SETTINGS, {})


def test_the_command_writes_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "cells_of", lambda wanted, quick, repetitions: CELLS if wanted == ["simulation"] else [])
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["reproduce", "simulation", "--quick", "-o", str(out), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    assert "conf-nn covers at the nominal level" in result.output
    for name in (
        "results.csv",
        "results.parquet",
        "details.csv",
        "curves.csv",
        "comparison.csv",
        "summary.md",
        "index.html",
    ):
        assert (out / name).exists()
    results = pd.read_csv(out / "results.csv")
    assert tuple(results.columns) == RESULTS
    assert (results["coverage"] == results["covered"] / results["n_test"]).all()
    pd.testing.assert_frame_equal(results, pd.read_parquet(out / "results.parquet"))
    for figure in ("figure-1", "figure-1-plain", "figure-S1", "convergence"):
        assert (out / "figures" / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert "QUICK RUN" in (out / "figures" / f"{figure}.svg").read_text()
    page = (out / "index.html").read_text()
    assert "QUICK RUN" in page
    assert "://" not in page.replace("http://www.w3.org", "")  # nothing is fetched
    about = json.loads((out / "run.json").read_text())
    assert about["runs"][0]["torch"] == torch.__version__
    assert not [file for file in out.iterdir() if file.suffix == ".part"]


def test_missing_data_is_told_before_anything_is_trained(tmp_path, monkeypatch, capfd):
    places = ["--data-dir", str(tmp_path / "none"), "-o", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["guardband", "reproduce", "house", "--quick", *places])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    said = capfd.readouterr().err
    assert "house data is absent" in said
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "none").exists()
    assert len(said.strip().splitlines()) == 1


def working(cell, folder, *_):
    (folder.path / f"worker-{os.getpid()}").touch()
    time.sleep(300)


def first_then_working(cell, *rest):
    (_run_cell if cell == CELLS[0] else working)(cell, *rest)


def test_ctrl_c_leaves_finished_cells_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "out"
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
        "import test_run\nfrom guardband.cli import program\n"
        "test_run.cells.cells_of = lambda *_: test_run.CELLS\n"
        "from guardband.experiments.reproduce import run as module\n"
        "module._run_cell = test_run.first_then_working\n"
        "program()\n"
    )
    words = ["reproduce", "simulation", "--quick", "-o", str(out), "--device", "cpu"]
    command = [sys.executable, "-c", code, os.path.dirname(__file__), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list(out.glob("worker-*")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    told, trouble = process.communicate(timeout=300)
    assert process.returncode == 130, trouble
    assert "To continue, give the same command again" in told
    assert "Traceback" not in trouble
    assert Folder(out).is_done(CELLS[0])


def test_a_damaged_folder_is_named(tmp_path):
    folder = folder_at(tmp_path / "run")
    for text in ("{", "{}"):
        (folder.path / "run.json").write_text(text)
        with pytest.raises(ValueError, match=r"run\.json is damaged"):
            folder.open(SETTINGS, {})


def test_each_command_that_worked_on_a_run_is_kept(tmp_path):
    folder = folder_at(tmp_path / "run")
    folder.open(SETTINGS, {"command": "there"})
    folder.open(SETTINGS, {"command": "here"})
    assert [run["command"] for run in folder.about()["runs"]] == ["there", "here"]


def ending(cell, *_):
    os.kill(os.getpid(), signal.SIGKILL)


def two_workers(path, doing):
    """Begin a process that runs the cells in two workers, each of which does this instead."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\nfrom guardband.experiments.reproduce import run as module\n"
        "import test_run\nmodule._run_cell = getattr(test_run, sys.argv[3])\n"
        "try: module.run(test_run.CELLS, test_run.folder_at(Path(sys.argv[1])), jobs=2, verbose=False)\n"
        "except ChildProcessError as error: print(error)\n"
    )
    command = [sys.executable, "-c", code, str(path), os.path.dirname(__file__), doing.__name__]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_worker_that_is_killed_is_told_in_one_sentence(tmp_path):
    told, trouble = two_workers(tmp_path / "run", ending).communicate()
    assert told.strip().endswith("The same command goes on from there."), trouble


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return file.read().split()
    except OSError:
        return None


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(children_of(os.getpid()) is None, reason="needs Linux's list of a process's children")
def test_workers_end_with_the_command(tmp_path):
    """A run that is killed leaves no process behind."""
    with two_workers(tmp_path / "run", working) as process:
        while len(list((tmp_path / "run").glob("worker-*"))) < 2:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        left = children_of(process.pid)
        process.kill()
    assert len(left) == 3  # also the one that looks after what they share
    end = time.monotonic() + 60
    while any(map(alive, left)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, left))


def test_all_leaves_out_what_needs_a_login_and_says_so(tmp_path, monkeypatch):
    def some(wanted, quick, repetitions):
        return CELLS[:1] if wanted == ["simulation"] else [replace(CELLS[0], experiment=wanted[0])]

    monkeypatch.setattr(cells, "cells_of", some)
    monkeypatch.setattr(cells, "EXPERIMENTS", ("simulation", "house"))
    monkeypatch.setattr("guardband.experiments.reproduce.report.report", lambda folder: (folder.path, []))
    command = ["reproduce", "all", "--quick", "-o", str(tmp_path / "out"), "--data-dir", str(tmp_path / "none")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "Skipped house: The house data is absent" in " ".join(result.output.split())


def test_a_figure_that_cannot_be_drawn_leaves_the_old_one(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    from guardband.experiments.reproduce.figures import draw

    folder = folder_at(tmp_path / "run")
    run(CELLS[:1], folder, verbose=False)
    draw(folder.tables(), folder.path / "figures", None)
    old = {path.name: path.read_bytes() for path in (folder.path / "figures").iterdir()}

    def half(figure, part, **_):
        part.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(Figure, "savefig", half)
    with pytest.raises(KeyboardInterrupt):
        draw(folder.tables(), folder.path / "figures", None)
    assert {path.name: path.read_bytes() for path in (folder.path / "figures").iterdir()} == old


def test_a_second_process_is_kept_out_of_a_run(tmp_path):
    out = tmp_path / "out"
    with Folder(out).alone():
        result = CliRunner().invoke(app, ["reproduce", "simulation", "--quick", "-o", str(out), "--device", "cpu"])
        assert str(result.exception) == (
            f"Another process works on the run in {out}. Wait until it ends, or choose another folder by -o."
        )
        assert list(out.iterdir()) == []
    with Folder(out).alone():  # whoever ends lets the next one in
        pass


def test_a_run_that_was_killed_while_it_made_its_folder_goes_on(tmp_path):
    part = tmp_path / ".run.json.0123456789abcdef.part"
    part.write_text("{")
    folder_at(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / ".mine.0123456789abcdef.part").write_text("")
    with pytest.raises(ValueError, match="must be a new or empty folder"):
        folder_at(tmp_path)
