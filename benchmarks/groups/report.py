"""The README of the comparison of promises for groups, made of its JSON.

python benchmarks/groups/report.py FOLDER
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

FEWEST_ROWS = 100
"""Groups with fewer test rows in all splits together are not judged."""
DRAWS = 2_000

PAGE = Path(__file__).with_name("page.md")


PRICES = {
    "each group, marginal": "for each group",
    "each group, pac": 'for each group, `guarantee="pac"`',
    "auto, marginal": 'for groups that are found, `groups="auto"`',
    "auto, pac": 'for groups that are found, `guarantee="pac"`',
    "upper": 'for the upper bound alone, `side="upper"`: distance from the prediction',
    "tails": "for each tail, `tails=(0.05, 0.05)`",
    "pac": 'for this calibration set, `guarantee="pac"`',
    "weights": "for another population, `weights=`",
}
"""The promises that have a price, in words."""


def price_table(entries: dict[str, Any]) -> str:
    """Return what each promise costs in width, as docs/promise.md has it."""
    tables = list(entries["prices"])
    head = [f"{name}, {entries['rows'][name]:,} calibration rows" for name in tables]
    lines = [_line(["promise", *head]), _line(["---"] * (1 + len(tables)))]
    for key, words in PRICES.items():
        lines.append(_line([words, *(f"{entries['prices'][name][key]['mean'] - 1:+.1%}" for name in tables)]))
    return "\n".join(lines)


def report(folder: Path) -> None:
    """Write the README of a folder of results."""
    tables = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json")) if path.stem != "prices"]
    figures = [_table(entries, method) for entries in tables for method in ("conf-nn", "conf-fw")]
    peers = next((entries["peers"] for entries in tables if entries["peers"]), [])
    figures.append(f"Compared: {', '.join(peers)}.\n" if peers else "")
    prices = folder / "prices.json"
    parts = {
        "regions": _regions(tables),
        "prices": price_table(json.loads(prices.read_text())) if prices.exists() else "",
        "tables": "\n".join(figures),
    }
    text = PAGE.read_text()
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part.rstrip())
    (folder / "README.md").write_text(text.rstrip() + "\n")


def _table(entries: dict[str, Any], method: str) -> str:
    columns = list(entries["calibration_rows"])
    rows = entries["rows"]
    sizes = f"{rows['training']:,} training, {rows['calibration']:,} calibration and {rows['test']:,} test rows"
    lines = [f"## {entries['table']}, {method}", "", f"{entries['splits']} splits: {sizes}.", ""]
    header = ["promise", "coverage", *(f"worst: {column}" for column in columns), "width", "score", "infinite"]
    lines += [_line(header), _line(["---"] * len(header))]
    plain = entries["promises"][f"guardband|{method}|one promise|marginal"]
    for key, own in entries["promises"].items():
        maker, of, promise, guarantee = key.split("|")
        if of == method:
            name = f"{maker}, {promise}{', pac' if guarantee == 'pac' else ''}"
            worst = [f"{_worst(own['groups'][column]):.1%}" for column in columns]
            share = float(np.mean(own["infinite"]))
            lines.append(
                _line([name, f"{np.mean(own['coverage']):.1%}", *worst, *_relative(own, plain), f"{share:.2%}"])
            )
    chance = [_chance(entries, column) for column in columns]
    lines.append(_line(["*by chance*", "", *(f"{mid:.1%} ({low:.1%})" for mid, low in chance), "", "", ""]))
    return "\n".join(lines) + "\n"


def _relative(own: dict[str, Any], plain: dict[str, Any]) -> list[str]:
    return [f"{np.mean(np.array(own[what]) / np.array(plain[what])):.3f}" for what in ("width", "score")]


def _worst(counts: dict[str, list[int]]) -> float:
    return min(covered / n for covered, n in counts.values() if n >= FEWEST_ROWS)


def _chance(entries: dict[str, Any], column: str) -> tuple[float, float]:
    """Return the median and the 5% quantile of the worst group's coverage, if each has its promise on average."""
    plain = entries["promises"]["guardband|conf-nn|one promise|marginal"]["groups"][column]
    random, splits, lowest = np.random.default_rng(0), entries["splits"], np.full(DRAWS, 1.0)
    for value, (_, n) in plain.items():
        if n < FEWEST_ROWS:
            continue
        held_out = max(entries["calibration_rows"][column].get(value, 0), 9)
        rank = math.ceil(round(entries["level"] * (held_out + 1), 9))
        coverage = random.beta(rank, held_out + 1 - rank, (DRAWS, splits)) if rank <= held_out else 1.0
        inside = random.binomial(n // splits, coverage, (DRAWS, splits)).sum(axis=1)
        lowest = np.minimum(lowest, inside / (n // splits * splits))
    return float(np.median(lowest)), float(np.quantile(lowest, 0.05))


def _regions(tables: list[dict[str, Any]]) -> str:
    """Return how far the worst region lies from the level, with one promise and with groups that were found."""
    head = [
        "table",
        "method",
        "groups found",
        "one promise",
        "within noise",
        '`groups="auto"`',
        "within noise",
        "price",
    ]
    lines = [
        _line(head),
        _line(["---"] * 8),
    ]
    missing: list[str] = []
    for entries in tables:
        for method in ("conf-nn", "conf-fw"):
            plain, auto = (
                entries["promises"][f"guardband|{method}|{promise}|marginal"]
                for promise in ("one promise", 'groups="auto"')
            )
            counts = [max(1, len(names)) for names in entries["found"][method]]
            ratio = np.array(auto["score"]) / np.array(plain["score"]) - 1
            price = f"{ratio.mean():+.1%} ± {ratio.std(ddof=1) / math.sqrt(len(ratio)):.1%}"
            found = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{counts[0]}"
            lines.append(_line([entries["table"], method, found, *_region(plain), *_region(auto), price]))
            short = _shortfall(auto)
            if short:
                missing.append(f"{entries['table']} with {method} ({short})")
    short = f"on {', '.join(missing)}" if missing else "nowhere"
    verdict = f'With `groups="auto"`, the mean lies below the level by more than two of its standard errors {short}.'
    return "\n".join([*lines, "", verdict])


def _shortfall(own: dict[str, Any], level: float = 0.9) -> str:
    """Return by how much the mean over splits is below the level, nothing if two standard errors explain it."""
    shares = np.array([covered / n for covered, n, _ in own["regions"]])
    below, error = level - shares.mean(), shares.std(ddof=1) / math.sqrt(len(shares))
    return f"{100 * below:.1f} points" if below > 2 * error else ""


def _region(own: dict[str, Any], level: float = 0.9) -> list[str]:
    counts = np.array(own["regions"], dtype=float)
    shares = counts[:, 0] / counts[:, 1]
    errors = np.sqrt(level * (1 - level) * (1 / counts[:, 1] + 1 / counts[:, 2]))
    near = int((shares >= level - 2 * errors).sum())
    mean = f"{shares.mean():.1%} ± {shares.std(ddof=1) / math.sqrt(len(shares)):.1%}"
    return [mean, f"{near} of {len(shares)} (error {errors.mean():.1%})"]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    report(Path(sys.argv[1]))
