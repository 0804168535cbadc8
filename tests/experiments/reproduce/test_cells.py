import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import guardband as gb
from guardband.data.artificial import PaperModel
from guardband.data.table import read_table
from guardband.experiments.reproduce.cells import EXPERIMENTS, REAL, Cell, cells_of
from guardband.experiments.reproduce.contest import contest
from guardband.experiments.reproduce.folder import Folder
from guardband.experiments.reproduce.outcome import outcome
from guardband.experiments.reproduce.problem import partitioned, simulated
from guardband.experiments.reproduce.setting import CONF_NN, EVERYONE, FOLDS, PAV, TAUS, Setting

CPU = torch.device("cpu")


def nothing(share):
    pass


def every_setting(quick):
    """One small cell for each setting of the plan: the same code on few rows and epochs."""
    seen = {}
    for cell in cells_of(EXPERIMENTS, quick=quick):
        epochs = "cv" if cell.setting.epochs == "cv" else 1 if cell.setting.fine_tune else 2
        few = 60 if cell.experiment == "boneage" else 800
        small = replace(cell.setting, max_epochs=2, epochs=epochs, hidden=(4,) * len(cell.setting.hidden))
        seen[cell.experiment, cell.setting.name] = replace(cell, setting=small, n=few, repetitions=(0,), n_test=300)
    return list(seen.values())


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The folder in which the cells keep the images' features for each other."""
    return tmp_path_factory.mktemp("kept")


@pytest.mark.parametrize("cell", every_setting(quick=False), ids=lambda cell: cell.name)
def test_every_cell_of_the_plan_runs(cell, data_dir, kept, monkeypatch):
    monkeypatch.setattr("pooch.os_cache", lambda name: kept)
    found = outcome(cell, 0, data_dir, CPU, nothing)
    assert [row["method"] for row in found.rows] == [one.label for one in cell.setting.contestants]
    assert all(0 <= row["coverage"] <= 1 and row["length"] > 0 and math.isfinite(row["mae"]) for row in found.rows)
    assert bool(found.curves) == (cell.experiment not in REAL)


def test_the_plan_has_the_papers_sizes():
    cells = cells_of(EXPERIMENTS)
    by_name = {cell.name: cell for cell in cells}
    assert len(by_name) == len(cells)
    figure1 = by_name["simulation-tuned-0"]
    assert (figure1.n, figure1.n_test, len(figure1.repetitions), figure1.setting.hidden) == (
        100_000,
        20_000,
        10,
        (200,),
    )
    sizes = [cell.n for cell in cells if cell.setting.name.startswith("n=")]
    assert (sizes[0], sizes[4], sizes[-1], len(sizes)) == (5_000, 47_222, 100_000, 10)
    for name in ("bike", "traffic", "house"):
        own = [cell for cell in cells if cell.experiment == name and cell.setting.name == "paper"]
        assert [r for cell in own for r in cell.repetitions] == list(range(20))
        assert own[0].setting.hidden == (100,)
    assert TAUS == (0.1, 0.09, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01)
    assert all(cell.setting.recipe.learning_rate == 0.01 for cell in cells if cell.setting.name != "ours")
    few = cells_of(["bike"], repetitions=2)
    assert {cell.repetitions for cell in few} == {(0, 1)}


def test_rows_are_parted_three_to_one_to_one_and_none_is_lost():
    X, y = PaperModel(n_features=6).draw(503, seed=0)
    problem = partitioned(read_table(X), y, "name", 3, seed=0)
    parts = (problem.d1, problem.d2, problem.d3)
    assert [len(part.y) for part in parts] == [303, 100, 100]
    np.testing.assert_array_equal(np.sort(np.concatenate([part.y for part in parts])), np.sort(y))
    again, other = (partitioned(read_table(X), y, "name", r, seed=0) for r in (3, 4))
    np.testing.assert_array_equal(again.d2.y, problem.d2.y)
    assert not np.array_equal(other.d2.y, problem.d2.y)


def test_results_do_not_depend_on_which_repetitions_train_together():
    """Nor does the choice of weight decay: it is each D1's own, since another's holds rows of this one's D2 and D3."""
    setting = Setting("s", (8,), (PAV, CONF_NN), max_epochs=8, batch_size=50, decays=(3e-2, 6e-2, 1e-1, 2e-1))
    problems = [simulated(600, r, 0, n_test=200) for r in range(4)]
    together = contest(problems, setting, CPU, nothing).rows
    alone = [row for problem in problems for row in contest([problem], setting, CPU, nothing).rows]
    assert len({row["weight_decay"] for row in alone}) > 1  # so that a common choice would show
    for ours, theirs in zip(together, alone, strict=True):
        assert ours["weight_decay"] == theirs["weight_decay"]
        assert ours["covered"] == theirs["covered"]
        assert ours["length"] == pytest.approx(theirs["length"], rel=1e-4)
        assert ours["epochs"] == theirs["epochs"]


