"""A choice among several candidates by their calibration rows, with a promise that allows for it."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from guardband.bands.certificate import Certificate
from guardband.bands.intervals import Intervals, intervals_of
from guardband.bands.levels import Level
from guardband.bands.promise import DELTA
from guardband.calibration.calibrated import Chosen
from guardband.calibration.cross import refusal
from guardband.data.labelled_rows import column_target
from guardband.doors.calibrate import calibrate
from guardband.doors.groups import grouped
from guardband.doors.judged import refuse_several
from guardband.doors.network import GuardedNetwork, labelled_batches
from guardband.doors.table import IntervalRegressor
from guardband.exceptions import warn
from guardband.learning.options import FitOptions
from guardband.methods.registry import method_named
from guardband.metrics import interval_score, mean_length
from guardband.training.inputs import call, map_tensors
from guardband.words import number

By = Literal["width", "score"] | Callable[[Any, Intervals], float]
MARGINAL = (
    "A promise on average over calibration sets says nothing of a candidate that these rows choose. Use "
    'guarantee="pac", or choose on training rows and call gb.calibrate.'
)


@dataclass(frozen=True)
class CandidateLine:
    """One line of ``Choice.table``.

    Parameters
    ----------
    name : str
        The candidate.
    mean_width : float
        The mean width of its intervals on the calibration rows. Infinite if it had too few rows.
    interval_score : float
        The mean interval score on the calibration rows: the lower, the better.
    rank : int
        Its place: 1 is the candidate that was chosen.
    """

    name: str
    mean_width: float
    interval_score: float
    rank: int


@dataclass(frozen=True, eq=False)
class Choice:
    """What ``gb.choose`` returns: the best of several calibrated candidates, and how all of them compare.

    Parameters
    ----------
    name : str
        The candidate that was chosen.
    candidates : dict
        All candidates by name, calibrated. The promise holds for whichever you choose.
    table : tuple of CandidateLine
        A line for each candidate, the best first.
    by : str
        What they were compared by.
    """

    name: str
    candidates: Mapping[str, Any]
    table: tuple[CandidateLine, ...]
    by: str

    @property
    def best(self) -> Any:
        """The calibrated candidate that was chosen."""
        return self.candidates[self.name]

    @property
    def certificate(self) -> Certificate:
        """What is promised of its intervals."""
        return _certificate(self.best)

    def __repr__(self) -> str:
        width = max(len("candidate"), *(len(line.name) for line in self.table))
        lines = [f"Chosen by {self.by}: {self.name}", f"rank  {'candidate':<{width}}  mean width  interval score"]
        for own in self.table:
            numbers = f"{_words(own.mean_width):>10}  {_words(own.interval_score):>14}"
            lines.append(f"{own.rank:>4}  {own.name:<{width}}  {numbers}")
        return "\n".join([*lines, "The promise holds for whichever of them you choose."])


def choose(
    candidates: Any,
    data: Any,
    *,
    methods: Sequence[Any] | None = None,
    by: By = "width",
    guarantee: str = "pac",
    delta: float | None = None,
    confidence_level: Level | Sequence[Level] | None = None,
    alpha: Level | Sequence[Level] | None = None,
    **options: Any,
) -> Choice:
    """Return the best of several candidates, calibrated on the same rows, with a promise that allows for the choice.

    Choosing by calibration rows breaks an ordinary promise: the winner is partly the luckiest. Here each of K
    candidates is calibrated with ``delta / K``. The promise then holds for all of them at once, so you may choose as
    you like. The price is a little width.

    Parameters
    ----------
    candidates : mapping or sequence of models, or one model
        The candidates, by name if it is a mapping. Each is a fitted ``IntervalRegressor(calibration_size=None)``, or
        whatever ``gb.calibrate`` takes: a torch network, a fitted model, a pair or triple of models as a tuple, or a
        function. With ``methods``, one model.
    data : (X, y), Dataset or loader
        Calibration rows with their true values. No candidate may have seen them.
    methods : sequence of str or Method, default None
        Methods to choose from, such as ``["conf-nn", "cqr", "conf-fw"]``, if there is one model.
    by : {"width", "score"} or function, default "width"
        What to compare. "width" is the mean width on the calibration rows, "score" the mean interval score. A function
        of true values and ``Intervals`` returns a number; the lowest wins. Infinite intervals come last.
    guarantee : {"pac"}, default "pac"
        The guarantee. "marginal" is refused: it says nothing of a candidate that its calibration rows chose.
    delta : float, default None
        How often the promise may fail over possible calibration sets, whichever candidate is chosen. None means 0.1.
        Lower it if you need more confidence.
    confidence_level : float or sequence of float, default None
        The share of new rows that should fall inside their intervals. None means 0.9. An ``IntervalRegressor`` brings
        its own.
    alpha : float or sequence of float, default None
        One minus ``confidence_level``. Give one of the two.
    **options : keywords
        Further arguments of ``gb.calibrate``, the same for all candidates. Not for an ``IntervalRegressor``.

    Returns
    -------
    Choice
        ``.best`` is the calibrated model, ``.table`` compares all candidates, ``.certificate`` is the promise.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((2, 400, 1))
    >>> models = {"mean": lambda X: 0 * X[:, 0], "linear": LinearRegression().fit(X[:200], y[:200, 0] + X[:200, 0])}
    >>> choice = choose(models, (X[200:], y[200:, 0] + X[200:, 0]))
    >>> choice.name, choice.certificate.promise.candidates
    ('linear', 2)
    """
    if guarantee != "pac":
        raise ValueError(MARGINAL if guarantee == "marginal" else f'guarantee must be "pac", found {guarantee!r}.')
    if by not in ("width", "score") and not callable(by):
        raise ValueError(f'by must be "width", "score" or a function, found {by!r}.')
    named = _named(candidates, methods)
    chosen = Chosen(len(named), DELTA if delta is None else float(delta))
    if not 0 < chosen.delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, found {delta}. Use a number such as 0.1.")
    asked = options | {"confidence_level": confidence_level, "alpha": alpha}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibrated = {name: _calibrated(own, data, chosen, asked | extra) for name, (own, extra) in named.items()}
        judged = [_judged(name, own, data, by, asked) for name, own in calibrated.items()]
    _say_once(caught)
    levels = {_certificate(own).confidence_level for own in calibrated.values()}
    if len(levels) > 1:
        raise ValueError(f"All candidates must have the same confidence level, found {sorted(map(str, levels))}.")
    judged.sort(key=lambda own: (not math.isfinite(own[0]), own[0]))  # stable: of equal ones the first
    table = tuple(replace(line, rank=rank) for rank, (_, line) in enumerate(judged, start=1))
    words = by if isinstance(by, str) else getattr(by, "__name__", "a function")
    return Choice(table[0].name, calibrated, table, words)


def _named(candidates: Any, methods: Sequence[Any] | None) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the candidates by name, each with arguments of its own."""
    if methods is not None:
        if isinstance(methods, str) or isinstance(candidates, Mapping | list):
            raise ValueError("methods must be a sequence, and goes with one model. Pass one model, or no methods.")
        own = {method_named(method).name: (candidates, {"method": method}) for method in methods}
        count = len(methods)
    else:
        if not isinstance(candidates, Mapping | Sequence) or isinstance(candidates, str):
            raise TypeError(
                "candidates must be a mapping from names to models, or a sequence of models, found "
                f"{type(candidates).__name__}. Pass methods=[...] to choose among methods for one model."
            )
        pairs = candidates.items() if isinstance(candidates, Mapping) else enumerate(candidates, start=1)
        own = {str(name) if isinstance(candidates, Mapping) else f"candidate {name}": (one, {}) for name, one in pairs}
        count = len(candidates)
    if len(own) < max(count, 1):
        raise ValueError("There must be at least one candidate, and each must have a name of its own.")
    return own


