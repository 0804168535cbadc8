import io
import math
import re
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import guardband as gb
from guardband.doors.progress import FitProgress
from guardband.progress import ProgressBar, notebook_display, told_of_steps


class Notebook:
    """What a kernel shows: one line for each display, which updates replace."""

    def __init__(self):
        self.lines, self.sent = [], 0

    def display(self, bundle, *, raw, display_id):
        assert raw
        assert display_id
        self.lines.append("")
        place = len(self.lines) - 1

        def update(bundle, *, raw):
            self.lines[place] = bundle["text/plain"]
            self.sent += 1

        update(bundle, raw=raw)
        return SimpleNamespace(update=update)


@pytest.fixture
def shell(monkeypatch):
    """Return a function that puts a shell in place, with a kernel or without, and returns its notebook."""

    def start(**attributes):
        notebook = Notebook()
        monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
        monkeypatch.setitem(sys.modules, "IPython.display", ModuleType("IPython.display"))
        sys.modules["IPython"].get_ipython = lambda: SimpleNamespace(**attributes)
        sys.modules["IPython.display"].display = notebook.display
        monkeypatch.setattr("guardband.progress.PATIENCE_S", -1.0)
        return notebook

    return start


@pytest.fixture
def no_terminal(monkeypatch):
    def refuse(**asked):
        raise AssertionError("rich must not be asked: in a notebook it wants ipywidgets")

    monkeypatch.setattr("rich.console.Console", refuse)


def train(verbose):
    with FitProgress(verbose) as progress:
        for epoch in range(1, 41):
            progress("Training", epoch, 40)


def test_a_notebook_gets_one_line_that_ends_with_the_last_epoch(shell, no_terminal, monkeypatch):
    notebook = shell(kernel=object())
    train(None)
    assert [line.split("  ")[:3] for line in notebook.lines] == [["Training", "█" * 24, "epoch 40 of at most 40"]]
    monkeypatch.setattr("guardband.progress.EVERY_S", 1e9)
    sent = notebook.sent
    train(None)
    assert notebook.sent - sent == 2  # the first epoch and the last: a kernel is not flooded


def test_verbose_false_is_silent_and_true_is_not(shell, no_terminal):
    notebook = shell(kernel=object())
    train(False)
    assert not notebook.lines
    train(True)
    assert len(notebook.lines) == 1


def test_quick_work_shows_nothing(shell, no_terminal, monkeypatch):
    notebook = shell(kernel=object())
    monkeypatch.setattr("guardband.progress.PATIENCE_S", 1e9)
    train(None)
    assert not notebook.lines


@pytest.mark.parametrize("attributes", [{}, {"kernel": None}], ids=["IPython in a terminal", "no kernel"])
def test_a_shell_without_a_kernel_is_no_notebook(shell, attributes):
    notebook = shell(**attributes)
    assert notebook_display() is None
    train(None)
    assert not notebook.lines


def test_a_plain_pipe_stays_empty(capfd, monkeypatch):
    monkeypatch.setattr("guardband.progress.PATIENCE_S", -1.0)
    train(None)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_gets_its_bar(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("guardband.progress.PATIENCE_S", -1.0)
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=file, width=100))
    train(True)
    assert "epoch 40 of at most 40" in file.getvalue()


@pytest.mark.parametrize(("seconds", "clocks"), [(math.inf, 1), (1e6, 2)])
def test_the_time_left_is_shown_only_where_it_is_known(monkeypatch, seconds, clocks):
    """Networks mostly stop long before the last epoch."""
    file = io.StringIO()
    monkeypatch.setattr("guardband.progress.PATIENCE_S", -1.0)
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=file, width=100))
    with FitProgress(True, seconds) as progress:
        progress("Training", 3, 200)
    (line,) = [line for line in file.getvalue().splitlines() if "epoch 3" in line]
    assert len(re.findall(r"[\d-]:[\d-]{2}:[\d-]{2}", line)) == clocks


@pytest.mark.parametrize(
    ("counted", "done", "total", "words"),
    [
        ("rows", 1000, 4000, "1,000 of 4,000 rows"),
        ("bytes", 1e6, 4e6, "1.0 of 4.0 MB"),
        ("rows", 1000, None, "1,000 rows"),
    ],
)
def test_whatever_is_counted_is_named_in_a_notebook(shell, counted, done, total, words):
    notebook = shell(kernel=object())
    with ProgressBar(True, counted) as bar:
        bar.update("Reading \x1b[31m", done, total)
    (line,) = notebook.lines
    assert line.startswith("Reading \\x1b[31m  ")
    assert words in line
    assert line.count("█") == (6 if total else 0)


def test_the_line_says_how_long_it_took(shell, monkeypatch):
    notebook = shell(kernel=object())
    clock = iter([0.0, 3725.0, 3725.0])
    monkeypatch.setattr("guardband.progress.time.monotonic", lambda: next(clock))
    with ProgressBar(True, "rows") as bar:
        bar.update("Reading", 1, 1)
    assert notebook.lines[0].endswith("  1:02:05")


def test_a_fit_is_shown_in_a_notebook(shell, no_terminal):
    notebook = shell(kernel=object())
    rng = np.random.default_rng(0)
    model = gb.IntervalRegressor(hidden=(4,), network="plain", epochs=3, random_state=0, split_by=[])
    model.fit(rng.random((200, 2)), rng.random(200))
    assert len(notebook.lines) == 1
    assert "epoch 3 of at most 3" in notebook.lines[0]


def test_a_step_without_progress_is_said(shell, monkeypatch):
    """In a notebook in place of the bar, which comes back; in a terminal too; by a listener if there is one."""
    notebook = shell(kernel=object())
    with FitProgress(True) as progress:
        progress("Training", 40, 40)
        progress.step("Looking for rows")
        assert notebook.lines == ["Looking for rows …"]
    assert "epoch 40 of at most 40" in notebook.lines[0]
    heard = []
    with FitProgress(True) as progress, told_of_steps(heard.append):
        progress("Training", 40, 40)
        progress.step("Looking for rows")
    assert heard == ["Looking for rows"]
    assert "epoch 40" in notebook.lines[1]


def test_a_step_without_progress_is_said_in_a_terminal(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("guardband.progress.PATIENCE_S", -1.0)
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=file, width=100, force_terminal=True))
    with FitProgress(True) as progress:
        progress("Training", 3, 200)
        progress.step("Looking for rows")
    assert "Looking for rows …" in file.getvalue()
