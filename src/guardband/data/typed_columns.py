"""Columns of a table on disk as what they were when a model was fitted; cells that say something else are named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from guardband.data.kinds import Kind, column_of
from guardband.data.text_cells import FIRST_DAY, LAST_DAY, CellError, cells_of, is_bytes

if TYPE_CHECKING:
    import pyarrow as pa

from guardband.data.disk import DiskTable

MOST_DAYS = 999_999_998
UNITS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def typed(table: Any, kinds: Mapping[str, Kind | None], disk: DiskTable, first_row: int = 0) -> pa.Table:
    """Return the columns named, each as what it was when the model was fitted (None: as it comes)."""
    import pyarrow as pa

    with disk.reading():
        made = [_typed(name, table.column(name), kind, disk, first_row) for name, kind in kinds.items()]
        return pa.table(made, names=list(kinds))


def _typed(name: str, column: Any, kind: Kind | None, disk: DiskTable, first_row: int) -> Any:
    import pyarrow as pa

    types, own = pa.types, column.type
    held = own.value_type if types.is_dictionary(own) else own
    if types.is_nested(held) or types.is_interval(held) or isinstance(held, pa.BaseExtensionType):
        raise ValueError(
            f"The column {name!r} holds {own}, but cells must be numbers, text, dates or booleans. Split it into "
            "columns, or remove it."
        )
    if types.is_float16(own):
        return column.cast(pa.float32())
    if types.is_temporal(held):
        _need_moments(name, column, held, disk, first_row)
    if types.is_date64(own):
        column = column.cast(pa.date32())
    if types.is_date(own) or types.is_timestamp(own):
        if kind not in (None, "date"):
            raise ValueError(_retyped(name, kind, "dates"))
        return column
    is_text = any(is_so(own) for is_so in (types.is_string, types.is_large_string, types.is_string_view))
    if not is_text and not is_bytes(own):
        if kind == "date" and not types.is_null(own):
            raise ValueError(_retyped(name, kind, str(own)))
        return column
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    column = column.cast(pa.string() if is_text else pa.binary())
    if kind is None:
        return column if is_text else cells_of(column)
    try:
        return column_of(column, kind, disk.decimal_comma)
    except CellError as error:
        raise ValueError(_retyped(name, kind, f"{error.text!r} in {disk.place(first_row + error.index + 1)}")) from None


def _need_moments(name: str, column: Any, kind: Any, disk: DiskTable, first_row: int) -> None:
    """Raise if dates or spans are beyond what Python can say, or in a time zone that nobody knows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    zone = kind.tz if pa.types.is_timestamp(kind) else None
    if zone is not None:
        try:
            pa.lib.string_to_tzinfo(zone)
        except (pa.ArrowException, ValueError, LookupError, OSError):
            raise ValueError(
                f"The column {name!r} is in the time zone {zone!r}, which is not known: write it in UTC."
            ) from None
    if pa.types.is_time(kind):
        return
    if pa.types.is_dictionary(column.type):
        column = column.cast(kind)
    is_days = pa.types.is_date32(kind)
    numbers = column.cast(pa.int32()).cast(pa.int64()) if is_days else column.cast(pa.int64())
    day = 1 if is_days else UNITS_A_DAY["ms" if pa.types.is_date64(kind) else kind.unit]
    low, high = (-MOST_DAYS, MOST_DAYS) if pa.types.is_duration(kind) else (FIRST_DAY, LAST_DAY)
    aside = zone is not None  # a zone may lead into the day before or after
    low, high = max((low + aside) * day, -(2**63)), min((high - aside + 1) * day - 1, 2**63 - 1)
    row = pc.index(pc.or_(pc.less(numbers, low), pc.greater(numbers, high)), True).as_py()
    if row >= 0:
        what = "span that is too long" if pa.types.is_duration(kind) else "date outside of the years 1 to 9999"
        raise ValueError(f"The column {name!r} has a {what} in {disk.place(first_row + row + 1)}. Correct it.")


def _retyped(name: str, kind: Kind | None, found: str) -> str:
    held = "categories" if kind == "category" else f"{kind}s"
    return (
        f"The column {name!r} held {held} when the model was fitted, found {found}. Correct it, or fit the model again."
    )
