"""Tables: numpy, pandas, polars, Arrow and tensors, read as one list of typed columns."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from guardband.bands.predicted import Context
from guardband.data.kinds import ONE_TEXT, Kind, doubt_in, kind_of_cells, kind_of_type
from guardband.data.text_cells import DAY_US, MISSING, days, number_in
from guardband.words import listed

Cell = str | float | None
LARGEST = 1e300
ROWS_AT_A_TIME = 2**14
"""Long tables are read in blocks whose columns stay in the cache, and of which one at a time is in double precision."""


@dataclass(frozen=True)
class Column:
    """One column: numbers with NaN for missing, or cells as objects, each None, a float or text.

    Numbers are float64, or float32 if they came so: a long table is not copied. Compute with ``numbers_from``.

    ``numbers_are`` says what its numbers stand for: themselves, truth or days. ``decided`` says what cells are if more
    than these rows decided that.
    """

    name: str
    values: NDArray[Any]
    numbers_are: Kind = "number"
    decided: Kind | None = None

    @property
    def has_cells(self) -> bool:
        """Whether the values are cells, which may be text."""
        return self.values.dtype == object

    @cached_property
    def kind(self) -> Kind:
        """What these rows are: of cells, some rows may be numbers while others are categories."""
        if not self.has_cells:
            return self.numbers_are
        return self.decided or kind_of_cells(self.values, self.numbers_are)

    def read_as(self, kind: Kind) -> Column:
        """Return the column with its cells read as a kind; numbers stay what they are."""
        if not self.has_cells:
            return self
        if kind == "category":
            return replace(self, decided=kind)
        return Column(self.name, numbers_from(self, kind), kind)

    def take(self, rows: NDArray[np.intp]) -> Column:
        """Return the column of some of the rows."""
        return replace(self, values=self.values[rows])

    def take_row(self, row: int) -> Column:
        """Return the column of one row."""
        return replace(self, values=self.values[row : row + 1])


@dataclass(frozen=True)
class Table:
    """Columns of equal length, and the index if the input has one; ``extra`` names columns that were not asked for.

    ``context`` is what a rule may know of the rows besides their predictions.
    """

    columns: tuple[Column, ...]
    n_rows: int
    index: Any = None
    extra: tuple[str, ...] = ()
    context: Context = field(default_factory=Context)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    def take(self, rows: NDArray[np.intp]) -> Table:
        """Return the table of some of the rows; of all in their order it is the table itself, and no copy."""
        if len(rows) == self.n_rows and np.array_equal(rows, np.arange(self.n_rows)):
            return self
        columns = tuple(column.take(rows) for column in self.columns)
        index = None if self.index is None else self.index[rows]
        return Table(columns, len(rows), index, self.extra, self.context.rows(rows))

    def part(self, rows: slice) -> Table:
        """Return the columns of rows that follow one another, which are not copied."""
        columns = tuple(replace(column, values=column.values[rows]) for column in self.columns)
        return Table(columns, len(range(self.n_rows)[rows]))

    def settled(self) -> Table:
        """Return the table with every column read as what all rows say it is: then any part of it is that too."""
        return self.read_as([column.kind for column in self.columns])

    def read_as(self, kinds: Sequence[Kind]) -> Table:
        """Return the table with the cells of each column read as what a model says it is."""
        pairs = zip(self.columns, kinds, strict=True)
        return replace(self, columns=tuple(column.read_as(kind) for column, kind in pairs))


@dataclass(frozen=True)
class SomeRows:
    """Some rows of a long table, of which only those are copied that are asked for."""

    table: Table | SomeRows
    rows: NDArray[np.intp]

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return self.table.names

    def take(self, rows: NDArray[np.intp]) -> Table:
        """Return the table of some of these rows."""
        return self.table.take(self.rows[rows])


def read_table(
    X: Any, names: Sequence[str] | None = None, may_lack: Sequence[str] = (), may_be_infinite: bool = False
) -> Table:
    """Return any table-like input as a ``Table``; empty tables are refused, and infinities unless they may be there.

    ``names`` are the columns to take of a data frame, in this order; those that it lacks are an error, and
    empty text if they are in ``may_lack``.
    """
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError("X is a sparse matrix, and guardband takes dense ones. Pass X.toarray().")
    X = from_tensor(X)
    frame = _framed(X)
    extra: tuple[str, ...] = ()
    if names is not None and isinstance(frame, nw.DataFrame):
        frame, extra = _chosen(frame, names, may_lack)
    table = _from_frame(frame) if isinstance(frame, nw.DataFrame) else _from_array(as_array(X))
    shape = (table.n_rows, len(table.columns))
    if table.n_rows == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if not table.columns:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    endless = [] if may_be_infinite else _endless(table)
    if endless:
        raise ValueError(f"X contains infinity in the column {listed(endless)}. Correct these cells, or empty them.")
    return replace(table, extra=extra)


def _chosen(
    frame: nw.DataFrame[Any], names: Sequence[str], may_lack: Sequence[str]
) -> tuple[nw.DataFrame[Any], tuple[str, ...]]:
    """Return some columns of a frame, and the names of its others."""
    given = frame.columns
    absent = [name for name in names if name not in set(given)]
    missing = [name for name in absent if name not in may_lack]
    if missing:
        raise ValueError(
            f"X lacks {len(missing)} of the model's {len(names)} columns: {listed(missing, 10)}. Add them, or fit a "
            "model without them."
        )
    frame = frame.with_columns(nw.lit(None, nw.String).alias(name) for name in absent)
    known = set(names)
    return frame.select(list(names)), tuple(name for name in given if name not in known)


def refuse_huge(table: Table) -> None:
    """Raise if numbers are so large that sums of them would overflow."""
    for column in table.columns:
        if not column.has_cells and column.values.dtype.kind == "f" and len(column.values):
            worst = float(np.fmax.reduce(np.abs(column.values), initial=0.0))
            if worst > LARGEST:
                raise ValueError(
                    f"The column {column.name!r} holds {worst:g}, which is too large to compute with. Correct it, or "
                    "remove the column."
                )


def is_frame(values: Any) -> bool:
    """Return whether this is a table whose columns have names."""
    return isinstance(_framed(values), nw.DataFrame)


def _framed(values: Any) -> Any:
    """Return a table of any library as narwhals' own; what is none stays as it is."""
    try:
        return nw.from_native(values, eager_only=True, pass_through=True)
    except DuplicateError as error:
        names = Counter(map(str, values.columns))
        twice = listed([name for name, count in names.items() if count > 1])
        raise ValueError(f"Several columns have the same name: {twice}. Give each column a name of its own.") from error


