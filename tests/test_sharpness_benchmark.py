"""The benchmark runs on a table of one's own, and goes on where it stopped."""

import runpy
import sys
from pathlib import Path

import pandas as pd
import pytest

from guardband.data.artificial import PaperModel

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "sharpness" / "run.py"


@pytest.fixture
def run(monkeypatch):
    """Return the benchmark as a function of its arguments; only the cells have processes of their own."""
    monkeypatch.syspath_prepend(PROGRAM.parent)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", [str(PROGRAM), *map(str, arguments)])
        runpy.run_path(str(PROGRAM), run_name="__main__")

    before = set(sys.modules)
    yield call
    for name in {"tables", "report"} - before:
        sys.modules.pop(name, None)


def test_it_runs_and_goes_on(run, tmp_path):
    x, y = PaperModel(n_features=3).draw(500, seed=0)
    frame = pd.DataFrame(x, columns=list("abc")).assign(kind=["u", "v"] * 250, price=y)
    frame.loc[3, ["a", "price"]] = float("nan")
    frame.to_csv(tmp_path / "mine.csv", index=False)
    asked = ["-o", tmp_path / "out", "--file", tmp_path / "mine.csv", "--target", "price"]
    for repetitions in (1, 2, 2):
        run(*asked, "--methods", "guardband-fast", "--repetitions", repetitions)
    results = pd.read_csv(tmp_path / "out" / "results.csv")
    assert results["repetition"].tolist() == [0, 1]
    assert results["n_test"].tolist() == [100, 100]
    assert (results["covered"] / results["n_test"] == results["coverage"]).all()
    assert "guardband-fast" in (tmp_path / "out" / "summary.md").read_text()
    with pytest.raises(SystemExit, match=r"environments\.sh"):
        run(*asked, "--methods", "catboost", "--repetitions", 2)
