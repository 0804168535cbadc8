"""Numbers in words, alike in audits and on the page."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def number(value: float) -> str:
    """Return a number as people write it: four digits, whole thousands with commas.

    >>> number(1234567.0), number(0.012345), number(12.0), number(float("inf"))
    ('1,234,567', '0.01235', '12', '∞')
    """
    if math.isnan(value):
        return "missing"
    if math.isinf(value):
        return "∞" if value > 0 else "\N{MINUS SIGN}∞"
    if value == 0:
        return "0"
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"
    return text.replace("-", "\N{MINUS SIGN}")


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent, with fixed digits; 100% is only said of all, 0% of none.

    >>> percent(0.9015), percent(0.9), percent(0.99996), percent(1.0)
    ('90.2%', '90.0%', '99.996%', '100%')
    """
    if share in (0, 1):
        return f"{100 * share:g}%"
    while 0 < share < 1 and round(100 * share, digits) in (0, 100):
        digits += 1
    # 1803 / 2000 is a little less than 0.9015 in binary, and people round it up.
    return f"{100 * share + 1e-9:.{digits}f}%"


def level_name(level: float) -> str:
    """Return a level as it was written: 90%, 97.5%."""
    return f"{100 * level:.10g}%"


def chance(p: float) -> str:
    """Return a p-value as text."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}" if p < 0.995 else "p = 1"


def plain(value: Any) -> Any:
    """Return nested values for JSON: numpy's numbers as Python's, what is not finite as None."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
