"""Nothing that a user reads holds jargon: a word list, over messages, docstrings, templates and pages."""

import pytest

from voice import JARGON, in_pages, in_sources, strings_of, without_code, wrong_words


def shown(found):
    return [" | ".join(own) for own in found]


def test_messages_docstrings_and_templates_are_free_of_jargon():
    assert shown(in_sources()) == []


def test_pages_are_free_of_jargon():
    assert shown(in_pages()) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("They were split into D1 and D2.", "D1, D2"),
        ("Coverage is .91 of it (.5).", "numbers like .91"),
        ("Do this, so that it works.", "so that"),
        ("The interval is the whole line.", "whole line"),
        ("One's own model", "one, ours"),
        ("Chance twins do no harm.", "twins"),
        ("The mean of the response", "response"),
        ("The length of an interval", "length of an interval"),
        ("Leave it away for more.", "leave it away"),
    ],
)
def test_jargon_is_found(text, word):
    assert {found[1] for found in wrong_words("here", text)} == {word}


def test_plain_words_and_code_pass():
    text = "At 0.91, see `D1` and ``so that``.\n```\nD2\n```\n[so](docs/fleet.md) worst_slab_coverage 1.5 nested"
    assert list(wrong_words("here", without_code(text))) == []


def test_every_word_of_the_list_has_a_pattern_of_its_own():
    assert len(set(JARGON.values())) == len(JARGON)


def test_strings_are_read_whole_and_docstrings_are_left_out(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        '"""Doc."""\nA = "one " "two"\ndef f(x):\n    """Doc."""\n    raise ValueError(f"so {x} that " "end")\n'
    )
    assert sorted(text for _, text in strings_of(path)) == ["one two", "so {} that end"]
