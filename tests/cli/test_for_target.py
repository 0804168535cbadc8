"""guardband fit --for-target: a promise about rows like those of another table."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import guardband as gb


def houses(path, n=500, shift=0.0, seed=0, without=(), noise=1.0):
    """Write houses, of which those of another population are larger."""
    rng = np.random.default_rng(seed)
    size = rng.standard_normal(n) + shift
    price = 3 * size + noise * rng.standard_normal(n)
    csv.write_csv(pa.table({"size": size, "year": rng.random(n), "price": price}).drop_columns(list(without)), path)
    return path


@pytest.fixture
def call(tmp_path):
    table = houses(tmp_path / "houses.csv")
    how = ("--preset", "fast", "--independent-rows", "-o", tmp_path / "m", "--for-target", tmp_path / "new.csv")
    return ("fit", table, "-t", "price", *how)


def test_the_promise_is_about_rows_like_those_of_the_other_table(call, tmp_path, command):
    houses(tmp_path / "new.csv", 300, shift=0.6, seed=1, without=["price"])
    said = command(*call)
    assert said.code == 0, said.err
    words = " ".join(said.out.split())
    assert words.startswith("Not checked: the promise is about rows like those of")
    assert "houses.csv: Consistent with the promise" in words or "houses.csv: Too few rows to tell" in words
    assert "New rows are rows like those that you gave to for_target" in words
    model = gb.load(tmp_path / "m")
    assert model.certificate_.promise.n_target == 300
    page = (tmp_path / "m.html").read_text()
    assert "rows like those that you gave to for_target" in page
    assert "Not checked: the promise is about rows like those of" in page
    assert command("predict", tmp_path / "m", tmp_path / "new.csv", "-o", tmp_path / "out.csv").code == 0
    said = command("audit", tmp_path / "m", houses(tmp_path / "later.csv", 200, 0.6, 2))
    assert said.code == 2
    assert "The weights were estimated" in said.out


def test_json_has_the_check_of_the_promise_before(call, tmp_path, command):
    houses(tmp_path / "new.csv", 300, shift=0.6, seed=1)
    said = command(*call, "--json").json
    assert said["verdict"] is None
    assert said["certificate"]["kind"] == "estimated"
    assert said["before_for_target"]["verdict"] in ("consistent", "too few rows")
    assert said["rows"]["checked"] == 50


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"shift": 50}, "are unlike anything that was calibrated"),
        ({"n": 5}, "needs at least 20 rows to predict"),
        ({"without": ["size"]}, "lacks 'size'. Add it, or leave it out with --drop"),
    ],
)
def test_rows_that_no_weights_can_serve_are_refused(call, tmp_path, command, other, words):
    houses(tmp_path / "new.csv", seed=1, **other)
    assert words in command(*call).complaint
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "asked",
    [
        ("--guarantee", "pac"),
        ("--group", "year"),
        ("--side", "upper"),
        ("--tails", "0.05,0.05"),
        ("--method", "pav"),
    ],
)
def test_promises_that_weights_cannot_make_are_refused_before_training(call, tmp_path, command, asked):
    houses(tmp_path / "new.csv", seed=1)
    said = command(*call, *asked).complaint
    assert "--for-target" in said
    assert asked[0] in said
