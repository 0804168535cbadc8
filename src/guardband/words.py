"""Numbers, shares and lists in words: the same ones in messages, on the command line, in audits and on the page."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ACTS_ON_A_TERMINAL = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # all control characters but tab and new line: colours, titles, the cursor
    "\u2028-\u202e\u2066-\u2069"  # separators of lines, and marks that turn the direction of the text around them
    "\u200b\u2060\ufeff\U000e0000-\U000e007f"  # not to be seen; joiners stay: languages need them
    "\ud800-\udfff"  # bytes of a file's name that are no text
    "]"
)


def visible(text: str) -> str:
    """Return text that may come from anywhere, with what would act on a terminal, or hide there, as escapes to read.

    >>> visible("red\\x1b[31m"), visible("größe\\n")
    ('red\\\\x1b[31m', 'größe\\n')
    """
    return _ACTS_ON_A_TERMINAL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def number(value: float) -> str:
    """Return a number as people write it: four digits, whole thousands with commas.

    >>> number(1234567.0), number(0.012345), number(12.0), number(float("inf"))
    ('1,234,567', '0.01235', '12', '∞')
    >>> number(1234567890.0), number(0.00000125)
    ('1,235,000,000', '1.25e\N{MINUS SIGN}6')
    """
    if math.isnan(value):
        return "missing"
    if math.isinf(value):
        return "∞" if value > 0 else "\N{MINUS SIGN}∞"
    if value == 0:
        return "0"
    size = abs(value)
    if 1e9 <= size < 1e15:
        value = float(f"{value:.4g}")
    text = f"{value:,.0f}" if 1000 <= size < 1e15 else _power(f"{value:.4g}")
    return text.replace("-", "\N{MINUS SIGN}")


def at_most(value: float) -> str:
    """Return a number as ``number`` writes it, rounded up: what is said not to be exceeded is not.

    >>> at_most(5.0), at_most(5.00001), at_most(1234.2), at_most(float("inf"))
    ('5', '5.001', '1,235', '∞')
    """
    if not math.isfinite(value) or value == 0:
        return number(value)
    exact = Decimal(str(float(value)))
    digits = 0 if 1000 <= abs(value) < 1e9 else exact.adjusted() - 3
    return number(float(exact.quantize(Decimal((0, (1,), digits)), ROUND_CEILING)))


def as_written(value: float, digits: int = 4) -> str:
    """Return a number of a column, which may be a year or a code: no separators, and whole numbers with every digit.

    >>> as_written(1992.0), as_written(1234567.0), as_written(0.012345), as_written(-12345.678)
    ('1992', '1234567', '0.01235', '\N{MINUS SIGN}12346')
    """
    if math.isfinite(value) and abs(value) < 1e15 and (value == int(value) or abs(value) >= 10**digits):
        return f"{value:.0f}".replace("-", "\N{MINUS SIGN}")
    if not math.isfinite(value):
        return number(value)
    return _power(f"{value:.{digits}g}").replace("-", "\N{MINUS SIGN}")


def as_moment(days: float) -> str:
    """Return days since 1970 as a date, with the time of day where there is one.

    >>> as_moment(1.0), as_moment(1.5)
    ('1970-01-02', '1970-01-02 12:00')
    """
    moment = datetime(1970, 1, 1) + timedelta(seconds=round(days * 86_400))
    return str(moment.date()) if days == int(days) else f"{moment:%Y-%m-%d %H:%M}"


def _power(text: str) -> str:
    """Return a number without the zeros and the plus sign that Python writes before its power of ten."""
    return re.sub(r"e([+-])0*(\d+)$", lambda found: f"e{found[1].replace('+', '')}{found[2]}", text)


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
    nudge = 1e-9 if digits < 7 else 0.0
    return f"{100 * share + nudge:.{digits}f}%"


def signed_percent(share: float) -> str:
    """Return a change with its sign, in whole percent.

    >>> signed_percent(0.123), signed_percent(-0.02), signed_percent(0.001)
    ('+12%', '−2%', '0%')
    """
    whole = round(100 * min(share, 1e9))  # beyond, no one reads the digits, and the product may be infinite
    sign = "+" if whole > 0 else "\N{MINUS SIGN}" if whole < 0 else ""
    return f"{sign}{abs(whole):,}%"


def at_least(share: float) -> str:
    """Return a share in percent, rounded down: what is said to be reached is reached, and 100% is only said of all.

    >>> at_least(0.90129), at_least(0.9), at_least(0.999996), at_least(1 - 1e-11), at_least(1.0)
    ('90.12%', '90%', '99.9996%', '99.999999999%', '100%')
    """
    if share >= 1:
        return "100%"
    exact, step = 100 * Decimal(str(float(share))), Decimal("0.01")
    while exact.quantize(step) >= 100:
        step /= 10
    return f"{exact.quantize(step, ROUND_FLOOR):f}".rstrip("0").rstrip(".") + "%"


def no_more_than(share: float) -> str:
    """Return a share in percent, rounded up: what is said not to be exceeded is not, and 0% is only said of none.

    >>> no_more_than(0.10341), no_more_than(0.12), no_more_than(1e-11), no_more_than(0.0), no_more_than(1.0)
    ('10.35%', '12%', '0.000000001%', '0%', '100%')
    """
    return f"{100 - Decimal(at_least(1 - share).removesuffix('%')):f}%"


def level_name(level: float) -> str:
    """Return a level as it was written; 100% is only said of all.

    >>> level_name(0.9), level_name(0.975), level_name(1 - 1e-11), level_name(1.0)
    ('90%', '97.5%', '99.999999999%', '100%')
    """
    digits = 10
    while level < 1 and float(f"{100 * level:.{digits}g}") >= 100:
        digits += 1
    return f"{100 * level:.{digits}g}%"


def confidence_name(delta: float) -> str:
    """Return how sure one is of what may fail with probability delta: never 100%.

    >>> confidence_name(0.1), confidence_name(1e-6), confidence_name(1e-20)
    ('90%', '99.9999%', '99.99999999999999%')
    """
    return level_name(min(1 - delta, math.nextafter(1, 0)))


def chance(p: float) -> str:
    """Return a p-value as text."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}" if p < 0.995 else "p = 1"