def _calibrated(candidate: Any, data: Any, chosen: Chosen, arguments: dict[str, Any]) -> Any:
    """Return a candidate calibrated with its share of delta, and a certificate that says so."""
    if isinstance(candidate, IntervalRegressor):
        return _calibrated_table(candidate, data, chosen, arguments)
    guarded = calibrate(candidate, data, guarantee="pac", delta=chosen.of_each, **arguments)
    if isinstance(guarded, GuardedNetwork):
        certificate = guarded.certificate
        promise = certificate.promise.chosen_among(chosen.candidates, chosen.delta)
        guarded.certificate = replace(certificate, promise=promise)
    else:
        guarded.calibration_ = guarded.calibration_.chosen_by(chosen)
    return guarded


def _calibrated_table(
    model: IntervalRegressor, data: Any, chosen: Chosen, arguments: Mapping[str, Any]
) -> IntervalRegressor:
    """Return a copy of a fitted model, calibrated; what it promises follows from other arguments than its own."""
    given = sorted(name for name, value in arguments.items() if value is not None)
    if given:
        raise ValueError(f"{given[0]} is fixed when an IntervalRegressor is fitted. Set it there, and remove it here.")
    check_is_fitted(model, "fitted_")
    refuse_several(len(model.fitted_.rule.target_names), "gb.choose")
    if model.calibration != "split":
        raise ValueError(refusal(model.calibration, "choose, whose candidates are calibrated on the same rows"))
    if model.fitted_.calibrated is not None:
        raise ValueError(
            "This IntervalRegressor is calibrated already. Fit it with calibration_size=None: all candidates must be "
            "calibrated on the same rows."
        )
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise TypeError(f"data must be a pair (X, y) of rows and their true values, found {type(data).__name__}.")
    own: IntervalRegressor = copy.copy(model)
    own.set_params(guarantee="pac", delta=chosen.of_each)
    fitted, params = model.fitted_, own.get_params(deep=False)
    options = FitOptions.of(params)
    rule = grouped(method_named(fitted.rule.method).rule(options.request), fitted.grouping)
    own.fitted_ = replace(fitted, rule=rule, params=params)
    own.calibrate(*data)
    calibrated = own.calibration_.chosen_by(chosen)
    own.fitted_ = replace(own.fitted_, calibrated=calibrated)
    return own


