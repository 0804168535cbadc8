"""What does not go with cross-validation, refused before anything is trained."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from guardband.bands.cross_promise import USE_SPLIT
from guardband.calibration.cross import FOLDS, crossed, refusal
from guardband.data.entities import Entities
from guardband.data.labelled_rows import Belonging, LabelledRows
from guardband.exceptions import RepeatedRowsWarning
from guardband.learning.options import FitOptions

HELD_OUT = 0.25
"""The share of rows that ``fit`` holds out unless it is told otherwise."""


def check_crossing(params: Mapping[str, Any], options: FitOptions, given: Mapping[str, Any]) -> None:
    """Raise if arguments of the model or of ``fit`` do not go with how it calibrates.

    ``given`` are those arguments of ``fit`` that only some ways to calibrate can use, by name.
    """
    kind, folds = params["calibration"], params["folds"]
    if kind == "split":
        if folds != FOLDS:
            raise ValueError(
                f'folds={folds} has no effect with calibration="split". Remove it (--folds), or use calibration="cv+" '
                "(--calibration cv+)."
            )
        return
    if params["calibration_size"] != HELD_OUT:
        raise ValueError(
            f'calibration="{kind}" holds out no rows, because all of them calibrate. Remove calibration_size.'
        )
    entities = given.get("entities")
    if isinstance(entities, Entities) and entities.rule is not None:
        raise ValueError(repeated(kind))
    idle = {**{name: params[name] for name in ("groups", "split_by_time", "risk", "distribution", "targets")}, **given}
    if params["split_by"] is not None and (callable(params["split_by"]) or len(params["split_by"])):
        idle["split_by"] = params["split_by"]
    for name, value in idle.items():
        if value is not None and value is not False:
            raise ValueError(refusal(kind, name))
    crossed(options.method.rule(options.request), kind, folds)


def standing_alone(rows: LabelledRows, belonging: Belonging, kind: str) -> LabelledRows:
    """Return the rows; raise if some belong together or are repeated, without a warning of what is then not done."""
    with untold_repeats(kind):
        own = rows.grouped(belonging)
    if own.entities is not None:
        raise ValueError(repeated(kind))
    return own


@contextmanager
def untold_repeats(kind: str) -> Iterator[None]:
    """Do not warn of repeated rows that cross-validation refuses."""
    with warnings.catch_warnings():
        if kind != "split":
            warnings.simplefilter("ignore", RepeatedRowsWarning)
        yield


def repeated(kind: str) -> str:
    """Return that rows are repeated, and what to do."""
    return (
        f'calibration="{kind}" needs rows that stand alone, and some rows of this table are repeated. Remove the '
        f"repeated rows, say that rows stand alone by --independent-rows (split_by=[]), or use {USE_SPLIT}."
    )
