"""What was typed wrongly: every such error is one line that ends with what to do, and exit code 2."""

from typing import get_type_hints

import pytest

from guardband.cli.app import commands
from guardband.cli.usage import OTHERWISE

OWN = commands().commands
EXAMPLE = ("Missing", "Name a")


def option(name, wanted):
    """Return the longest name of the first option of a command that is as wanted."""
    found = [max(own.opts, key=len) for own in OWN[name].params if own.param_type_name == "option" and wanted(own)]
    return found[0] if found else None


def is_flag(parameter):
    return bool(getattr(parameter, "is_flag", False))


def numbers(name):
    """Return the names of what is a number in the signature of a command."""
    hints = get_type_hints(OWN[name].callback)
    return {own for own, kind in hints.items() if kind in (int, float, int | None, float | None)}


def wrong():
    """Return every kind of wrong line, for every command that can be typed so, and how its complaint begins."""
    for name in OWN:
        yield [name, "--xyzzy"], "No such option: --xyzzy. Run "
        yield [name, "-Z"], "No such option: -Z. Run "
        if any(own.required for own in OWN[name].params):
            yield [name], EXAMPLE
        yield [name, "--help=3"], "Option '--help' does not take a value. Run "
        if valued := option(name, lambda own: not is_flag(own)):
            yield [name, valued], f"Option '{valued}' requires an argument. Run "
            yield [name, valued[:-1]], f"No such option: {valued[:-1]}. Did you mean --"
        own_numbers = numbers(name)
        if number := option(name, lambda own, found=own_numbers: own.name in found):
            yield [name, f"{number}=x"], f"Invalid value for '{number}'"
        if not any(own.param_type_name == "argument" for own in OWN[name].params):
            yield [name, "one", "two"], "Got unexpected extra argument"
    yield ["fit", "t.csv"], "Missing option '--target' / '-t'. For example: guardband fit sales.csv --target price."
    yield ["fit"], "Name a table, for example: guardband fit sales.csv --target price."
    yield ["keys"], "Missing argument 'NAME'. For example: guardband keys release."
    yield ["keys", "one", "two"], "Got unexpected extra argument"
    yield ["demo", "--rows", "3"], "Invalid value for '--rows'"
    yield ["reproduce", "a"], "Invalid value for 'NAME': 'a' is not one of 'simulation', 'supplement', 'bike',"
    yield ["demo", "--row", "3"], "No such option: --row. Did you mean --rows?"
    yield ["predictt"], "No such command 'predictt'. Did you mean 'predict'?"
    yield ["xyzzy"], "No such command 'xyzzy'. Run 'guardband --help' to see the commands."
    yield [""], "No such command ''. Run 'guardband --help' to see the commands."
    yield ["two\nlines \x1b[31m"], "No such command "
    yield ["--xyzzy"], "No such option: --xyzzy. Run 'guardband --help' to see the commands."
    yield ["--versio"], "No such option: --versio. Did you mean --version?"
    yield ["--version=1"], "Option '--version' does not take a value. Run 'guardband --help' to see the commands."
    yield from ([[name, wrong_option], words] for (name, wrong_option), words in OTHERWISE.items())


def own_words():
    """Return lines that Typer accepts and guardband does not, and what guardband says."""
    model = ["predict", "m.guardband", "t.csv"]
    yield ["fit", "t.csv", "-t", "y", "--level", "x"], "A confidence level is a number such as 0.9, found 'x'. Write "
    yield ["plan", "--tails", "x"], "Tails are two numbers with a comma between them, found 'x'. Write "
    yield [*model, "--quantiles", ""], "Name at least one level. Write --quantiles 0.05,0.5,0.95."
    yield [*model, "--quantiles", "0.5,x"], "A quantile is a number such as 0.05, found '0.5,x'. Write "
    yield [*model, "--above", "nan"], "--above must be a finite number, found nan. Write --above 100."


LINES = [*wrong(), *own_words()]


@pytest.mark.parametrize(("line", "words"), LINES, ids=lambda own: repr(own)[:60])
def test_every_wrong_line_is_one_complaint_that_says_what_to_do(command, line, words):
    said = command(*line).complaint.removeprefix("guardband: ")
    assert said.startswith(words)
    assert said.endswith((".", "?"))
    assert not said.endswith("..")
    advice = f"Run 'guardband {line[0]} --help' to see the options.", "to see the commands.", *OTHERWISE.values()
    assert any(own in said for own in (*advice, "or example: guardband ", "Did you mean ", "Write --")), said


def test_every_command_and_every_kind_is_tried():
    assert {line[0] for line, _ in LINES} >= set(OWN)
    kinds = [words for _, words in LINES]
    for kind in ("No such option", "Option", "Invalid value", "Got unexpected", "No such command"):
        assert sum(isinstance(words, str) and words.startswith(kind) for words in kinds) >= 2, kind
