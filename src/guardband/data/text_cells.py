"""What text in a table says: missing values, numbers, truth and dates, by one rule for a single text and for a file.

Arrow reads a file's cells all at once, Python one text alone. Both read the same texts as the same numbers.
"""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "none", "?")
TRUE = ("true", "yes")
FALSE = ("false", "no")
FINITE = r"^[+-]?(\d+[.]?\d*|[.]\d+)([eE][+-]?\d+)?$"
NUMBER = re.compile(rf"{FINITE}|^[+-]?(inf|infinity|nan)$", re.ASCII | re.IGNORECASE)
CLOCK, ZONE = r"[ T]\d\d(:\d\d(:\d\d([.]\d{1,6})?)?)?", r"(Z|[+-]\d\d(:?\d\d)?)"
ISO, DOTTED, SLASHED = r"\d{4}-\d\d-\d\d", r"\d{1,2}[.]\d{1,2}[.]\d{4}", r"\d{4}/\d{1,2}/\d{1,2}"
DATE = re.compile(rf"({ISO}|{DOTTED}|{SLASHED})({CLOCK}{ZONE}?|[ T]\d\d:\d\d:\d\d[.]\d{{7,9}})?", re.ASCII)
DECIMAL_COMMA = r"^([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)$"
FINE = re.compile(r"[.]\d{7,}")
DAY_US = 86_400e6
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""The first of January of the year 1, and the last of December of 9999, in days since 1970: Python has no others."""
MOST_FINE_DAYS = 2**63 / 86_400e9
"""Days from 1970 within which Arrow knows nanoseconds."""


def number_in(text: str, decimal_comma: bool = False) -> float:
    """Return the number that a trimmed text says; any other text is a ``ValueError``.

    >>> number_in("1e3"), number_in("-2,5", decimal_comma=True)
    (1000.0, -2.5)
    """
    if decimal_comma:
        text = re.sub(DECIMAL_COMMA, r"\1.\2", text)
    if not NUMBER.match(text):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def boolean_in(text: str) -> float:
    """Return the truth that a trimmed text says, as 1 or 0, also if it is written as a number."""
    word = text.lower()
    if word not in TRUE + FALSE and not NUMBER.match(text):
        raise ValueError(f"{text!r} is neither true nor false")
    return float(word in TRUE) if word in TRUE + FALSE else float(text)


def day_in(text: str) -> float:
    """Return the days since 1970 that a trimmed text says. With dots between them, the day comes before the month.

    >>> day_in("1970-01-02T12:00"), day_in("1970-01-02 01:00+01:00"), day_in("3.1.1970"), day_in("1970/1/3")
    (1.5, 1.0, 2.0, 2.0)
    """
    if not DATE.fullmatch(text):
        raise ValueError(f"{text!r} is not a date such as 2024-12-31 or 31.12.2024")
    if re.match(DOTTED, text):
        day, month, rest = text.split(".", 2)
        text = f"{rest[:4]}-{month:0>2}-{day:0>2}{rest[4:]}"
    elif slashed := re.match(SLASHED, text):
        year, month, day = slashed[0].split("/")
        text = f"{year}-{month:0>2}-{day:0>2}{text[slashed.end() :]}"
    try:
        found = days(datetime.datetime.fromisoformat(text))
    except OverflowError:  # in Greenwich it is another year
        raise ValueError(f"{text!r} lies outside of the years 1 to 9999") from None
    if FINE.search(text) and abs(found) >= MOST_FINE_DAYS:
        raise ValueError(f"{text!r} has nanoseconds so far from 1970")
    return found


def days(moment: datetime.datetime) -> float:
    """Return the days since 1970, in Greenwich if the moment has a zone."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return (moment - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1) / DAY_US


def numbers_in(cells: pa.Array, decimal_comma: bool) -> pa.Array:
    """Return the numbers that trimmed cells say; any other cell is a ``CellError``."""
    import pyarrow as pa

    return _cast(_with_points(cells, decimal_comma), pa.float64())


