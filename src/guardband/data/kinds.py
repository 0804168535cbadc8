"""What a column is: one word for it, and the one place where it is decided.

A type decides if the column has one. A CSV has none: there, all cells of the file decide when it is read. Objects of
Python have none either: there, all rows given to ``fit`` decide, by the same rule, before any row is set aside.
Afterwards the model says what its columns are, whatever arrives, so that every batch of a file reads alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import narwhals.stable.v2 as nw
from numpy.typing import NDArray

from guardband.data import text_cells as text
from guardband.data.number_marks import THOUSANDS, NumberMarks, in_doubt

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["number", "boolean", "date", "category"]
"""Numbers stand for themselves, for truth as 1 and 0, or for days since 1970; a category is a text."""

ONE_TEXT = {"number": text.number_in, "boolean": text.boolean_in, "date": text.day_in}
ALL_TEXT = {"number": text.numbers_in, "boolean": text.booleans_in, "date": text.dates_in}
LOOKED_AT = 1000
NEARLY = 0.9
OTHER_DATE = r"^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\b"


def kind_of_type(dtype: nw.dtypes.DType) -> Kind | None:
    """Return what a column of this type is, or None if only its cells can tell."""
    if dtype == nw.Boolean:
        return "boolean"
    if dtype == nw.Date or dtype == nw.Datetime:
        return "date"
    if dtype.is_numeric() or dtype.is_temporal():
        return "number"
    return "category" if dtype in (nw.String, nw.Categorical, nw.Enum) else None


def kind_of_cells(cells: NDArray[Any], numbers_are: Kind) -> Kind:
    """Return what cells are that are None, numbers or text; text may say what the numbers are, as in a CSV."""
    present = {cell for cell in cells if cell is not None}
    texts = [cell for cell in present if isinstance(cell, str)]
    if not texts:
        return numbers_are if present else "category"
    alone: tuple[Kind, ...] = ("boolean", "number", "date")
    kinds = alone if len(texts) == len(present) else (numbers_are,)
    return next((kind for kind in kinds if _all_say(texts, kind)), "category")


def _all_say(texts: list[str], kind: Kind) -> bool:
    if kind == "boolean":
        return all(cell.lower() in text.TRUE + text.FALSE for cell in texts)
    try:
        for cell in texts:
            text.day_in(cell) if kind == "date" else text.number_in(cell, decimal_comma=True)
    except ValueError:
        return False
    return kind == "date" or doubt_in(texts) is None


def doubt_in(texts: Iterable[str]) -> str | None:
    """Return what ``doubt_on`` says of cells that are texts of Python."""
    every = sorted(texts)
    mark = NumberMarks.of_texts(every).doubtful
    return None if mark is None else in_doubt(next(cell for cell in every if re.match(THOUSANDS[mark], cell)))


def kind_of_text(cells: pa.Array, decimal_comma: bool) -> Kind:
    """Return what trimmed cells of a CSV are: what all of them say, and there is one."""
    import pyarrow as pa

    def say(some: pa.Array, kind: Kind) -> bool:
        try:
            made = ALL_TEXT[kind](some, decimal_comma)
        except text.CellError:
            return False
        return kind != "boolean" or bool(pa.types.is_boolean(made.type))

    if cells.null_count == len(cells):
        return "category"
    kinds: tuple[Kind, ...] = ("boolean", "number", "date")
    for part in (cells.drop_null()[:LOOKED_AT], cells):
        kinds = tuple(kind for kind in kinds if say(part, kind))
    if "number" in kinds and decimal_comma and doubt_on(cells):
        return "category"
    return kinds[0] if kinds else "category"


def column_of(column: pa.Array, kind: Kind, decimal_comma: bool) -> pa.Array:
    """Return a column of bytes or text as what it is; a cell that says something else is a ``CellError``."""
    import pyarrow as pa

    if kind == "number":
        with suppress(pa.ArrowInvalid):  # nearly always all cells are numbers as they stand
            return column.view(pa.string()).cast(pa.float64())
    cells = text.cells_of(column)
    return cells if kind == "category" else ALL_TEXT[kind](cells, decimal_comma)


def doubt_on(cells: pa.Array) -> str | None:
    """Return what to say of numbers whose commas or dots may mark thousands, and decimals too."""
    import pyarrow.compute as pc

    present = cells.drop_null()
    mark = NumberMarks.of(present).doubtful
    if mark is None:
        return None
    return in_doubt(present.filter(pc.match_substring_regex(present, THOUSANDS[mark]))[0].as_py())


def remark_on(cells: pa.Array, decimal_comma: bool) -> str | None:
    """Return what a reader should know of a category: that nearly all cells are numbers, or dates, or all in doubt."""
    import pyarrow.compute as pc

    present = cells.drop_null()
    odd = present.filter(pc.invert(text.is_number(present, decimal_comma)))
    if not len(odd) and (doubt := doubt_on(present)):
        return f"is read as a category because {doubt}"
    if 0 < len(odd) <= (1 - NEARLY) * len(present):
        count = "1 cell is not a number" if len(odd) == 1 else f"{len(odd):,} cells are not numbers"
        it = "it" if len(odd) == 1 else "them"
        return f"is read as a category because {count}, such as {odd[0].as_py()!r}: correct {it}, or leave {it} empty"
    dates = present.filter(pc.match_substring_regex(present, OTHER_DATE))
    if len(dates) and len(dates) >= NEARLY * len(present):
        odd = present.filter(pc.invert(pc.match_substring_regex(present, f"^(?:{text.DATE.pattern})$")))
        if len(odd):
            cell = odd[0].as_py()
            return f"is read as a category, not as dates: write {cell!r} in the form 2024-12-31 or 31.12.2024"
        try:
            text.dates_in(present, decimal_comma)
        except text.CellError as error:
            return f"is read as a category, not as dates: {error.text!r} is none. Correct it, or leave it empty"
    return None
