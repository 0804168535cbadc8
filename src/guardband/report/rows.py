"""The rows that a page shows: some at random, the widest intervals and the worst misses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.audit.audit import Audit
from guardband.audit.evidence import Evidence
from guardband.audit.strata import Family
from guardband.data.table import Column
from guardband.report.examples import example_rows, telling_columns
from guardband.report.parts import DIGITS
from guardband.words import as_moment, as_written, plain

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

TABLE_ROWS = 20
CELLS = 24
LONGEST_CELL = 32
DIGITS_SHOWN, EXACT = 5, 9
"""Digits of numbers at levels that can be looked at, and of those that are the model's own."""


def rows_of(evidence: Evidence, findings: Audit, families: list[Family], most: int) -> dict[str, Any]:
    """Return rows for the plots and tables: the first ``sampled`` are a random sample, in the order of the point.

    ``lower`` and ``upper`` hold a list for each of ``levels``, and ``inside`` a text of 0 and 1: which true values lie
    in their interval is decided before numbers are rounded for the page. ``strata`` has a character for each row,
    ``telling`` the columns that tell most about a row, and ``examples`` three rows that stand for the others.
    """
    headline = evidence.headline
    width = evidence.reach[:, 0]
    beyond = np.maximum(np.maximum(headline.lower - evidence.y, evidence.y - headline.upper), 0)
    sample = np.random.default_rng(0).permutation(evidence.n)[:most]
    sample = sample[np.argsort(headline.point[sample], kind="stable")]
    widest = np.argsort(-width, kind="stable")[:TABLE_ROWS]
    missed = np.argsort(-beyond, kind="stable")[:TABLE_ROWS]
    missed = missed[beyond[missed] > 0]
    shown = np.array(list(dict.fromkeys([*sample.tolist(), *widest.tolist(), *missed.tolist()])), dtype=np.intp)
    levels, lower, upper = _ends(evidence, findings, shown)
    y = evidence.y[shown]
    inside = (lower <= y[:, None]) & (y[:, None] <= upper)
    place = {row: i for i, row in enumerate(shown.tolist())}
    by_column = [own for own in findings.families if own.key.startswith("column-")]
    distinct = [len(set(column.values.tolist())) == evidence.n for column in evidence.table.columns]
    telling, told = telling_columns(headline.point, by_column, distinct)
    kept = sorted(telling[:CELLS])
    columns = [evidence.table.columns[j] for j in kept]
    at = levels.index(findings.levels[0].level)
    examples = example_rows(width[sample], headline.point[sample])
    texts = [_texts(column, column.name in evidence.moments, shown) for column in columns]
    return {
        "levels": levels,
        "headline": at,
        "sampled": len(sample),
        "row": evidence.row_numbers[shown].tolist(),
        "y": short(y, EXACT),
        "point": short(headline.point[shown], EXACT),
        "lower": [short(ends, EXACT if i == at else DIGITS_SHOWN) for i, ends in enumerate(lower.T)],
        "upper": [short(ends, EXACT if i == at else DIGITS_SHOWN) for i, ends in enumerate(upper.T)],
        "inside": ["".join("01"[int(hit)] for hit in hits) for hits in inside.T],
        "width": short(width[shown], EXACT),
        "beyond": short(beyond[shown], EXACT),
        "columns": [column.name for column in columns],
        "cells": [list(cells) for cells in zip(*texts, strict=True)],
        "strata": {family.key: "".join(DIGITS[i] for i in family.stratum_of[shown]) for family in families},
        "widest": [place[row] for row in widest.tolist()],
        "missed": [place[row] for row in missed.tolist()],
        "telling": [kept.index(j) for j in telling[:told]],
        "examples": [[kind, i] for kind, i in examples],
    }


def short(values: Array, digits: int = 5) -> list[float | None]:
    """Return numbers with few digits, for JSON; None for what is not finite."""
    return [plain(float(f"{value:.{digits}g}")) for value in values.tolist()]


def _ends(evidence: Evidence, findings: Audit, rows: Rows) -> tuple[list[float], Array, Array]:
    """Return the levels of the slider, or the promised ones where there is none, with the ends of some rows."""
    headline = findings.levels[0].level
    if findings.curve is not None and headline in findings.curve.levels:
        exact: list[Fraction] = [level for level, _ in evidence.levels()]
        return list(findings.curve.levels), *evidence.ends(exact, rows)
    lower, upper = evidence.intervals.per_level()
    return [level.level for level in findings.levels], lower[rows], upper[rows]


def _texts(column: Column, moment: bool, rows: Rows) -> list[str]:
    return [_text(value, moment) for value in column.values[rows].tolist()]


def _text(value: Any, moment: bool) -> str:
    if value is None:
        return "missing"
    if isinstance(value, str):
        return value if len(value) <= LONGEST_CELL else f"{value[: LONGEST_CELL - 1]}…"
    if np.isnan(value):
        return "missing"
    return as_moment(value) if moment else as_written(value, digits=6)
