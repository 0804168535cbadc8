"""Which promises are compared, and how each is made of the same predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

import guardband as gb
from guardband.bands.predicted import Context, PredictedInterval
from guardband.data.artificial import PaperModel
from guardband.data.table import read_table
from guardband.doors.band_columns import with_axes
from guardband.doors.groups import search_groups
from guardband.methods.method import Request
from guardband.methods.registry import method_named
from predictions import Array, Part

LEVEL = 0.9
METHODS = ("conf-nn", "conf-fw")
COLUMNS = {
    "bike": ("season", "workingday", "hr"),
    "house": ("waterfront", "grade", "zipcode"),
    "concrete": ("Age (day)",),
    "traffic": ("hour",),
}
"""The columns that make groups. Those of the artificial table are the halves of beta'x."""

Parts = dict[str, Part]


@dataclass(frozen=True)
class Labels:
    """The groups of training, calibration and test rows, a label for each row and column."""

    name: str
    training: pd.DataFrame
    calibration: pd.DataFrame
    test: pd.DataFrame


def groups_of(name: str, parts: Parts) -> list[Labels]:
    """Return each column of groups by itself, then all together if there are several."""
    if name == "artificial":
        return [_labels("halves of beta'x", [_halves(part.x) for part in parts.values()])]
    columns = COLUMNS[name]
    every = [_labels(column, [part.x[[column]].astype(str) for part in parts.values()]) for column in columns]
    if len(columns) > 1:
        together = [part.x[list(columns)].astype(str) for part in parts.values()]
        every.append(_labels("all three", together))
    return every


def found(method: str, parts: Parts) -> tuple[Labels | None, tuple[str, ...]]:
    """Return the groups that ``groups="auto"`` finds on the training rows, and their names; None if it finds none."""
    training = parts["training"]
    rule = method_named(method).rule(Request.of(confidence_level=LEVEL))
    scores = rule.scores(with_axes(PredictedInterval(*training.bands)), training.y, Context())
    table = read_table(training.x.reset_index(drop=True))
    grouping = search_groups(rule, table, scores, len(parts["calibration"].y))
    if grouping is None:
        return None, ()
    kinds = [column.kind for column in table.columns]
    tables = [read_table(part.x.reset_index(drop=True), table.names).read_as(kinds) for part in parts.values()]
    codes = [pd.DataFrame({"group": grouping.of_rows(own)[:, 0].astype(str)}) for own in tables]
    return _labels("auto", codes), grouping.names


def intervals(method: str, parts: Parts, labels: Labels | None = None, guarantee: str = "marginal") -> gb.Intervals:
    """Return the intervals of the test rows; groups that are too small are pooled by the training rows' counts."""
    rule = gb.BandCalibrator(method, confidence_level=LEVEL, guarantee=guarantee, small_groups="pool")
    own = None if labels is None else labels.calibration
    rule.fit(*_asked(method, parts["calibration"]), parts["calibration"].y, **_groups(own, labels))
    new = {} if labels is None else {"groups": labels.test}
    return rule.transform(*_asked(method, parts["test"]), **new)


def every_promise(groups: Sequence[Labels], auto: Labels | None) -> Iterator[tuple[str, str, Labels | None]]:
    """Give each promise by its name, its guarantee and its groups."""
    for guarantee in ("marginal", "pac"):
        yield "one promise", guarantee, None
        for own in groups:
            yield f"groups: {own.name}", guarantee, own
        yield 'groups="auto"', guarantee, auto


def _asked(method: str, part: Part) -> tuple[Array | None, Array, Array | None]:
    return (None, part.point, None) if method == "conf-fw" else part.bands


def _groups(own: pd.DataFrame | None, labels: Labels | None) -> dict[str, pd.DataFrame]:
    return {} if labels is None or own is None else {"groups": own, "training_groups": labels.training}


def _labels(name: str, parts: Sequence[pd.DataFrame]) -> Labels:
    return Labels(name, *(part.reset_index(drop=True) for part in parts))


def _halves(x: pd.DataFrame) -> pd.DataFrame:
    model = PaperModel()
    signal = model.signal(x.to_numpy())
    return pd.DataFrame({"half": np.where(signal < model.n_active / 2, "low", "high")})
