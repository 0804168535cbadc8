"""The steps of ``guardband fit``: read a table, set rows aside, train and calibrate."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np

from guardband.cli.columns import as_table, crowded_in_words, useless_in_words, views_of
from guardband.cli.console import Speaker
from guardband.cli.labelled import Labelled, read_labelled
from guardband.data.disk import DiskTable
from guardband.data.labelled_rows import column_target
from guardband.data.row_numbers import rows_known_as
from guardband.data.several_targets import key_of, read_targets
from guardband.data.split import FEWEST_ROWS
from guardband.data.table import read_table
from guardband.data.times import Times
from guardband.doors.cross_checks import check_crossing, untold_repeats
from guardband.doors.table import IntervalRegressor
from guardband.exceptions import DependentRowsWarning
from guardband.learning.options import FitOptions
from guardband.progress import told_of_steps


@dataclass(frozen=True)
class Parts:
    """The rows that fit, and the test rows."""

    fit: Labelled
    check: Labelled | None


def asked(method: str, **params: Any) -> IntervalRegressor:
    """Return the model to fit; what cannot be is refused before a large table is read."""
    model = IntervalRegressor(method, **params)
    every = model.get_params(deep=False)
    check_crossing(every, FitOptions.of(every), {})
    return model


def read(disk: DiskTable, features: list[str], target: list[str], speaker: Speaker, **roles: Any) -> Labelled:
    """Return the rows with a known target, and say what is to be known of their columns."""
    rows = read_labelled(disk, features, target[0], speaker, others=target[1:], **roles)
    if rows.n < FEWEST_ROWS:
        raise ValueError(
            f"At least {FEWEST_ROWS} rows with a target are needed to train and calibrate, found {rows.n} in "
            f"{disk.label}. Add rows."
        )
    if not speaker.quiet:
        with speaker.doing("Looking at the columns"):
            views = views_of(rows)
        speaker.detail(as_table(views))
        useless, crowded = useless_in_words(views), crowded_in_words(views)
        if useless:
            speaker.note(useless)
        if crowded:
            speaker.detail(crowded)
    return rows


def check_target(model: IntervalRegressor, rows: Labelled) -> None:
    """Raise if a target is none that the model can take, whichever part its row would fall into."""
    with rows_known_as(rows.row_numbers), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fit warns
        options = FitOptions.of(model.get_params(deep=False))
        if rows.others:
            values, names = read_targets(rows.y, rows.n)
            options.for_targets(names).target.decided(values)
        else:
            options.target.decided(column_target(rows.y, rows.n))


def split(rows: Labelled, model: IntervalRegressor, check: float, seed: int, speaker: Speaker) -> Parts:
    """Return the parts; rows that belong together are in one of them. If the model splits by time, so does this."""
    if model.split_by_time:
        return _split_by_time(rows, check)
    with speaker.doing(f"Looking for repeated rows among {rows.n:,}"):
        response = key_of(read_targets(rows.y, rows.n)[0]) if rows.others else column_target(rows.y, rows.n)
        with untold_repeats(model.calibration):
            together = model.belonging.entities(read_table(rows.X), rows.X, response, rows.entities)
    rows = replace(rows, entities=together)
    count = rows.n if together is None else len(together.every)
    aside = math.floor(check * count)
    order = np.random.default_rng(seed).permutation(count)
    fitted, checked_ones = order[: count - aside], order[count - aside :]
    if together is not None:
        fitted, checked_ones = together.rows_of(fitted), together.rows_of(checked_ones)
    return Parts(rows.take(np.sort(fitted)), rows.take(np.sort(checked_ones)) if aside else None)


def train(model: IntervalRegressor, parts: Parts, speaker: Speaker) -> float:
    """Train and calibrate the model; return how many seconds it took."""
    started, rows = monotonic(), parts.fit
    weight = None if rows.weight is None else rows.numbers(rows.weight)
    time = None if isinstance(model.split_by_time, str) else rows.side(rows.time)
    doing = (speaker.doing(f"Training on {rows.n:,} rows"), told_of_steps(speaker.step))
    with doing[0], doing[1], rows_known_as(rows.row_numbers), warnings.catch_warnings():
        if parts.check is not None:  # the verdict says so
            warnings.simplefilter("ignore", DependentRowsWarning)
        model.fit(rows.X, rows.y, sample_weight=weight, entities=rows.entities, time=time)
    return round(monotonic() - started, 1)


def _split_by_time(rows: Labelled, check: float) -> Parts:
    assert rows.time is not None
    aside = math.floor(check * rows.n)
    rows.numbers(rows.time)  # refuses missing values, by their place
    times = Times.of(True, rows.side(rows.time), None, rows.n)
    assert times is not None
    if not aside:
        return Parts(rows, None)
    fitted, checked = times.split(aside)
    return Parts(rows.take(fitted), rows.take(checked))
