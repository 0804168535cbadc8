"""Our numbers beside the printed ones."""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

if TYPE_CHECKING:
    import pandas as pd

KEY = ["experiment", "setting", "method", "repetition"]
METHODS = ("bayes", "qreg-un", "conf-fw", "neg-ll", "high-q", "conf-nn", "pav")
"""The paper's seven, as they stand in its Figure 2 from top to bottom."""
MEASURES = ("coverage", "relative_length", "combined_mae")
MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""The standard error of a median in those of a mean, for a Gaussian."""
QUARTILES = 1.349
"""The distance of a Gaussian's quartiles in standard deviations."""

SHOWN = (
    ("1", "simulation", "tuned"),
    ("1", "simulation", "plain"),
    ("S2 n=5000", "supplement", "n=5000"),
    ("S2 n=47222", "supplement", "n=47222"),
)
"""Which experiment and setting stand beside which of the paper's curves over beta'x."""

PIXEL = {"coverage": 0.0005, "relative_length": 0.004, "combined_mae": 0.005}
"""How far a point that was read off a printed curve may be wrong: a pixel of the coarsest panel."""
BOX_PIXEL = {"coverage": 0.001}
"""The same for the boxes of Figure 2; the size of a pixel of the other panels was not noted."""
CLEAR = 3.0
"""Standard errors that make a difference clear."""
MIDDLE = (1.5, 3.5)
"""Where most rows lie along beta'x; the paper's curves go from 0.9 to 4.1."""
CHANCE = CLEAR * math.sqrt(0.9 * 0.1 / 1_700)
"""How far the coverage of a bin may be off: ten repetitions with 170 rows each, the fewest of any bin."""


@cache
def printed(name: str) -> pd.DataFrame:
    """Return what the paper prints: ``curves`` or ``figure2``."""
    import pandas as pd

    with (files("guardband.experiments.reproduce") / "printed" / f"{name}.csv").open() as file:
        return pd.read_csv(file)


@cache
def _points() -> dict[tuple[str, str, float], list[tuple[str, float, int]]]:
    """Return measure, value and whether it was seen at each point of each printed curve."""
    found: dict[tuple[str, str, float], list[tuple[str, float, int]]] = {}
    for _, row in printed("curves").iterrows():
        place = found.setdefault((row["figure"], row["method"], round(row["x"], 6)), [])
        place.append((row["measure"], row["value"], row["measured"]))
    return found


def _printed_at(figure: str, method: str, x: float) -> list[tuple[str, float, int]]:
    return _points().get((figure, method, round(x, 6)), [])


