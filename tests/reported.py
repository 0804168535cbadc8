"""Documents of every kind that guardband makes, as they come back from a model file."""

import json
import warnings
from functools import cache

import numpy as np
import pandas as pd

import guardband as gb
from guardband.audit.evidence import Evidence
from guardband.report.document import document
from judged import evidence_of

SMALL = {"hidden": (8,), "epochs": 2, "network": "plain", "random_state": 0}
FOUND = {
    "broken": {"noise": 2.0},
    "pac": {"guarantee": "pac"},
    "two levels": {"levels": [0.95, 0.8]},
    "one row": {"n": 1},
    "thirty rows": {"n": 30},
    "infinite": {"n2": 8},
    "one level infinite": {"n2": 12, "levels": [0.9, 0.99]},
    "long names": {"n": 60, "X": pd.DataFrame({"x" * 5000: np.arange(60.0), "a\x00\n$b$\u202e": ["\x1b[31m"] * 60})},
    "cells that no file can hold": {"n": 60, "X": np.array([["\ud800a", 1.0]] * 60, dtype=object)},
}


@cache
def rows_and_targets():
    rng = np.random.default_rng(0)
    X = rng.random((400, 2))
    return X, X.sum(1) + rng.standard_normal(400)


@cache
def fitted(method="conf-nn"):
    X, y = rows_and_targets()
    return gb.IntervalRegressor(method, **SMALL).fit(X[:300], y[:300])


def grouped_rows(names, n=600, seed=0, worse=0, by="district"):
    """Return bounds, true values and equal groups; errors of the first ``worse`` of them are four times as large."""
    rng = np.random.default_rng(seed)
    number = np.arange(n) % len(names)
    point = rng.standard_normal(n)
    y = point + rng.standard_normal(n) * np.where(number < worse, 4, 1)
    return (point - 1, point, point + 1, y), pd.Series([names[i] for i in number], name=by)


def grouped_evidence(names=("old town", "hillside", "station"), n=600, worse=1, few=(), **asked):
    """Return a rule with a promise for each group and rows that judge it; ``few`` groups have 5 calibration rows."""
    ends, groups = grouped_rows(names, n)
    seen = groups.groupby(groups).cumcount()
    kept = (~groups.isin(few) | (seen < 5)).to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rule = gb.BandCalibrator(**asked).fit(*(end[kept] for end in ends), groups=groups[kept])
    (*bounds, y), groups = grouped_rows(names, 2 * n, 1, worse)
    return rule, rule._evidence(*bounds, y, entities=None, groups=groups)


def several_evidence(targets, n=200):
    """Return a rule for several targets and rows that judge it: some lack a target, and names are long."""
    rng = np.random.default_rng(0)
    point = rng.standard_normal((n, 2))
    Y = pd.DataFrame(point + rng.standard_normal((n, 2)), columns=["price", "days" * 400])
    Y.iloc[::9, 0] = np.nan
    rule = gb.BandCalibrator(targets=targets).fit(point - 1, point, point + 2, Y)
    new = rng.standard_normal((n, 2))
    Y = Y - point + new
    return rule, rule._evidence(new - 1, new, new + 2, Y + rng.standard_normal((n, 2)), entities=None)


@cache
def documents():
    """Return the documents by name, each anew from JSON."""
    made = {}
    X, y = rows_and_targets()
    entities = np.repeat(np.arange(100), 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made["unchecked"] = document(fitted(), None)
        for name, asked in FOUND.items():
            made[name] = document(fitted(), evidence_of(**{"n": 200} | asked))
        for method in ("conf-nn", "pav", "neg-ll", "conf-fw"):
            made[method] = document(fitted(method), Evidence.of(fitted(method), X[300:], y[300:]))
        made["used before"] = document(fitted(), Evidence.of(fitted(), X[:300], y[:300]))
        model = gb.IntervalRegressor(**SMALL).fit(X[:300], y[:300], entities=entities[:300])
        group = pd.Series(np.where(np.arange(100) % 3, "a", None), name="g")
        made["entities"] = document(
            model, Evidence.of(model, X[300:], y[300:], entities=entities[300:], group=group, time=group.index)
        )
        made["groups"] = document(*grouped_evidence(n=60))
        for targets in ("joint", "each"):
            made[f"several {targets}"] = document(*several_evidence(targets))
    return {name: json.loads(json.dumps(own, allow_nan=False)) for name, own in made.items()}


def places(value, at=()):
    """Yield the path of every leaf; of a long list of equal kinds the first and the last entry stand for all."""
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*at, key))
    elif isinstance(value, list | tuple):
        for i in sorted({*range(min(3, len(value))), len(value) - 1} - {-1}):
            yield from places(value[i], (*at, i))
    else:
        yield at


def put(value, at, new):
    """Return nested values with a new one at a path; what is not on the path is shared."""
    if not at:
        return new
    own = dict(value) if isinstance(value, dict) else list(value)
    own[at[0]] = put(value[at[0]], at[1:], new)
    return own


def found(value, at):
    for step in at:
        value = value[step]
    return value


def is_headed(page: str) -> bool:
    """Return whether a page has the title Sales, the author A. Analyst and the unit EUR."""
    return all(part in page for part in ('<h1 id="title">Sales</h1>', "A. Analyst, 20", "\N{NO-BREAK SPACE}EUR"))
