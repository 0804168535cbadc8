"""How soon an alarm comes after the miss rate has risen from 10%, beside MAPIE's tests and a test once a week.

Errors are normal and their spread grows, so that 15%, 20% or 30% of rows are missed from some row on; everybody sees
the same rows, at a significance of 1%. ``python benchmarks/monitor/delay.py [-o FILE]`` prints for each promise and
each change the median delay in rows, what the bar allows, and what nobody could beat: the delay of a bet that knows the
new rate and the row of the change, against the same law. ``--peers`` adds MAPIE's martingale and its monitor of risks
(``pip install mapie``), a binomial test at the end of each week, and everybody's alarms on rows without a change.
"""

from __future__ import annotations

import argparse
import bisect
import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import binom

from guardband.monitor.evidence_process import Stream, advanced
from guardband.monitor.miss_law import MissLaw

Array = NDArray[np.float64]
Misses = NDArray[np.bool_]

SIGNIFICANCE = 0.01
BEFORE = 0.1
AFTER = (0.15, 0.2, 0.3)
STARTS = (0, 2_000, 50_000)
SIZES = (1_000, 5_000, 25_000)
LIMIT = -math.log(SIGNIFICANCE)
LONGEST = 40_000
"""A stream without an alarm after so many rows has no delay; medians count it as the longest."""
WEEK = 168
CUT = -float(ndtri(BEFORE / 2))
NULL_ROWS = 20_000


def laws() -> Iterator[tuple[str, MissLaw]]:
    """Return what is promised, by name."""
    for n in SIZES:
        yield f"marginal, n = {n:,}", MissLaw(rank=(math.ceil((n + 1) * (1 - BEFORE)), n))
    yield "pac", MissLaw(share=1 - BEFORE)


def errors(random: np.random.Generator, n: int, rate: float) -> Array:
    """Return absolute errors of which a share lies beyond the cut."""
    spread = CUT / -float(ndtri(rate / 2))
    return np.abs(random.standard_normal(n)) * spread


def first_alarm(stream: Stream, law: MissLaw, missed: Misses) -> int | None:
    """Return after how many further rows the alarm comes."""
    for first in range(0, len(missed), 1_000):
        stream, evidence = advanced(stream, law, missed[first : first + 1_000])
        over = np.flatnonzero(evidence >= LIMIT)
        if len(over):
            return first + int(over[0]) + 1
    return None


def bar(rate: float, start: int) -> float:
    """Return what the delay may be: a multiple of log(1 / a) / KL, and 20 rows at the first row."""
    gain = rate * math.log(rate / BEFORE) + (1 - rate) * math.log((1 - rate) / (1 - BEFORE))
    return 3 * LIMIT / gain if start else 2 * LIMIT / gain + 20


def best_possible(law: MissLaw, rate: float, start: int) -> float:
    """Return the rows that a bet on this rate from this row on needs, if misses come as expected."""
    t = np.arange(1.0, LONGEST + 1)  # counts need not be whole here
    expected: Any = (BEFORE * start + rate * t, start + t)
    before: Any = (np.array([BEFORE * start]), np.array([float(start)]))
    evidence = law.before(*before) + t * (rate * math.log(rate) + (1 - rate) * math.log1p(-rate)) - law.most(*expected)
    over = np.flatnonzero(evidence >= LIMIT)
    return float(t[over[0]]) if len(over) else math.inf


def delays(law: MissLaw, start: int, streams: int, seed: int) -> dict[float, list[int]]:
    """Return the delays of many streams for each new rate; what came before the change is the same for all of them."""
    out: dict[float, list[int]] = {rate: [] for rate in AFTER}
    for own in np.random.SeedSequence([seed, start]).spawn(streams):
        random = np.random.default_rng(own)
        stream, missed = Stream(), errors(random, start, BEFORE) > CUT
        for first in range(0, start, 4_096):
            stream, _ = advanced(stream, law, missed[first : first + 4_096])
        for rate in AFTER:
            found = first_alarm(stream, law, errors(random, LONGEST, rate) > CUT)
            out[rate].append(LONGEST if found is None else found)
    return out


