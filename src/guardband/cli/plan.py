"""``guardband plan``."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from guardband.cli.bars import bars, has_blocks
from guardband.cli.console import Speaker, table
from guardband.cli.help import DATA, PROMISE, TRAINING
from guardband.cli.options import Json, Quiet, RiskCap, tails_in
from guardband.cli.plan_crossed import crossed, tell_crossed
from guardband.cli.plan_risk import PlannedRisk, plan_risk
from guardband.cli.plan_tails import Tails, needed_by_tails, tell_tails
from guardband.words import confidence_name, level_name

SIZES = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000)
MOST_ROWS = 10**12
LEVEL = 0.9
SMALLEST = {"level": 1e-6, "delta": 1e-100, "epsilon": 1e-6}
"""Beyond these, floating point cannot tell the numbers of rows apart that a law asks for."""


@dataclass(frozen=True)
class Promise:
    """What a number of calibration rows gives by one guarantee.

    ``expected`` is coverage on average over calibration sets, ``bound`` what it is at least for yours except with
    probability delta, both None for an infinite interval; ``length`` is the width relative to the interval of exactly
    the level, for a Gaussian target whose law is known but for the cut.
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


@dataclass(frozen=True)
class GroupNeed(Need):
    """How many calibration rows one promise needs in each group, and in all with the smallest group's share."""

    in_all: int


