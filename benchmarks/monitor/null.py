"""How often a monitor raises a false alarm: streams of rows that keep their promise, looked at after every row.

Each stream has calibration rows of its own. ``python benchmarks/monitor/null.py [--streams 2000] [--rows 20000]
[--only NAME]`` prints one line for each setting, and with ``-o FILE`` keeps them as JSON. An exact binomial test
compares the alarms with what the monitor allows: its significance, for a pac promise plus delta.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

import guardband as gb

Array = NDArray[np.float64]
SIGNIFICANCES = (0.01, 0.05)
DELTA = 0.1
GROUPS = np.array(["a", "b", "c", "d", "e"])
SHARES = (0.5, 0.3, 0.15, 0.049, 0.001)
"""The last group has too few calibration rows, and infinite intervals."""


def normal(random: np.random.Generator, n: int) -> Array:
    """Return continuous true values."""
    return random.standard_normal(n)


def counts(random: np.random.Generator, n: int) -> Array:
    """Return whole numbers, most of which occur many times."""
    return random.poisson(1.0, n).astype(float) * random.choice([-1.0, 1.0], n)


@dataclass(frozen=True)
class Setting:
    """How rows are drawn, and what is promised of them."""

    name: str
    n: int
    drawn: Callable[[np.random.Generator, int], Array] = normal
    options: dict[str, Any] = field(default_factory=dict)
    grouped: bool = False
    in_entities: bool = False

    @property
    def allowed(self) -> tuple[float, ...]:
        """What share of streams may raise the alarm, at each significance."""
        delta = DELTA if self.options.get("guarantee") == "pac" else 0.0
        return tuple(own + delta for own in SIGNIFICANCES)

    def peak(self, random: np.random.Generator, rows: int) -> tuple[float, float]:
        """Return the highest evidence along one stream as a share of what the alarm needs, and the share of misses."""
        rule = gb.BandCalibrator(**self.options)
        kwargs: dict[str, Any] = {"groups": self._groups(random, self.n)} if self.grouped else {}
        if self.in_entities:
            kwargs = {"entities": np.arange(self.n) // 2}
        rule.fit(*_unit(self.n), self.drawn(random, self.n), **kwargs)
        monitor = gb.Monitor(rule, significance=SIGNIFICANCES[0])
        y = self.drawn(random, rows)
        groups = self._groups(random, rows) if self.grouped else None
        own = {} if groups is None else {"groups": groups}
        bands = rule.transform(*_unit(rows), **own)
        if self.in_entities:
            own = {"entities": self.n + np.arange(rows)}
        monitor.update(y, bands, **own)
        found = monitor.finding()
        return found.highest / found.limit, 1 - found.coverage_of_all.share

    def _groups(self, random: np.random.Generator, n: int) -> NDArray[np.str_]:
        return GROUPS[random.choice(len(GROUPS), n, p=SHARES)]


def _unit(n: int) -> tuple[Array, Array, Array]:
    zero = np.zeros(n)
    return zero - 1, zero, zero + 1


PAC = {"guarantee": "pac", "delta": DELTA}
SIZES = (100, 1_000, 5_000, 25_000)
SETTINGS = (
    *(Setting("marginal", n) for n in SIZES),
    *(Setting("pac", n, options=PAC) for n in SIZES),
    Setting("whole numbers", 100, counts),
    Setting("whole numbers", 1_000, counts),
    Setting("whole numbers, pac", 1_000, counts, PAC),
    Setting("groups, one with infinite intervals", 1_000, grouped=True),
    Setting("groups, pac", 1_000, options=PAC, grouped=True),
    Setting("two levels", 200, options={"confidence_level": (0.5, 0.9)}),
    Setting("each tail", 200, options={"tails": (0.03, 0.07)}),
    Setting("one side", 200, options={"side": "upper"}),
)


def measured(setting: Setting, streams: int, rows: int, seed: int) -> dict[str, Any]:
    """Return how many of the streams raise the alarm, with the p-value of more than is allowed."""
    begun = time.process_time()
    seeds = np.random.SeedSequence([seed, setting.n]).spawn(streams)
    found = np.array([setting.peak(np.random.default_rng(own), rows) for own in seeds])
    out: dict[str, Any] = {"setting": setting.name, "n": setting.n, "streams": streams, "rows": rows}
    for significance, allowed in zip(SIGNIFICANCES, setting.allowed, strict=True):
        alarms = int((found[:, 0] >= SIGNIFICANCES[0] / significance * (1 - 1e-12)).sum())
        out[f"alarms at {significance}"] = alarms
        out[f"p at {significance}"] = float(f"{binom.sf(alarms - 1, streams, allowed):.3g}")
    out["misses"] = round(float(found[:, 1].mean()), 4)
    out["seconds"] = round(time.process_time() - begun)
    return out


def main() -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for setting in SETTINGS:
        if given.only in setting.name:
            lines.append(measured(setting, given.streams, given.rows, given.seed))
            print(json.dumps(lines[-1]), flush=True)
            if given.output is not None:
                given.output.write_text("[\n" + ",\n".join(map(json.dumps, lines)) + "\n]\n")
    worst = min(own[f"p at {a}"] for own in lines for a in SIGNIFICANCES)
    print(f"Smallest p-value: {worst:g}, of {2 * len(lines)}; {math.ceil(sum(own['seconds'] for own in lines)):,} s.")


if __name__ == "__main__":
    main()
