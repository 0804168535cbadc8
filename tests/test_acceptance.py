"""Every promise is asked whether it holds on a few hundred calibration sets, and the judge of the answers is judged.

``make acceptance`` asks on thousands, in many more settings; the pages say what came out.
"""

import importlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from guardband.bands.ranks import marginal_rank, pac_rank

ROOT = Path(__file__).parent.parent
PROGRAMS, RESULTS = ROOT / "benchmarks" / "acceptance", ROOT / "benchmarks" / "results" / "acceptance"
SIGNIFICANCE = 1e-6


@pytest.fixture(scope="module")
def program():
    """Import a module of the benchmark by its name; none of them stays imported."""
    before = set(sys.modules)
    sys.path.insert(0, str(PROGRAMS))
    yield importlib.import_module
    sys.path.remove(str(PROGRAMS))
    for name in set(sys.modules) - before:
        if str(PROGRAMS) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def p_value(program, cell):
    return program("judge").LAWS[cell.law](cell.figures)


def test_no_promise_is_refuted_and_every_control_is(program, tmp_path):
    plan, judge = program("plan"), program("judge")
    assert program("run").main(["--quick", "--workers", "1", "-o", str(tmp_path)]) == 0
    verdict = judge.judged(judge.read(tmp_path))
    asked = {own.promise for own in verdict.cells}
    assert asked == {run.promise for run in plan.quick()}
    wanted = {name for name in plan.QUESTIONS if not name.startswith(("control", "door"))}
    assert wanted <= asked
    assert sum(not own.should_hold for own in verdict.cells) >= 3


