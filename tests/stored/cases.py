"""Intervals and certificates of every method, guarantee and way in, from inputs that are the same on every machine.

Nothing here trains: the networks pass their inputs on, or have a parameter whose gradient is zero. So the results are
sums, products and order statistics of given numbers, and equal to the bit wherever they are computed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import guardband as gb

LEVELS = (0.9, 0.5)
GAUSSIAN = ("neg-ll", "bayes")
PAC = {"guarantee": "pac"}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "marginal": {},
    "levels": {"confidence_level": LEVELS},
    "pac": PAC,
    "pac-strict": {"guarantee": "pac", "delta": 0.02, "alpha": 0.2},
    "pac-levels": {"guarantee": "pac", "confidence_level": LEVELS},
    "pac-joint": {"guarantee": "pac", "confidence_level": LEVELS, "joint": True},
}
PAV: dict[str, dict[str, Any]] = {
    f"{rule}-{name}": {"rule": rule} | more
    for rule in ("fixed-sequence", "nested", "paper")
    for name, more in {
        "selection": {},
        "pac": PAC,
        "sharp": {"average": "sharp"},
        "corollary": {"average": "corollary"},
        "levels": {"confidence_level": LEVELS},
        "joint": {"confidence_level": LEVELS, "guarantee": "pac", "joint": True},
    }.items()
}
TAUS = (0.5, 0.3, 0.1, 0.02)


def cases() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Give the name of each case with what computes it."""
    for method in ("conf-nn", "cqr", "cqr-r", "conf-fw"):
        for name, arguments in ARGUMENTS.items():
            for n in (12, 400):
                yield f"bands/{method}/{name}/{n}", _later(_bands, method, n, **arguments)
        yield f"bands/{method}/other-level/400", _later(_bands, method, 400, later=0.75)
        yield f"bands/{method}/degenerate/200", _later(_bands, method, 200, degenerate=True)
    for name, arguments in PAV.items():
        for n in (15, 400):
            yield f"bands/pav/{name}/{n}", _later(_bands, "pav", n, taus=TAUS, **arguments)
    for method in ("qreg-un", "high-q", *GAUSSIAN):
        for name in ("marginal", "levels"):
            yield f"bands/{method}/{name}/300", _later(_bands, method, 300, **ARGUMENTS[name])
    for method in ("conf-nn", "cqr", "cqr-r", "conf-fw", "pav", "qreg-un", "high-q", *GAUSSIAN):
        for dtype in (torch.float32, torch.float64):
            kind = str(dtype).removeprefix("torch.")
            yield f"network/{method}/{kind}", _later(_network, method, dtype)
    for method in ("conf-nn", "pav"):
        yield f"network/{method}/quantiles", _later(_quantiles, method)
    for method in ("conf-nn", "cqr", "cqr-r", "conf-fw", "pav", "qreg-un", "high-q", *GAUSSIAN):
        for name in ("marginal", "levels"):
            yield f"table/{method}/{name}", _later(_table, method, **ARGUMENTS[name])
    yield "table/conf-nn/pac", _later(_table, "conf-nn", **PAC)
    yield "table/conf-nn/log", _later(_table, "conf-nn", target_transform="log", y_min=0.5)


