"""The presets as they are now, beside the stored scores of competitors and of guardband before, on the same splits.

python benchmarks/sharpness/beside_stored.py [FOLDER]: writes README.md beside FOLDER/results.csv, which holds rows of
``run.py`` for guardband alone. Competitors are those of the four folders of results that it names.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parents[1] / "results"
PARTS = {
    "sharpness": "Four tables that were at hand during development",
    "others": "Eleven tables that were not",
    "long_tails": "Long tails: six tables that were not",
    "many_categories": "Many categories: five tables that were set aside, of which inspections judges no more",
}
OWN = ("guardband-default", "guardband-fast", "guardband-best")


def main() -> None:
    """Write the tables."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "present"
    now = pd.read_csv(folder / "results.csv")
    lines, every = [(folder / "about.txt").read_text().rstrip(), ""], []
    for part, title in PARTS.items():
        stored = pd.read_csv(RESULTS / part / "results.csv").drop_duplicates(["table", "method", "repetition"])
        rows = [relative(name, now, stored) for name in sorted(set(stored["table"]) & set(now["table"]))]
        every += rows if part != "sharpness" else []
        lines += [f"## {title}", "", *table_of(rows), ""]
        if part == "sharpness":
            lines += ["Mean interval score (mean width) over the same splits:", "", *means(now, stored), ""]
    judged = [row for row in every if row["table"] != "inspections"]
    found = " / ".join(f"{name.removeprefix('guardband-')} {mean_of(judged, name):.3f}" for name in OWN[:2])
    lines += [f"Geometric mean over the {len(judged)} tables that judge, relative to the best competitor: {found}."]
    (folder / "README.md").write_text("\n".join(lines) + "\n")


def relative(name: str, now: pd.DataFrame, stored: pd.DataFrame) -> dict[str, object]:
    """Return a table's scores relative to the competitor that is best on the splits, and to guardband before."""
    own = now[now["table"] == name].pivot_table(index="repetition", columns="method", values="score")
    before = stored[stored["table"] == name].pivot_table(index="repetition", columns="method", values="score")
    before = before.reindex(own.index)
    peers = [method for method in before if not method.startswith("guardband") and before[method].notna().all()]
    best = min(peers, key=lambda method: before[method].mean())
    found: dict[str, object] = {"table": name, "splits": len(own), "competitor": best}
    for method in (method for method in OWN if method in own):
        ratio = (own[method] / before[best]).dropna()
        found[method] = (float(ratio.mean()), float(ratio.sem()))
        if method in before:
            found[f"{method} before"] = float(np.exp(np.log(own[method] / before[method]).mean()))
    return found


def table_of(rows: list[dict[str, object]]) -> list[str]:
    """Return Markdown of the tables of one part."""
    methods = [method for method in OWN if any(method in row for row in rows)]
    heads = [head for method in methods for head in (method.removeprefix("guardband-"), "relative to before")]
    lines = [f"| table | best competitor | {' | '.join(heads)} |", "|---|---|" + "---|" * len(heads)]
    for row in rows:
        cells = []
        for method in methods:
            mean, error = row.get(method, (np.nan, np.nan))
            before = row.get(f"{method} before")
            cells += ["" if np.isnan(mean) else f"{mean:.3f} ± {error:.3f}", "" if before is None else f"{before:.3f}"]
        lines.append(f"| {row['table']} | {row['competitor']} | {' | '.join(cells)} |")
    names = [name for method in methods for name in (method, f"{method} before")]
    found = [f"{mean_of(rows, name):.3f}" if any(name in row for row in rows) else "" for name in names]
    return [*lines, f"| geometric mean | | {' | '.join(found)} |"]


def means(now: pd.DataFrame, stored: pd.DataFrame) -> list[str]:
    """Return Markdown of the mean score and width of each method on the splits that the presets ran on."""
    names = [name for name in dict.fromkeys(stored["table"]) if name in set(now["table"])]
    peers = stored[~stored["method"].str.startswith("guardband")]
    rows = pd.concat([now, peers[peers["repetition"].isin(set(now["repetition"]))]])
    mean = rows[rows["table"].isin(names)].groupby(["method", "table"])[["score", "length"]].mean()
    order = mean["score"].unstack().div(mean["score"].unstack().min()).mean(axis=1).sort_values().index
    lines = [f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for method in order:
        own = mean.loc[method]
        cells = [f"{own['score'][n]:.4g} ({own['length'][n]:.3g})" if n in own.index else "" for n in names]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def mean_of(rows: list[dict[str, object]], name: str) -> float:
    """Return the geometric mean over tables that have it."""
    found = [row[name] for row in rows if name in row]
    return float(np.exp(np.mean([np.log(own[0] if isinstance(own, tuple) else own) for own in found])))


if __name__ == "__main__":
    main()
