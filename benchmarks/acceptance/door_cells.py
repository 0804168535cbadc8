"""The same promises through the other ways to use guardband: networks, models, tables, the command line."""

from __future__ import annotations

import contextlib
import copy
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from findings import Cell, beta_cell, given_data_cells, mean_cell, rank_cells, rank_on_average
from networks import setting
from worlds import NOISES, STRATA, Array, World

import guardband as gb

LEVEL, DELTA = 0.9, 0.1
EVERY = np.arange(STRATA)


class LookedUp(torch.nn.Module):
    """A network that puts out the triple of a row's stratum, in double precision."""

    def __init__(self, triples: Array) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.from_numpy(np.ascontiguousarray(triples.T)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``(n, 3)``."""
        return self.table[x[:, 0].long()]


class Fitted:
    """A model of any library: it has ``predict``."""

    def __init__(self, triples: Array) -> None:
        self.triples = triples.T

    def predict(self, X: Any) -> Array:
        """Return ``(n, 3)``."""
        return self.triples[np.asarray(X)[:, 0].astype(int)]


def _promise(guarantee: str) -> dict[str, Any]:
    return {"guarantee": "pac", "delta": DELTA} if guarantee == "pac" else {}


def _cells(coverage: Array, n: int, guarantee: str, is_exact: bool) -> list[Cell]:
    if guarantee == "pac":
        return given_data_cells("0.9", coverage, LEVEL, n, DELTA, is_exact)
    return rank_cells("0.9", coverage, rank_on_average(LEVEL, n), n, is_exact)


def network(rng: np.random.Generator, noise: str, network: str, n: int, sets: int, guarantee: str) -> list[Cell]:
    """Return the cells of a calibrated torch network."""
    world, bands, is_exact = setting(noise, network)
    net, coverage = LookedUp(bands), np.empty(sets)
    every = torch.from_numpy(EVERY[:, None].astype(float))
    for r in range(sets):
        x, y = world.rows(rng, n)
        data = torch.from_numpy(x[:, None].astype(float)), torch.from_numpy(y)
        with torch.no_grad():
            lower, _, upper = gb.calibrate(net, data, confidence_level=LEVEL, **_promise(guarantee))(every).T.numpy()
        coverage[r] = world.coverage(lower, upper)[0]
    return _cells(coverage, n, guarantee, is_exact)


def model(rng: np.random.Generator, noise: str, network: str, n: int, sets: int, guarantee: str) -> list[Cell]:
    """Return the cells of a calibrated model with ``predict``."""
    world, bands, is_exact = setting(noise, network)
    fitted, coverage = Fitted(bands), np.empty(sets)
    for r in range(sets):
        x, y = world.rows(rng, n)
        data = x[:, None].astype(float), y
        options = {"outputs": "bands", "confidence_level": LEVEL, **_promise(guarantee)}
        new = gb.calibrate(fitted, data, **options).predict_interval(EVERY[:, None].astype(float))
        coverage[r] = world.coverage(new.lower, new.upper)[0]
    return _cells(coverage, n, guarantee, is_exact)


TINY = {"hidden": (4,), "epochs": 1, "batch_size": 32}


def table(rng: np.random.Generator, noise: str, n: int, fits: int, sets: int, guarantee: str) -> list[Cell]:
    """Return the cells of tables: each of a few networks, barely trained, is calibrated on many sets.

    Given the network, coverages are independent with the law of ranks, so they are so over all networks too.
    """
    world, coverage = World(NOISES[noise]), []
    new = EVERY[:, None].astype(float)
    for fit in range(fits):
        x, y = world.rows(rng, 60)
        options: dict[str, Any] = {"confidence_level": LEVEL, "random_state": fit, **TINY, **_promise(guarantee)}
        trained = gb.IntervalRegressor(calibration_size=None, **options).fit(x[:, None].astype(float), y)
        for _ in range(sets):
            x, y = world.rows(rng, n)
            bands = _calibrated(trained, x[:, None].astype(float), y).predict_interval(new)
            coverage.append(world.coverage(bands.lower, bands.upper)[0])
    return _cells(np.array(coverage), n, guarantee, False)


def _calibrated(trained: Any, X: Array, y: Array) -> Any:
    return copy.copy(trained).calibrate(X, y)


def whole_table(rng: np.random.Generator, noise: str, n: int, fits: int, entities: bool) -> list[Cell]:
    """Return the cell of models that divide their table themselves, by rows or by entities.

    The noise of a row belongs to its entity: as many numbers as entities are drawn, and each is in several rows.
    """
    world, coverage, sizes = World(NOISES[noise]), np.empty(fits), np.empty(fits, dtype=int)
    for r in range(fits):
        owner = np.repeat(np.arange(n), 3) if entities else np.arange(n)
        x = rng.integers(0, STRATA, len(owner))
        y = world.place[x] + world.size[x] * world.noise.draw(rng, n)[owner]
        options: dict[str, Any] = {"confidence_level": LEVEL, "random_state": r, **TINY}
        if entities:
            trained = gb.IntervalRegressor(split_by=lambda X: X[:, 1].astype(int), **options)
            X = np.stack([x, owner], axis=1).astype(float)
        else:
            trained, X = gb.IntervalRegressor(**options), x[:, None].astype(float)
        trained.fit(X, y)
        new = np.stack([EVERY, 0 * EVERY + n + 1], axis=1).astype(float)[:, : X.shape[1]]
        bands = trained.predict_interval(new)
        coverage[r] = world.coverage(bands.lower, bands.upper)[0]
        sizes[r] = trained.certificate_.n_calibration
    if not entities:
        ranks = np.array([rank_on_average(LEVEL, int(own)) for own in sizes])
        return [beta_cell("0.9", coverage, ranks, sizes, False)]
    return [mean_cell("0.9, rows of new entities", coverage, LEVEL, rng)]


def command_line(rng: np.random.Generator, noise: str, network: str, n: int, sets: int, guarantee: str) -> list[Cell]:
    """Return the cells of ``guardband calibrate`` and ``predict`` on CSV files."""
    from typer.testing import CliRunner

    from guardband.cli.app import app

    world, bands, is_exact = setting(noise, network)
    coverage = np.empty(sets)
    with tempfile.TemporaryDirectory() as folder:
        known, rule, new, out = (Path(folder) / name for name in ("known.csv", "own.rule", "new.csv", "out.csv"))
        _write(new, ["low", "middle", "high"], bands.T)
        columns = ["--lower", "low", "--point", "middle", "--upper", "high", "--target", "y"]
        for r in range(sets):
            x, y = world.rows(rng, n)
            _write(known, ["low", "middle", "high", "y"], np.column_stack([bands[:, x].T, y]))
            asked = ["--level", str(LEVEL), "--independent-rows", "--quiet", "-o", str(rule)]
            asked += ["--guarantee", "pac", "--delta", str(DELTA)] if guarantee == "pac" else []
            with contextlib.redirect_stdout(io.StringIO()):
                first = CliRunner().invoke(app, ["calibrate", str(known), *columns, *asked])
                second = CliRunner().invoke(app, ["predict", str(rule), str(new), "-o", str(out)])
            if first.exit_code or second.exit_code:
                raise RuntimeError(f"{first.output}{first.exception!r}{second.output}{second.exception!r}")
            coverage[r] = world.coverage(*_bounds(out))[0]
    return _cells(coverage, n, guarantee, is_exact)


def _write(path: Path, names: list[str], rows: Array) -> None:
    lines = [",".join(names), *(",".join(repr(float(value)) for value in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def _bounds(path: Path) -> tuple[Array, Array]:
    header, *lines = path.read_text().splitlines()
    names = header.split(",")
    rows = np.array([[float(cell) for cell in line.split(",")] for line in lines])
    return rows[:, names.index("lower")], rows[:, names.index("upper")]
