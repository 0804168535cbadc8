"""A word before each silence, colours for people, and neither for pipes."""

import gc
import io
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress

import pytest

from guardband.cli.console import Speaker
from guardband.cli.status import ERASE, STATUS, StatusLine


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")


@contextmanager
def said_to(stream):
    """Let a stream be standard output and standard error."""
    with redirect_stdout(stream), redirect_stderr(stream):
        yield stream


def test_a_step_is_named_before_it_begins_and_erased_after_it():
    with said_to(Terminal()) as terminal:
        with Speaker().doing("Reading t.csv"):
            assert terminal.getvalue() == f"{ERASE}Reading t.csv …"
        assert terminal.getvalue() == f"{ERASE}Reading t.csv …{ERASE}"


def test_what_is_said_meanwhile_stands_above_the_step():
    speaker = Speaker()
    with said_to(Terminal()) as terminal, speaker.doing("Reading t.csv"):
        speaker.note("Some text is not UTF-8.")
    assert terminal.getvalue().split(ERASE) == [
        "", "Reading t.csv …", "Some text is not UTF-8.\n", "Reading t.csv …", ""
    ]  # fmt: skip


@pytest.mark.parametrize("was_on", [True, False])
def test_python_looks_for_garbage_only_after_packages_are_loaded(was_on):
    try:
        if not was_on:
            gc.disable()
        with suppress(ValueError), Speaker(quiet=True).loading("Loading PyTorch"):
            assert not gc.isenabled()
            raise ValueError("a package that cannot be loaded")
        assert gc.isenabled() == was_on
    finally:
        gc.enable()


def test_a_step_that_fails_is_erased():
    with said_to(Terminal()) as terminal, pytest.raises(ValueError, match="no"), Speaker().doing("Reading t.csv"):
        raise ValueError("no")
    assert terminal.getvalue().endswith(ERASE)


def test_quiet_names_no_step():
    with said_to(Terminal()) as terminal, Speaker(quiet=True).doing("Reading t.csv"):
        pass
    assert terminal.getvalue() == ""


def test_a_pipe_gets_no_step():
    with said_to(io.StringIO()) as pipe, Speaker().doing("Reading t.csv"):
        pass
    assert pipe.getvalue() == ""


def test_a_dumb_terminal_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    with said_to(Terminal()) as terminal, Speaker().doing("Reading t.csv"):
        pass
    assert terminal.getvalue() == "Reading t.csv …\n"


def test_a_long_step_stays_in_one_line_and_controls_nothing(monkeypatch):
    monkeypatch.setattr("guardband.cli.status._width", lambda: 40)
    with said_to(Terminal()) as terminal:
        StatusLine().show("Reading \x1b[31m" + 50 * "a")
    (line,) = terminal.getvalue().split(ERASE)[1:]
    assert len(line) < 40
    assert "\x1b" not in line


@pytest.mark.parametrize(("kind", "colour"), [("consistent", "32"), ("broken", "31"), ("too few rows", "33")])
def test_the_verdict_has_its_colour_in_a_terminal(kind, colour):
    with said_to(Terminal()) as terminal:
        Speaker().tell_verdict(kind, "Verdict: 9 of 10.")
    assert terminal.getvalue() == f"\x1b[1;{colour}mVerdict:\x1b[0m 9 of 10.\n"


@pytest.mark.parametrize(("name", "value", "escapes"), [("NO_COLOR", "1", "\x1b[1m"), ("TERM", "dumb", "")])
def test_colours_can_be_turned_off(monkeypatch, name, value, escapes):
    monkeypatch.setenv(name, value)
    with said_to(Terminal()) as terminal:
        Speaker().tell_verdict("broken", "Verdict: 9 of 10.")
    assert terminal.getvalue().startswith(f"{escapes}Verdict:")


def test_a_pipe_gets_no_colours():
    with said_to(io.StringIO()) as pipe:
        Speaker().tell_verdict("broken", "Verdict: 9 of 10.")
    assert pipe.getvalue() == "Verdict: 9 of 10.\n"


@pytest.fixture
def steps(monkeypatch):
    """The steps that a command names."""
    named = []
    monkeypatch.setattr(STATUS, "show", named.append)
    return named


def is_in_order(words, named):
    rest = iter(named)
    return all(any(step.startswith(word) for step in rest) for word in words)


def test_fit_names_every_step_that_may_take_long(command, small_model, tmp_path, steps):
    table = small_model.path
    fit = ("fit", table, "-t", "price", "-o", tmp_path / "m.guardband", "--preset", "fast")
    assert command(*fit).code == 0
    assert is_in_order(
        [
            "Loading PyTorch", "Reading ", "Looking for repeated rows among 500", "Training on 450 rows",
            "Looking for rows that depend on each other", "Calibrating", "Checking the promise on 50 test rows",
            "Writing ",
        ],
        steps,
    ), steps  # fmt: skip
    steps.clear()
    assert command(*fit, "-q", "--no-report").code == 0
    assert steps == []


def test_the_other_commands_name_their_steps(command, small_model, tmp_path, steps):
    model, table = small_model.model_path, small_model.path
    assert command("predict", model, table, "-o", tmp_path / "out.csv").code == 0
    assert is_in_order(["Loading PyTorch", "Loading ", "Predicting"], steps), steps
    steps.clear()
    assert command("audit", model, table, "--force").code == 2
    assert is_in_order(["Loading PyTorch", "Loading ", "Reading ", "Checking the promise on 500 rows"], steps), steps
    steps.clear()
    assert command("report", model).code == 0
    assert is_in_order(["Loading "], steps), steps