def _judged(name: str, model: Any, data: Any, by: By, arguments: Mapping[str, Any]) -> tuple[float, CandidateLine]:
    """Return what a candidate is compared by, and its line; with several levels, means over them."""
    bands, y = _on_rows(model, data, arguments)
    known = ~np.isnan(y)
    bands, y = bands if known.all() else _rows(bands, known), y[known]
    width, score = (float(np.mean(measure(y, bands))) for measure in (mean_length, interval_score))
    value = float(by(y, bands)) if callable(by) else {"width": width, "score": score}[by]
    return (value if not math.isnan(value) else math.inf), CandidateLine(name, width, score, 0)


def _on_rows(model: Any, data: Any, arguments: Mapping[str, Any]) -> tuple[Intervals, np.ndarray[Any, Any]]:
    """Return the intervals of the calibration rows, and their true values."""
    if isinstance(model, GuardedNetwork):
        parts, outcomes = [], []
        with torch.no_grad():
            for x, y in labelled_batches(data, arguments.get("target", "y"), arguments.get("batch_size", 1024)):
                parts.append(call(model, map_tensors(x, model.on_its_device)).double().cpu())
                outcomes.append(np.asarray(y.double().cpu()).reshape(-1))
        level = model.certificate.confidence_level
        return intervals_of(torch.cat(parts), level, model.certificate), np.concatenate(outcomes)
    X, y = data
    bands = model.predict_interval(X)
    return bands, column_target(y, len(bands.point))


def _rows(bands: Intervals, which: Any) -> Intervals:
    return Intervals(
        bands.lower[which], bands.point[which], bands.upper[which], bands.confidence_level, bands.certificate
    )


def _certificate(model: Any) -> Certificate:
    found: Certificate = model.certificate_ if isinstance(model, IntervalRegressor) else model.certificate
    return found


def _say_once(caught: list[warnings.WarningMessage]) -> None:
    """Repeat what was said of several candidates in the same words once."""
    for own in {str(own.message): own for own in caught}.values():
        warn(str(own.message), own.category)


def _words(value: float) -> str:
    return number(value) if math.isfinite(value) else "infinite"