def about(count: int) -> str:
    """Return a count of rows that is enough: rounded up to one digit, or to two from a hundred on.

    >>> about(7), about(31), about(384), about(12_345)
    ('7', '40', '390', '13,000')
    """
    digits = 1 if count < 100 else 2
    step: int = 10 ** (len(str(count)) - digits)
    return f"{-(-count // step) * step:,}"


def apart(share: float, other: float) -> str:
    """Return a share in percent, with as few digits as tell it from another one.

    >>> apart(127 / 150, 0.9), apart(0.896, 0.9)
    ('85%', '89.6%')
    """
    digits = 0
    while digits < 6 and round(100 * share, digits) == round(100 * other, digits):
        digits += 1
    return percent(share, digits)


def rows_named(rows: NDArray[np.intp] | Sequence[int], most: int = 5) -> str:
    """Return rows by their numbers, the last ones only counted if they are many.

    >>> rows_named([3]), rows_named(range(7))
    ('row 3', 'rows 0, 1, 2, 3, 4 and 2 more')
    """
    return f"{'row' if len(rows) == 1 else 'rows'} {_few([str(row) for row in rows[:most]], len(rows))}"


def listed(names: Sequence[object], most: int = 5) -> str:
    """Return names in quotes, the last ones only counted if they are many.

    >>> listed(["a", "b"]), listed("abc", most=2)
    ("'a', 'b'", "'a', 'b' and 1 more")
    """
    return _few([repr(name) for name in names[:most]], len(names))


def _few(shown: Sequence[str], count: int) -> str:
    more = count - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def plain(value: Any) -> Any:
    """Return nested values for JSON: numbers and arrays of numpy as Python's, what is not finite as None."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