def plan(
    rows: Annotated[
        list[int] | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            max=MOST_ROWS,
            help="Number of calibration rows that you have. Repeat the option to compare several.",
            show_default="50 to 50,000",
            rich_help_panel=DATA,
        ),
    ] = None,
    level: Annotated[
        float | None,
        typer.Option(
            metavar="LEVEL", help="Confidence level of the intervals.", show_default="0.9", rich_help_panel=PROMISE
        ),
    ] = None,
    delta: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="Probability that a promise about your calibration rows may fail.",
            rich_help_panel=PROMISE,
        ),
    ] = 0.1,
    epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="How far coverage may lie below the level. Shows how many rows that needs.",
            rich_help_panel=PROMISE,
        ),
    ] = None,
    candidates: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=1,
            max=1_000_000,
            help="For the method pav with the paper's rule: number of networks to choose from.",
            rich_help_panel=TRAINING,
        ),
    ] = 10,
    groups: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            max=1_000_000,
            help="Number of groups that each have a promise of their own. Shows how many rows each needs.",
            rich_help_panel=PROMISE,
        ),
    ] = None,
    smallest_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of all rows in the smallest group. Shows how many rows you need in all.",
            show_default="one group's equal share",
            rich_help_panel=PROMISE,
        ),
    ] = None,
    tails: Tails = None,
    risk: PlannedRisk = None,
    risk_cap: RiskCap = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Show how many calibration rows a promise needs, and what your rows can promise.

    guardband fit uses a quarter of the rows for calibration. More calibration rows make actual coverage more
    predictable, and a strict guarantee then needs less extra width. The command needs no data, and its numbers are
    exact.

    Examples:

    `guardband plan --level 0.95 --delta 0.05 --epsilon 0.01`

    `guardband plan --level 0.9 --rows 1000`

    `guardband plan --level 0.9 --groups 12 --smallest-share 0.02`

    `guardband plan --risk 5 --risk-cap 100`
    """
    speaker = Speaker(quiet, as_json)
    for (what, least), value in zip(SMALLEST.items(), (level, delta, epsilon), strict=True):
        if value is not None and 0 < value < least:
            raise ValueError(f"--{what} must be at least {least:g}, found {value:g}. Use a larger number.")
    if smallest_share is not None and not (groups and 0 < smallest_share <= 1):
        raise ValueError(
            f"--smallest-share must be above 0 and at most 1, and goes with --groups, found {smallest_share:g}. Use a "
            "number such as 0.05, or remove it."
        )
    sizes = sorted(set(rows)) if rows else list(SIZES)
    levels = (("--level", level), ("--tails", tails), ("--groups", groups), ("--epsilon", epsilon))
    given = [option for option, own in levels if own is not None]
    if given and risk is not None:
        raise ValueError(f"--risk takes the place of a level. Remove {' and '.join(given)}, or remove --risk.")
    if plan_risk(risk, risk_cap, delta, sizes, speaker):
        return
    level = LEVEL if level is None else level
    needs = needed(level, delta, epsilon, candidates)
    of_groups = needed_by_groups(level, delta, epsilon, groups, smallest_share) if groups else []
    shares = tails_in(tails)
    of_tails = needed_by_tails(*shares, delta) if shares else []
    promises = [promise for n in sizes for promise in promised(level, delta, n)]
    percent, sure = level_name(level), confidence_name(delta)
    if epsilon is not None or not rows:
        shown = table(
            "promise", "method", "calibration rows", right=(2,), title=f"Calibration rows needed for {percent}"
        )
        for need in needs:
            shown.add_row(need.promise, need.method, f"{need.rows:,}")
        speaker.tell(shown)
    tell_tails(of_tails, speaker)
    if groups:
        share = smallest_share or 1 / groups
        shown = table(
            "promise", "method", "each group", "in all",
            right=(2, 3), title=f"Calibration rows needed for {percent} in each of {groups:,} groups",
        )  # fmt: skip
        for own_need in of_groups:
            shown.add_row(own_need.promise, own_need.method, f"{own_need.rows:,}", f"{own_need.in_all:,}")
        speaker.tell(shown)
        speaker.tell(
            f"each group: calibration rows that every group needs. in all: calibration rows with which the smallest "
            f"group, {level_name(share)} of all rows, has so many with probability 99%.\n"
        )
    shown = table(
        "rows", "guarantee", "must contain", "on average", f"{sure} sure", "width",
        right=range(6), title=f"Coverage that calibration rows give for {percent}",
    )  # fmt: skip
    for own in promises:
        shown.add_row(
            f"{own.rows:,}", own.guarantee, f"{own.rank:,}", *map(_share, (own.expected, own.bound)), _length(own)
        )
    speaker.tell(shown)
    speaker.tell(
        "must contain: the intervals are just wide enough to contain so many calibration rows. on average: coverage on "
        f"average over calibration sets. {sure} sure: coverage is at least this for your calibration rows, except with "
        f"probability {delta:.10g}. width: relative to intervals of exactly {percent}, for a Gaussian target.\n"
    )
    pac = [own for own in promises if own.guarantee == "pac"]
    speaker.tell(f"Width of intervals with guarantee pac ({sure} sure of at least {percent}), by calibration rows:")
    speaker.tell(bars([(f"{own.rows:,}", own.length) for own in pac], ascii_only=not has_blocks()))
    of_tables = crossed(level, sizes)
    tell_crossed(of_tables, level, speaker)
    speaker.tell_json(
        {
            "level": level,
            "delta": delta,
            "epsilon": epsilon,
            "candidates": candidates,
            "groups": groups,
            "smallest_share": smallest_share,
            "needs": [asdict(need) for need in needs],
            "tails": shares,
            "tail_needs": of_tails,
            "group_needs": [asdict(need) for need in of_groups],
            "promises": [asdict(own) for own in promises],
            "cross_validation": [asdict(own) for own in of_tables],
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


def needed_by_groups(
    level: float, delta: float, epsilon: float | None, groups: int, smallest_share: float | None
) -> list[GroupNeed]:
    """Return how many rows each promise needs if each group has its own; all groups share delta."""
    from guardband import planning

    sure, share = confidence_name(delta), smallest_share or 1 / groups
    asked = [
        ("finite intervals, on average", "conf-nn, marginal", planning.group_rows(level, groups)),
        (f"finite intervals, {sure} sure", "conf-nn, pac", planning.group_rows(level, groups, delta)),
    ]
    if epsilon is not None:
        least = f"at least {100 * (level - epsilon):.10g}%, {sure} sure"
        asked.append((least, "conf-nn, marginal", planning.group_rows(level, groups, delta, epsilon)))
    return [GroupNeed(what, method, rows, planning.rows_in_all(rows, share)) for what, method, rows in asked]


def promised(level: float, delta: float, n: int) -> list[Promise]:
    """Return what n rows give by either guarantee."""
    from guardband.bands.levels import Levels
    from guardband.bands.ranks import marginal_rank, pac_rank

    exact = Levels.of(level).values[0]
    if not 0 < delta < 1:
        raise ValueError(f"--delta must lie strictly between 0 and 1, found {delta}. Use a number such as 0.1.")
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


def _share(value: float | None) -> str:
    return "infinite" if value is None else f"{math.floor(1e4 * value) / 100:.2f}%"


def _length(own: Promise) -> Any:
    return "infinite" if own.length is None else f"{own.length:.3f}"
