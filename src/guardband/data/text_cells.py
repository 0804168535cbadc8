"""Columns of text made into numbers, dates, booleans or categories, by Arrow: a file's cells all at once.

What a column holds is decided once, over all its cells, when a model is fitted; afterwards cells are read as that,
whatever stands around them, so that every batch of a file reads alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from guardband.data.words import FALSE, MISSING, TRUE, Unit

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Unit | Literal["category"]
LOOKED_AT = 1000
NEARLY = 0.9
NUMBER = r"^[+-]?(\d+[.]?\d*|[.]\d+)([eE][+-]?\d+)?$"
DECIMAL_COMMA = r"^([+-]?\d*),(\d+)$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"
OTHER_DATE = r"^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\b"


class CellError(ValueError):
    """A cell that says something else than its column; ``place`` counts from 0, ``text`` is what it says."""

    def __init__(self, place: int, text: str) -> None:
        super().__init__(f"cell {place} is {text!r}")
        self.place, self.text = place, text


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
    return pa.array([None if v is None else decoded(v) for v in column.to_pylist()], pa.string())


def is_latin(column: pa.Array) -> bool:
    """Return whether a column holds bytes that are no UTF-8."""
    import pyarrow as pa

    if not is_bytes(column.type):
        return False
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return True
    return False


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether a type is one of bytes."""
    import pyarrow as pa

    return any(is_so(kind) for is_so in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view))


def decoded(text: bytes) -> str:
    """Return UTF-8 as text, and what is none as Latin-1 with Windows' additions, such as the euro sign."""
    for encoding in ("utf-8", "cp1252"):
        try:
            return text.decode(encoding)
        except UnicodeDecodeError:
            continue
    return text.decode("latin-1")


def kind_of(cells: pa.Array, decimal_comma: bool) -> Kind:
    """Return what a column of trimmed cells holds: all of them say it, and there is one."""
    if cells.null_count == len(cells):
        return "category"
    kinds: tuple[Unit, ...] = ("boolean", "number", "date")
    for part in (cells.drop_null()[:LOOKED_AT], cells):
        kinds = tuple(kind for kind in kinds if _says(part, kind, decimal_comma))
    if "number" in kinds and decimal_comma and doubt_on(cells):
        return "category"
    return kinds[0] if kinds else "category"


def doubt_on(cells: pa.Array) -> str | None:
    """Return what to say of numbers if all that have a comma have it as 1,234 does: thousands look so, and decimals."""
    import pyarrow.compute as pc

    commas = cells.drop_null()
    commas = commas.filter(pc.match_substring(commas, ","))
    if not len(commas) or not pc.all(pc.match_substring_regex(commas, THOUSANDS)).as_py():
        return None
    cell = commas[0].as_py()
    return f"{cell!r} may mean {cell.replace(',', '')} or {cell.replace(',', '.')}: write the one that it is"


def remark_on(cells: pa.Array, decimal_comma: bool) -> str | None:
    """Return what a reader of a column of text should know: that nearly all are numbers, or dates, or all in doubt."""
    import pyarrow.compute as pc

    present = cells.drop_null()
    numbers = pc.replace_substring_regex(present, DECIMAL_COMMA, r"\1.\2") if decimal_comma else present
    odd = present.filter(pc.invert(pc.match_substring_regex(numbers, NUMBER)))
    if not len(odd) and (doubt := doubt_on(present)):
        return f"is read as text since {doubt}"
    if 0 < len(odd) <= (1 - NEARLY) * len(present):
        count = "1 cell is" if len(odd) == 1 else f"{len(odd):,} cells are"
        return f"is read as text since {count} no number, such as {odd[0].as_py()!r}"
    dates = present.filter(pc.match_substring_regex(present, OTHER_DATE))
    if len(dates) and len(dates) >= NEARLY * len(present):
        return f"is read as text: a date is understood if it is written as 2024-12-31, not {dates[0].as_py()!r}"
    return None


def column_of(column: pa.Array, kind: Kind, decimal_comma: bool) -> pa.Array:
    """Return a column of bytes or text as what it holds; a cell that says something else is a ``CellError``."""
    import pyarrow as pa

    if kind == "number":
        try:  # nearly always all cells are numbers as they stand
            return column.view(pa.string()).cast(pa.float64())
        except pa.ArrowInvalid:
            pass
    cells = cells_of(column)
    return cells if kind == "category" else CAST[kind](cells, decimal_comma)


def _numbers(cells: pa.Array, decimal_comma: bool) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if decimal_comma:
        cells = pc.replace_substring_regex(cells, DECIMAL_COMMA, r"\1.\2")
    return _cast(cells, pa.float64())


def _booleans(cells: pa.Array, decimal_comma: bool) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.utf8_lower(cells)
    truth = pc.is_in(words, pa.array(TRUE))
    known = pc.or_(truth, pc.is_in(words, pa.array(FALSE)))
    if cells.null_count + pc.sum(known, min_count=0).as_py() == len(cells):
        return pc.if_else(known, truth, pa.scalar(None, pa.bool_()))
    return _numbers(cells, decimal_comma)  # truth may also come as 1 and 0


def _dates(cells: pa.Array, decimal_comma: bool) -> pa.Array:
    import pyarrow as pa

    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns")):
        try:
            return cells.cast(kind)
        except pa.ArrowInvalid:
            continue
    return _cast(cells, pa.timestamp("us"))


CAST: dict[Unit, Callable[[Any, bool], Any]] = {"number": _numbers, "boolean": _booleans, "date": _dates}


def _cast(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    try:
        return cells.cast(kind)
    except pa.ArrowInvalid:
        pass
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


def _says(cells: pa.Array, kind: Unit, decimal_comma: bool) -> bool:
    import pyarrow as pa

    try:
        made = CAST[kind](cells, decimal_comma)
    except CellError:
        return False
    return kind != "boolean" or pa.types.is_boolean(made.type)
