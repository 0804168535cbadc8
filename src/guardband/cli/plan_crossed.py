"""What cross-validation would prove for tables that are too small to spare calibration rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from guardband.cli.console import Speaker
from guardband.words import at_least, level_name

ROWS_FOR_ONE = 4
"""So many rows has a table for each calibration row, if a quarter of them calibrates."""
AHEAD_UP_TO = 3_200
"""Up to tables of so many rows cv+ had the better interval score: benchmarks/results/cross."""
FOLDS = 8


@dataclass(frozen=True)
class Crossed:
    """What cv+ proves for a table of so many rows, on average over tables."""

    rows: int
    proved: float


def crossed(level: float, sizes: Sequence[int]) -> list[Crossed]:
    """Return what cv+ proves for tables of which a quarter is one of these numbers of rows, if they are small."""
    from guardband.bands.cross_bounds import plus_missed
    from guardband.bands.levels import Levels
    from guardband.bands.ranks import marginal_rank

    exact, out = Levels.of(level).values[0], []
    for rows in (ROWS_FOR_ONE * size for size in sizes):
        if FOLDS <= rows <= AHEAD_UP_TO:
            each = rows // FOLDS
            out.append(Crossed(rows, 1 - plus_missed(marginal_rank(exact, FOLDS * each), [each] * FOLDS)))
    return out


def tell_crossed(found: Sequence[Crossed], level: float, speaker: Speaker) -> None:
    """Say when all rows of a table can calibrate, and what that proves."""
    if not found:
        return
    proved = ", ".join(f"{at_least(own.proved)} with {own.rows:,} rows" for own in found)
    speaker.tell(
        f"\nIf your whole table has at most {AHEAD_UP_TO:,} rows, consider guardband fit --calibration cv+. All rows "
        "then train and calibrate. In measurements on such tables its interval score was better than with held-out "
        f"rows. But it proves less than {level_name(level)}: at least {proved}."
    )
