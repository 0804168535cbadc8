"""Model files as a stranger could forge them: entries and tensors changed one at a time, each with a new checksum."""

import copy
import json
import warnings
from functools import partial

import numpy as np
import pandas as pd
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

import guardband as gb
from guardband.bands.predicted import PredictedGaussian
from guardband.bands.promise import Promise
from guardband.doors.file_format import _checksum

SMALL = {"hidden": (4,), "epochs": 2, "random_state": 0, "verbose": False}
QUICK = SMALL | {"preset": "fast"}
PLAIN = SMALL | {"network": "plain"}
LEVELS = (0.005, 0.05, 0.5, 0.95, 0.995)


def rows(n=200, seed=0):
    """Return a table with a column of every kind, and a positive target."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "number": rng.standard_normal(n),
            "gaps": np.where(rng.random(n) < 0.1, np.nan, rng.random(n)),
            "truth": rng.random(n) < 0.5,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "letter": rng.choice(["x", "y", "z", None], n),
            "many": rng.choice([f"c{i}" for i in range(120)], n),
        }
    )
    return frame, np.exp(frame["number"].to_numpy() / 2 + 0.3 * rng.standard_normal(n)).round(3)


def numbers(n=200):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 3))
    return X, X.sum(1) + rng.standard_normal(n)


def several_rows(n=200):
    """Return a table and two targets, of which some are missing."""
    frame, y = rows(n)
    every = pd.DataFrame({"price": y + frame["number"], "days": y})
    every.loc[::9, "days"] = np.nan
    return frame, every


def own_network(d):
    return nn.Sequential(nn.Linear(d, 4), nn.BatchNorm1d(4), gb.nn.TripleHead(4))


def triple():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), gb.nn.TripleHead(4))


def quantiles():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), gb.nn.QuantileHead(4, LEVELS))


def gaussian():
    torch.manual_seed(1)
    return gb.nn.FullyConnected(3, (4,), last=gb.nn.GaussianHead)


def table(own_rows=rows, **asked):
    return lambda: gb.IntervalRegressor(**asked).fit(*own_rows())


def repeated():
    frame, y = rows()
    return gb.IntervalRegressor(**PLAIN).fit(pd.concat([frame, frame]), np.concatenate([y, y]))


def grouped():
    frame, y = rows()
    return gb.IntervalRegressor(**PLAIN, split_by="many").fit(frame, y)


def for_target():
    return gb.IntervalRegressor(**PLAIN, split_by=[]).fit(*rows(400)).for_target(rows(300, 1)[0])


def network(build, **asked):
    def make():
        X, y = (torch.from_numpy(own).float() for own in numbers())
        return gb.calibrate(build(), (X, y), **asked)

    return make


TABLES = {
    "tabular": table(**SMALL, confidence_level=[0.9, 0.5]),
    "fast": table(**QUICK),
    "plain": table(**PLAIN, guarantee="pac", y_min=0, y_max=1000),
    "paper": table(**SMALL, network="paper"),
    "pav": table(**QUICK, method="pav", confidence_level=[0.8, 0.5], guarantee="pac", joint=True),
    "neg-ll": table(**PLAIN, method="neg-ll", target_transform="log"),
    "bayes": table(**QUICK, method="bayes", target_transform="log1p"),
    "high-q": table(**PLAIN, method="high-q", target_transform="asinh"),
    "cqr": table(**PLAIN, method="cqr-r", guarantee="pac", joint=True, target_transform="sqrt", alpha=0.25),
    "qreg-un": table(**PLAIN, method="qreg-un"),
    "auto": table(**QUICK | {"epochs": "early", "max_epochs": 2}, method="auto"),
    "risk": table(**PLAIN, risk=gb.Risk(0.2, 3), target_transform="log1p"),
    "whole": table(lambda: (rows()[0], np.round(10 * rows()[1])), **PLAIN, dropout=0.1),
    "few": table(lambda: numbers(30), **PLAIN, confidence_level=0.99),
    "uncalibrated": table(**PLAIN, calibration_size=None),
    "entities": grouped,
    "repeated": repeated,
    "target": for_target,
    "crossed": table(**QUICK, calibration="cv+", folds=3),
    "several": table(several_rows, **PLAIN, targets="joint", target_transform=[None, "log"]),
    "several-each": table(several_rows, **QUICK, targets="each", confidence_level=[0.9, 0.5]),
    "own": table(numbers, network=own_network, epochs=2, random_state=0, verbose=False),
}
NETWORKS = {
    "network": (triple, network(triple)),
    "network-pac": (triple, network(triple, guarantee="pac", joint=True, confidence_level=[0.9, 0.5])),
    "network-cqr": (triple, network(triple, method="cqr", alpha=0.2)),
    "network-risk": (triple, network(triple, risk=gb.Risk(0.2, 3), guarantee="pac")),
    "network-pav": (quantiles, network(quantiles, method="pav", outputs=LEVELS, rule="nested")),
    "network-bayes": (gaussian, network(gaussian, method="bayes", outputs="gaussian")),
    "network-neg-ll": (gaussian, network(gaussian, method="neg-ll", outputs="gaussian")),
}


def bounds(n=200, seed=0):
    """Return lower bounds, points, upper bounds and true values."""
    rng = np.random.default_rng(seed)
    point = rng.standard_normal(n)
    return point - 1 - rng.random(n), point, point + 1 + rng.random(n), point + rng.standard_normal(n)


def rule(*asked, fit=lambda own, lower, point, upper, y: own.fit(lower, point, upper, y), **more):
    return lambda: fit(gb.BandCalibrator(*asked, **more), *bounds())


def many(*parts):
    return [np.stack([part * k for k in (1, 0.8, 0.5)]) for part in parts]


RULES = {
    "rule": rule(confidence_level=[0.9, 0.5]),
    "rule-bounds": rule("cqr-r", crossing="sort", fit=lambda own, lower, _, upper, y: own.fit(lower, None, upper, y)),
    "rule-point": rule("conf-fw", guarantee="pac", fit=lambda own, _, point, __, y: own.fit(None, point, None, y)),
    "rule-pav": rule(
        "pav",
        taus=[0.1, 0.2, 0.3],
        fit=lambda own, lower, point, upper, y: own.fit(
            *(part + np.stack([point] * 3) for part in many(lower - point, 0 * point, upper - point)), y
        ),
    ),
    "rule-bayes": rule(
        "bayes", fit=lambda own, lower, point, upper, y: own.fit_predicted(PredictedGaussian(point, upper - point), y)
    ),
    "rule-entities": rule(
        guarantee="pac",
        fit=lambda own, *bands: own.fit(*bands, entities=np.arange(200) // 4),
    ),
    "rule-risk": rule("cqr", risk=gb.Risk(0.2, 3)),
    "rule-several": rule(
        targets="joint",
        scales=[1.0, 2.0],
        fit=lambda own, *bands: own.fit(*(np.stack([part, part], axis=1) for part in bands)),
    ),
    "rule-few": rule(confidence_level=0.999),
    "rule-crossed": rule(
        calibration="cv-minmax",
        crossing="sort",
        fit=lambda own, *bands: own.fit(*bands, folds=np.arange(200) % 4),
    ),
}


def new_intervals(own):
    """Return the intervals of new rows by a rule of any form."""
    rng = np.random.default_rng(7)
    X = np.sort(rng.standard_normal((20, len(own.columns.names))), axis=1)
    return own.intervals_of(own.read_rows(np.abs(X) if own.columns.form == "gaussian" else X))


def saved(name, folder):
    """Return the path of a model of that name, fitted and saved."""
    path = folder / f"{name}.guardband"
    if not path.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (NETWORKS[name][1] if name in NETWORKS else (TABLES | RULES)[name])().save(path)
    return path


def opened(path):
    """Return entries and tensors of a file."""
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["guardband"]), {k: file.get_tensor(k).clone() for k in file.keys()}  # noqa: SIM118


def forged(path, entries, tensors):
    """Write a file with a checksum that is right; entries may be a text."""
    text = entries if isinstance(entries, str) else json.dumps(entries)
    save_file(tensors, path, {"guardband": text, "sha256": _checksum(text, tensors)})
    return path


MISSING = object()
VALUES = [
    MISSING, None, True, False, -1, 0, 1, 2, 7, 10**9, 10**18, 10**30, 0.5, 3.0, 1e-320, 1e308, -1e308, float("nan"),
    float("inf"), "", "x", "conf-nn", "custom", "\ud800\x1b[31m", "1e1000000000", {"fraction": "1e1000000000"},
    {"fraction": "1/0"}, {"fraction": "1/3"}, {"float32": "0.1"}, {}, {"x": 1}, [], [0.9], [[[]]], [1] * 3000,
    [0.1, 0.2], ["a", "a"],
]  # fmt: skip


def places(entries, path=()):
    """Yield where something stands; of long lists the first two and the last."""
    if path:
        yield path
    if isinstance(entries, dict):
        for name, value in entries.items():
            yield from places(value, (*path, name))
    elif isinstance(entries, list):
        for i in sorted({0, 1, len(entries) - 1} & set(range(len(entries)))):
            yield from places(entries[i], (*path, i))


def changed(entries, path, value):
    """Return entries with another value at a place, or with none."""
    out = copy.deepcopy(entries)
    *above, last = path
    inside = out
    for step in above:
        inside = inside[step]
    if value is MISSING:
        del inside[last]
    else:
        inside[last] = value
    return out


def at(entries, path):
    for step in path:
        entries = entries[step]
    return entries


def entry_mutants(entries):
    """Yield what is done, and a function that returns the entries, changed in one place."""
    for path in places(entries):
        now = at(entries, path)
        values = [*VALUES]
        if isinstance(now, list):
            values += [now[:-1], now + now[-1:], now * 500, now[::-1]]
        elif isinstance(now, dict):
            values += [now | {"extra": 1}]
        elif isinstance(now, int | float) and not isinstance(now, bool):
            values += [now + 1, -now, now * 2]
        for i, value in enumerate(values):
            what = f"{'.'.join(map(str, path))} = #{i} {str(value)[:40]!r}"
            yield what, partial(changed, entries, path, value)


def _set(t, value):
    out = t.clone()
    out.view(-1)[-1] = value
    return out


def _large(dtype):
    return min(2**62, torch.iinfo(dtype).max) if dtype != torch.bool else True


TENSORS = {
    "nan": lambda t: _set(t, float("nan")) if t.is_floating_point() else None,
    "inf": lambda t: _set(t, float("inf")) if t.is_floating_point() else None,
    "-inf": lambda t: _set(t, float("-inf")) if t.is_floating_point() else None,
    "1e38": lambda t: torch.full_like(t, 1e38) if t.is_floating_point() else torch.full_like(t, _large(t.dtype)),
    "-3e38": lambda t: _set(t, -3e38) if t.is_floating_point() else _set(t, -5),
    "zeros": torch.zeros_like,
    "flat": lambda t: t.reshape(-1),
    "scalar": lambda t: t.reshape(-1)[:1].reshape(()),
    "twice": lambda t: torch.cat([t, t]) if t.ndim else t.repeat(2),
    "half": lambda t: t[: len(t) // 2].contiguous() if t.ndim else None,
    "one more axis": lambda t: t[None],
    "empty": lambda t: torch.empty((0, 10**15), dtype=t.dtype),
    "none": lambda t: t[:0] if t.ndim else None,
    "float64": lambda t: t.to(torch.float64) if t.dtype != torch.float64 else t.float(),
    "float16": lambda t: t.to(torch.float16),
    "bfloat16": lambda t: t.to(torch.bfloat16),
    "float8": lambda t: t.float().to(torch.float8_e4m3fn),
    "bool": lambda t: t.bool(),
    "uint8": lambda t: t.to(torch.uint8),
    "int64": lambda t: t.to(torch.int64),
    "complex": lambda t: t.to(torch.complex64),
    "missing": lambda t: MISSING,
}


def tensor_mutants(tensors):
    """Yield what was done and the tensors, one of them changed."""
    for name, t in tensors.items():
        for what, change in TENSORS.items():
            if not t.numel():
                continue
            made = change(t)
            if made is MISSING:
                yield f"{name} {what}", {k: v for k, v in tensors.items() if k != name}
            elif made is not None:
                yield f"{name} {what}", tensors | {name: made.contiguous()}
        yield f"{name} renamed", {k + "x" if k == name else k: v for k, v in tensors.items()}
    yield "one more tensor", tensors | {"more": torch.zeros(1)}
    yield "no tensors", {}


def refuse_other_words(said, cause):
    """Raise unless an error says one thing and what to do, and came before memory ran out."""
    assert said.endswith("."), said
    assert said.isprintable(), said
    assert len(said) < 1000, said
    advice = ("again", "pass", "Pass", "Check", "Upgrade", "remove", "Bring", "import")
    assert any(word in said for word in advice), said
    assert not isinstance(cause, MemoryError), "it took too much memory"
    assert "allocate" not in said, said


def judged(path, name):
    """Return "refused" or "loaded"; raise what else comes of a file: another error, NaN, or another certificate."""
    own = {"network": NETWORKS[name][0]()} if name in NETWORKS else {"network": own_network} if name == "own" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = gb.load(path, **own)
        except gb.ModelFileError as error:
            refuse_other_words(str(error).removeprefix(str(path)), error.__cause__)
            return "refused"
        if name in NETWORKS:
            out = model(torch.from_numpy(numbers(20)[0]).float()).numpy()
            certificate = model.certificate
        elif name in RULES:
            bands, certificate = new_intervals(model), model.certificate
            out = np.concatenate([np.ravel(side) for side in (bands.lower, bands.point, bands.upper)])
            model.made_by(), model.settings(), model.belonging.keys
        elif name == "uncalibrated":
            assert not np.isnan(model.predict(rows(20, seed=5)[0])).any(), "it predicts NaN"
            return "loaded"
        else:
            bands = model.predict_interval(numbers(20)[0] if name in ("own", "few") else rows(20, seed=5)[0])
            out = np.concatenate([np.ravel(side) for side in (bands.lower, bands.point, bands.upper)])
            certificate = model.certificate_
    assert not np.isnan(out).any(), "it predicts NaN"
    assert str(certificate)
    assert certificate.to_dict()
    said = opened(path)[0]["certificate"]
    assert certificate.promise == Promise.from_dict(said["promise"]), "it promises something else"
    return "loaded"
