"""A picture of the contributions to one row, by matplotlib (the extra ``plots``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from guardband.bands.sides import REACH
from guardband.data.packages import need_packages
from guardband.explain.bars import bars_of
from guardband.explain.explanation import Explanation, Of
from guardband.words import number

MORE, LESS, ERROR = "#c2410c", "#1f5f99", "#1b1b1b"
TITLE = {"width": "width", "point": "prediction"}


def plot_contributions(explanation: Explanation, row: int, of: Of, most: int, ax: Any) -> Any:
    """Draw bars to the right for what adds and to the left for what takes away; see ``Explanation.plot``."""
    need_packages("plots", "matplotlib")
    from matplotlib import pyplot

    bars = bars_of(explanation, row, of, most)
    place, values = np.arange(len(bars))[::-1], [bar.value for bar in bars]
    ax = pyplot.subplots(figsize=(8, 0.4 * len(bars) + 1.4), layout="constrained")[1] if ax is None else ax
    ax.barh(place, values, color=[MORE if value > 0 else LESS for value in values], height=0.7)
    if not explanation.exact:
        ax.errorbar(values, place, xerr=[2 * (bar.error or 0) for bar in bars], fmt="none", ecolor=ERROR, lw=1)
    whole, base = explanation.whole(row, of)
    ax.axvline(0, color=ERROR, lw=0.8)
    ax.set_yticks(place, [bar.label.replace("$", r"\$") for bar in bars])
    ax.xaxis.set_major_formatter(lambda value, place: number(value))
    title = REACH[explanation.side] if of == "width" else TITLE[of]
    ax.set(xlabel=f"added to the {title}", title=f"{title} {number(whole)}, on average {number(base)}")
    return ax
