"""The examples run, and keep their promise on new rows."""

import runpy
from pathlib import Path

import pytest
from scipy.stats import betabinom

from laws import SIGNIFICANCE

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def test_there_are_examples():
    assert {path.stem for path in EXAMPLES} == {"cnn", "lightning_module", "dictionary_model"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_keeps_its_promise(path):
    guarded, inside = runpy.run_path(str(path))["main"]()
    k, n = guarded.certificate.rank, guarded.certificate.n_calibration
    law = betabinom(len(inside), k, n + 1 - k)
    low, high = law.ppf(SIGNIFICANCE / 2), law.ppf(1 - SIGNIFICANCE / 2)
    assert low <= int(inside.sum()) <= high
