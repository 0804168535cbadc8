"""The table and the page of a folder of runs: ``python benchmarks/acceptance/page.py FOLDER``.

Writes ``runs.csv`` and ``README.md`` to benchmarks/results/acceptance, and the tables of docs/acceptance.md. Runs of
the plan that FOLDER lacks keep the row that they have there.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import beta

sys.path.insert(0, str(Path(__file__).parent))

from judge import Judged, Verdict, judged, read
from plan import full

ROOT = Path(__file__).parents[2]
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "acceptance", ROOT / "docs" / "acceptance.md"
HEADER = ("promise", "run", "should_hold", "cells", "sets", "smallest_p", "not_as_it_should_be", "off_by_one")
CONTROL = "control: "
NAMED = {
    "entities": "rows of one customer taken for independent",
    "monitor": "monitor of rows whose noise is three times as large",
}
"""Controls that are asked by the question of a promise."""


@dataclass(frozen=True)
class Line:
    """One run: how many cells and sets, its smallest p-value, for a control its largest.

    ``off_by_one`` counts the cells of a law of ranks, and in how many of them a rank that is too small by one would
    have been refuted.
    """

    promise: str
    run: str
    should_hold: bool
    cells: int
    sets: int
    p_value: float
    wrong: int
    off_by_one: tuple[int, int]


@cache
def power(k: int, n: int, sets: int, significance: float) -> float:
    """Return how often the judge refutes coverages of rank k - 1 that should be of rank k, of n rows."""
    if k == 1:
        return 1.0  # the rank 0 has no coverage
    shares = (np.arange(500) + 0.5) / 500
    scores = ndtri(np.clip(beta.cdf(betaincinv(k - 1, n + 2 - k, shares), k, n + 1 - k), 1e-300, 1 - 1e-16))
    limit = math.sqrt(sets) * float(ndtri(significance / 4))
    return float(ndtr((limit - sets * scores.mean()) / (math.sqrt(sets) * scores.std())))


def lines_of(verdict: Verdict) -> list[Line]:
    """Return a line for each run."""
    runs: dict[str, list[Judged]] = {}
    for cell in verdict.cells:
        runs.setdefault(cell.run, []).append(cell)
    return [_line(cells, verdict.significance) for _, cells in sorted(runs.items())]


def _line(cells: Sequence[Judged], significance: float) -> Line:
    first = cells[0]
    found = [own.figures for own in cells if own.law == "beta" and own.figures["exact"] and "k" in own.figures]
    hold = [power(own["k"], own["n"], own["sets"], significance) > 0.999 for own in found]
    p_values = [own.p_value for own in cells]
    return Line(
        first.promise,
        first.run,
        first.should_hold,
        len(cells),
        max(own.figures["sets"] for own in cells),
        min(p_values) if first.should_hold else max(p_values),
        sum(not own.is_as_it_should_be(significance) for own in cells),
        (sum(hold), len(hold)),
    )


def write_csv(lines: Sequence[Line], path: Path) -> None:
    """Write a row for each run."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(HEADER)
        for own in lines:
            hold = f"{own.off_by_one[0]} of {own.off_by_one[1]}"
            row = (own.promise, own.run, own.should_hold, own.cells, own.sets, f"{own.p_value:.3g}", own.wrong, hold)
            out.writerow(row)


def read_csv(path: Path) -> list[Line]:
    """Return the lines of a table."""
    with path.open(newline="") as file:
        return [
            Line(
                row["promise"],
                row["run"],
                row["should_hold"] == "True",
                int(row["cells"]),
                int(row["sets"]),
                float(row["smallest_p"]),
                int(row["not_as_it_should_be"]),
                tuple(map(int, row["off_by_one"].split(" of "))),  # type: ignore[arg-type]
            )
            for row in csv.DictReader(file)
        ]


def promises_table(lines: Sequence[Line]) -> str:
    """Return a row for each promise: what was asked of it, and the smallest p-value."""
    own = [line for line in lines if line.should_hold]
    return _grouped(own, lambda line: line.promise.replace("door: ", "used as: "), "promise", total=True)


def by_setting(lines: Sequence[Line], name: str) -> str:
    """Return a row for each value of a setting, such as the noise."""
    own = [line for line in lines if line.should_hold and name in setting_of(line)]
    return _grouped(own, lambda line: setting_of(line)[name], name)


SIZES = (1, 10, 100, 1000, 10_000)


def by_rows(lines: Sequence[Line]) -> str:
    """Return a row for each order of magnitude of calibration rows, with what a rank less one would have shown."""
    out = [
        "| calibration rows | questions | smallest p-value | refuted | exact law of ranks | rank less one is found |",
        "|---|---|---|---|---|---|",
    ]
    for least, most in zip(SIZES, (*SIZES[1:], 10**9), strict=True):
        own = [line for line in lines if line.should_hold and least <= int(setting_of(line).get("n", 0)) < most]
        cells, wrong = sum(line.cells for line in own), sum(line.wrong for line in own)
        found, asked = (sum(line.off_by_one[i] for line in own) for i in (0, 1))
        words = f"{least:,} to {most - 1:,}" if most < 10**9 else f"{least:,} or more"
        smallest = min((line.p_value for line in own), default=1.0)
        out.append(f"| {words} | {cells:,} | {smallest:.2g} | {wrong} | {asked:,} | {found:,} |")
    return "\n".join(out)


def setting_of(line: Line) -> dict[str, str]:
    """Return the settings in the name of a run."""
    return dict(part.split("=", 1) for part in line.run.split(", ") if "=" in part)


