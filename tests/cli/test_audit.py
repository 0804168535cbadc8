import io
import zlib
from contextlib import redirect_stdout

import numpy as np
import pytest
import torch
from pyarrow import csv, parquet

import guardband as gb
from cli_tables import small_table
from guardband.bands.intervals import Intervals
from guardband.cli.audit_words import MOST_PLACES, _tell_levels, _to_do
from guardband.cli.console import Speaker
from guardband.cli.width_change import width_change
from guardband.doors.file_format import read, write

pytest.importorskip("guardband.report.page")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model by the command itself, and new rows: some like the old ones, some whose outcomes moved."""
    from typer.testing import CliRunner

    from guardband.cli.app import app

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


def test_rows_that_are_consistent_with_the_promise_are_exit_code_0(command, fitted, tmp_path):
    page = tmp_path / "a.html"
    said = command(
        "audit", fitted / "m.guardband", fitted / "new.csv", "--report-by", "town", "--time", "day", "--report", page
    )
    assert said.code == 0, said.err
    told = said.out.splitlines()
    assert told[0].startswith("Consistent with the promise: ")
    assert told[1] == "What to do: Keep using the model. Audit again when you know more true values."
    for words in ("Width of the intervals: ", "By town", "By month of day", "Nothing stands out among ", "Page:  "):
        assert words in said.out
    for words in ("exact test", "By the size", "Column 'size'", "searched"):
        assert words not in said.out
    assert "<html" in page.read_text()


def test_all_shows_every_group_and_column(command, fitted):
    said = command("audit", fitted / "m.guardband", fitted / "new.csv", "--all")
    assert said.code == 0, said.err
    for words in ("exact test", "p = ", "By the size", "By the width", "Column 'size'", "compared with training"):
        assert words in said.out
    assert "guardband searched a quarter of the rows for the region with the lowest coverage." in said.out
    assert "Groups are shown for information." in said.out
    assert "Add --all" not in said.out


def test_what_stands_out_is_told_with_what_to_do(command, fitted):
    said = command("audit", fitted / "m.guardband", fitted / "moved.parquet")
    assert said.code == 1, said.err
    told = said.out.splitlines()
    assert told[0].startswith("Promise broken: only ")
    assert told[1] == "What to do: If future rows will look like these, recalibrate the model on them:"
    model, table = fitted / "m.guardband", fitted / "moved.parquet"
    assert told[2] == f"  guardband audit {model} {table} --recalibrate {fitted / 'm-2.guardband'}"
    assert "what stands out" in said.out
    assert sum(line.endswith(" low ") for line in told) == MOST_PLACES
    assert "Errors have changed since calibration: errors are larger (p < 0.0001)." in said.out
    assert told[-1] == "Add --all to see every group and column."


def test_widths_are_plain_numbers():
    level = {"level": 0.9, "mean_width": 1234567.8, "median_width": 0.000123456}
    with redirect_stdout(io.StringIO()) as out:
        _tell_levels([level], Speaker(), every=False)
    assert out.getvalue() == (
        "Width of the intervals: 1,234,568 on average; half of them are narrower than 0.0001235.\n"
    )


def test_a_broken_promise_is_exit_code_1_and_can_be_calibrated_anew(command, fitted, tmp_path):
    out = tmp_path / "new.guardband"
    said = command("audit", fitted / "m.guardband", fitted / "moved.parquet", "--json", "--recalibrate", out)
    assert said.code == 1, said.err
    assert said.json["verdict"] == "broken"
    assert said.json["sentence"].startswith("Promise broken: only ")
    assert "kept" not in said.json
    assert said.json["p_value"] < 0.01
    anew = gb.load(out)
    assert anew.certificate_.n_calibration == 600
    again = command("audit", out, fitted / "moved.parquet", "--force", "--all")
    assert again.code == 2
    assert "600 of 600 rows equal rows that calibrated it" in again.out
    assert command("report", out, "-o", tmp_path / "new.html").code == 0


def test_a_model_calibrated_anew_says_how_much_wider_its_intervals_are(command, fitted, tmp_path):
    old, new = fitted / "m.guardband", tmp_path / "new.guardband"
    said = command("audit", old, fitted / "moved.parquet", "--recalibrate", new)
    rows = parquet.read_table(fitted / "moved.parquet")
    width = [gb.load(path).predict_interval(rows).width.mean() for path in (old, new)]
    assert said.out.splitlines()[-1] == (
        f"Intervals are now {width[1] / width[0]:.1f} times as wide. "
        "These rows cannot audit the new model. Use other rows."
    )


def test_changes_of_width_are_said_for_each_level():
    def bands(*widths):
        upper = np.array([widths, widths])
        return Intervals(np.zeros_like(upper), upper[:, 0], upper, (0.8, 0.9))

    assert width_change(bands(1.0, 2.0), bands(1.2, 5.0)) == (
        "Intervals are now 20% wider at 80%, 2.5 times as wide at 90%."
    )
    assert width_change(bands(1.0, 2.0), bands(0.9, 1.8)) == "Intervals are now 10% narrower."
    assert width_change(bands(np.inf, np.inf), bands(1.0, 2.0)) == ""


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
    assert "It may be one of 'price', 'other'. Name it with --target." in refused.complaint
    assert command("audit", fitted / "m.guardband", tmp_path / "t.parquet", "-q").code in (0, 1)
    wrong = command("audit", fitted / "m.guardband", tmp_path / "t.parquet", "-t", "prise")
    assert "Did you mean 'price'" in wrong.complaint
    itself = command("audit", fitted / "m.guardband", tmp_path / "t.parquet", "--time", "price")
    assert "'price' is the target." in itself.complaint


def test_rows_that_trained_cannot_judge_or_calibrate_and_nothing_is_written(command, fitted, tmp_path):
    asked = ["audit", fitted / "m.guardband", fitted / "t.csv", "-q", "--report", tmp_path / "n.html"]
    said = command(*asked)
    assert "450 of 500 rows are among those that trained or calibrated the model" in said.complaint
    assert said.complaint.endswith("Add --force to see the numbers anyway.")
    as_json = command(*asked, "--json")
    assert (as_json.code, as_json.json["verdict"], as_json.err) == (2, "cannot judge", said.err)
    said = command(*asked, "--force", "--recalibrate", tmp_path / "n.guardband")
    assert "calibration rows also occur in the training rows" in said.complaint
    assert list(tmp_path.iterdir()) == []


def test_rows_that_trained_are_shown_if_forced_and_the_exit_code_stays_2(command, fitted, tmp_path):
    page = tmp_path / "n.html"
    said = command("audit", fitted / "m.guardband", fitted / "t.csv", "-q", "--force", "--all", "--report", page)
    assert said.code == 2
    assert "By the size of the prediction" in said.out
    assert said.err.startswith("guardband: Cannot judge: 450 of 500 rows")
    assert 'class="verdict cannot-judge"' in page.read_text()
    as_json = command("audit", fitted / "m.guardband", fitted / "t.csv", "-q", "--force", "--json")
    assert as_json.code == 2
    assert as_json.json["verdict"] == "cannot judge"


def test_rows_without_outcome_are_left_out(command, fitted, tmp_path):
    text = (fitted / "new.csv").read_text().rstrip("\n").rsplit(",", 1)[0] + ",\n"
    (tmp_path / "t.csv").write_text(text)
    said = command("audit", fitted / "m.guardband", tmp_path / "t.csv")
    assert "1 of 600 rows are left out" in said.err
    assert "599" in said.out


def test_few_rows_are_exit_code_0_with_the_word(command, fitted, tmp_path):
    (tmp_path / "t.csv").write_text("\n".join((fitted / "new.csv").read_text().splitlines()[:31]))
    said = command("audit", fitted / "m.guardband", tmp_path / "t.csv", "--json", "-q")
    assert said.code == 0
    assert said.json["verdict"] == "too few rows"
    assert "They cannot tell a coverage of 80% from 90%. " in said.json["sentence"]


@pytest.mark.parametrize(
    ("reason", "more_rows", "to_do"),
    [
        ("few calibration rows", None, "Recalibrate on more rows. guardband audit --recalibrate does this."),
        ("few test rows", 38, "Collect about 40 more test rows. Use rows whose true values you know, "),
        ("few test rows", None, "Collect many more test rows. Use rows whose true values you know, "),
    ],
)
def test_what_to_do_follows_from_why_rows_are_too_few(reason, more_rows, to_do):
    found = {"verdict": "too few rows", "reason": reason, "more_rows": more_rows}
    assert _to_do(found, "", some_are_low=False).startswith(to_do)


def test_a_model_without_a_promise_cannot_be_judged(command, fitted, tmp_path):
    model = tmp_path / "m.guardband"
    fit = ["fit", fitted / "t.csv", "-t", "price", "-o", model, "--preset", "fast", "--method", "qreg-un", "-q"]
    assert command(*fit).code == 0
    said = command("audit", model, fitted / "new.csv", "-q")
    assert said.code == 2
    assert said.err.startswith("guardband: Cannot judge: nothing is promised. ")
    assert said.out.startswith("Cannot judge: nothing is promised. ")


def forged(source, path, text):
    """Write a model as an intruder would, with this as its report."""
    entries, tensors = read(source)
    packed = np.frombuffer(zlib.compress(text.encode()), dtype=np.uint8)
    write(path, entries, tensors | {"report": torch.from_numpy(packed.copy())})
    return path


ORIGINS = [
    "null",
    "[1]",
    '"text"',
    '{"target": ["price"]}',
    '{"target": "price", "seconds": NaN}',
    '{"seconds": 1e999}',
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_an_origin_that_somebody_else_wrote_says_nothing(command, fitted, tmp_path, origin):
    model = forged(fitted / "m.guardband", tmp_path / "m.guardband", f'{{"origin": {origin}}}')
    said = command("audit", model, fitted / "new.csv", "--recalibrate", tmp_path / "new.guardband", "--json")
    assert said.code == 0, said.err
    assert said.json["verdict"] == "consistent"
