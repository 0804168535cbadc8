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