def compare(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return printed value, ours, the difference and its standard error for each point of each figure.

    The error of Figure 2 is that of both medians, theirs by their quartiles and 20 repetitions; that of the curves
    is ours alone, since the paper shows none. ``measured`` is 0 where a printed curve was hidden behind another;
    ``reading_error`` is how far a printed number may have been misread, NaN where that is not known.
    """
    import pandas as pd

    parts = [_figure2(tables["results"]), _over_signal(tables["curves"]), _over_size(joined(tables))]
    whole = [part for part in parts if len(part)]
    if not whole:
        return pd.DataFrame()
    frame = pd.concat(whole, ignore_index=True)
    frame["difference"] = frame["ours"] - frame["printed"]
    pixels = [BOX_PIXEL if figure == "2" else PIXEL for figure in frame["figure"]]
    frame["reading_error"] = [of.get(name, math.nan) for of, name in zip(pixels, frame["measure"], strict=True)]
    return frame


def agreement(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return how many points of each printed curve differ clearly from ours, and by how much they differ.

    ``differ`` counts points that lie over three of our standard errors apart. ``differ_still`` allows the printed
    curve a standard error as large as ours and a misreading of a pixel. Hidden points are left out. qreg-un, which
    differs most, is counted apart. The other columns are medians of the absolute difference.
    """
    import pandas as pd

    curves = (
        comparison[(comparison["figure"] != "2") & (comparison["measured"] == 1)] if len(comparison) else comparison
    )
    rows = []
    for (figure, whose), own in _groups(_by_curve(curves), "name", "methods"):
        known = own[own["standard_error"].notna()]
        gap, error = known["difference"].abs(), known["standard_error"]
        differ = gap > CLEAR * error
        differ_still = gap > CLEAR * np.sqrt(2) * error + known["reading_error"]
        medians = [gap[known["measure"] == measure].median() for measure in MEASURES]
        rows.append((figure, whose, len(known), int(differ.sum()), int(differ_still.sum()), *medians))
    return pd.DataFrame(rows, columns=["figure", "methods", "points", "differ", "differ_still", *MEASURES])


def _by_curve(curves: pd.DataFrame) -> pd.DataFrame:
    """Add the name of each figure, with the setting where several stand beside it, and whose curve it is."""
    if not len(curves):
        return curves
    several = curves["figure"] == "1"
    name = curves["figure"].where(~several, curves["figure"] + " (" + curves["setting"] + ")")
    whose = np.where(curves["figure"] == "S3", "conf-nn", "the other six")
    return curves.assign(name=name, methods=np.where(curves["method"] == "qreg-un", "qreg-un", whose))


def apart(comparison: pd.DataFrame, setting: str) -> tuple[float, float]:
    """Return the median distance in coverage from the printed Figure 1, in the middle of beta'x and at its ends.

    qreg-un is left out, and so are hidden points.
    """
    wanted = "figure == '1' and setting == @setting and measure == 'coverage' and measured == 1 and method != 'qreg-un'"
    own = comparison.query(wanted)
    inside, gap = own["x"].between(*MIDDLE), own["difference"].abs()
    return float(gap[inside].median()), float(gap[~inside].median())


def impossible_points(figure: str) -> tuple[dict[str, int], int]:
    """Return how many printed points over beta'x no interval can reach, by method, and how many could be read.

    The noise is Gaussian, so intervals with an average length of r times the oracle's cover at most
    2 Phi(1.645 r) - 1. A point counts if its printed coverage is above that by more than chance and misreading explain.
    """
    curves = printed("curves").query("figure == @figure and measured == 1")
    wide = curves.pivot_table(index=["method", "x"], columns="measure", values="value")
    both = wide.dropna(subset=["coverage", "relative_length"])
    longest = both["relative_length"] + PIXEL["relative_length"]
    most = 2 * norm.cdf(norm.ppf(0.95) * longest) - 1
    beyond = both[both["coverage"] > most + PIXEL["coverage"] + CHANCE]
    return {str(method): len(own) for method, own in beyond.groupby("method")}, len(both)


def joined(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return results and details side by side."""
    results = tables["results"]
    return results.merge(tables["details"], on=KEY) if len(results) else results


def _figure2(results: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for (experiment, setting, method), own in _groups(results, "experiment", "setting", "method"):
        theirs = printed("figure2").query("experiment == @experiment and method == @method")
        for _, box in theirs.iterrows():
            values = own[box["measure"]].to_numpy()
            spread = (box["q3"] - box["q1"]) / QUARTILES  # NaN where a box could not be read
            error = MEDIAN_ERROR * math.hypot(_error(values), spread / math.sqrt(20))
            rows.append(
                ("2", experiment, setting, method, box["measure"], math.nan, box["median"], 1, np.median(values), error)
            )
    return pd.DataFrame(rows, columns=_COLUMNS)


def _over_signal(curves: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    wanted = {(experiment, setting): figure for figure, experiment, setting in SHOWN}
    for (experiment, setting, method, x), own in _groups(curves, "experiment", "setting", "method", "x"):
        figure = wanted.get((experiment, setting), "S3" if setting.startswith("dep") else None)
        if figure is None:
            continue
        name = setting if figure == "S3" else method
        for measure, value, measured in _printed_at(figure, name, float(x)):
            ours = _mean(own[measure].to_numpy())
            rows.append((figure, experiment, setting, name, measure, x, value, measured, *ours))
    return pd.DataFrame(rows, columns=_COLUMNS)


def _over_size(both: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    supplement = both[both["experiment"] == "supplement"] if len(both) else both
    for (setting, method), own in _groups(supplement, "setting", "method"):
        if not setting.startswith("n="):
            continue
        n = int(setting.removeprefix("n="))
        for measure, value, measured in _printed_at("S1", method, n):
            ours = _mean(own[measure].to_numpy())
            rows.append(("S1", "supplement", setting, method, measure, n, value, measured, *ours))
    return pd.DataFrame(rows, columns=_COLUMNS)


_COLUMNS = [
    *("figure", "experiment", "setting", "method", "measure", "x"),
    *("printed", "measured", "ours", "standard_error"),
]


def _groups(frame: pd.DataFrame, *names: str) -> list[tuple[tuple[str, ...], pd.DataFrame]]:
    return list(frame.groupby(list(names), sort=False)) if len(frame) else []


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    return float(values.mean()), _error(values)


def _error(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return the standard error of a mean, NaN of fewer than two values or of infinite ones."""
    if len(values) < 2 or not np.isfinite(values).all():
        return math.nan
    return float(values.std(ddof=1) / math.sqrt(len(values)))