def test_a_stopped_run_goes_on_and_what_was_cut_short_is_done_again(program, tmp_path):
    run, judge = program("run"), program("judge")
    arguments = ["--quick", "--workers", "1", "--only", "control: rank", "-o", str(tmp_path)]
    run.main(arguments)
    path = tmp_path / run.FILE
    (whole,) = path.read_text().splitlines()
    path.write_text(whole[: len(whole) // 2])
    run.main(arguments)
    run.main(arguments)  # which finds nothing left to do
    (again,) = judge.read(tmp_path)
    assert json.loads(again)["cells"] == json.loads(whole)["cells"]  # the seed is that of the name
    assert len(path.read_text().splitlines()) == 2


def test_each_run_of_the_plan_has_a_name_of_its_own_and_each_question_is_asked(program):
    plan = program("plan")
    runs = plan.full()
    assert len({run.name for run in runs}) == len(runs)
    assert {run.promise for run in runs} == set(plan.QUESTIONS)
    noises = {name for name, _ in plan.turned(0)}
    for promise in ("marginal", "pac"):
        own = {
            tuple(dict(run.settings)[name] for name in ("noise", "network", "n"))
            for run in runs
            if run.promise == promise
        }
        assert {(noise, network, n) for noise in noises for network in plan.NETWORKS for n in plan.SIZES} <= own


@pytest.mark.parametrize("noise", ["gaussian", "heavy", "skewed", "discrete", "zero-inflated", "mixture"])
def test_coverage_is_the_share_of_rows_that_are_drawn(program, noise):
    worlds, rows = program("worlds"), 40_000
    world = worlds.World(worlds.NOISES[noise])
    lower, upper = (
        world.place - np.linspace(0, 3, 8).round(),
        world.place + world.size * np.linspace(0.5, 4, 8).round(1),
    )
    x, y = world.rows(np.random.default_rng(0), rows)
    inside = int(((lower[x] <= y) & (y <= upper[x])).sum())
    low, high = binom.ppf([SIGNIFICANCE / 12, 1 - SIGNIFICANCE / 12], rows, world.coverage(lower, upper)[0])
    assert low <= inside <= high


def test_ranks_of_the_judge_are_those_of_guardband(program):
    findings = program("findings")
    for level in (0.5, 0.8, 0.9, 0.95, 0.99):
        for n in (1, 2, 9, 10, 99, 100, 1000):
            exact = findings.exact(level)
            assert findings.rank_on_average(level, n) == marginal_rank(exact, n)
            assert findings.rank_given_data(level, n, 0.1) == pac_rank(exact, n, 0.1)


def test_the_law_of_ranks_is_kept_by_the_right_rank_and_refutes_the_next(program):
    findings, rng, n, k = program("findings"), np.random.default_rng(1), 50, 46

    def judged_at(rank, is_exact=True):
        coverage = rng.beta(rank, n + 1 - rank, 2000)
        return p_value(program, findings.beta_cell("", coverage, k, n, is_exact))

    assert judged_at(k) > 1e-3
    assert judged_at(k - 1) < 1e-9
    assert judged_at(k + 1) < 1e-9  # too large is wrong too
    assert judged_at(k + 1, is_exact=False) > 1e-3


def test_many_full_coverages_do_not_hide_few_small_ones(program):
    findings = program("findings")
    coverage = np.where(np.arange(2000) < 500, 0.5, 1.0)  # far below the law one time in four, far above it else
    assert p_value(program, findings.beta_cell("", coverage, 91, 100, False)) < 1e-9


def test_p_values_of_exact_laws_are_small_no_more_often_than_they_say(program):
    """400 times 200 sets of each law: p-values below a tenth are binomial with at most that chance."""
    findings, rng = program("findings"), np.random.default_rng(2)
    below = np.zeros(3, dtype=int)
    for _ in range(400):
        coverage = rng.beta(18, 3, 200)
        cells = (
            findings.beta_cell("", coverage, 18, 20, True),
            findings.share_cell("", coverage < 0.8, 1.0, float(binom.sf(17, 20, 0.8))),
            findings.mean_cell("", coverage, 18 / 21, rng),
        )
        below += [p_value(program, own) < 0.1 for own in cells]
    assert (binom.sf(below - 1, 400, 0.1) > SIGNIFICANCE / 3).all()


def test_a_mean_that_is_too_small_is_refuted(program):
    findings, rng = program("findings"), np.random.default_rng(3)
    values = rng.beta(85, 15, 2000)
    assert p_value(program, findings.mean_cell("", values, 0.85, rng)) > 1e-3
    assert p_value(program, findings.mean_cell("", values, 0.86, rng)) < 1e-9


def test_what_must_not_happen_is_refuted_by_one_case(program):
    findings = program("findings")
    assert p_value(program, findings.never_cell("", [False] * 10)) == 1
    assert p_value(program, findings.never_cell("", [False] * 9 + [True])) == 0


def test_a_refuted_promise_and_a_control_that_is_not_are_both_wrong(program):
    judge = program("judge")

    def line(failed, holds):
        figures = {"sets": 100, "failed": failed, "allowed": 0.1, "chance": None}
        cell = {"name": "", "law": "share", "figures": figures, "should_hold": holds}
        return json.dumps({"run": f"{failed}, {holds}", "promise": "pac", "cells": [cell]})

    verdict = judge.judged([line(5, True), line(90, True), line(5, False), line(90, False)])
    assert {own.run for own in verdict.wrong} == {"90, True", "5, False"}


def test_pages_are_those_of_the_results(program):
    page = program("page")
    lines = page.read_csv(RESULTS / "runs.csv")
    about = json.loads((RESULTS / "about.json").read_text())["about"]
    assert page.readme(lines, about) == (RESULTS / "README.md").read_text()
    text = page.PAGE.read_text()
    assert page.doc_page(text, lines) == text
    assert "<!-- verdict -->\nguardband was asked" in text


def test_results_are_of_the_whole_plan_and_nothing_is_refuted(program):
    plan, page = program("plan"), program("page")
    lines = page.read_csv(RESULTS / "runs.csv")
    assert {line.run for line in lines} == {run.name for run in plan.full()}
    assert sum(line.wrong for line in lines) == 0
    assert all(not math.isnan(line.p_value) for line in lines)
