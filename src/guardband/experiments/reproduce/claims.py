"""The paper's claims, each with a verdict by the numbers of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.stats import beta, betabinom, binom

from guardband.bands.levels import Levels
from guardband.bands.ranks import marginal_rank, selection_rank
from guardband.experiments.reproduce.cells import REAL
from guardband.experiments.reproduce.compare import CLEAR, METHODS
from guardband.experiments.reproduce.setting import TAUS

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["holds", "holds in part", "does not hold", "not judged", "not run"]
DISAGREES = ("holds in part", "does not hold")
Tables = dict[str, "pd.DataFrame"]

LEVEL = Levels.of(0.9).values[0]
DELTA = 0.1
BAND = 0.999
NEAR = 1.05
"""Lengths that differ by less than this factor are alike."""
OURS = ("conf-nn", "pav")
FEWEST = 5
"""Repetitions that a standard error needs to decide anything."""
SIMULATED = ("tuned", "plain")
"""How artificial data are judged: with a weight decay chosen on the training rows, and with none, as in the paper."""
JUDGED = (
    *(("simulation", setting) for setting in SIMULATED),
    *((experiment, "paper") for experiment in ("bike", "boneage", "house", "traffic")),
)
"""The experiments and settings that a claim is judged on."""
SMALL = 1.5
"""Where small values of beta'x end; the paper's curves go from 0.9 to 4.1."""
CLOSE = 0.01
"""Coverage that is less far from the level than this is close to it."""
PASSES = {"simulation": (80, 100), "house": (80, 200)}
"""The passes over the training rows that the paper reports, where it does."""


@dataclass(frozen=True)
class Claim:
    """What the paper says, whether our numbers bear it out, which numbers these are, and why we disagree if we do."""

    text: str
    verdict: Verdict
    words: tuple[str, ...]
    why: str = ""


def judge(tables: Tables) -> list[Claim]:
    """Return a verdict for each claim."""
    judged = [(claim(tables), WHY.get(claim, "")) for claim in CLAIMS]
    return [replace(claim, why=why) if claim.verdict in DISAGREES else claim for claim, why in judged]


def count_band(repetitions: int, n_test: int, k: int, n: int, inside: float = BAND) -> tuple[int, int]:
    """Return the central band of the number of covered rows over independent repetitions of split conformal.

    Each count is BetaBinomial(n_test; k, n + 1 - k), exactly, for independent random splits as for fresh rows; the
    law of their sum is the convolution.
    """
    one = betabinom.pmf(np.arange(n_test + 1), n_test, k, n + 1 - k)
    size = repetitions * n_test + 1
    cumulative = np.cumsum(np.clip(np.fft.irfft(np.fft.rfft(one, size) ** repetitions, size), 0, None))
    low, high = np.searchsorted(cumulative, [(1 - inside) / 2, (1 + inside) / 2])
    return int(low), int(high)


def _of(frame: pd.DataFrame, experiment: str, setting: str) -> pd.DataFrame:
    """Return the rows of an experiment in a setting."""
    return frame[(frame["experiment"] == experiment) & (frame["setting"] == setting)] if len(frame) else frame


Look = Callable[[str, "pd.DataFrame"], tuple[bool | None, str]]
"""Says of results, called by the name given, whether a claim holds and by which numbers."""


def _each(tables: Tables, look: Look, text: str, further: Sequence[str] = ()) -> Claim:
    """Return a claim that is looked at in each experiment apart; None is for what too few repetitions cannot decide.

    ``further`` are words that follow the verdict's own.
    """
    found = [(f"{name} ({setting})", _of(tables["results"], name, setting)) for name, setting in JUDGED]
    seen = [look(name, own) for name, own in found if len(own)]
    words = (*(words for _, words in seen), *further) if seen else ()
    return Claim(text, _verdict([held for held, _ in seen]), words)


def _verdict(held: Sequence[bool | None]) -> Verdict:
    judged = [one for one in held if one is not None]
    if not judged:
        return "not judged" if held else "not run"
    return "holds" if all(judged) else "holds in part" if any(judged) else "does not hold"


def _enough(own: pd.DataFrame, held: bool) -> bool | None:
    """Return the verdict, None if there are too few repetitions for one."""
    return held if own["repetition"].nunique() >= FEWEST else None


def _conf_nn(tables: Tables) -> Claim:
    def look(name: str, own: pd.DataFrame) -> tuple[bool | None, str]:
        rows = own[own["method"] == "conf-nn"]
        n2, n3, repetitions = int(rows["n_calibration"].iloc[0]), int(rows["n_test"].iloc[0]), len(rows)
        low, high = count_band(repetitions, n3, marginal_rank(LEVEL, n2), n2)
        covered, total = int(rows["covered"].sum()), repetitions * n3
        inside = low <= covered <= high
        where = "inside" if inside else "outside"
        words = (
            f"{name}: {covered:,} of {total:,} covered ({covered / total:.4f}), {where} the exact {BAND:.1%} band "
            f"[{low:,}, {high:,}]."
        )
        return inside, words

    return _each(tables, look, "conf-nn covers at the nominal level on all data sets.")


def _pav(rule: str) -> Callable[[Tables], Claim]:
    method, among = ("pav", len(TAUS)) if rule == "paper" else ("pav-fixed-sequence", 1)

    def claim(tables: Tables) -> Claim:
        def look(name: str, own: pd.DataFrame) -> tuple[bool | None, str]:
            rows = own[own["method"] == method]
            n2, n3, repetitions = int(rows["n_calibration"].iloc[0]), int(rows["n_test"].iloc[0]), len(rows)
            k = selection_rank(LEVEL, n2)
            bound = float(beta.ppf(DELTA / among, k, n2 + 1 - k))
            failures = int((binom.cdf(rows["covered"], n3, bound) <= 0.01).sum())
            allowed = int(binom.isf(0.001, repetitions, DELTA + 0.01))
            words = (
                f"{name}: mean coverage {rows['coverage'].mean():.4f}; clearly below the certified {bound:.4f} in "
                f"{failures} of {repetitions} repetitions, allowed {allowed}."
            )
            return failures <= allowed if allowed < repetitions else None, words

        return _each(tables, look, f"pav keeps what it certifies on all data sets (rule {rule}).")

    return claim


def _qreg_un(tables: Tables) -> Claim:
    def look(name: str, own: pd.DataFrame) -> tuple[bool | None, str]:
        mean, error = _mean(own[own["method"] == "qreg-un"]["coverage"])
        words = f"{name}: coverage {mean:.4f} (standard error {error:.4f})."
        long = _of(tables["results"], own["experiment"].iloc[0], "100 passes")
        if len(long):
            words += _after_100(own, long)
        return _enough(own, mean + CLEAR * error < 0.9), words

    return _each(tables, look, "qreg-un, the network without calibration, covers too little.")


def _after_100(own: pd.DataFrame, long: pd.DataFrame) -> str:
    """Say what 100 passes do to qreg-un, whatever cross-validation chose."""
    change, error = _mean(_paired(long, "qreg-un", "coverage") - _paired(own, "qreg-un", "coverage"))
    fitted = "100 passes over-fit" if change + CLEAR * error < 0 else "100 passes do not clearly over-fit"
    return f" {fitted}: they change coverage by {change:+.4f} ({error:.4f})."


def _not_adaptive(tables: Tables) -> Claim:
    text = "conf-fw and high-q do not adapt: they cover too much where the spread is small, too little where large."
    held: list[bool | None] = []
    words = []
    for setting in SIMULATED:
        own = _of(tables["curves"], "simulation", setting)
        for method in ("conf-fw", "high-q", "conf-nn") if len(own) else ():
            rows = own[own["method"] == method]
            low, low_error = _along(rows, "coverage", 1.1, 1.5)
            high, high_error = _along(rows, "coverage", 3.1, 3.5)
            near = ((low, low_error, 1.3), (high, high_error, 3.3))
            listed = ", ".join(f"{mean:.3f} ({error:.3f}) for beta'x near {x}" for mean, error, x in near)
            words.append(f"{method} ({setting}): coverage {listed}.")
            if method != "conf-nn":
                held.append(_enough(rows, low - CLEAR * low_error > 0.9 > high + CLEAR * high_error))
    return Claim(text, _verdict(held), tuple(words))


def _wide_for_small(tables: Tables) -> Claim:
    text = (
        "conf-nn and pav are too wide for small beta'x: longer than the oracle's intervals, and covering too much. "
        "Elsewhere coverage is close to nominal (here: within 0.01)."
    )
    held: list[bool | None] = []
    words = []
    for setting in SIMULATED:
        own = _of(tables["curves"], "simulation", setting)
        for method in (*OURS, "neg-ll", "bayes") if len(own) else ():
            rows = own[own["method"] == method]
            small = [_along(rows, measure, -math.inf, SMALL) for measure in ("relative_length", "coverage")]
            rest = [_along(rows, measure, SMALL, math.inf) for measure in ("relative_length", "coverage")]
            parts = ((small, f"below {SMALL}"), (rest, f"above {SMALL}"))
            listed = "; ".join(
                f"for beta'x {where} length {length:.3f} ({length_error:.3f}) times the oracle's, coverage "
                f"{coverage:.3f} ({coverage_error:.3f})"
                for ((length, length_error), (coverage, coverage_error)), where in parts
            )
            words.append(f"{method} ({setting}): {listed}.")
            if method in OURS:
                clear = [mean - CLEAR * error for mean, error in small]
                held += [_enough(rows, clear[0] > 1), _enough(rows, clear[1] > 0.9)]
                held += [_enough(rows, abs(rest[1][0] - 0.9) < CLOSE)]
    return Claim(text, _verdict(held), tuple(words))


def _along(rows: pd.DataFrame, measure: str, low: float, high: float) -> tuple[float, float]:
    """Return a measure over the rows with beta'x between two values: mean over repetitions and standard error."""
    some = rows[rows["x"].between(low, high)]
    total = (some[measure] * some["rows"]).groupby(some["repetition"]).sum()
    return _mean(total / some["rows"].groupby(some["repetition"]).sum())


