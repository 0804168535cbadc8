"""Where a model comes from: kept beside the document of its page, and looked up when rows are audited."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from guardband.words import listed

if TYPE_CHECKING:
    from guardband.cli.labelled import Labelled
    from guardband.doors.read_once import AnyPath

ORIGIN = "origin"


def with_origin(
    document: dict[str, Any], rows: Labelled, counts: dict[str, int], by_time: bool, about: dict[str, Any]
) -> dict[str, Any]:
    """Return a document that also says which table, columns and rows the model was fitted on."""
    origin = {
        "target": list(rows.targets) if rows.others else rows.target,
        "report_by": rows.report_by,
        "time": rows.time,
        "weight": rows.weight,
        "split_by": list(rows.split_by),
        "rows": counts,
        "split": "by time" if by_time else "at random",
        **about,
    }
    split = "" if counts["trained"] == counts["read"] else f", split {origin['split']}"
    fitted = [
        ["Table", about["source"]],
        ["Rows with a target", f"{counts['read']:,}{split}"],
        *document["fitted"],
        ["Seconds of training", f"{about['seconds']:g}"],
    ]
    return document | {"fitted": fitted, ORIGIN: origin}


def origin_of(model_path: AnyPath) -> dict[str, Any]:
    """Return what a model's file says of its origin: nothing if it is not what a file can hold, whoever wrote it."""
    from guardband.doors.kept_report import read_report

    kept = (read_report(model_path) or {}).get(ORIGIN)
    try:
        json.dumps(kept, allow_nan=False)
    except (ValueError, RecursionError):  # what Python reads as JSON may be none
        return {}
    return kept if isinstance(kept, dict) else {}


def target_of(model_path: AnyPath, given: str | None, features: list[str], names: tuple[str, ...]) -> str:
    """Return the column that a model predicts: as given, as kept in its file, or the only one that it could be."""
    if given is not None:
        return given
    kept = origin_of(model_path).get("target")
    if isinstance(kept, str):
        return kept
    others = [name for name in names if name not in features]
    if len(others) == 1:
        return others[0]
    hint = f"It may be one of {listed(others)}." if others else "The table has only the model's inputs."
    raise ValueError(f"{model_path} does not say which column it predicts. {hint} Name it with --target.")
