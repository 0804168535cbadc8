"""A run in short, in Markdown: the verdict on each claim, and how far the curves agree with the printed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from guardband.experiments.reproduce.claims import Claim
from guardband.experiments.reproduce.compare import (
    CLEAR,
    MEASURES,
    MIDDLE,
    PIXEL,
    SHOWN,
    agreement,
    apart,
    impossible_points,
)

if TYPE_CHECKING:
    import pandas as pd

AGREEMENT = (
    *("figure", "methods", "points read", "differ", "still differ"),
    *("coverage apart", "relative length apart", "combined MAE apart"),
)
READ = (
    f"“Differ” counts points over {CLEAR:g} standard errors of guardband's mean from the printed curve. “Still differ” "
    "gives the printed curve a standard error as large, and one pixel of misreading. A pixel is at most "
    f"{PIXEL['coverage']} of coverage, {PIXEL['relative_length']} of relative length and {PIXEL['combined_mae']} of "
    "combined MAE. The last three columns are the median distance. Points hidden behind another curve are left out."
)


def summary_of(comparison: pd.DataFrame, claims: Sequence[Claim], note: str | None) -> str:
    """Return the summary."""
    verdicts = [(claim.text, claim.verdict) for claim in claims]
    parts = [note or "", _table(("the paper's claim", "verdict"), verdicts)]
    rows = agreement_rows(comparison)
    if rows:
        parts += [_table(AGREEMENT, rows), READ, remarks(comparison)]
    return "\n\n".join(part for part in parts if part) + "\n"


def agreement_rows(comparison: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the agreement of each printed figure with ours, as text."""
    return [
        (
            *(str(row[name]) for name in ("figure", "methods", "points", "differ", "differ_still")),
            *(f"{row[name]:.3f}" for name in MEASURES),
        )
        for _, row in agreement(comparison).sort_values(["figure", "methods"]).iterrows()
    ]


def remarks(comparison: pd.DataFrame) -> str:
    """Say where Figure 1 differs from the printed one, and how many printed points cannot be right."""
    settings = [name for figure, _, name in SHOWN if figure == "1" and name in set(comparison["setting"])]
    said = [_where(setting, *apart(comparison, setting)) for setting in settings]
    wrong, of = impossible_points("1")
    listed = ", ".join(f"{method} {count}" for method, count in wrong.items())
    said += [
        f"{sum(wrong.values())} of {of} points of the printed Figure 1 cannot be right, as printed or as read "
        f"({listed}).",
        "Even perfect intervals of the printed length would cover less.",
        "The smoothing of the printed curves may be the reason.",
    ]
    return " ".join(said)


def _where(setting: str, middle: float, ends: float) -> str:
    low, high = MIDDLE
    return (
        f"In Figure 1 ({setting}) the coverage of the six is a median of {middle:.3f} apart for beta'x between {low:g} "
        f"and {high:g}, and {ends:.3f} outside."
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
