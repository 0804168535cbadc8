"""What to do: the next steps that follow from a verdict and its figures. They are decided here alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from guardband.audit.verdict import Reason, VerdictKind
from guardband.words import about, level_name, listed, percent

StepKind = Literal["use", "stop", "recalibrate", "collect", "look", "check", "change"]
MOST_GROUPS = 3


@dataclass(frozen=True)
class LowGroup:
    """A group with fewer rows inside than expected; ``title`` is what to look at."""

    title: str
    covered: int
    n: int
    low: int


@dataclass(frozen=True)
class PromisedGroup:
    """A group with a promise of its own: its calibration rows, those needed for finite intervals, and how it fares."""

    name: str
    rows: int
    needed: int | None = None
    infinite: bool = False
    broken: bool = False


@dataclass(frozen=True)
class Findings:
    """What the steps follow from.

    ``calibration_rows`` counts the rows that calibrated, ``rows_needed`` is the fewest for finite intervals (None where
    that is not known), ``more_rows`` how many further test rows would tell, ``highest_level`` the
    highest level with finite intervals (None where that is not known), ``above`` whether more rows than expected
    fell inside, ``groups`` how many there are, low or not, and ``drifted`` names the columns that have changed.
    ``promised_groups`` are those that have a promise of their own, the worst first.
    ``one_width`` is whether all intervals have one width, ``python_only`` whether no command can load the model,
    ``is_risk`` whether the promise is about a mean loss.
    """

    status: VerdictKind | Literal["unchecked"]
    level: float
    calibration_rows: int
    reason: Reason = "count"
    infinite: bool = False
    rows_needed: int | None = None
    more_rows: int | None = None
    highest_level: float | None = None
    above: bool = False
    low_groups: tuple[LowGroup, ...] = ()
    groups: int = 0
    drifted: tuple[str, ...] = ()
    one_width: bool = False
    python_only: bool = False
    is_risk: bool = False
    promised_groups: tuple[PromisedGroup, ...] = ()


@dataclass(frozen=True)
class Step:
    """One step: what kind it is, what to do in a few words, and why or how."""

    kind: StepKind
    title: str
    words: str


def steps(found: Findings) -> tuple[Step, ...]:
    """Return what to do, the most pressing first."""
    if found.infinite:
        return _for_finite_intervals(found)
    main = {
        "consistent": _use,
        "broken": _recalibrate,
        "too few rows": _collect,
        "cannot judge": _unable,
        "unchecked": _check,
    }[found.status](found)
    if found.status in ("cannot judge", "unchecked"):
        return main + _for_small_groups(found)
    everywhere = found.status == "broken" and 2 * len(found.low_groups) >= found.groups
    look = (() if everywhere else _look_at_groups(found)) + _look_at_columns(found)
    return main + _for_small_groups(found) + _adapt(found) + look


def checked_with(python_only: bool) -> str:
    """Return what checks a model again: Python alone can load a model of another library."""
    return "model.audit(X, y) in Python" if python_only else "guardband audit"


def _adapt(found: Findings) -> tuple[Step, ...]:
    if not found.one_width:
        return ()
    own = "Pass residuals= or quantile models to gb.calibrate to get intervals that adapt to each row."
    other = "Use method conf-nn, or calibrate quantile predictions, to get intervals that adapt to each row."
    return (Step("change", "All intervals have the same width", own if found.python_only else other),)


def step_if_too_few(reason: Reason, more_rows: int | None) -> tuple[StepKind, str]:
    """Return the step that rows need which are too few to tell, and its title: more test rows may not help."""
    if reason == "few calibration rows":
        return "recalibrate", "Recalibrate on more rows"
    return "collect", f"Collect {'many' if more_rows is None else f'about {about(more_rows)}'} more test rows"


def _use(found: Findings) -> tuple[Step, ...]:
    use = Step("use", "Use the intervals", "Check them again when you know more true values, for example every month.")
    if not found.above:
        return (use,)
    narrower = "More rows than expected fell inside. New calibration rows would make the intervals narrower."
    return use, Step("recalibrate", "Recalibrate if you want narrower intervals", narrower)


def _recalibrate(found: Findings) -> tuple[Step, ...]:
    name, broken = level_name(found.level), list(dict.fromkeys(own.name for own in found.promised_groups if own.broken))
    stop = Step("stop", "Do not rely on these intervals", f"New rows fall inside less often than {name} of the time.")
    if found.is_risk:
        stop = replace(stop, words="The mean loss of new rows is larger than promised.")
    if broken:
        words = (
            f"New rows of {'this group' if len(broken) == 1 else 'these groups'} fall inside less often than promised."
        )
        stop = Step("stop", f"Do not rely on the intervals of rows with {listed(broken, MOST_GROUPS)}", words)
    words = "Use recent rows that look like those you will predict. "
    words += f"{'gb.calibrate in Python' if found.python_only else 'guardband audit --recalibrate'} does this."
    return stop, Step("recalibrate", "Recalibrate", words)


def _collect(found: Findings) -> tuple[Step, ...]:
    careful = Step("check", "Until then, treat the intervals as unchecked", "These rows do not settle the question.")
    kind, title = step_if_too_few(found.reason, found.more_rows)
    if kind == "recalibrate":
        words = f"The model has {found.calibration_rows:,} calibration rows. More test rows would not help."
        return Step(kind, title, words), careful
    known = f"rows whose true values you know. Then check again with {checked_with(found.python_only)}."
    words = f"More than 100,000 are needed: {known}" if found.more_rows is None else f"Use {known}"
    return Step(kind, title, words), careful


def _unable(found: Findings) -> tuple[Step, ...]:
    if found.reason == "infinite":  # at another level than the first
        return _for_finite_intervals(found)
    if found.reason == "used rows":
        words = "These rows trained or calibrated the model, which makes it look better than it is."
        return (Step("check", "Check with rows that are new to the model", words),)
    if found.reason == "no promise":
        words = 'This method has no guarantee. Use method="conf-nn" or "pav" to get one.'
        return (Step("change", "Choose a method with a guarantee", words),)
    if found.reason == "no law":
        words = "The answer above says why this promise cannot be tested, and how to get one that can."
        return (Step("change", "Look at the share inside, or ask for a promise that can be tested", words),)
    words = "The answer above says how to tell guardband. Then check again with new rows."
    return (Step("change", "Fit the model again for rows that depend on each other", words),)


def _check(found: Findings) -> tuple[Step, ...]:
    asked = "on rows that are new to the model and whose true values you know."
    words = f"Run {checked_with(found.python_only)} {asked}"
    if found.reason == "no law":
        return (Step("check", "Look at the coverage of new rows", f"{words} It cannot judge this promise."),)
    return (Step("check", "Check the promise on new rows", words),)


def _for_finite_intervals(found: Findings) -> tuple[Step, ...]:
    name, have, needed = level_name(found.level), found.calibration_rows, found.rows_needed
    what = "Finite intervals with this risk" if found.is_risk else f"{name} intervals"
    if needed is None:
        return (Step("collect", "Collect more calibration rows", f"{have:,} are too few for {name} intervals."),)
    if needed <= have:
        return (Step("change", "Train again, or choose another method", "The model's own intervals are infinite."),)
    more = needed - have
    rows = "row" if more == 1 else "rows"
    collect = Step(
        "collect",
        f"Collect {more:,} more calibration {rows}",
        f"The model has {have:,}. {what} need at least {needed:,}. Then recalibrate.",
    )
    if found.highest_level is None or found.highest_level >= found.level:
        return (collect,)
    words = f"With {have:,} calibration rows, intervals are finite up to {level_name(found.highest_level)}."
    return collect, Step("change", "Or accept a lower confidence level", words)


def _for_small_groups(found: Findings) -> tuple[Step, ...]:
    """Return what to do about groups with too few calibration rows for finite intervals."""
    small: dict[str, tuple[int, int]] = {}  # at several levels or sides, as many rows as the most demanding needs
    for own in found.promised_groups:
        if own.infinite and own.needed is not None and own.needed > own.rows:
            small[own.name] = own.rows, max(own.needed, small.get(own.name, (0, 0))[1])
    if not small:
        return ()
    shown = [_collect_for(name, *counts) for name, counts in list(small.items())[:MOST_GROUPS]]
    more = len(small) - MOST_GROUPS
    if more > 0:
        groups = "group has" if more == 1 else "groups have"
        words = "The section on the promise for each group marks them."
        shown.append(Step("collect", f"{more:,} more {groups} too few calibration rows", words))
    how = 'with small_groups="pool"' if found.python_only else "with --small-groups pool"
    pool = Step("change", "Or pool small groups", f"Make the model again {how}. They then share one promise.")
    return (*shown, pool)


def _collect_for(group: str, rows: int, needed: int) -> Step:
    lack = f"{needed - rows:,} more calibration {'row' if needed - rows == 1 else 'rows'}"
    words = f"The group has {rows:,} and needs at least {needed:,}. Until then its intervals are infinite."
    return Step("collect", f"Collect {lack} with {group}", words)


def _look_at_groups(found: Findings) -> tuple[Step, ...]:
    shown = tuple(
        Step(
            "look",
            f"Look at {group.title}",
            f"Only {percent(group.covered / group.n)} of these {group.n:,} rows fell inside. "
            f"At least {percent(group.low / group.n)} were expected.",
        )
        for group in found.low_groups[:MOST_GROUPS]
    )
    more = len(found.low_groups) - MOST_GROUPS
    if more <= 0:
        return shown
    groups = "group has" if more == 1 else "groups have"
    return (*shown, Step("look", f"{more:,} more {groups} low coverage", "The section on groups marks them."))


def _look_at_columns(found: Findings) -> tuple[Step, ...]:
    if not found.drifted:
        return ()
    first, more = found.drifted[0], len(found.drifted) - 1
    others = "" if not more else f" and {more:,} more"
    why = "They differ" if more else "It differs"
    words = f"{why} from the training rows by more than chance. Recalibrate if the change will last."
    return (Step("look", f"Look at what changed: {first}{others}", words),)