def _conservative(tables: Tables) -> Claim:
    def look(name: str, own: pd.DataFrame) -> tuple[bool | None, str]:
        mean, error = _mean(_paired(own, "pav", "coverage") - _paired(own, "conf-nn", "coverage"))
        words = f"{name}: pav covers {mean:+.4f} more than conf-nn (standard error {error:.4f})."
        return _enough(own, mean > CLEAR * error), words

    return _each(tables, look, "pav is more conservative than conf-nn.")


def _shortest(tables: Tables) -> Claim:
    def look(name: str, own: pd.DataFrame) -> tuple[bool | None, str]:
        means = {}
        for method in METHODS:
            coverage, error = _mean(own[own["method"] == method]["coverage"])
            if not coverage + CLEAR * error < 0.9:
                means[method] = float(own[own["method"] == method]["length"].mean())
        if not means:
            return None, f"{name}: every method clearly covers too little."
        order = sorted(means, key=lambda method: means[method])
        shortest = means[order[0]]
        ours = [
            f"{m} {means[m] / shortest:.3f} times the shortest, place {order.index(m) + 1}" for m in OURS if m in means
        ]
        held = all(m in means and means[m] <= NEAR * shortest for m in OURS)
        words = f"{name}: of {len(order)} methods that do not clearly cover too little ({', '.join(order)}): "
        return _enough(own, held), words + f"{'; '.join(ours)}."

    text = "conf-nn and pav are always among the shortest valid methods (here: no valid one is shorter by over 5%)."
    return _each(tables, look, text, _other_settings(tables))


