import pytest


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
    (run / "run.json").write_text("{}")
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
