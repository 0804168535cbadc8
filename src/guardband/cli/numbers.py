"""Numbers as people read them: thousands with commas, few digits, no powers of ten for ordinary sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from guardband.words import number

LARGE, SMALL = 1e15, 1e-6
"""Beyond these sizes digits tell less than a power of ten."""
MINUS = "\N{MINUS SIGN}"


def plain_number(value: float | None) -> str:
    """Return a number with three digits or more, whole from a thousand on; None, as JSON has it, is infinite.

    >>> plain_number(102345.6), plain_number(1.25e9), plain_number(0.00012349), plain_number(12.0), plain_number(None)
    ('102,346', '1,250,000,000', '0.0001235', '12', 'infinite')
    """
    if value is None or math.isinf(value):
        return "infinite"
    if 1000 <= abs(value) < LARGE:
        return f"{value:,.0f}".replace("-", MINUS)
    if 0 < abs(value) < 1 and abs(value) >= SMALL:
        digits = 3 - math.floor(math.log10(abs(value)))
        return f"{value:.{digits}f}".rstrip("0").replace("-", MINUS)
    return number(value)


def digits_for(widths: Sequence[float]) -> int:
    """Return how many digits after the point tell ends of intervals of these widths apart: three that count.

    >>> digits_for([156_000.0]), digits_for([3.2, 5.0]), digits_for([0.02])
    (0, 2, 4)
    """
    finite = sorted(width for width in widths if 0 < width < math.inf)
    if not finite:
        return 2
    return min(max(0, 2 - math.floor(math.log10(finite[len(finite) // 2]))), 9)


def with_digits(value: float, digits: int) -> str:
    """Return a number with so many digits after the point; one of no ordinary size by its leading digits.

    >>> with_digits(1234.5, 0), with_digits(-0.5, 2), with_digits(float("inf"), 2), with_digits(2.5e300, 0)
    ('1,234', '−0.50', '∞', '2.5e300')
    """
    if not math.isfinite(value) or abs(value) >= LARGE or 0 < abs(value) < SMALL:
        return number(value)
    return f"{value:,.{digits}f}".replace("-", MINUS)


def short_cell(value: Any, longest: int = 20) -> str:
    """Return a cell of an input column in short: whole numbers, among them years, as they are.

    >>> short_cell(1955.0), short_cell(47.51123456), short_cell("2014-10-13 00:00:00"), short_cell(None)
    ('1955', '47.511', '2014-10-13', '')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        whole = math.isfinite(value) and value == int(value) and abs(value) < LARGE
        return f"{value:.0f}" if whole else f"{value:.5g}"
    text = " ".join(str(value).removesuffix(" 00:00:00").split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
