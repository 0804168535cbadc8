"""What ``guardband fit`` is told of the target, and what it says of it."""

import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import guardband as gb

FAST = ("--preset", "fast", "--no-report")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    x = random.standard_normal(400)
    count = random.poisson(np.exp(0.5 * x))
    table = pa.table({"x": x.round(4), "count": count, "price": np.exp(0.5 * x).round(3), "gain": x.round(1)})
    csv.write_csv(table, "t.csv")
    return tmp_path


def test_a_bound_at_zero_is_proposed_and_taken(command, here):
    said = command("fit", "t.csv", "-t", "count", "--drop", "price,gain", *FAST, "--no-integer")
    assert said.code == 0, said.err
    assert "intervals begin below 0. If the target cannot be negative, add --y-min 0." in said.err
    said = command("fit", "t.csv", "-t", "count", "--drop", "price,gain", *FAST, "--no-integer", "--y-min", "0")
    assert "--y-min" not in said.err
    assert gb.load("t.guardband").y_min == 0


def test_whole_numbers_are_seen_or_told(command, here):
    said = command("fit", "t.csv", "-t", "count", "--drop", "price,gain", *FAST, "--verbose")
    assert "rounded inward to whole numbers" in said.out
    said = command("fit", "t.csv", "-t", "count", "--drop", "price,gain", *FAST, "--no-integer")
    assert "whole numbers" not in said.out
    said = command("fit", "t.csv", "-t", "price", *FAST, "--integer")
    assert "every target must be a whole number, but" in said.err.splitlines()[-1]
    assert "in row 1 is not" in said.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("asked", "found"),
    [(["--log"], "log"), (["--transform", "log1p"], "log1p")],
)
def test_other_scales(command, here, asked, found):
    said = command("fit", "t.csv", "-t", "price", "--drop", "count,gain", *FAST, *asked, "--y-max", "1e9")
    assert said.code == 0, said.err
    model = gb.load("t.guardband")
    assert (model.target_transform, model.y_max) == (found, 1e9)


def test_what_cannot_be_is_refused(command, here):
    assert "exclude each other" in command("fit", "t.csv", "-t", "price", "--log", "--transform", "sqrt").complaint
    assert "one of log, log1p, asinh, sqrt" in command("fit", "t.csv", "-t", "price", "--transform", "cube").complaint
    said = command("fit", "t.csv", "-t", "count", "--log")
    assert said.code == 2
    assert 'Use the transform "log1p" instead.' in said.err


@pytest.mark.filterwarnings("always::guardband.TargetWarning")
def test_an_absurd_target_is_named_by_its_row_in_the_file(command, here):
    lines = (here / "t.csv").read_text().splitlines()
    for i in range(100, 103):
        cells = lines[i].split(",")
        lines[i] = ",".join([*cells[:2], "1e12", cells[3]])
    (here / "t.csv").write_text("\n".join(lines))
    said = command("fit", "t.csv", "-t", "price", "--drop", "count,gain", *FAST, "--check", "0")
    assert said.code == 0, said.err
    assert re.search(r"Warning: \d of 300 .* far beyond all others: 1,000,000,000,000 in row 10[0-2][,.]", said.err)


@pytest.mark.parametrize("more", [[], ["--time", "x", "--split-by-time"]], ids=["random", "by time"])
def test_too_few_rows_are_counted_in_words(command, tmp_path, more):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n2,\n3,\n4,\n")
    said = command("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.guardband", "-q", *more)
    assert "At least 4 rows with a target are needed to train and calibrate, found 1 in" in said.complaint
    assert said.complaint.endswith("Add rows.")