def _grouped(lines: Sequence[Line], key: Callable[[Line], str], head: str, total: bool = False) -> str:
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(key(line), []).append(line)
    rows = [(own, groups[own]) for own in sorted(groups)]
    if total:
        rows.append(("**all**", list(lines)))
    out = [
        f"| {head} | settings | questions | calibration sets | smallest p-value | refuted |",
        "|---|---|---|---|---|---|",
    ]
    for name, own in rows:
        cells, sets = sum(line.cells for line in own), sum(line.sets for line in own)
        smallest, wrong = min(line.p_value for line in own), sum(line.wrong for line in own)
        out.append(f"| {name} | {len(own):,} | {cells:,} | {sets:,} | {smallest:.2g} | {wrong} |")
    return "\n".join(out)


def controls_table(lines: Sequence[Line]) -> str:
    """Return a row for each kind of control: how many of its questions the judge refuted."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        if not line.should_hold:
            groups.setdefault(control_name(line), []).append(line)
    out = ["| control | questions | refuted | largest p-value |", "|---|---|---|---|"]
    for name, own in sorted(groups.items()):
        cells = sum(line.cells for line in own)
        largest = max(line.p_value for line in own)
        out.append(f"| {name} | {cells} | {cells - sum(line.wrong for line in own)} | {largest:.2g} |")
    return "\n".join(out)


def control_name(line: Line) -> str:
    """Return what is broken, in words."""
    if not line.promise.startswith(CONTROL):
        return NAMED[line.promise]
    name = line.promise.removeprefix(CONTROL)
    return f"{name}: {setting_of(line)['method']}" if name == "no guarantee" else name


def figures(lines: Sequence[Line]) -> dict[str, str]:
    """Return the numbers that stand in sentences."""
    kept = [line for line in lines if line.should_hold]
    controls = [line for line in lines if not line.should_hold]
    cells = sum(line.cells for line in kept)
    found, asked = (sum(line.off_by_one[i] for line in kept) for i in (0, 1))
    return {
        "questions": f"{cells:,}",
        "runs": f"{len(kept):,}",
        "sets": f"{sum(line.sets for line in kept):,}",
        "refuted": f"{sum(line.wrong for line in kept)}",
        "smallest": f"{min(line.p_value for line in kept):.2g}",
        "significance": f"{1e-6 / cells:.2g}",
        "controls": f"{sum(line.cells for line in controls)}",
        "controls_refuted": f"{sum(line.cells - line.wrong for line in controls)}",
        "off_by_one": f"{found:,} of {asked:,}",
    }


def readme(lines: Sequence[Line], about: str) -> str:
    """Return the page of figures."""
    own = figures(lines)
    shared = [
        "# Acceptance, the figures",
        "This page is for developers who want to know which questions were asked of guardband's promises, and what "
        "came out.\n[Does every promise hold?](../../../docs/acceptance.md) explains them, and [the benchmark]"
        f"(../../acceptance/README.md) has the commands.\n`runs.csv` has a row for each run. {about}",
        f"{own['refuted']} of {own['questions']} questions were refuted at {own['significance']} each, which is one in "
        f"a million for all of them together. The smallest p-value is\n{own['smallest']}. The judge refuted "
        f"{own['controls_refuted']} of {own['controls']} controls.",
        "A rank that is too small by one would have been refuted with a chance above 99.9% in "
        f"{own['off_by_one']} questions whose law of ranks is exact.\nIn the others it changes coverage by less than "
        "so many calibration sets can show. Without an exact law, coverage is larger than promised, and a small fault "
        "can hide.",
    ]
    parts = {
        "## By promise": promises_table(lines),
        "## Controls": f"The judge must refute these, at the same significance.\n\n{controls_table(lines)}",
        "## By noise": by_setting(lines, "noise"),
        "## By network": '"worst" and "bad" are the candidates of pav. "means" and the like are the models of '
        f"cross-validation.\n\n{by_setting(lines, 'network')}",
        "## By calibration rows": by_rows(lines),
    }
    return "\n\n".join([*shared, *(f"{head}\n\n{text}" for head, text in parts.items())]) + "\n"


def filled(page: str, name: str, text: str) -> str:
    """Return a page with what stands between two comments replaced."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = page.split(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"


def doc_page(page: str, lines: Sequence[Line]) -> str:
    """Return the page of the documentation with the tables and numbers of these lines."""
    own = figures(lines)
    said = (
        f"guardband was asked {own['questions']} questions on {own['sets']} calibration sets. "
        f"**{own['refuted']} were refuted.** The smallest p-value is {own['smallest']}, and a\nquestion counts as "
        f"refuted below {own['significance']}. The same judge refuted {own['controls_refuted']} of {own['controls']} "
        "controls: rules that are broken on purpose, and methods without\na guarantee."
    )
    for name, text in (("verdict", said), ("promises", promises_table(lines)), ("controls", controls_table(lines))):
        page = filled(page, name, text)
    return page


def main(folder: Path, about: str) -> None:
    """Judge the runs of a folder and write table and pages."""
    wanted = {run.name for run in full()}
    verdict = judged(line for line in read(folder) if json.loads(line)["run"] in wanted)
    if verdict.errors:
        raise SystemExit(f"{len(verdict.errors)} runs ended with an error. Mend them, and run the plan again.")
    lines = lines_of(verdict)
    RESULTS.mkdir(parents=True, exist_ok=True)
    if (RESULTS / "runs.csv").exists():
        fresh = {line.run for line in lines}
        lines += [own for own in read_csv(RESULTS / "runs.csv") if own.run in wanted - fresh]
    write_csv(sorted(lines, key=lambda own: own.run), RESULTS / "runs.csv")
    lines = read_csv(RESULTS / "runs.csv")
    (RESULTS / "about.json").write_text(json.dumps({"about": about}) + "\n")
    (RESULTS / "README.md").write_text(readme(lines, about))
    PAGE.write_text(doc_page(PAGE.read_text(), lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