def ours(streams: int, seed: int) -> list[dict[str, Any]]:
    """Return median delays for all promises and changes."""
    lines = []
    for name, law in laws():
        for start in STARTS:
            found = delays(law, start, streams // 4 if start > 10_000 else streams, seed)
            for rate, own in found.items():
                line = {"promise": name, "change at": start, "miss rate": rate, "median": float(np.median(own))}
                line |= {"bar": round(bar(rate, start)), "best possible": best_possible(law, rate, start)}
                lines.append(line | {"streams": len(own), "no alarm": own.count(LONGEST)})
                print(json.dumps(lines[-1]), flush=True)
    return lines


# What others do with the same rows.


def weekly(missed: Misses, start: int) -> int | None:
    """Return the first row from a start on at which a week's misses are too many, by an exact test of each week."""
    weeks = len(missed) // WEEK
    counts = missed[: weeks * WEEK].reshape(weeks, WEEK).sum(axis=1)
    alarms = (np.flatnonzero(binom.sf(counts - 1, WEEK, BEFORE) < SIGNIFICANCE) + 1) * WEEK
    return next((int(own) for own in alarms if own > start), None)


def jumper(before: Array, scores: Array, start: int) -> int | None:
    """Return the first row from a start on at which MAPIE's martingale exceeds its limit, after reference scores."""
    from mapie.exchangeability_testing import OnlineMartingaleTest

    test = OnlineMartingaleTest(test_level=SIGNIFICANCE, random_state=0, warn=False)
    known: list[float] = []
    for i, score in enumerate(np.concatenate([before, scores]).tolist()):
        # its own formula for p-values, from scores in order: it would look at all of them again at each row
        p = (len(known) - bisect.bisect_right(known, score) + test.rng.uniform()) / (len(known) + 1)
        bisect.insort(known, score)
        if test.update_simple_jumper_martingale(p) > test.reject_threshold and i >= max(len(before) + start, 100):
            return i - len(before) + 1
    return None


def risk(missed: Misses, start: int) -> int | None:
    """Return the first row at which MAPIE's monitor of risks finds more misses than 10%, which it is told."""
    from mapie.exchangeability_testing import RiskMonitoring
    from mapie.risk_control import BinaryRisk

    misses = BinaryRisk(lambda y, p: y, lambda y, p: np.ones(len(y), bool), higher_is_better=False)
    test = RiskMonitoring(misses, test_level=SIGNIFICANCE, threshold=BEFORE, warn=False)
    test.update(missed.astype(int), missed.astype(int))
    over = np.flatnonzero(test.online_risk_lower_bound_sequence_history > BEFORE) + 1
    return next((int(own) for own in over if own > start), None)


def peers(streams: int, seed: int) -> list[dict[str, Any]]:
    """Return everybody's delays on the same rows after 1,000 calibration rows, and alarms without a change."""
    law = MissLaw(rank=(901, 1_000))
    lines = []
    for start, rate, rows in [*((s, r, 8_000) for s in (0, 2_000) for r in AFTER), (0, BEFORE, NULL_ROWS)]:
        found: dict[str, list[int | None]] = {"guardband": [], "pac": [], "weekly": [], "jumper": [], "risk": []}
        for i, own in enumerate(np.random.SeedSequence([seed, start, round(100 * rate)]).spawn(streams)):
            random = np.random.default_rng(own)
            before = errors(random, 1_000, BEFORE)
            scores = np.concatenate([errors(random, start, BEFORE), errors(random, rows, rate)])
            missed = scores > CUT
            for name, each in (("guardband", law), ("pac", MissLaw(share=1 - BEFORE))):
                stream, _ = advanced(Stream(), each, missed[:start])
                alarm = first_alarm(stream, each, missed[start:])
                found[name].append(None if alarm is None else start + alarm)
            found["weekly"].append(weekly(missed, start))
            found["jumper"].append(jumper(before, scores, start))
            if i < streams // 4:
                found["risk"].append(risk(missed, start))
        line: dict[str, Any] = {"change at": start, "miss rate": rate, "rows": rows, "streams": streams}
        for name, alarms in found.items():
            if rate == BEFORE:
                line[name] = f"{sum(own is not None for own in alarms)} of {len(alarms)} alarms"
            else:
                waits = [rows if own is None else own - start for own in alarms]
                line[name] = float(np.median(waits)) if np.median(waits) < rows else f"over {rows}"
        lines.append(line)
        print(json.dumps(line), flush=True)
    return lines


def main() -> None:
    """Print a line for each promise and change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = peers(given.streams, given.seed) if given.peers else ours(given.streams, given.seed)
    if given.output is not None:
        given.output.write_text("[\n" + ",\n".join(map(json.dumps, lines)) + "\n]\n")


if __name__ == "__main__":
    main()
