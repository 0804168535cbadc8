import json
import zlib

import pytest

from reported import documents, put


def test_a_folder_that_is_no_run_and_a_file_that_is_no_model_are_one_line(command, tmp_path):
    assert "has no run.json" in command("report", tmp_path).complaint
    (tmp_path / "m.guardband").write_text("nothing")
    pytest.importorskip("guardband.report.page")
    assert "no guardband model" in command("report", tmp_path / "m.guardband").complaint


def test_a_model_without_a_report_says_how_to_get_one(command, small_model):
    pytest.importorskip("guardband.report.page")
    assert "guardband audit MODEL TABLE --report PAGE" in command("report", small_model.model_path).complaint


def test_a_run_is_drawn_again(command, tmp_path, monkeypatch):
    run = tmp_path / "run"
    (run / "figures").mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"settings": {"seed": 0, "quick": True, "repetitions": 2}, "runs": []}))
    (run / "figures" / "one.svg").write_text("<svg/>")

    def draw(folder):
        (folder.path / "index.html").write_text("<html>")
        return folder.path / "index.html", []

    monkeypatch.setattr("guardband.experiments.reproduce.report.report", draw)
    said = command("report", run, "--json")
    assert said.json == {"page": str(run / "index.html"), "figures": []}
    said = command("report", run, "-o", tmp_path / "p.html", "--figures", tmp_path / "f")
    assert said.code == 0
    assert (tmp_path / "p.html").read_text() == "<html>"
    assert (tmp_path / "f" / "one.svg").exists()


def test_figures_are_written_as_files(command, tmp_path):
    pytest.importorskip("guardband.report.page")
    from pyarrow import csv

    from cli_tables import small_table

    csv.write_csv(small_table(), tmp_path / "t.csv")
    assert (
        command("fit", tmp_path / "t.csv", "-t", "price", "-o", tmp_path / "m.guardband", "--preset", "fast").code == 0
    )
    said = command("report", tmp_path / "m.guardband", "--figures", tmp_path / "f", "--json")
    assert {path[-4:] for path in said.json["figures"]} == {".svg", ".png"}


def test_the_report_of_another_version_says_what_to_do(command, tmp_path, small_model):
    from guardband.doors.model_file import save

    save(small_model.model, tmp_path / "m.guardband", report={"schema": 1})
    assert (
        "Make a new one with `guardband audit MODEL TABLE --report PAGE`"
        in command("report", tmp_path / "m.guardband").complaint
    )


DAMAGED = {
    "a missing entry": lambda own: {key: value for key, value in own.items() if key != "promise"},
    "a missing part": lambda own: put(own, ("audit", "drift"), {}),
    "a wrong type": lambda own: put(own, ("audit", "levels"), "x"),
    "no document": lambda own: ["schema", 2],
    "a version that is no number": lambda own: own | {"schema": 2.0},
    "script as a key": lambda own: put(own, ("audit", "families", 0, "key"), '"><script>alert(1)</script>'),
    "script as a flag": lambda own: put(own, ("audit", "families", 0, "strata", 0, "flag"), '"><script>alert(1)'),
    "escape sequences": lambda own: own | {"status": "\x1b[2J\n\r"},
    "not a number": lambda own: own | {"level": float("nan")},
    "a number too large": lambda own: put(own, ("spread", "low"), 10**400),
    "a long list": lambda own: put(own, ("audit", "notes"), ["x"] * 2_000_000),
    "a long text": lambda own: own | {"promise": "x" * 10_000_000},
    "depth": lambda own: put(own, ("audit", "families"), json.loads("[" * 800 + "]" * 800)),
    "half a sign": lambda own: own | {"response": "\ud800"},
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_report_is_one_line_and_nothing_is_written(command, tmp_path, small_model, monkeypatch, damage):
    from guardband.doors.model_file import save

    text = json.dumps(DAMAGED[damage](documents()["entities"]))
    packed = zlib.compress(text.encode())
    with monkeypatch.context() as patched:  # also what save would not write
        patched.setattr("guardband.doors.model_file.zlib.compress", lambda *_, **__: packed)
        save(small_model.model, tmp_path / "m.guardband", report={})
    said = command("report", tmp_path / "m.guardband", "--figures", tmp_path / "figures").complaint
    assert "guardband audit MODEL TABLE --report PAGE" in said
    assert len(said) < 600
    assert [path.name for path in tmp_path.iterdir()] == ["m.guardband"]


@pytest.mark.parametrize("name", ["index.html", "summary.md", "figures"])
def test_links_in_the_folder_of_a_run_are_not_followed(command, tmp_path, name):
    run, own = tmp_path / "run", tmp_path / "own"
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"settings": {"seed": 0, "quick": True, "repetitions": 2}, "runs": []}))
    own.write_text("precious")
    (run / name).symlink_to(own)
    assert f"{name} is a link" in command("report", run).complaint
    assert own.read_text() == "precious"


def test_a_link_beside_a_model_is_written_only_if_it_is_named(command, tmp_path, small_model):
    from guardband.doors.model_file import save

    save(small_model.model, tmp_path / "m.guardband", report=documents()["unchecked"])
    (tmp_path / "own").write_text("precious")
    (tmp_path / "m.html").symlink_to(tmp_path / "own")
    assert "m.html is a link" in command("report", tmp_path / "m.guardband").complaint
    assert (tmp_path / "own").read_text() == "precious"
    assert command("report", tmp_path / "m.guardband", "-o", tmp_path / "m.html").code == 0
    assert (tmp_path / "own").read_text().startswith("<!doctype html>")
