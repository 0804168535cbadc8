"""The benchmark runs on a table of one's own, and goes on where it stopped."""

import subprocess
import sys
from pathlib import Path

import pandas as pd

from guardband.data.artificial import PaperModel

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "sharpness" / "run.py"


def test_it_runs_and_goes_on(tmp_path):
    x, y = PaperModel(n_features=3).draw(500, seed=0)
    frame = pd.DataFrame(x, columns=list("abc")).assign(kind=["u", "v"] * 250, price=y)
    frame.loc[3, ["a", "price"]] = float("nan")
    frame.to_csv(tmp_path / "mine.csv", index=False)
    command = [sys.executable, str(PROGRAM), "-o", str(tmp_path / "out"), "--file", str(tmp_path / "mine.csv")]
    command += ["--target", "price", "--methods", "guardband-fast", "--repetitions"]
    for repetitions in (1, 2, 2):
        subprocess.run([*command, str(repetitions)], check=True, capture_output=True, timeout=300)
    results = pd.read_csv(tmp_path / "out" / "results.csv")
    assert results["repetition"].tolist() == [0, 1]
    assert results["n_test"].tolist() == [100, 100]
    assert (results["covered"] / results["n_test"] == results["coverage"]).all()
    assert "guardband-fast" in (tmp_path / "out" / "summary.md").read_text()
    refused = subprocess.run([*command, "2", "--methods", "catboost"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "environments.sh" in refused.stderr
