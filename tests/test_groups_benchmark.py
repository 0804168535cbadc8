"""Pages say what the benchmark of promises measured: their tables are those that its results make."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "groups"


@pytest.fixture(scope="module")
def report():
    spec = importlib.util.spec_from_file_location("groups_report", ROOT / "benchmarks" / "groups" / "report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_prices_of_promises_are_those_of_the_results(report):
    table = report.price_table(json.loads((RESULTS / "prices.json").read_text()))
    assert f"<!-- prices -->\n{table}\n<!-- end of prices -->" in (ROOT / "docs" / "promise.md").read_text()


def test_the_page_of_figures_is_made_of_the_results(report, tmp_path):
    for path in RESULTS.glob("*.json"):
        shutil.copy(path, tmp_path)
    report.report(tmp_path)
    assert (tmp_path / "README.md").read_text() == (RESULTS / "README.md").read_text()


@pytest.mark.parametrize("name", ["bike", "house", "artificial"])
def test_groups_that_were_found_cost_at_most_five_percent(name):
    promises = json.loads((RESULTS / f"{name}.json").read_text())["promises"]
    for method in ("conf-nn", "conf-fw"):
        plain, found = (promises[f"guardband|{method}|{own}|marginal"] for own in ("one promise", 'groups="auto"'))
        assert sum(found["score"]) <= 1.05 * sum(plain["score"])
