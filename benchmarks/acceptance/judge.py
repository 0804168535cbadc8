"""The judge: p-values of cells by exact laws, and whether the whole of them says that a promise is broken.

A control must be refuted by the same judge, at the same significance.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.special import ndtr, smirnov
from scipy.stats import binom

FAMILY_WISE = 1e-6
"""How often any of the cells may be called broken if all promises hold."""


def _beta(own: Mapping[str, Any]) -> float:
    """Twice the smaller of two: normal scores add up to a normal number, and Smirnov's law of the largest gap.

    Coverage that is larger in distribution makes neither smaller. Where the law is exact, too large is wrong too.
    """
    sets = own["sets"]
    score = own["score"] / math.sqrt(sets)
    low = min(1.0, 2 * min(float(ndtr(score)), float(smirnov(sets, own["too_low"]))))
    if not own["exact"]:
        return low
    high = min(1.0, 2 * min(float(ndtr(-score)), float(smirnov(sets, own["too_high"]))))
    return min(1.0, 2 * min(low, high))


def _share(own: Mapping[str, Any]) -> float:
    """At most so many of independent sets fail; where the chance is known, fewer are wrong too."""
    sets, failed, chance = own["sets"], own["failed"], own["chance"]
    if chance is None:
        return float(binom.sf(failed - 1, sets, own["allowed"]))
    both = float(binom.sf(failed - 1, sets, chance)), float(binom.cdf(failed, sets, chance))
    return min(1.0, 2 * min(both))


def _mean(own: Mapping[str, Any]) -> float:
    """Twice the smaller of two: one new row for each set is binomial, and a gambler's wealth has Ville's bound."""
    hits = float(binom.cdf(own["hits"], own["sets"], own["expected"]))
    return min(1.0, 2 * min(hits, math.exp(-own["wealth"])))


def _never(own: Mapping[str, Any]) -> float:
    """What must not happen did, or did not."""
    return 0.0 if own["failed"] else 1.0


LAWS: dict[str, Callable[[Mapping[str, Any]], float]] = {
    "beta": _beta,
    "share": _share,
    "mean": _mean,
    "never": _never,
}


@dataclass(frozen=True)
class Judged:
    """A cell with its p-value, and whether it is as it should be at a significance."""

    promise: str
    run: str
    cell: str
    law: str
    should_hold: bool
    p_value: float
    figures: Mapping[str, Any]

    def is_as_it_should_be(self, significance: float) -> bool:
        """Return whether a promise is not refuted, and a control is."""
        return (self.p_value >= significance) == self.should_hold


@dataclass(frozen=True)
class Verdict:
    """All cells, and the runs that ended with an error."""

    cells: tuple[Judged, ...]
    errors: tuple[tuple[str, str], ...]

    @property
    def significance(self) -> float:
        """What each cell is judged at: the error of all of them, divided by how many could be called broken."""
        return FAMILY_WISE / max(1, sum(own.should_hold for own in self.cells))

    @property
    def wrong(self) -> list[Judged]:
        """The promises that are refuted, and the controls that are not."""
        return [own for own in self.cells if not own.is_as_it_should_be(self.significance)]


def judged(lines: Iterable[str]) -> Verdict:
    """Return the verdict on the lines that runs have written; of several lines of a run the last counts."""
    runs: dict[str, Any] = {}
    for line in lines:
        own = json.loads(line)
        runs[own["run"]] = own
    cells, errors = [], []
    for name, own in sorted(runs.items()):
        if "error" in own:
            errors.append((name, own["error"]))
            continue
        for cell in own["cells"]:
            p_value = LAWS[cell["law"]](cell["figures"])
            cells.append(
                Judged(own["promise"], name, cell["name"], cell["law"], cell["should_hold"], p_value, cell["figures"])
            )
    return Verdict(tuple(cells), tuple(errors))


def read(folder: Path) -> list[str]:
    """Return the lines of all runs in a folder. A line that was cut short by a stop is left out."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().split("\n")]
    return [line for line in lines if _is_whole(line)]


def _is_whole(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except json.JSONDecodeError:
        return False