def _other_settings(tables: Tables) -> list[str]:
    """Say how long conf-nn is beside conf-fw in the settings that decide no claim; each method by the same recipe."""
    results = tables["results"]
    words = []
    for (experiment, setting), own in results.groupby(["experiment", "setting"]) if len(results) else ():
        if experiment not in REAL or setting == "paper" or setting.startswith("relu"):
            continue
        name, length = f"{experiment} ({setting})", own[own["method"] == "conf-nn"]["length"].mean()
        if "conf-fw" in set(own["method"]):
            ratio, error = _mean(_paired(own, "conf-nn", "length") / _paired(own, "conf-fw", "length"))
            words.append(f"{name}: conf-nn is {ratio:.3f} ({error:.3f}) times as long as conf-fw.")
        else:
            rival = _of(results, experiment, "paper").query("method == 'conf-fw'")["length"].mean()
            words.append(
                f"{name}: conf-nn's length is {length:.1f}. conf-fw was not trained in this setting; it has "
                f"{rival:.1f} in the setting paper. That compares recipes, not methods."
            )
    return words


def _accuracy(tables: Tables) -> Claim:
    def look(name: str, own: pd.DataFrame) -> tuple[bool | None, str]:
        ratios = {m: _mean(_paired(own, m, "mae") / _paired(own, "conf-fw", "mae")) for m in OURS}
        listed = "; ".join(f"{m} {mean:.3f} ({error:.3f})" for m, (mean, error) in ratios.items())
        held = all(mean <= 1.03 for mean, _ in ratios.values())
        return _enough(own, held), f"{name}: MAE relative to conf-fw: {listed}."

    return _each(tables, look, "The interval loss costs no accuracy: MAE as conf-fw's, within 3%.")


