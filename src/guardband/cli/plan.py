"""``guardband plan``."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from guardband.cli.console import Speaker, table
from guardband.cli.options import Json, Quiet
from guardband.words import confidence_name, level_name

SIZES = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000)
MOST_ROWS = 10**12
SMALLEST = {"level": 1e-6, "delta": 1e-100, "epsilon": 1e-6}
"""Beyond these, floating point cannot tell the numbers of rows apart that a law asks for."""
BAR = 30
FULL, EIGHTHS = "█", "▏▎▍▌▋▊▉"


@dataclass(frozen=True)
class Promise:
    """What a number of calibration rows gives by one guarantee.

    ``expected`` is coverage on average over calibrations, ``bound`` what it is at least for this one except with
    probability delta, both None for the whole line; ``length`` is relative to the interval of exactly the level, for a
    Gaussian response whose law is known but for the cut.
    """

    guarantee: str
    rows: int
    rank: int
    expected: float | None
    bound: float | None
    length: float | None


@dataclass(frozen=True)
class Need:
    """How many calibration rows one promise needs."""

    promise: str
    method: str
    rows: int


def plan(
    level: Annotated[float, typer.Option(help="The confidence level.")] = 0.9,
    delta: Annotated[float, typer.Option(help="The chance that a promise given the data may fail.")] = 0.1,
    epsilon: Annotated[
        float | None, typer.Option(help="How far below the level coverage given the data may lie.")
    ] = None,
    rows: Annotated[
        list[int] | None, typer.Option(min=1, max=MOST_ROWS, help="Calibration rows that you have; may be repeated.")
    ] = None,
    candidates: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Networks that pav's rule of the paper picks from.")
    ] = 10,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say how many calibration rows a promise needs, and what a number of rows can promise.

    Calibration rows are those that fit holds out, a quarter of what it gets. More of them make coverage given the data
    less random, so that a promise about it costs less length. No data are needed: the laws are exact.

    Examples: `guardband plan --level 0.95 --delta 0.05 --epsilon 0.01`

    `guardband plan --level 0.9 --rows 1000`
    """
    speaker = Speaker(quiet, as_json)
    for (what, least), value in zip(SMALLEST.items(), (level, delta, epsilon), strict=True):
        if value is not None and 0 < value < least:
            raise ValueError(f"--{what} must be at least {least:g}, found {value:g}.")
    needs = needed(level, delta, epsilon, candidates)
    sizes = sorted(set(rows)) if rows else list(SIZES)
    promises = [promise for n in sizes for promise in promised(level, delta, n)]
    percent, sure = level_name(level), confidence_name(delta)
    if epsilon is not None or not rows:
        shown = table("promise", "method", "calibration rows", right=(2,), title=f"Rows needed for {percent}")
        for need in needs:
            shown.add_row(need.promise, need.method, f"{need.rows:,}")
        speaker.tell(shown)
    shown = table(
        "rows", "guarantee", "rank", "expected", f"at least, {sure} sure", "length",
        right=range(6), title=f"What calibration rows give for {percent}",
    )  # fmt: skip
    for own in promises:
        shown.add_row(
            f"{own.rows:,}", own.guarantee, f"{own.rank:,}", *map(_share, (own.expected, own.bound)), _length(own)
        )
    speaker.tell(shown)
    speaker.tell(
        "expected: coverage on average over calibrations. at least: that of the calibration that you get, except with "
        f"probability {delta:.10g}. length: of the interval if the response is Gaussian, 1 for exactly {percent}.\n"
    )
    pac = [own for own in promises if own.guarantee == "pac"]
    speaker.tell(f"Length of the pac interval ({sure} sure of at least {percent}) by calibration rows:")
    speaker.tell(bars([(f"{own.rows:,}", own.length) for own in pac], ascii_only=not _has_blocks()))
    speaker.tell_json(
        {
            "level": level,
            "delta": delta,
            "epsilon": epsilon,
            "candidates": candidates,
            "needs": [asdict(need) for need in needs],
            "promises": [asdict(own) for own in promises],
        }
    )


def needed(level: float, delta: float, epsilon: float | None, candidates: int) -> list[Need]:
    """Return how many rows each promise needs."""
    from guardband import planning

    percent, sure = level_name(level), confidence_name(delta)
    needs = [
        Need(f"a finite interval, {percent} on average", "conf-nn, marginal", planning.marginal_rows(level)),
        Need(f"a finite interval, {percent} with {sure} confidence", "conf-nn, pac", planning.pac_rows(level, delta)),
    ]
    if epsilon is None:
        return needs
    least = f"at least {100 * (level - epsilon):.10g}% with {sure} confidence"
    needs += [
        Need(least, "conf-nn, marginal", planning.conformal_rows(level, epsilon, delta)),
        Need(least, "pav", planning.pav_rows(level, epsilon, delta)),
        Need(
            least, f"pav, the paper's rule, {candidates} networks", planning.pav_rows(level, epsilon, delta, candidates)
        ),
        Need(least, "the same by the paper's Theorem 2", planning.theorem2_rows(epsilon, delta, candidates)),
    ]
    if epsilon < 1 - level:
        average = f"{percent} on average, by asking for {100 * (level + epsilon):.10g}%"
        rule = f"pav, the paper's rule, {candidates} networks"
        needs += [
            Need(average, rule, planning.average_rows(level, epsilon, candidates)),
            Need(average, "the same by the paper's corollary", planning.corollary_rows(level, epsilon, candidates)),
        ]
    return needs


def promised(level: float, delta: float, n: int) -> list[Promise]:
    """Return what n rows give by either guarantee."""
    from guardband.bands.levels import Levels
    from guardband.bands.ranks import marginal_rank, pac_rank

    exact = Levels.of(level).values[0]
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, found {delta}.")
    ranks = {"marginal": marginal_rank(exact, n), "pac": pac_rank(exact, n, delta)}
    return [_promise(name, level, delta, n, rank) for name, rank in ranks.items()]


def _promise(name: str, level: float, delta: float, n: int, rank: int) -> Promise:
    from scipy.special import ndtri

    from guardband.bands.ranks import coverage_bound

    if rank > n:
        return Promise(name, n, rank, None, None, None)
    expected = rank / (n + 1)
    length = float(ndtri((1 + expected) / 2) / ndtri((1 + level) / 2))
    return Promise(name, n, rank, expected, coverage_bound(delta, rank, n), length)


def bars(rows: Sequence[tuple[str, float | None]], ascii_only: bool) -> str:
    """Return a bar for what each number exceeds 1 by, one line each; None is endless."""
    longest = max((value - 1 for _, value in rows if value is not None), default=0.0) or 1.0
    width = max(len(label) for label, _ in rows)
    lines = []
    for label, value in rows:
        if value is None:
            lines.append(f"{label:>{width}}  the whole line: too few rows")
        else:
            lines.append(f"{label:>{width}}  {value:.3f} {_bar(max(0.0, value - 1) / longest, ascii_only)}")
    return "\n".join(lines)


def _bar(share: float, ascii_only: bool) -> str:
    if ascii_only:
        return "#" * round(BAR * share)
    whole, part = divmod(round(8 * BAR * share), 8)
    return FULL * whole + (EIGHTHS[part - 1] if part else "")


def _has_blocks() -> bool:
    encoding = (sys.stdout.encoding or "ascii").lower()
    return encoding.replace("-", "") == "utf8"


def _share(value: float | None) -> str:
    return "whole line" if value is None else f"{math.floor(1e4 * value) / 100:.2f}%"


def _length(own: Promise) -> Any:
    return "infinite" if own.length is None else f"{own.length:.3f}"