def booleans_in(cells: pa.Array, decimal_comma: bool) -> pa.Array:
    """Return the truth that trimmed cells say, as numbers if some write it as 1 and 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.utf8_lower(cells)
    truth = pc.is_in(words, pa.array(TRUE))
    known = pc.or_(truth, pc.is_in(words, pa.array(FALSE)))
    if cells.null_count + pc.sum(known, min_count=0).as_py() == len(cells):
        return pc.if_else(known, truth, pa.scalar(None, pa.bool_()))
    return numbers_in(pc.if_else(known, pc.if_else(truth, "1", "0"), cells), decimal_comma)


def dates_in(cells: pa.Array, decimal_comma: bool) -> pa.Array:
    """Return the moments that trimmed cells say, all with a zone or all without one."""
    import pyarrow as pa

    written = _with_hyphens(cells)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns")):
        with suppress(pa.ArrowInvalid):
            return _in_known_years(written.cast(kind), cells)
    try:
        return _cast(written, pa.timestamp("us"))
    except CellError as error:
        raise CellError(error.index, cells[error.index].as_py()) from None


def _in_known_years(moments: pa.Array, cells: pa.Array) -> pa.Array:
    """Return moments that Python knows too; a cell with any other is a ``CellError``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if moments.type.unit == "ns":
        return moments
    low, high = int(FIRST_DAY * DAY_US), int((LAST_DAY + 1) * DAY_US)
    numbers = moments.cast(pa.int64())
    row = pc.index(pc.or_(pc.less(numbers, low), pc.greater_equal(numbers, high)), True).as_py()
    if row >= 0:
        raise CellError(row, cells[row].as_py())
    return moments


def _with_hyphens(cells: pa.Array) -> pa.Array:
    """Return dates such as 3.4.2021 and 2021/4/3 as 2021-04-03, and any other cell as it is."""
    import pyarrow.compute as pc

    if pc.any(pc.match_substring_regex(cells, f"^{SLASHED}")).as_py():
        cells = pc.replace_substring_regex(cells, r"^(\d{4})/(\d/\d{1,2})", r"\1/0\2")
        cells = pc.replace_substring_regex(cells, r"^(\d{4}/\d\d)/(\d)([ T]|$)", r"\1/0\2\3")
        cells = pc.replace_substring_regex(cells, r"^(\d{4})/(\d\d)/(\d\d)", r"\1-\2-\3")
    if not pc.any(pc.match_substring_regex(cells, f"^{DOTTED}")).as_py():
        return cells
    cells = pc.replace_substring_regex(cells, r"^(\d[.]\d{1,2}[.]\d{4})", r"0\1")
    cells = pc.replace_substring_regex(cells, r"^(\d\d[.])(\d[.]\d{4})", r"\10\2")
    return pc.replace_substring_regex(cells, r"^(\d\d)[.](\d\d)[.](\d{4})", r"\3-\2-\1")


def is_number(cells: pa.Array, decimal_comma: bool) -> pa.Array:
    """Return for each trimmed cell whether it says a finite number."""
    import pyarrow.compute as pc

    return pc.match_substring_regex(_with_points(cells, decimal_comma), FINITE)


def _with_points(cells: pa.Array, decimal_comma: bool) -> pa.Array:
    import pyarrow.compute as pc

    return pc.replace_substring_regex(cells, DECIMAL_COMMA, r"\1.\2") if decimal_comma else cells


class CellError(ValueError):
    """A cell that says something else than its column; ``index`` counts from 0, ``text`` is what it says."""

    def __init__(self, index: int, text: str) -> None:
        super().__init__(f"cell {index} is {text!r}")
        self.index, self.text = index, text


def cells_of(column: pa.Array) -> pa.Array:
    """Return bytes or text as trimmed text, with null for what means missing; bytes that are no UTF-8 are Latin-1."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.utf8_trim_whitespace(as_text(column))
    return pc.if_else(pc.is_in(column, pa.array(MISSING)), pa.scalar(None, pa.string()), column)


def as_text(column: pa.Array) -> pa.Array:
    """Return a column as text, as it is written; bytes that are no UTF-8 are Latin-1."""
    import pyarrow as pa

    if not is_latin(column):
        return column.cast(pa.string())
    encoded = column.cast(pa.binary()).dictionary_encode()  # most texts come more than once
    return pa.array([decoded(text) for text in encoded.dictionary.to_pylist()], pa.string()).take(encoded.indices)


def is_latin(column: pa.Array) -> bool:
    """Return whether a column holds bytes that are no UTF-8."""
    import pyarrow as pa

    return is_bytes(column.type) and _fails(column, pa.string())


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether a type is one of bytes."""
    import pyarrow as pa

    return any(is_so(kind) for is_so in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view))


def decoded(text: bytes) -> str:
    """Return UTF-8 as text, and what is none as Latin-1 with Windows' additions, such as the euro sign."""
    for encoding in ("utf-8", "cp1252"):
        with suppress(UnicodeDecodeError):
            return text.decode(encoding)
    return text.decode("latin-1")


def _cast(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    with suppress(pa.ArrowInvalid):
        return cells.cast(kind)
    low, high = 0, len(cells)  # the first cell that cannot be cast lies in between
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fails(cells[low:middle], kind) else (middle, high)
    raise CellError(low, cells[low].as_py())


def _fails(cells: pa.Array, kind: pa.DataType) -> bool:
    import pyarrow as pa

    try:
        cells.cast(kind)
    except pa.ArrowInvalid:
        return True
    return False