def take_columns(values: Any, names: Sequence[str]) -> Any:
    """Return the columns of a table that are named, in this order, as what it is; what has no names stays as it is."""
    frame = _framed(values)
    if not isinstance(frame, nw.DataFrame) or tuple(frame.columns) == tuple(names):
        return values
    return frame.select(list(names)).to_native()


def column_named(values: Any, name: str, argument: str) -> Any:
    """Return the column of a table that an argument of the user's names, as what it is; raise if there is none."""
    frame = _framed(values)
    if not isinstance(frame, nw.DataFrame):
        raise ValueError(
            f"{argument}={name!r} names a column, and columns of these rows have no names. Pass one value for each row."
        )
    if name not in frame.columns:
        raise ValueError(
            f"X has no column {name!r}, as {argument} asks for. Its columns are {listed(frame.columns, 10)}. Name one "
            "of them, or pass one value for each row."
        )
    return frame[name].to_native()


def take_rows(values: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of a table, a series or an array, as what it is; None is none of any rows."""
    if values is None:
        return None
    native = nw.from_native(from_tensor(values), eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame | nw.Series):
        return nw.to_native(native[rows.tolist()])
    return as_array(values)[rows]


def from_tensor(values: Any) -> Any:
    """Return a torch tensor as a numpy array, anything else as it is."""
    if not hasattr(values, "detach"):
        return values
    tensor = values.detach().cpu()
    return (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()


def as_array(values: Any) -> NDArray[Any]:
    """Return a tensor, list, series or array as an array; masked entries become NaN."""
    if isinstance(values, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(values.astype(np.float64), np.nan))
    return np.asarray(from_tensor(values))


def numbers_from(column: Column, kind: Kind = "number") -> NDArray[np.float64]:
    """Return a column as numbers of a kind, also those that text says."""
    if not column.has_cells:
        if kind == "date" and column.kind != "date" and not np.isnan(column.values).all():
            raise ValueError(
                f"The column {column.name!r} held dates when the model was fitted, but now holds numbers. Pass dates."
            )
        return column.values.astype(np.float64, copy=False)
    cells, read = column.values, partial(number_in, decimal_comma=True) if kind == "number" else ONE_TEXT[kind]
    doubt = doubt_in({v for v in cells if isinstance(v, str)}) if kind == "number" else None
    if doubt:
        raise ValueError(f"The column {column.name!r} holds numbers, and {doubt}.")
    try:
        known = {v: read(v) if isinstance(v, str) else np.nan if v is None else v for v in set(cells)}
    except ValueError as error:
        raise ValueError(
            f"The column {column.name!r} held {kind}s when the model was fitted, but now {error}. "
            "Correct it, or fit the model again."
        ) from None
    numbers = np.array([known[v] for v in cells], dtype=np.float64)
    if np.isinf(numbers).any():
        raise ValueError(f"X contains infinity in the column {column.name!r}. Correct these cells, or empty them.")
    return numbers


def numbers_of_objects(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return objects ``(n,)`` as numbers, NaN for what means missing; other text, dates and the like are an error."""
    column = _cells("y", values.tolist())
    if column.numbers_are == "date":
        raise TypeError("dates are not numbers")
    known = {v: np.nan if v is None else number_in(v) if isinstance(v, str) else v for v in set(column.values)}
    return np.array([known[v] for v in column.values], dtype=np.float64)


def categories_from(column: Column) -> list[str | None]:
    """Return a column as text, writing whole numbers without a decimal point."""
    return [v if v is None or isinstance(v, str) else None if v != v else _text(v) for v in column.values.tolist()]


def _from_array(array: NDArray[Any]) -> Table:
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead (shape={array.shape}). Reshape your data: "
            "array.reshape(-1, 1) for one column, array.reshape(1, -1) for one row."
        )
    if np.iscomplexobj(array):
        raise ValueError("Complex data not supported: X must hold real numbers or text.")
    names = [f"x{j}" for j in range(array.shape[1])]
    columns = tuple(_column(name, array[:, j]) for j, name in enumerate(names))
    return Table(columns, n_rows=len(array))


