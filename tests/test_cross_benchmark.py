"""The page of figures is made of the results; where cv+ and a split meet is found from scores that are known."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "cross"


@pytest.fixture(scope="module")
def figures():
    spec = importlib.util.spec_from_file_location("cross_figures", ROOT / "benchmarks" / "cross" / "figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_figures_is_made_of_the_results(figures, tmp_path):
    for name in ("results.csv", "sizes.csv"):
        shutil.copy(RESULTS / name, tmp_path)
    figures.report(tmp_path)
    assert (tmp_path / "README.md").read_text() == (RESULTS / "README.md").read_text()


def sizes(meeting):
    """Return scores of cv+ whose logarithm grows by a tenth with every factor e of the rows, and meets the split's."""
    rows = []
    for name in ("a", "b"):
        for n in (100, 200, 400, 800):
            for r in range(3):
                ratio = np.exp(0.1 * np.log(n / meeting))
                rows += [(name, n, "guardband-split", r, 2.0 + r), (name, n, "guardband-cv+", r, (2.0 + r) * ratio)]
    return pd.DataFrame(rows, columns=["table", "rows", "method", "repetition", "score"])


@pytest.mark.parametrize(("meeting", "words"), [(370.0, "370 rows"), (1e6, "more than 800 rows")])
def test_the_number_of_rows_at_which_both_are_equal_is_found(figures, meeting, words):
    assert f"meets zero at **{words}**" in figures.crossing(sizes(meeting))


def test_a_ratio_has_the_standard_error_of_its_linear_part(figures):
    wide = pd.DataFrame({"guardband-split": [1.0, 3.0], "other": [2.0, 6.0]})
    assert figures.ratio(wide, "other") == (2.0, 0.0)
