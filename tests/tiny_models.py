"""Models of every kind with all that can be the user's own, each of which is fitted in a hundredth of a second."""

import warnings
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import torch
from torch import nn

import guardband as gb
from forged_models import PLAIN, QUICK, bounds, network, numbers, opened, own_network, quantiles, triple
from guardband.methods.conf_nn import ConfNN
from guardband.methods.registry import method_named

LEVELS = (0.005, 0.05, 0.5, 0.95, 0.995)


def half(y):
    return y / 2


class Mine(ConfNN):
    """A method of the user's own."""

    name = "mine"


def frame(n=60):
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(n), "D")
    rows = pd.DataFrame({"a": rng.standard_normal(n), "shop": np.array(list("wxyz"))[rng.integers(0, 4, n)]})
    return rows.assign(day=days), rows["a"].to_numpy() + rng.standard_normal(n)


def rare():
    """Return a table of which one fold knows a column's values and others do not."""
    rows, y = frame()
    return rows[["a"]].assign(kind=np.where(np.arange(60) < 2, "rare", "other")), y


def both(n=60):
    X, y = numbers(n)
    return X, np.stack([y, -y + X[:, 0]], axis=1)


def is_x(rows):
    return rows["shop"] == "x"


def first_positive(X):
    return np.where(np.asarray(X)[:, 0] > 0, 1.0, 2.0)


def cubed(y):
    return y**3


def loss(y, lower, upper):
    return np.minimum(1.0, np.maximum(lower - y, y - upper).clip(0))


def halves(x):
    return x[:, 0] > 0


def two_halves(x):
    return torch.stack([x[:, 0] > 0, x[:, 1] > 0], dim=1)


def unit_weights(x):
    return 1 + (x[:, 0] > 0).double()


def every_second(out):
    return out[:, ::2]


def wide():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), gb.nn.TripleHead(4), Twice())


class Twice(nn.Module):
    def forward(self, x):
        return x.repeat_interleave(2, dim=1)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.heads = nn.Linear(3, 4), nn.ModuleList([gb.nn.TripleHead(4), gb.nn.TripleHead(4)])

    def forward(self, x):
        return torch.stack([head(self.body(x)) for head in self.heads], dim=1)


def build_pair():
    torch.manual_seed(1)
    return Pair()


def table(own_rows=lambda: numbers(60), **asked):
    return lambda: gb.IntervalRegressor(**asked).fit(*own_rows())


def calibrated_later(**asked):
    def make():
        X, y = numbers()
        model = gb.IntervalRegressor(**PLAIN, calibration_size=None).fit(X[:60], y[:60])
        return model.calibrate(X[60:], y[60:], **asked)

    return make


def for_target():
    X, y = numbers(400)
    return gb.IntervalRegressor(**PLAIN).fit(X, y).for_target(X[:100] + 0.1)


def twice():
    X, y = numbers(60)
    return gb.IntervalRegressor(**PLAIN).fit(np.concatenate([X, X]), np.concatenate([y, y]))


def line(X):
    return np.asarray(X, dtype=float).sum(axis=1)


