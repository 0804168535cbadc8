"""The page of figures is made of the results, and the one score for all methods is the CRPS."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PROGRAMS, RESULTS = (ROOT / "benchmarks" / where for where in ("distributions", "results/distributions"))


def program(name):
    spec = importlib.util.spec_from_file_location(f"distributions_{name}", PROGRAMS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_figures_is_made_of_the_results(tmp_path):
    shutil.copy(RESULTS / "results.csv", tmp_path)
    program("figures").report(tmp_path)
    assert (tmp_path / "README.md").read_text() == (RESULTS / "README.md").read_text()


def test_the_score_is_the_trapezoidal_rule_of_the_quantile_losses():
    """The CRPS of a uniform law is (y^3 + (1 - y)^3) / 3. The rule leaves out h^2 / 3 of it, with h = 1 / 100."""
    scores = program("scores")
    y = np.linspace(0.0, 1.0, 101)
    found = scores.crps_of_quantiles(y, np.tile(scores.LEVELS, (len(y), 1)))
    np.testing.assert_allclose(found * 99 / 100 + 1 / 30_000, (y**3 + (1 - y) ** 3) / 3, atol=1e-14)


def test_a_point_has_its_distance_as_score():
    scores = program("scores")
    quantiles = np.full((3, 99), 2.0)
    np.testing.assert_allclose(scores.crps_of_quantiles(np.array([1.0, 2.0, 4.5]), quantiles), [1.0, 0.0, 2.5])


@pytest.mark.parametrize("order", [1, -1])
def test_the_score_prefers_the_true_law(order):
    scores = program("scores")
    y = np.random.default_rng(0).uniform(size=20_000)
    true = np.tile(scores.LEVELS, (len(y), 1))
    off = np.clip(true + order * 0.1, 0, 1)
    assert scores.crps_of_quantiles(y, true).mean() < scores.crps_of_quantiles(y, off).mean()
