"""The page of the comparisons of cv+ with a split, made of results.csv and sizes.csv.

python benchmarks/cross/figures.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

SPLIT, CROSS = "guardband-split", "guardband-cv+"
BOOTSTRAPS = 2_000
TEXT = (Path(__file__).parent / "page.md").read_text()


def report(folder: Path) -> None:
    """Write README.md."""
    results = pd.read_csv(folder / "results.csv")
    sizes = pd.read_csv(folder / "sizes.csv")
    parts = {"tables": tables(results), "means": means(results), "sizes": by_size(sizes), "crossing": crossing(sizes)}
    text = TEXT
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part)
    (folder / "README.md").write_text(text)


def ratio(wide: pd.DataFrame, method: str, other: str = SPLIT) -> tuple[float, float]:
    """Return a method's mean score relative to the other's on the same splits, and its standard error."""
    both = wide[[method, other]].dropna().to_numpy() if method != other else wide[[other, other]].dropna().to_numpy()
    value = both[:, 0].mean() / both[:, 1].mean()
    left = both[:, 0] - value * both[:, 1]
    return value, left.std(ddof=1) / np.sqrt(len(left)) / both[:, 1].mean()


def tables(results: pd.DataFrame) -> str:
    """Return a table for each data set."""
    lines = []
    for (name, rows), cells in results.groupby(["table", "rows"], sort=False):
        wide = cells.pivot(index="repetition", columns="method", values="score")
        lines += [f"### {name}, {rows} rows to fit", ""]
        lines += ["| method | splits | coverage | width | interval score | relative to the split | seconds |"]
        lines += ["|---|---|---|---|---|---|---|"]
        means = cells.groupby("method")[["coverage", "width", "score", "seconds"]].mean().sort_values("score")
        for method, row in means.iterrows():
            value, error = ratio(wide, str(method))
            relative = "1" if method == SPLIT else f"{value:.3f} ± {error:.3f}"
            lines.append(
                f"| {method} | {wide[method].count()} | {row['coverage']:.3f} | {row['width']:.4g} "
                f"| {row['score']:.4g} | {relative} | {row['seconds']:.1f} |"
            )
        chosen = cells.loc[cells["method"] == "mapie-cv+", "chosen"].value_counts()
        if len(chosen):
            lines += ["", "Trees chosen: " + ", ".join(f"{kind} ({count})" for kind, count in chosen.items()) + "."]
        lines.append("")
    return "\n".join(lines).rstrip()


def means(results: pd.DataFrame) -> str:
    """Return the geometric mean over data sets of each method's score relative to the split's, and to MAPIE's cv+."""
    found = []
    for name, cells in results.groupby("table", sort=False):
        wide = cells.pivot(index="repetition", columns="method", values="score")
        for method in wide:
            others = [ratio(wide, str(method), other)[0] for other in (SPLIT, "mapie-cv+")]
            found.append((name, method, *others, cells.loc[cells["method"] == method, "coverage"].mean()))
    frame = pd.DataFrame(found, columns=["table", "method", "split", "mapie", "coverage"])
    lines = ["| method | coverage | relative to the split | better on | relative to MAPIE's cv+ | better on |"]
    lines += ["|---|---|---|---|---|---|"]
    order = np.log(frame["split"]).groupby(frame["method"]).mean().sort_values().index
    for method in order:
        own = frame[frame["method"] == method]
        cells = [f"{method}", f"{own['coverage'].mean():.3f}"]
        for other, name in (("split", SPLIT), ("mapie", "mapie-cv+")):
            values = own[other].to_numpy()
            same = method == name
            cells += ["1", ""] if same else [f"{_geometric(values):.3f}", f"{(values < 1).sum()} of {len(values)}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _geometric(values: np.ndarray) -> float:
    return float(np.exp(np.log(values).mean()))


# ------------------------------------------------------------------------------------------------------------- sizes


def log_ratios(sizes: pd.DataFrame) -> pd.Series:
    """Return the logarithm of cv+'s score relative to the split's for each table, size and repetition."""
    wide = sizes.pivot(index=["table", "rows", "repetition"], columns="method", values="score")
    return np.log(wide[CROSS] / wide[SPLIT]).dropna()


def by_size(sizes: pd.DataFrame) -> str:
    """Return the score of cv+ relative to the split's by number of rows."""
    ratios = log_ratios(sizes)
    grouped = ratios.groupby(["rows", "table"])
    mean, error = grouped.mean().unstack(), grouped.sem().unstack()
    names = list(mean.columns)
    lines = ["| rows | " + " | ".join(names) + " | all | splits |", "|---" * (len(names) + 3) + "|"]
    for rows in mean.index:
        own = mean.loc[rows].dropna()
        errors = error.loc[rows, own.index]
        cells = [_with_error(own[n], errors[n]) if n in own else "" for n in names]
        pooled = _with_error(own.mean(), np.sqrt(np.square(errors.to_numpy()).sum()) / len(own))
        lines.append(f"| {rows:,} | " + " | ".join([*cells, pooled]) + f" | {int(grouped.size().loc[rows].min())} |")
    return "\n".join(lines)


def _with_error(log_ratio: float, error: float) -> str:
    """Return a ratio, with its standard error if more than one repetition tells it."""
    return f"{np.exp(log_ratio):.3f}" if np.isnan(error) else f"{np.exp(log_ratio):.3f} ± {error:.3f}"


def crossing(sizes: pd.DataFrame) -> str:
    """Return where the line through the log ratios, by the logarithm of the rows, meets zero, and how sure that is."""
    ratios = log_ratios(sizes)
    most = int(ratios.index.get_level_values("rows").max())
    rng = np.random.default_rng(0)
    groups = {key: own.to_numpy() for key, own in ratios.groupby(["table", "rows"])}
    found = _meeting({key: own.mean() for key, own in groups.items()})
    names = sorted({name for name, _ in groups})
    within, among = [], []
    for _ in range(BOOTSTRAPS):
        drawn = {key: rng.choice(own, len(own)).mean() for key, own in groups.items()}
        within.append(_meeting(drawn))
        chosen = rng.choice(names, len(names))
        among.append(_meeting({(i, rows): v for i, c in enumerate(chosen) for (n, rows), v in drawn.items() if n == c}))
    own, wider = (
        " and ".join(_rows(end, most) for end in np.quantile(drawn, (0.05, 0.95), method="nearest"))
        for drawn in (within, among)
    )
    ahead = ratios.groupby(["rows", "table"]).mean().groupby("rows").mean() < 0
    return (
        f"On average over the tables, cv+ is better at {ahead.sum()} of {len(ahead)} sizes. "
        f"The line through all log ratios, by the logarithm of the rows, meets zero at **{_rows(found, most)}**. "
        f"If the repetitions are drawn anew, 90% of the lines meet it between {own}. "
        f"If the tables are drawn anew too, between {wider}. "
        f"Nothing was measured beyond {most:,} rows."
    )


def _meeting(means: dict[tuple[object, int], float]) -> float:
    """Return the number of rows at which a line meets zero: infinite if cv+ stays better, 0 if it never is."""
    x = np.log([rows for _, rows in means])
    y = np.array(list(means.values()))
    slope, start = np.polyfit(x, y, 1)
    if slope <= 0:
        return float("inf") if y.mean() < 0 else 0.0
    return float(np.exp(min(-start / slope, 100.0)))


def _rows(value: float, most: int) -> str:
    """Return a number of rows in words; beyond what was measured there is no number."""
    if value > most:
        return f"more than {most:,} rows"
    if value < 10:
        return "fewer than 10 rows"
    digits = 10 ** (len(str(int(value))) - 2)
    return f"{round(value / digits) * digits:,} rows"


if __name__ == "__main__":
    report(Path(sys.argv[1]))
