"""No cell, name or message of others acts on a terminal, and files keep their cells as they are."""

import io

import pytest
from rich.console import Console

from guardband.cli import console
from guardband.cli.console import Speaker
from guardband.progress import ProgressBar
from guardband.words import visible

HOSTILE = "\x1b]0;owned\x07\x1b[31m\x9b2J\x7f\u202egpj\u2066\u200b\U000e0041\r\x08"
ACTS = set(HOSTILE) - set("]0;owned[31m2Jgpj")


@pytest.mark.parametrize("sign", sorted(ACTS))
def test_what_acts_is_shown_as_an_escape(sign):
    assert visible(f"a{sign}b") == "a" + sign.encode("unicode_escape").decode() + "b"


def test_what_people_write_stays():
    joined = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\U0001f468\u200d\U0001f469"
    for text in ("größe\n\tx", "日付", *joined, "\N{MINUS SIGN}∞ ≤ …"):
        assert visible(text) == text


def said_by(capsys, speak):
    speak()
    out, err = capsys.readouterr()
    assert not ACTS & set(out + err)
    return out + err


def test_every_way_to_speak_escapes(capsys):
    speaker = Speaker()
    shown = console.table(HOSTILE, "x", title=HOSTILE)
    shown.add_row(HOSTILE, "1")
    for speak in (
        lambda: speaker.note(HOSTILE),
        lambda: speaker.warn(HOSTILE),
        lambda: speaker.tell(HOSTILE),
        lambda: speaker.tell(shown),
        lambda: Speaker(as_json=True).tell_json({HOSTILE: HOSTILE}),
        lambda: console.complain(HOSTILE),
    ):
        assert "owned" in said_by(capsys, speak)


def test_a_table_is_as_wide_as_its_escapes(capsys):
    shown = console.table("name", "x")
    shown.add_row("\x1b[31m", "1")
    lines = said_by(capsys, lambda: Speaker().tell(shown)).splitlines()
    assert len({len(line) for line in lines if line.strip()}) == 1


def test_progress_escapes(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("guardband.progress.PATIENCE_S", -1.0)
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=file, width=200))
    with ProgressBar(True, "rows") as bar:
        bar.update(f"Reading {HOSTILE} [bold]x", 1, 2)
    assert not (ACTS - {"\x1b", "\r"}) & set(file.getvalue())
    assert "\\x1b[31m" in file.getvalue()
    assert "[bold]x" in file.getvalue()


def test_hostile_cells_names_and_files(command, small_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = HOSTILE.replace("\r", "").replace("\x08", "")
    lines = small_model.path.read_text().splitlines()
    rows = [f"{line},{name}{i % 2}" for i, line in enumerate(lines[1:])]
    file = f"{name}.csv"
    (tmp_path / file).write_text("\n".join([f"{lines[0]},{name}", *rows]) + "\n")
    for arguments in (
        ["audit", small_model.model_path, file, "-t", "price", "--force", "--report-by", name],
        ["predict", small_model.model_path, file, "-o", "out.csv"],
        ["fit", file, "-t", "town"],
        ["fit", f"no{file}", "-t", "price"],
        ["predict", small_model.model_path, file, "-o", f"{name}/out.csv"],
    ):
        said = command(*arguments)
        assert not ACTS & set(said.out + said.err), said
        assert "owned" in said.out + said.err
    assert (tmp_path / "out.csv").read_text().count(name) == 1 + len(rows)


def test_warnings_escape(command, monkeypatch):
    import warnings

    monkeypatch.setattr("guardband.cli.plan.needed", lambda *_: warnings.warn(HOSTILE, stacklevel=1) or [])
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        said = command("plan")
    assert said.err.startswith("Warning: \\x1b]0;owned\\x07")
    assert not ACTS & set(said.err)
