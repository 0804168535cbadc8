"""Did verdicts change? Compares the fits of two runs, case by case, by exact tests.

python compare.py FOLDER [SUMMARY]

FOLDER is that of ``run.py -o``; SUMMARY is what an earlier run said, by default the stored one. For each case: the
least p-value of Fisher's test, two-sided, over the four verdicts, and that of the first new rows which are covered.
"""

import re
import sys
from pathlib import Path

from scipy.stats import fisher_exact

STORED = Path(__file__).parents[1] / "results" / "real_tables" / "summary.md"
WORDS = ("consistent", "too few rows", "broken", "cannot judge")


def counts(path):
    """Return, for each case, the number of fits, those of each verdict, and covered rows of how many."""
    found = {}
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 10 and cells[2].isdigit():
            covered = re.match(r"(\d+) of (\d+)", cells[9])
            fits, *verdicts = map(int, cells[2:7])
            found[cells[0], cells[1]] = fits, verdicts, tuple(map(int, covered.groups())) if covered else (0, 0)
    return found


def p_value(hits, of, stored_hits, stored_of):
    """Return Fisher's two-sided p-value of two shares."""
    return fisher_exact([[hits, of - hits], [stored_hits, stored_of - stored_hits]]).pvalue


def main():
    """Print a line for each case of the new run, and the least p-value of all with how many there are."""
    before = counts(Path(sys.argv[2]) if len(sys.argv) > 2 else STORED)
    every = []
    for case, (fits, verdicts, covered) in counts(Path(sys.argv[1]) / "summary.md").items():
        stored_fits, stored_verdicts, stored_covered = before[case]
        pairs = zip(verdicts, stored_verdicts, strict=True)
        own = [p_value(now, fits, then, stored_fits) for now, then in pairs]
        rows = p_value(*covered, *stored_covered)
        every += [*own, rows]
        said = ", ".join(f"{n} {word}" for n, word in zip(verdicts, WORDS, strict=True) if n)
        print(f"{', '.join(filter(None, case))}: {fits} fits, {said}: p {min(own):.2g}; rows {covered}: p {rows:.2g}")
    print(f"{len(every)} p-values, the least {min(every):.2g}")


if __name__ == "__main__":
    main()
