"""What text in a table says: one rule for missing values, truth and moments, wherever the text comes from."""

from __future__ import annotations

import datetime
from typing import Literal

Unit = Literal["number", "date", "boolean"]
"""What the numbers of a column count: themselves, days since 1970, or truth as 1 and 0."""

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "none", "?")
TRUE = ("true", "yes")
FALSE = ("false", "no")
DAY_US = 86_400e6


def number_in(text: str, unit: Unit) -> float:
    """Return the number that a text says; text that says none is a ``ValueError``.

    >>> number_in("1970-01-02T12:00", "date"), number_in("Yes", "boolean"), number_in(" 2.5", "number")
    (1.5, 1.0, 2.5)
    """
    plain = text.strip()
    if plain in MISSING:
        return float("nan")
    if unit == "boolean" and plain.lower() in TRUE + FALSE:
        return float(plain.lower() in TRUE)
    if unit == "date":
        return days(datetime.datetime.fromisoformat(plain))
    return float(plain)


def days(moment: datetime.datetime) -> float:
    """Return the days since 1970, in Greenwich where the moment has a zone."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return (moment - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1) / DAY_US
