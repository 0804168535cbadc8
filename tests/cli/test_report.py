import json
import zlib

import numpy as np
import pytest
from pyarrow import csv

import guardband as gb
from cli_tables import small_table
from reported import documents, put


def test_a_folder_that_is_no_run_and_a_file_that_is_no_model_are_one_line(command, tmp_path):
    assert "has no run.json" in command("report", tmp_path).complaint
    (tmp_path / "m.guardband").write_text("nothing")
    pytest.importorskip("guardband.report.page")
    assert "no guardband model" in command("report", tmp_path / "m.guardband").complaint


def test_the_state_of_an_online_rule_is_for_python(command, tmp_path):
    gb.OnlineCalibrator().save(tmp_path / "state")
    csv.write_csv(small_table(20, seed=5), tmp_path / "new.csv")
    for call in (("report",), ("audit", tmp_path / "new.csv", "-t", "price"), ("predict", tmp_path / "new.csv")):
        said = command(call[0], tmp_path / "state", *call[1:])
        assert said.code == 2
        assert "holds the state of an OnlineCalibrator, which only Python uses: gb.load(path)" in said.complaint


def test_a_model_that_was_saved_in_python_has_a_page_of_its_promise(command, small_model, tmp_path):
    said = command("report", small_model.model_path, "-o", tmp_path / "page.html")
    assert said.out == f"Page: {tmp_path / 'page.html'}\n"
    assert "Not yet checked" in (tmp_path / "page.html").read_text()


def test_a_table_judges_a_model_on_its_page(command, small_model, tmp_path):
    csv.write_csv(small_table(200, seed=5), tmp_path / "new.csv")
    call = ("report", small_model.model_path, tmp_path / "new.csv", "-t", "price", "-o", tmp_path / "page.html")
    said = command(*call, "--report-by", "town")
    assert said.code == 0
    found = small_model.model.audit(small_table(200, seed=5).drop_columns("price"), small_table(200, seed=5)["price"])
    assert said.out.startswith(found.sentence)
    assert "By town" in (tmp_path / "page.html").read_text()
    assert "--report-by is about a table" in command("report", small_model.model_path, "--report-by", "town").complaint
    assert "needs no table" in command("report", tmp_path, tmp_path / "new.csv").complaint


def test_a_calibration_without_its_model_has_a_page_of_its_promise_alone(command, tmp_path):
    X = np.random.default_rng(0).standard_normal((300, 1))
    gb.calibrate(lambda rows: rows[:, 0], (X, X[:, 0] + X[::-1, 0])).save(tmp_path / "m")
    assert command("report", tmp_path / "m", "-o", tmp_path / "page.html").code == 0
    assert "Not yet checked" in (tmp_path / "page.html").read_text()
    csv.write_csv(small_table(20), tmp_path / "new.csv")
    for call in (("report",), ("audit",), ("predict",)):
        said = command(*call, tmp_path / "m", tmp_path / "new.csv").complaint
        assert "gb.load(path, model=...)" in said
        assert "guardband calibrate" in said


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


def test_figures_are_written_as_files_and_the_page_has_its_heading(command, tmp_path):
    pytest.importorskip("guardband.report.page")
    from pyarrow import csv

    from cli_tables import small_table

    csv.write_csv(small_table(), tmp_path / "t.csv")
    asked = ("-t", "price", "-o", tmp_path / "m.guardband", "--preset", "fast", "--title", "Prices", "--unit", "EUR")
    assert command("fit", tmp_path / "t.csv", *asked).code == 0
    said = command("report", tmp_path / "m.guardband", "--figures", tmp_path / "f", "--json", "--author", "A. Analyst")
    assert {path[-4:] for path in said.json["figures"]} == {".svg", ".png"}
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert '<h1 id="title">Prices</h1>' in page
    assert "A. Analyst, 20" in page
    assert "\N{NO-BREAK SPACE}EUR" in page
    audited = ("--force", "--report", tmp_path / "a.html", "--title", "Later prices", "--significance", "0.05")
    command("audit", tmp_path / "m.guardband", tmp_path / "t.csv", *audited)
    assert '<h1 id="title">Later prices</h1>' in (tmp_path / "a.html").read_text(encoding="utf-8")


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
    "no document": lambda own: ["schema", 3],
    "a version that is no number": lambda own: own | {"schema": 3.0},
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
        patched.setattr("guardband.doors.kept_report.zlib.compress", lambda *_, **__: packed)
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
