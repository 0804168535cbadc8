"""Help that can be read: groups, no types, defaults, plain English, and no line wider than the terminal."""

import re

import pytest
from typer.main import get_command

from guardband.cli.app import app
from guardband.cli.help import GROUPS, WIDTH, entries_of, help_lines

PROGRAM = get_command(app)
COMMANDS = {"": PROGRAM, **PROGRAM.commands}
TYPES = re.compile(r"<\w+|\b(TEXT|STR|INT|INTEGER|FLOAT|BOOL|BOOLEAN|PATH|RANGE)\b|\[default|\[required")
STILTED = re.compile(r"\b(D1|D2|so that|whole line|response|length|outcomes?|leave it away|judges)\b|(?<![\d])\.\d")
MOST_WORDS = 20


def context_of(name):
    return COMMANDS[name].make_context(f"guardband {name}".strip(), [], resilient_parsing=True)


def lines_of(name, width=WIDTH):
    return [line.text for line in help_lines(COMMANDS[name], context_of(name), width)]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("width", [40, 80, 100])
def test_no_line_is_wider_than_the_terminal_and_none_is_cut(name, width):
    lines = lines_of(name, width)
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if "…" in line]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_no_types(name):
    assert not [line for line in lines_of(name) if TYPES.search(line)]


@pytest.mark.parametrize("name", list(PROGRAM.commands))
def test_options_stand_in_groups_in_one_order(name):
    groups = [entry.group for entry in entries_of(COMMANDS[name], context_of(name))]
    assert set(groups) <= set(GROUPS)
    assert groups == sorted(groups, key=GROUPS.index)
    assert [line for line in lines_of(name) if line in GROUPS] == list(dict.fromkeys(groups))


@pytest.mark.parametrize("name", list(PROGRAM.commands))
def test_every_option_is_explained_with_its_default(name):
    entries = entries_of(COMMANDS[name], context_of(name))
    for entry in entries:
        assert entry.words.endswith("."), entry
    for parameter in COMMANDS[name].params:
        shown = [entry.words for entry in entries if set(parameter.opts) & set(re.split(r"[ ,]+", entry.names))]
        if parameter.param_type_name == "option" and isinstance(parameter.default, str | int | float):
            expected = isinstance(parameter.default, bool) or f"Default: {parameter.default}." in shown[0]
            assert expected, (name, parameter.opts, shown)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_plain_english_in_short_sentences(name):
    command = COMMANDS[name]
    texts = [entry.words for entry in entries_of(command, context_of(name))] + (command.help or "").split("\n\n")
    for text in (" ".join(own.split()) for own in texts):
        if text.startswith("`"):
            continue
        assert not STILTED.search(text), text
        for sentence in re.split(r"(?<=[.?]) ", text):
            assert len(sentence.split()) <= MOST_WORDS, sentence


def test_help_for_people_and_for_pipes(command):
    shown = command("fit", "--help")
    assert shown.out.splitlines()[0] == "Usage: guardband fit TABLE... --target COL [options]"
    assert max(map(len, shown.out.splitlines())) <= WIDTH
    assert "\x1b" not in shown.out
    assert "Report coverage separately for each value of this column." in " ".join(shown.out.split())