def _from_frame(frame: nw.DataFrame[Any]) -> Table:
    columns = tuple(_frame_column(str(s.name), s) for s in frame.iter_columns())
    index = getattr(nw.to_native(frame), "index", None)
    return Table(columns, len(frame), index)


def _frame_column(name: str, series: Any) -> Column:
    kind, is_temporal = kind_of_type(series.dtype), series.dtype.is_temporal()
    if kind == "date":
        return Column(name, _numbers(series.dt.timestamp("us")) / DAY_US, kind)
    if kind in ("number", "boolean") and not is_temporal:
        return Column(name, _numbers(series), kind)
    is_object = str(getattr(nw.to_native(series), "dtype", "")) == "object"  # also of pandas' text: its cells decide
    column = _cells(name, series.to_list(), as_text=kind == "category" and not is_object)
    return Column(name, numbers_from(column)) if is_temporal else column


def _numbers(series: Any) -> NDArray[Any]:
    """Return numbers or truth as floats, NaN for missing; whole numbers beyond 2**53 are rounded."""
    exact = series if series.dtype.is_integer() or series.dtype == nw.Float32 else series.cast(nw.Float64)
    return _floats(exact.to_numpy())  # Arrow would refuse to round


def _floats(values: NDArray[Any]) -> NDArray[Any]:
    """Return floats as they are, other numbers in double precision."""
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _column(name: str, values: NDArray[Any]) -> Column:
    if values.dtype.kind in "biuf":
        return Column(name, _floats(values), "boolean" if values.dtype.kind == "b" else "number")
    is_text = values.dtype.kind in "US"
    return _cells(name, values.tolist() if is_text or values.dtype == object else list(values), as_text=is_text)


def _cells(name: str, values: list[Any], as_text: bool = False) -> Column:
    """Return every value as None, a float or text, or never a float; equal values are looked at once."""
    try:
        known = {v: _cell(v) for v in set(values)}
    except TypeError as error:
        strange = next((v for v in values if isinstance(v, dict | list | set | np.ndarray)), error)
        raise TypeError(
            f"Each cell's argument must be a string or a number, found {strange!r} in the column {name!r}."
        ) from None
    if as_text:
        known = {v: _text(cell) if isinstance(cell, float) else cell for v, cell in known.items()}
    cells = np.empty(len(values), dtype=object)
    cells[:] = [known[v] for v in values]
    return Column(name, cells, _numbers_are(known), "category" if as_text else None)


def _numbers_are(known: dict[Any, Cell]) -> Kind:
    """Return what numbers stand for that were objects: days if some were dates, truth if all were booleans."""
    objects = [v for v, cell in known.items() if isinstance(cell, float)]
    if any(isinstance(v, datetime.date | np.datetime64) for v in objects):
        return "date"
    return "boolean" if objects and all(isinstance(v, bool | np.bool_) for v in objects) else "number"


def _cell(value: Any) -> Cell:
    if isinstance(value, str):
        text = value.strip()
        return None if text in MISSING else text
    if isinstance(value, complex | np.complexfloating):
        raise ValueError("Complex data not supported: X must hold real numbers or text.")
    if isinstance(value, tuple | frozenset):
        raise TypeError
    if value is None or _is_missing(value):
        return None
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64):
        return _days(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def _is_missing(value: Any) -> bool:
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA does not say whether it equals itself
        return True


def _days(moment: Any) -> float:
    """Return a date, a time of day or a duration in days."""
    if isinstance(moment, datetime.time):
        moment = datetime.timedelta(hours=moment.hour, minutes=moment.minute, seconds=moment.second)
    if isinstance(moment, datetime.datetime) and moment.tzinfo is not None:
        return days(moment)
    if isinstance(moment, datetime.timedelta | np.timedelta64):
        return float(np.timedelta64(moment) / np.timedelta64(1, "us")) / DAY_US
    return float(np.datetime64(moment, "us").astype(np.int64)) / DAY_US


def _text(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _endless(table: Table) -> list[str]:
    """Return the names of columns with infinities."""
    found = set()
    for start in range(0, table.n_rows, ROWS_AT_A_TIME):
        part = table.part(slice(start, start + ROWS_AT_A_TIME))
        found |= {j for j, column in enumerate(part.columns) if _has_infinity(column)}
    return [table.names[j] for j in sorted(found)]


def _has_infinity(column: Column) -> bool:
    if not column.has_cells:
        return bool(np.isinf(column.values).any())
    return any(isinstance(v, float) and np.isinf(v) for v in column.values)
