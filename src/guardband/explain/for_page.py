"""What a page says of why intervals are wide: the widest rows, and each column over some rows."""

from __future__ import annotations

from dataclasses import asdict
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.audit.evidence import Evidence
from guardband.audit.guarded import Guarded
from guardband.explain.bars import bars_of, short
from guardband.explain.explain import explain_rows
from guardband.explain.explainable import Mixes
from guardband.explain.explanation import Explanation
from guardband.explain.shapley import FEWEST_PAIRS
from guardband.words import plain

EVALUATIONS = 20_000
"""How many mixed rows a page asks the model for, about; a second or two for guardband's own networks."""
WIDEST, MOST_COLUMNS, MOST_BARS = 3, 12, 6
ROWS, BACKGROUND = (5, 40), (10, 50)
"""The fewest and the most rows to explain besides the widest, and to compare them with."""


def explained_for_page(model: Guarded, evidence: Evidence) -> dict[str, Any] | None:
    """Return why intervals are wide, ready for JSON; None if there is nothing to explain.

    ``columns`` have the mean absolute contribution to width and prediction over ``n_rows`` test rows that are drawn
    at random. ``widest`` are the widest rows, each in words and as bars. Nothing is explained if intervals are infinite
    or all of one width, if the rows as they were given are not known, or if the model refuses
    mixed rows or may be slow.
    """
    if not isinstance(model, Mixes) or not model.is_quick:
        return None
    width = evidence.reach[:, 0]
    if evidence.X is None or evidence.n < 2 or not np.isfinite(width).all() or _is_constant(width):
        return None
    n_rows, n_background = _sizes(evidence.n, len(evidence.table.columns))
    widest = np.argsort(-width, kind="stable")[:WIDEST]
    drawn = np.random.default_rng(1).permutation(evidence.n)[:n_rows]  # others than those to compare with
    rows = np.concatenate([widest, drawn])
    asked: dict[str, Any] = {"rows": rows, "n_background": n_background, "evaluations": EVALUATIONS}
    try:
        found = explain_rows(model, evidence.X, **asked, verbose=False)
    except Exception:  # a model of the user's may refuse rows that are mixed from others in any way
        return None
    by_width, by_point = (np.abs(side[len(widest) :]).mean(0) for side in (found.width, found.point))
    order = np.argsort(-by_width, kind="stable")
    own: dict[str, Any] = plain(
        {
            "n_rows": len(drawn),
            "n_background": found.n_background,
            "exact": found.exact,
            "base_width": found.base_width,
            "columns": [
                {"name": short(found.columns[j]), "width": by_width[j], "point": by_point[j]}
                for j in order[:MOST_COLUMNS].tolist()
            ],
            "columns_left_out": max(0, len(order) - MOST_COLUMNS),
            "widest": [_row(found, i, int(evidence.row_numbers[rows[i]])) for i in range(len(widest))],
        }
    )
    return own


def _row(found: Explanation, i: int, row_number: int) -> dict[str, Any]:
    bars = [asdict(bar) for bar in bars_of(found, i, "width", MOST_BARS)]
    return {"row": row_number, "words": found.in_words(i, of="width"), "width": float(found.widths[i]), "bars": bars}


def _sizes(n: int, columns: int) -> tuple[int, int]:
    """Return how many rows to explain and how many to compare them with: about as many as the evaluations allow."""
    games = EVALUATIONS // (2 * FEWEST_PAIRS * max(1, columns - 1))
    n_background = min(max(isqrt(games), BACKGROUND[0]), BACKGROUND[1])
    return min(n, ROWS[1], max(games // n_background - WIDEST, ROWS[0])), n_background


def _is_constant(width: NDArray[np.float64]) -> bool:
    return bool(np.ptp(width) <= 1e-9 * abs(float(width.max())))
