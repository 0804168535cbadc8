"""Evidence block by block, for the script of a page."""

from __future__ import annotations

import math
from typing import Any

from guardband.monitor.blocks import Block

TEN = math.log(10)


def history_entries(
    blocks: tuple[Block, ...], log_limit: float, alarm_row: int | None, since: int | None
) -> dict[str, Any]:
    """Return the entries that draw the evidence, which is in powers of ten."""
    return {
        "first": [own.first for own in blocks],
        "rows": [own.rows for own in blocks],
        "evidence": [own.log_evidence / TEN for own in blocks],
        "highest": [own.log_highest / TEN for own in blocks],
        "begin": [own.begin for own in blocks],
        "end": [own.end for own in blocks],
        "limit": log_limit / TEN,
        "alarm": alarm_row,
        "since": since,
    }