TABLES = {
    "plain": (table(**PLAIN, alpha=[0.1, 0.3]), {}),
    "heads": (table(**PLAIN, method="pav", taus=[0.1, 0.2]), {}),
    "copies": (table(hidden=(4,), epochs=1, random_state=0, verbose=False), {}),
    "each-copy": (table(hidden=(4,), epochs=1, random_state=0, verbose=False, method="bayes"), {}),
    "auto": (table(**QUICK | {"epochs": "early", "max_epochs": 2}, method="auto"), {}),
    "own": (table(network=own_network, epochs=1, random_state=0, verbose=False), {"network": own_network}),
    "own-heads": (
        table(network=own_network, epochs=1, random_state=0, verbose=False, method="pav", taus=[0.1, 0.2]),
        {"network": own_network},
    ),
    "crossed": (table(**PLAIN, calibration="cv+", folds=3), {}),
    "crossed-uneven": (table(rare, **PLAIN, calibration="cv+", folds=3), {}),
    "own-crossed": (
        table(network=own_network, epochs=1, random_state=0, verbose=False, calibration="cv-minmax", folds=2),
        {"network": own_network},
    ),
    "several": (table(both, **PLAIN, targets="joint", target_transform=[None, "asinh"]), {}),
    "several-each": (table(both, **PLAIN, targets="each"), {}),
    "entities": (table(frame, **PLAIN, split_by="shop"), {}),
    "time": (table(frame, **PLAIN, split_by_time="day"), {}),
    "repeated": (twice, {}),
    "uncalibrated": (table(**PLAIN, calibration_size=None), {}),
    "risk": (table(**PLAIN, risk=gb.Risk(0.2, 3)), {}),
    "own-risk": (table(**PLAIN, risk=gb.Risk(0.2, 1, loss=loss)), {"risk": gb.Risk(0.2, 1, loss=loss)}),
    "groups": (table(frame, **PLAIN, groups="shop"), {}),
    "own-groups": (table(frame, **PLAIN, groups=is_x), {"groups": is_x}),
    "weights": (calibrated_later(weights=first_positive), {"weights": first_positive}),
    "target": (for_target, {}),
    "seeded": (table(**PLAIN | {"random_state": np.random.RandomState(0)}), {}),
    "own-transform": (
        table(**PLAIN, target_transform=(cubed, np.cbrt)),
        {"target_transform": (cubed, np.cbrt)},
    ),
    "own-cut": (table(**PLAIN, guarantee=gb.extend.PacCut()), {"guarantee": gb.extend.PacCut()}),
    "own-method": (table(**PLAIN, method=Mine()), {"method": Mine()}),
    "method": (table(**PLAIN, method=method_named("cqr")), {}),
}
NETWORKS = {
    "network": (network(triple, confidence_level=[0.9, 0.5]), {"network": triple}),
    "networks": (
        lambda: gb.calibrate([triple(), triple()], tensors_(), "pav", taus=(0.3, 0.1)),
        {"network": lambda: [triple(), triple()]},
    ),
    "network-quantiles": (network(quantiles, method="pav", outputs=LEVELS), {"network": quantiles}),
    "network-groups": (network(triple, groups=halves), {"network": triple, "groups": halves}),
    "network-members": (network(triple, groups=two_halves), {"network": triple, "groups": two_halves}),
    "network-weights": (network(triple, weights=unit_weights), {"network": triple, "weights": unit_weights}),
    "network-outputs": (network(wide, outputs=every_second), {"network": wide, "outputs": every_second}),
    "network-several": (
        lambda: gb.calibrate(build_pair(), tensors_(both), targets="each"),
        {"network": build_pair},
    ),
}
OTHERS = {
    "rule": (lambda: gb.BandCalibrator(confidence_level=[0.9, 0.5]).fit(*bounds(60)), {}),
    "model": (lambda: gb.calibrate(line, numbers(60)), {"model": line}),
    "distribution": (lambda: gb.DistributionCalibrator().fit(bounds(60)[1], bounds(60)[3]), {}),
    "own-online": (lambda: gb.OnlineCalibrator("tracking", method=Mine()), {"method": Mine()}),
    "online": (lambda: gb.OnlineCalibrator("tracking"), {}),
}


def tensors_(rows=numbers):
    return tuple(torch.from_numpy(own).float() for own in rows(60))


EVERY = TABLES | NETWORKS | OTHERS


def told(own):
    """Return all that an object holds as lists and dictionaries, with a network as its weights."""
    if hasattr(own, "snapshot"):
        return told(own.snapshot())
    if isinstance(own, np.ndarray | torch.Tensor):
        return str(own.dtype), own.tolist()
    if isinstance(own, dict):
        return {name: told(value) for name, value in own.items()}
    if isinstance(own, tuple | list):
        return [told(value) for value in own]
    if is_dataclass(own):
        return type(own).__name__, {field.name: told(getattr(own, field.name)) for field in fields(own)}
    return own if isinstance(own, str | int | float | None) else repr(type(own))


MADE = {}


def made(name, folder):
    """Return a model, the path where it is saved, and what is brought to load it."""
    path = folder / name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name not in MADE:
            MADE[name] = EVERY[name][0]()
        if not path.exists():
            MADE[name].save(path)
    return MADE[name], path, brought(name)


def brought(name):
    """Return what is passed to load; a network is built anew, and has other weights."""
    own = EVERY[name][1]
    if name not in NETWORKS:
        return own
    built = own["network"]()
    with torch.no_grad():
        for weights in nn.ModuleList(built if isinstance(built, list) else [built]).parameters():
            weights += 1
    return own | {"network": built}


def contents(path):
    entries, tensors = opened(path)
    return entries, {name: (t.dtype, t.tolist()) for name, t in tensors.items()}
