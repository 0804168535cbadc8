"""From a calibrated model and rows to an explanation."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.bands.levels import Level
from guardband.bands.sides import reach
from guardband.calibration.calibrated import Calibrated
from guardband.data.mixed_rows import Mixer, Sources, stack_rows
from guardband.data.table import Column, as_array, is_frame, read_table, take_rows
from guardband.data.target import Target
from guardband.explain.explainable import Explainable
from guardband.explain.explanation import Explanation
from guardband.explain.shapley import Game, Masks, Places, shapley
from guardband.progress import ProgressBar
from guardband.words import as_moment, number

Array = NDArray[np.float64]

INFINITE = (
    "An infinite interval cannot be explained: calibrate the model on more rows, or pass a lower confidence_level."
)
ALONE = "One row has no other rows to be compared with: pass background=, for example your calibration rows."


def explain_rows(
    model: Explainable,
    X: Any,
    *,
    n_background: int,
    evaluations: int,
    background: Any = None,
    rows: Any = None,
    confidence_level: Level | None = None,
    random_state: int | None = 0,
    verbose: bool | None = None,
) -> Explanation:
    """Return what makes intervals wide and what moves predictions; see ``explain`` of the models."""
    if n_background < 1 or evaluations < 1:
        raise ValueError("n_background and evaluations must be at least 1. Use a larger number.")
    calibrated = model.calibration_.at(confidence_level, None)
    chosen = _chosen(_count(X), rows)
    seed = int(np.random.default_rng().integers(2**63)) if random_state is None else random_state
    pool, own, other = _pool(X, chosen, background, n_background, np.random.default_rng(seed))
    widths = _Widths(model.mixer(pool), calibrated, model.target_)
    players = widths.mixer.players

    def orders(row: int, count: int) -> Places:
        drawn = np.random.default_rng([seed, int(chosen[row])])
        return drawn.permuted(np.tile(np.arange(len(players)), (count, 1)), axis=1)

    def ask(row: Places, is_own: Masks, background_row: Places) -> Array:
        sources = np.repeat(own[row][:, None], len(widths.mixer.table.columns), axis=1)
        sources[:, players] = np.where(is_own, sources[:, players], other[background_row][:, None])
        return widths(sources)

    of_rows, of_background = widths.of(own), widths.of(other)
    shown = sys.stderr is not None and sys.stderr.isatty() if verbose is None else verbose
    with ProgressBar(shown, "rows") as progress:
        game = Game(ask, of_rows, of_background, len(players))
        found = shapley(game, evaluations, orders, lambda done: progress.update("explaining", done, len(chosen)))
    return _explanation(widths, chosen, own, players, game, found.values, found.errors, found.exact)


@dataclass(frozen=True)
class _Widths:
    """Asks a model for the width of intervals and the point, of mixed rows ``(m, d) -> (2, m)``."""

    mixer: Mixer
    calibrated: Calibrated
    target: Target

    def __call__(self, sources: Sources) -> Array:
        ends = self.calibrated.ends(self.mixer.predict(sources), self.mixer.context(sources))
        lower, point, upper = self.target.to_units(*ends)
        width = reach(lower[:, 0], point, upper[:, 0], self.calibrated.found.promise.side)
        if not np.isfinite(width).all():
            raise ValueError(INFINITE)
        return np.stack([width, point])

    def of(self, rows: Places) -> Array:
        """Return the same of rows as they are."""
        return self(np.repeat(rows[:, None], len(self.mixer.table.columns), axis=1))


def _pool(
    X: Any, chosen: Places, background: Any, most: int, random: np.random.Generator
) -> tuple[Any, Places, Places]:
    """Return one table that holds the rows to explain and the background, and the places of both in it."""
    n = _count(X if background is None else background)
    if background is None and n < 2:
        raise ValueError(ALONE)
    drawn = np.sort(random.permutation(n)[:most])
    if background is not None:
        pool = stack_rows(take_rows(X, chosen), take_rows(background, drawn))
        return pool, np.arange(len(chosen)), len(chosen) + np.arange(len(drawn))
    used, places = np.unique(np.concatenate([chosen, drawn]), return_inverse=True)
    return take_rows(X, used), places[: len(chosen)], places[len(chosen) :]


def _chosen(n: int, rows: Any) -> Places:
    try:
        chosen = np.arange(n)[slice(None) if rows is None else rows].reshape(-1)
    except IndexError:
        raise IndexError(f"rows must be positions in X, from 0 to {n - 1:,}, found {rows!r}. Correct them.") from None
    if not len(chosen):
        raise ValueError("rows must name at least one row of X, found none. Pass the positions of the rows to explain.")
    return chosen


def _count(X: Any) -> int:
    if not is_frame(X) and as_array(X).ndim != 2:
        read_table(X)  # says what is wrong with it
    n = len(X)
    if not n:
        raise ValueError("X and background must have at least one row, found none. Pass some rows.")
    return n


def _explanation(
    widths: _Widths,
    chosen: Places,
    own: Places,
    players: Places,
    game: Game,
    values: Array,
    errors: Array,
    exact: bool,
) -> Explanation:
    table, level = widths.mixer.table, widths.calibrated.certificate.confidence_level
    every = np.zeros((2, *values.shape[:2], len(table.columns)))
    every[..., players] = values, errors
    base = game.of_background.mean(1)
    return Explanation(
        columns=table.names,
        cells=tuple(zip(*(_texts(column, own) for column in table.columns), strict=True)),
        rows=chosen,
        confidence_level=level[0] if isinstance(level, tuple) else level,
        widths=game.of_rows[0],
        points=game.of_rows[1],
        base_width=float(base[0]),
        base_point=float(base[1]),
        width=every[0, 0],
        point=every[0, 1],
        width_error=every[1, 0],
        point_error=every[1, 1],
        exact=exact,
        n_background=game.of_background.shape[1],
        side=widths.calibrated.found.promise.side,
    )


def _texts(column: Column, rows: Places) -> list[str]:
    return [_text(value, column.numbers_are) for value in column.values[rows].tolist()]


def _text(value: Any, numbers_are: str) -> str:
    """Return a cell as it was written: a number may be a year or a code, and has no separators."""
    if value is None or value != value:
        return "missing"
    if isinstance(value, str):
        return value
    if numbers_are == "date":
        return as_moment(value)
    if numbers_are == "boolean":
        return "yes" if value else "no"
    return number(value) if value != int(value) or abs(value) >= 1e15 else f"{value:.0f}".replace("-", "\N{MINUS SIGN}")