def test_a_contest_is_the_same_as_fitting_the_estimator():
    """The experiments go the way of ``IntervalRegressor``: same seed, same interval."""
    problem = simulated(800, 0, 0, n_test=300)
    setting = Setting("s", (8,), (CONF_NN,), max_epochs=4, batch_size=100)
    (row,) = contest([problem], setting, CPU, nothing).rows

    class SameSeed(np.random.RandomState):
        def permutation(self, n):
            return np.arange(n)

        def randint(self, *_, **__):
            return problem.seed

    def columns(table):
        return np.stack([column.values for column in table.columns], axis=1)

    model = gb.IntervalRegressor(
        network="plain",
        hidden=(8,),
        epochs=int(row["epochs"]),
        batch_size=100,
        weight_decay=0.0,
        calibration_size=None,
        random_state=SameSeed(0),
        device="cpu",
    )
    model.fit(columns(problem.d1.table), problem.d1.y).calibrate(columns(problem.d2.table), problem.d2.y)
    bands = model.predict_interval(columns(problem.d3.table))
    assert float((bands.upper - bands.lower).mean()) == pytest.approx(row["length"], rel=1e-5)
    assert FOLDS == 3


def test_weight_decay_is_chosen_by_the_loss_on_d1():
    problems = [simulated(600, r, 0, n_test=200) for r in range(2)]
    base = Setting("s", (32,), (CONF_NN,), max_epochs=30, batch_size=50)
    losses = {}
    for decay in (0.0, 3.0):
        rows = contest(problems, replace(base, decays=(decay,)), CPU, nothing).rows
        losses[decay] = np.mean([row["held_out_loss"] for row in rows])
    chosen = contest(problems, replace(base, decays=(0.0, 3.0)), CPU, nothing).rows
    assert {row["weight_decay"] for row in chosen} == {min(losses, key=lambda decay: losses[decay])}


def test_copies_are_averaged():
    problem = simulated(600, 0, 0, n_test=200)
    base = Setting("s", (8,), (CONF_NN,), epochs=2, batch_size=100)
    one, two = (contest([problem], replace(base, copies=copies), CPU, nothing).rows[0] for copies in (1, 2))
    assert one["length"] != two["length"]


def test_a_response_that_is_not_standardised_kills_the_papers_ordering():
    """THEORY: with the ReLU ordering and a response far from zero a side can die; the rows say how often."""
    problem = simulated(2000, 0, 0, n_test=200)
    far = replace(problem, d1=replace(problem.d1, y=problem.d1.y + 100), d2=replace(problem.d2, y=problem.d2.y + 100))
    setting = Setting("relu", (16,), (PAV,), ordering="relu", epochs=2, standardise=False)
    assert contest([far], setting, CPU, nothing).rows[0]["dead"] > 0
    soft = replace(setting, ordering="softplus", standardise=True)
    assert contest([far], soft, CPU, nothing).rows[0]["dead"] == 0


def test_everyone_has_a_row_of_the_right_kind():
    problem = simulated(600, 0, 0, n_test=200)
    rows = {row["method"]: row for row in contest([problem], Setting("s", (8,), epochs=2), CPU, nothing).rows}
    assert set(rows) == {one.label for one in EVERYONE}
    assert rows["conf-nn"]["rank"] == rows["cqr"]["rank"] == rows["conf-fw"]["rank"] == 136
    assert rows["pav"]["rank"] == 135
    assert rows["bayes"]["found"] is None
    assert rows["conf-nn"]["n_calibration"] == 150


def test_names_serve_as_folders():
    cell = Cell("simulation", Setting("batch 256 decay 0.0003"), (5, 6), 10)
    assert cell.name == "simulation-batch-256-decay-0.0003-5"


def test_the_committed_run_is_complete():
    """A plan that has changed must be run again."""
    folder = Folder(Path(__file__).parents[3] / "paper")
    assert [cell.name for cell in cells_of(EXPERIMENTS) if not folder.is_done(cell)] == []
    assert folder.about()["settings"]["seed"] == 0
