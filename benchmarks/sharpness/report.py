"""The table and the plot of a run: mean length, interval score and time of each method beside the best peer.

python benchmarks/sharpness/report.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from guardband.bands.levels import Levels
from guardband.bands.ranks import marginal_rank
from guardband.experiments.reproduce.claims import count_band

TIMES = ("fit_seconds", "predict_seconds")
MARKS = "DosX^vP*<>dphH"
MEASURES = ("coverage", "length", "score", "worst_slab", "mae", *TIMES)


def report(folder: Path) -> None:
    """Write summary.csv, summary.md and score.svg; times are those on a CPU."""
    results = pd.read_csv(folder / "results.csv").sort_values("device")  # on a CPU first
    cells = results.drop_duplicates(["table", "method", "repetition"])
    grouped = cells.groupby(["table", "method"])
    summary = grouped[list(MEASURES)].mean()
    on_cpu = results[results["device"] == "cpu"].groupby(["table", "method"])
    summary[list(TIMES)] = on_cpu[list(TIMES)].mean().reindex(summary.index)
    summary["score_error"] = grouped["score"].sem()
    summary["repetitions"] = grouped.size()
    summary["inside_band"] = [inside_band(rows) for _, rows in grouped]
    summary["relative_score"] = relative_scores(cells, summary)
    summary.to_csv(folder / "summary.csv")
    (folder / "summary.md").write_text(text(summary))
    if summary["fit_seconds"].notna().any():
        plot(summary, folder / "score.svg")


def relative_scores(cells: pd.DataFrame, summary: pd.DataFrame) -> pd.Series:
    """Return each method's score relative to the best peer's on the same splits, of the peers with the most of them."""
    peers = summary[~summary.index.get_level_values("method").str.startswith("guardband")]
    peers = peers if len(peers) else summary
    relative = {}
    for name, rows in cells.groupby("table"):
        own = peers.loc[name]
        best = own["score"][own["repetitions"] == own["repetitions"].max()].idxmin()
        wide = rows.pivot_table(index="repetition", columns="method", values="score")
        for method in wide:
            both = wide[[method, best]].dropna() if method != best else wide[[best]].dropna()
            relative[name, method] = both[method].mean() / both[best].mean()
    return pd.Series(relative).reindex(summary.index)


def inside_band(rows: pd.DataFrame) -> bool:
    """Whether the covered rows of all repetitions lie in the exact 99.9% band of split conformal."""
    n3, n2 = int(rows["n_test"].iloc[0]), int(rows["n_calibration"].iloc[0])
    low, high = count_band(len(rows), n3, marginal_rank(Levels.of(0.9).values[0], n2), n2)
    return bool(low <= rows["covered"].sum() <= high)


def text(summary: pd.DataFrame) -> str:
    """Return the summary as Markdown, a section per table."""
    lines = ["# Sharpness, the figures", ""]
    for name, rows in summary.groupby("table"):
        lines += [
            f"## {name}",
            "",
            "| method | splits | coverage | length | score | of the best peer's | MAE | fit s |",
        ]
        lines += ["|---|---|---|---|---|---|---|---|"]
        for (_, method), row in rows.sort_values("score").iterrows():
            marks = "" if row["inside_band"] else " (outside the band)"
            seconds = "" if np.isnan(row["fit_seconds"]) else f"{row['fit_seconds']:.1f}"
            score = f"{row['score']:.4g} ± {row['score_error']:.2g}"
            lines.append(
                f"| {method} | {row['repetitions']:.0f} | {row['coverage']:.4f}{marks} | {row['length']:.4g} "
                f"| {score} | {row['relative_score']:.3f} | {row['mae']:.4g} | {seconds} |"
            )
        lines.append("")
    relative = np.log(summary["relative_score"]).groupby("method").mean()
    lines += ["## Geometric mean of the score relative to the best peer's on the same splits", ""]
    lines += ["| method | tables | relative score |", "|---|---|---|"]
    tables = summary.groupby("method").size()
    lines += [
        f"| {method} | {tables[method]} | {np.exp(value):.3f} |" for method, value in relative.sort_values().items()
    ]
    return "\n".join(lines) + "\n"


def plot(summary: pd.DataFrame, path: Path) -> None:
    """Draw the score against the time of a fit, a panel per table."""
    plt.rcParams["svg.fonttype"] = "none"
    summary = summary[summary["fit_seconds"].notna()]
    names, methods = (list(summary.index.unique(level)) for level in ("table", "method"))
    figure, panels = plt.subplots(1, len(names), figsize=(4.2 * len(names), 3.6), squeeze=False, layout="constrained")
    for panel, name in zip(panels[0], names, strict=True):
        for method, row in summary.loc[name].iterrows():
            ours = str(method).startswith("guardband")
            look = {"color": "tab:blue" if ours else "0.5", "markersize": 8 if ours else 6}
            panel.plot(row["fit_seconds"], row["score"], MARKS[methods.index(method)], label=str(method), **look)
        panel.set(xscale="log", title=name, xlabel="seconds to fit")
        panel.xaxis.set_major_formatter("{x:g}")
        panel.margins(x=0.1, y=0.08)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("interval score")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    report(Path(sys.argv[1]))
