import pytest
from pyarrow import csv, parquet

import guardband as gb
from cli_tables import small_table

pytest.importorskip("guardband.report.page")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model by the command itself, and new rows: some like the old ones, some whose outcomes moved."""
    from typer.testing import CliRunner

    from guardband.cli import app

    folder = tmp_path_factory.mktemp("audit")
    csv.write_csv(small_table(), folder / "t.csv")
    arguments = ["fit", str(folder / "t.csv"), "-t", "price", "-o", str(folder / "m.guardband"), "--preset", "fast"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    new = small_table(600, seed=1)
    csv.write_csv(new, folder / "new.csv")
    moved = [price + 3 for price in new["price"].to_pylist()]
    parquet.write_table(new.set_column(4, "price", [moved]), folder / "moved.parquet")
    return folder


def test_a_kept_promise_is_exit_code_0(command, fitted, tmp_path):
    page = tmp_path / "a.html"
    said = command(
        "audit", fitted / "m.guardband", fitted / "new.csv", "--group", "town", "--time", "day", "--report", page
    )
    assert said.code == 0, said.err
    for words in ("Promise kept", "exact test", "p = ", "By town", "Over day", "By the size", "Worst corner", "Drift"):
        assert words in said.out
    assert "<html" in page.read_text()


def test_a_broken_promise_is_exit_code_1_and_can_be_calibrated_anew(command, fitted, tmp_path):
    out = tmp_path / "new.guardband"
    said = command("audit", fitted / "m.guardband", fitted / "moved.parquet", "--json", "--recalibrate", out)
    assert said.code == 1, said.err
    assert said.json["kept"] is False
    assert said.json["p_value"] < 0.01
    anew = gb.load(out)
    assert anew.certificate_.n_calibration == 600
    again = command("audit", out, fitted / "moved.parquet")
    assert again.code == 0
    assert "600 of 600 rows equal rows that calibrated it" in again.out
    assert command("report", out, "-o", tmp_path / "new.html").code == 0


def test_significance_decides(command, fitted):
    model, table = fitted / "m.guardband", fitted / "moved.parquet"
    p = command("audit", model, table, "--json").json["p_value"]
    assert p < 1e-3
    assert "strictly between 0 and 1" in command("audit", model, table, "--significance", "0").complaint


def test_the_target_is_kept_in_the_file_or_must_be_named(command, fitted, small_model, tmp_path):
    said = command("audit", small_model.model_path, fitted / "new.csv", "-q")  # only one column can be it
    assert said.code in (0, 1)
    new = small_table(200, seed=2)
    parquet.write_table(new.append_column("other", new["price"]), tmp_path / "t.parquet")
    refused = command("audit", small_model.model_path, tmp_path / "t.parquet")
    assert "name it by --target (it may be one of 'price', 'other')" in refused.complaint
    assert command("audit", fitted / "m.guardband", tmp_path / "t.parquet", "-q").code in (0, 1)
    wrong = command("audit", fitted / "m.guardband", tmp_path / "t.parquet", "-t", "prise")
    assert "did you mean 'price'" in wrong.complaint
    itself = command("audit", fitted / "m.guardband", tmp_path / "t.parquet", "--time", "price")
    assert "The target 'price' is what is predicted" in itself.complaint


def test_rows_that_trained_cannot_calibrate_and_nothing_is_written(command, fitted, tmp_path):
    said = command(
        *("audit", fitted / "m.guardband", fitted / "t.csv", "-q"),
        *("--recalibrate", tmp_path / "n.guardband", "--report", tmp_path / "n.html"),
    )
    assert "Calibration rows must be new to the network" in said.complaint
    assert list(tmp_path.iterdir()) == []


def test_rows_without_outcome_are_left_out(command, fitted, tmp_path):
    text = (fitted / "new.csv").read_text().rstrip("\n").rsplit(",", 1)[0] + ",\n"
    (tmp_path / "t.csv").write_text(text)
    said = command("audit", fitted / "m.guardband", tmp_path / "t.csv")
    assert "1 of 600 rows are left out" in said.err
    assert "599" in said.out