def _bayes(tables: Tables) -> Claim:
    def look(name: str, own: pd.DataFrame) -> tuple[bool | None, str]:
        coverage, error = _mean(own[own["method"] == "bayes"]["coverage"])
        ratio, spread = _mean(_paired(own, "bayes", "length") / _paired(own, "conf-nn", "length"))
        close, worse = abs(coverage - 0.9) < 0.01, ratio - CLEAR * spread > 1
        longer = own["experiment"].iloc[0] in ("bike", "traffic")
        held = close and worse == longer
        printed = "longer" if longer else "no longer"
        words = f"{name}: coverage {coverage:.4f} ({error:.4f}), length {ratio:.3f} ({spread:.3f}) times conf-nn's; "
        words += f"printed {printed}."
        return _enough(own, held), words

    text = "bayes covers precisely, is as good as conf-nn on artificial data, and clearly longer on bike and traffic."
    return _each(tables, look, text)


def _consistent(tables: Tables) -> Claim:
    text = "As the data grow, conf-nn's scale goes to 1, pav's level to alpha and the network to the quantiles."
    details = tables["details"]
    own = details[details["setting"].str.startswith("n=")] if len(details) else details
    if not len(own):
        return Claim(text, "not run", ())
    n = own["setting"].str.removeprefix("n=").astype(int)
    held: list[bool | None] = []
    words = []
    for method, column, goal, what in (
        ("conf-nn", "found", 1.0, "scale"),
        ("pav", "found", 0.1, "level"),
        ("qreg-un", "combined_mae", 0.0, "network"),
    ):
        rows = own[own["method"] == method]
        away = (rows[column] - goal).abs()
        first, last = (_mean(away[n[rows.index] == size]) for size in (n.min(), n.max()))
        held.append(_enough(rows, first[0] - last[0] > CLEAR * math.hypot(first[1], last[1])))
        ends = ((first, n.min()), (last, n.max()))
        listed = ", ".join(f"{mean:.3f} ({error:.3f}) with {size:,} rows" for (mean, error), size in ends)
        words.append(f"{method}: {what}, distance from {goal:g}: {listed}.")
    return Claim(text, _verdict(held), tuple(words))