def _later(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[[], dict[str, Any]]:
    def call() -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: dict[str, Any] = function(*args, **kwargs)
        return found

    return call


def _shown(intervals: gb.Intervals) -> dict[str, Any]:
    lower, upper = intervals.per_level()
    return _entries(lower, intervals.point, upper, intervals.certificate)


def _entries(lower: Any, point: Any, upper: Any, certificate: Any) -> dict[str, Any]:
    known = certificate.to_dict()
    names = ("kind", "method", "confidence_level", "n_calibration", "rank", "delta", "assumption")
    return {
        "lower": lower.tolist(),
        "point": point.tolist(),
        "upper": upper.tolist(),
        "words": str(certificate),
        "certificate": {name: known[name] for name in (*names, "expected_coverage", "coverage_bound")},
    }


def _rows(n: int, candidates: int, seed: int) -> tuple[Any, Any]:
    """Return bands ``(3, K, n)`` from narrow to wide, which do not nest, and responses ``(n,)``."""
    random = np.random.default_rng(seed)
    point = random.normal(size=n) * 3
    widths = random.uniform(0.2, 1.0, (2, candidates, n)) * np.linspace(1, 3, candidates)[:, None]
    y = point + random.standard_t(4, n) * widths.mean((0, 1)) * random.choice([0.5, 1.5], n)
    points = point + 0.1 * random.normal(size=(candidates, n))
    return np.stack([points - widths[0], points, points + widths[1]]), y


def _candidates(method: str, levels: int) -> int:
    return {"pav": len(TAUS), "qreg-un": levels, "high-q": 3 * levels, "neg-ll": 3}.get(method, 1)


def _bands(method: str, n: int, degenerate: bool = False, later: float | None = None, **arguments: Any) -> Any:
    levels = len(arguments.get("confidence_level", (0.9,)))
    bands, y = _rows(n, _candidates(method, levels), 1)
    new, _ = _rows(6, len(bands[0]), 2)
    if degenerate:
        bands[0, :, :8] = bands[1, :, :8]
        y[:4] = bands[1, 0, :4]
        bands[2, :, 8:10] = np.nan
        new[0, :, 0], new[2, :, 1] = new[1, :, 0], np.nan
        new[:, :, 2] *= 1e-300
    calibrator = gb.BandCalibrator(method, **arguments)
    calibrator.fit(*bands, y)
    return _shown(calibrator.transform(*new, **({} if later is None else {"confidence_level": later})))


class Passing(torch.nn.Module):
    """Returns some columns of its inputs."""

    def __init__(self, first: int, columns: int) -> None:
        super().__init__()
        self.first, self.columns = first, columns

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the columns."""
        return x[:, self.first : self.first + self.columns]


def _network(method: str, dtype: torch.dtype) -> dict[str, Any]:
    candidates = _candidates(method, 1)
    bands, y = _rows(300, candidates, 3)
    new, _ = _rows(6, candidates, 4)
    outputs = "bands"
    if method in GAUSSIAN:
        deviation = (bands[2] - bands[0]) / 2
        bands, outputs = np.stack([bands[1], deviation**2]), "gaussian"
        new = np.stack([new[1], ((new[2] - new[0]) / 2) ** 2])
    columns = len(bands)
    x, x_new = (torch.from_numpy(own.transpose(2, 1, 0).reshape(own.shape[2], -1)).to(dtype) for own in (bands, new))
    networks = [Passing(columns * k, columns) for k in range(candidates)]
    arguments = {"taus": TAUS} if method == "pav" else {}
    guarded = gb.calibrate(networks, (x, torch.from_numpy(y)), method, outputs=outputs, **arguments)
    out = guarded(x_new)
    assert out.dtype == dtype
    return _entries(out[:, :1], out[:, 1], out[:, 2:], guarded.certificate)


def _quantiles(method: str) -> dict[str, Any]:
    random = np.random.default_rng(5)
    levels = [0.02, 0.05, 0.2, 0.5, 0.8, 0.95, 0.98]
    x = torch.from_numpy(np.sort(random.normal(size=(306, len(levels))), axis=1))
    y = torch.from_numpy(random.normal(size=300))
    guarded = gb.calibrate(Passing(0, len(levels)), (x[:300], y), method, outputs=levels)
    out = guarded(x[300:])
    return _entries(out[:, :1], out[:, 1], out[:, 2:], guarded.certificate)


class Fixed(torch.nn.Module):
    """Takes bands from its inputs; its parameter has no influence, so that training leaves it alone."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight, self.columns = torch.nn.Parameter(torch.ones(1)), columns

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a point, bounds or a band."""
        point, below, above = x[..., 0], x[..., 1].abs() + 0.25, x[..., 2].abs() + 0.25
        every = {1: [point], 2: [point - below, point + above], 3: [point - below, point, point + above]}
        return torch.stack(every[self.columns], -1) + 0 * self.weight


def _table(method: str, **arguments: Any) -> dict[str, Any]:
    random = np.random.default_rng(6)
    X, X_new = random.normal(size=(300, 3)), random.normal(size=(6, 3))
    y = 5 + X[:, 0] + random.normal(size=300) * (0.5 + np.abs(X[:, 1]))
    if arguments.get("target_transform"):
        y = np.exp(y / 4)
    columns = {"conf-fw": 1, "high-q": 2, "neg-ll": 2, "bayes": 2}.get(method, 3)
    model = gb.IntervalRegressor(
        method, network=lambda _: Fixed(columns), epochs=1, random_state=0, device="cpu", **arguments
    )
    return _shown(model.fit(X, y).predict_interval(X_new))
