"""The page of the comparison of distributions, made of results.csv.

python benchmarks/distributions/figures.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

OURS, BAR, SIGNIFICANCE = "guardband", 0.97, 0.01
TEXT = (Path(__file__).parent / "page.md").read_text()


def report(folder: Path) -> None:
    """Write README.md."""
    results = pd.read_csv(folder / "results.csv")
    parts = {"ratios": ratios(results), "tables": tables(results), "pit": pit(results)}
    text = TEXT
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part)
    (folder / "README.md").write_text(text)


def ratios(results: pd.DataFrame) -> str:
    """Return guardband's CRPS relative to the best peer's on each table, calibrated likewise or not at all."""
    lines = [f"| table | splits | guardband | best competitor | its CRPS | ratio | at most {BAR} | not calibrated |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for name in results["table"].unique():
        wide = results[results["table"] == name].pivot(index="split", columns="method")
        own = wide["crps"].get(OURS)
        if own is None or len(wide["crps"].columns) < 2:
            continue
        best, both = _best(own, wide["crps"].drop(columns=OURS))
        bare, bare_both = _best(own, wide["raw_crps"].dropna(axis=1, how="all"))
        means = both.mean()
        verdict = "yes" if means.iloc[0] / means.iloc[1] <= BAR else "no"
        lines.append(
            f"| {name} | {len(both)} | {means.iloc[0]:.4g} | {best} | {means.iloc[1]:.4g} | {_ratio(both)} | {verdict} "
            f"| {bare}: {_ratio(bare_both)} |"
        )
    return "\n".join(lines)


def _best(own: pd.Series, peers: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """Return the peer that is best beside guardband, and both scores on the splits that both have."""
    pairs = {str(peer): pd.concat([own, peers[peer]], axis=1).dropna() for peer in peers}
    best = max(pairs, key=lambda peer: pairs[peer].iloc[:, 0].mean() / pairs[peer].iloc[:, 1].mean())
    return best, pairs[best]


def _ratio(both: pd.DataFrame) -> str:
    """Return the ratio of two mean scores, with its standard error over splits."""
    own, other = both.to_numpy().T
    value = own.mean() / other.mean()
    if len(own) < 2:
        return f"{value:.3f}"
    return f"{value:.3f} ± {(own - value * other).std(ddof=1) / np.sqrt(len(own)) / other.mean():.3f}"


def tables(results: pd.DataFrame) -> str:
    """Return a table for each data set."""
    lines = []
    for name in results["table"].unique():
        own = results[results["table"] == name]
        grouped = own.groupby("method")
        mean = grouped[["crps", "raw_crps", "exact_crps", "seconds"]].mean().sort_values("crps")
        lines += [f"### {name}", ""]
        lines += ["| method | splits | CRPS | before calibration | exact CRPS | seconds | chosen on the first split |"]
        lines += ["|---|---|---|---|---|---|---|"]
        error, count = grouped["crps"].sem(), grouped.size()
        for method, row in mean.iterrows():
            first = own[(own["method"] == method) & (own["split"] == own["split"].min())]["chosen"]
            chosen = "" if first.empty or first.isna().any() else first.iloc[0]
            raw, exact = ("" if np.isnan(row[c]) else f"{row[c]:.4g}" for c in ("raw_crps", "exact_crps"))
            lines.append(
                f"| {method} | {count[method]} | {row['crps']:.4g} ± {error[method]:.2g} | {raw} "
                f"| {exact} | {row['seconds']:.0f} | {chosen} |"
            )
        lines.append("")
    return "\n".join(lines).rstrip()


def pit(results: pd.DataFrame) -> str:
    """Return whether the PIT values of guardband's test rows lie inside their band."""
    own = results[results["method"] == OURS]
    lines = ["| table | splits | inside the band | farthest from uniform | smallest p-value |", "|---|---|---|---|---|"]
    for name, rows in own.groupby("table", sort=False):
        inside = int(rows["pit_inside"].astype(bool).sum())
        lines.append(
            f"| {name} | {len(rows)} | {inside} of {len(rows)} | {rows['pit_distance'].max():.3f} "
            f"| {rows['pit_p'].min():.2g} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    report(Path(sys.argv[1]))