def _passes(tables: Tables) -> Claim:
    text = "Cross-validation leads to 80 to 100 passes over artificial data, and to 80 to 200 over house."
    details = tables["details"]
    held: list[bool | None] = []
    words = []
    for experiment, setting in JUDGED:
        own = _of(details, experiment, setting)
        rows = own[own["method"] == "conf-nn"]["epochs"] if len(own) else own
        if not len(rows):
            continue
        everyone = own[own["method"].isin(METHODS)]["epochs"]
        words.append(
            f"{experiment} ({setting}): conf-nn {rows.min():g} to {rows.max():g} passes, median {rows.median():g}; all "
            f"methods {everyone.min():g} to {everyone.max():g}."
        )
        if experiment in PASSES:
            least, most = PASSES[experiment]
            held.append(least <= rows.median() <= most if len(rows) >= FEWEST else None)
    return Claim(text, _verdict(held), tuple(words))


CLAIMS: tuple[Callable[[Tables], Claim], ...] = (
    _conf_nn,
    _pav("paper"),
    _pav("fixed-sequence"),
    _conservative,
    _qreg_un,
    _not_adaptive,
    _wide_for_small,
    _shortest,
    _accuracy,
    _bayes,
    _consistent,
    _passes,
)

WHY: dict[Callable[[Tables], Claim], str] = {
    _qreg_un: (
        "Whether a network's own bounds cover depends on how long it is trained. With epochs chosen by "
        "cross-validation it does not clearly cover too little on 100,000 artificial rows. On the tables and the "
        "images it does, on all but traffic less so than printed. 100 passes over-fit on house alone: on bike, where "
        "cross-validation chooses nearly as many, and on traffic they do not."
    ),
    _wide_for_small: (
        "Without weight decay, as in the paper, both methods are too wide for small beta'x: they are longer than the "
        "oracle's intervals and cover too much. pav also covers over a point too much elsewhere. With a weight decay "
        "they are longer there too, but do not clearly cover too much: the length makes up for what the network gets "
        "wrong where rows are few. bayes and neg-ll are longer there as well."
    ),
    _shortest: (
        "On bike conf-nn is within 5% of the shortest, pav is not. On artificial data both are with a weight decay, "
        "and neither is without. Trained as the paper says, at a constant rate of 0.01 without weight decay, the "
        "bounds over-fit (see qreg-un's coverage), and the scale that makes up for it stretches every interval; cqr, "
        "which adds a constant in its place, is shorter on the images, house and traffic. With the full encoding "
        "conf-nn is shorter than conf-fw on bike, as short on house and longer on traffic. On the images the setting "
        "“ours” makes conf-nn shorter than anything in the setting “paper”, but no rival was trained by that recipe."
    ),
    _accuracy: (
        "Only house has a larger error, where each day has a dummy and the network over-fits. With the full encoding "
        "of house the errors are alike."
    ),
    _passes: (
        "At a learning rate of 0.01 without weight decay the held-out loss is least after a few passes. The paper "
        "does not say how its cross-validation stops; here it looks 20 passes beyond the best, and at most 100. A "
        "network that is trained as long as the paper's is therefore another network: see the setting 100 passes."
    ),
    _bayes: (
        "The printed Gaussian network is far less accurate than the others on bike. guardband's, with clipped "
        "gradients, is as accurate, and then bayes is as short as conf-nn. With hundreds of columns, or with a few "
        "rows far from all others, it is unstable at a rate of 0.01 without weight decay: see the images and traffic. "
        "neg-ll, the same network with a weight decay chosen on the calibration rows, is not."
    ),
}
"""Why we disagree, where we do in the full run."""


def _paired(own: pd.DataFrame, method: str, column: str) -> pd.Series[float]:
    values: pd.Series[float] = own[own["method"] == method].set_index("repetition")[column]
    return values


def _mean(values: pd.Series[float]) -> tuple[float, float]:
    """Return mean and standard error."""
    error = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return float(values.mean()), error
