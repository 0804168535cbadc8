"""What guardband refuses is bad input; whatever else is raised is a fault of its own, told in one line."""

import threading

import numpy as np
import pytest

from guardband.cli.faults import is_refusal


class PanicError(BaseException):
    """As Rust's panics are: no ``Exception`` at all."""


def raises(error):
    def fail(*_):
        raise error

    return fail


def own(code):
    """Return a function as if guardband had it."""
    names = {"__name__": "guardband.somewhere", "np": np}
    exec(f"def fail(*_):\n    {code}", names)
    return names["fail"]


FAULTS = {
    "KeyError: 'schema'": raises(KeyError("schema")),
    "AssertionError": raises(AssertionError()),
    "RecursionError: too deep": raises(RecursionError("too deep")),
    "PanicError: index out of bounds": raises(PanicError("index out of bounds")),
    "EOFError: Compressed file ended": raises(EOFError("Compressed file ended")),
    "GeneratorExit": raises(GeneratorExit()),
    "ValueError: of another package": raises(ValueError("of another package")),
    "TypeError: of another package": raises(TypeError("of another package")),
    "ValueError: cannot reshape array of size 3 into shape (2,)": own("np.zeros(3).reshape(2)"),
    "ValueError: could not convert string to float: 'x'": own("float('x')"),
    "ZeroDivisionError: division by zero": own("1 / 0"),
    "RuntimeError: two lines, and \\x1b[31m": raises(RuntimeError("two lines,\nand \x1b[31m")),
}


@pytest.mark.parametrize("words", FAULTS)
def test_a_fault_is_one_line_and_exit_code_3(command, monkeypatch, words):
    monkeypatch.setattr("guardband.cli.plan.needed", FAULTS[words])
    said = command("plan")
    assert (said.code, said.out) == (3, "")
    line = said.err.strip()
    assert line.startswith(f"guardband: This is guardband's own fault: {words} ("), line
    assert line.endswith("Please report it. Set GUARDBAND_DEBUG=1 to see where it happened.")
    assert len(line.splitlines()) == 1
    assert "guardband/cli/plan.py:" in line or "(<string>:2)" in line


@pytest.mark.parametrize(
    ("fail", "words"),
    [
        (own("raise ValueError('Give another.')"), "Give another."),
        (own("raise TypeError('Give another.')"), "Give another."),
        (own("raise ImportError('Install it.')"), "Install it."),
        (raises(FileNotFoundError(2, "No such file", "x")), "x: No such file. Check the path and your rights to it."),
        (raises(UserWarning("As -W error wants it.")), "As -W error wants it."),
        (raises(SystemExit("Words.")), "Words."),
    ],
)
def test_what_guardband_refuses_is_bad_input(command, monkeypatch, fail, words):
    monkeypatch.setattr("guardband.cli.plan.needed", fail)
    assert command("plan").complaint == f"guardband: {words}"


def test_no_memory_is_said_so(command, monkeypatch):
    monkeypatch.setattr("guardband.cli.plan.needed", raises(MemoryError("Unable to allocate 8 TiB")))
    said = command("plan")
    assert said.code == 3
    assert said.err.startswith("guardband: Not enough memory (MemoryError: Unable to allocate 8 TiB). Use fewer rows")


@pytest.mark.parametrize(("code", "told"), [(1, 2), (17, 3), (-9, 3), (256, 3)])
def test_only_a_verdict_is_exit_code_1_and_no_code_is_unknown(command, monkeypatch, code, told):
    import typer

    for error in (SystemExit(code), typer.Exit(code)):
        monkeypatch.setattr("guardband.cli.plan.needed", raises(error))
        assert command("plan").code == told


def test_the_traceback_is_there_for_who_wants_it(command, monkeypatch):
    monkeypatch.setenv("GUARDBAND_DEBUG", "1")
    monkeypatch.setattr("guardband.cli.plan.needed", raises(KeyError("\x1b[31m")))
    said = command("plan")
    assert said.code == 3
    assert "Traceback (most recent call last)" in said.err
    assert "\x1b" not in said.err


def test_a_thread_that_fails_says_so_in_one_line(command, monkeypatch):
    def fail(*_):
        thread = threading.Thread(target=raises(KeyError("in a thread")))
        thread.start()
        thread.join()
        return []

    monkeypatch.setattr("guardband.cli.plan.needed", fail)
    said = command("plan")
    assert said.code == 0
    assert said.err.startswith("guardband: This is guardband's own fault: KeyError: 'in a thread' (")
    assert len(said.err.splitlines()) == 1


def test_an_error_that_was_never_raised_is_no_refusal():
    assert not is_refusal(ValueError("never raised"))
