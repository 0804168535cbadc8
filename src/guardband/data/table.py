"""Tables: numpy, pandas, polars, Arrow and tensors, read as one list of typed columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

Kind = Literal["number", "category"]


@dataclass(frozen=True)
class Column:
    """One column: numbers as float64 with NaN for missing, or categories as text with None for missing."""

    name: str
    kind: Kind
    values: NDArray[Any]


@dataclass(frozen=True)
class Table:
    """Columns of equal length; ``named`` is false where the names are only positions."""

    columns: tuple[Column, ...]
    named: bool
    n_rows: int
    index: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    def take(self, rows: NDArray[np.intp]) -> Table:
        """Return the table of some of the rows."""
        columns = tuple(Column(c.name, c.kind, c.values[rows]) for c in self.columns)
        return Table(columns, self.named, len(rows))


def read_table(X: Any) -> Table:
    """Return any table-like input as a ``Table``; infinities and empty tables are refused."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError("X must be dense, found a sparse matrix: pass X.toarray().")
    if hasattr(X, "detach"):
        X = X.detach().cpu().numpy()
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    table = _from_frame(frame) if isinstance(frame, nw.DataFrame) else _from_array(np.asarray(X))
    shape = (table.n_rows, len(table.columns))
    if table.n_rows == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if not table.columns:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    endless = [c.name for c in table.columns if c.kind == "number" and np.isinf(c.values).any()]
    if endless:
        raise ValueError(f"X must not contain infinity, found it in the column {_listed(endless)}.")
    return table


def numbers_from(column: Column) -> NDArray[np.float64]:
    """Return a column as numbers, reading text where it holds numbers."""
    if column.kind == "number":
        return column.values
    try:
        return np.array([np.nan if v is None else float(v) for v in column.values], dtype=np.float64)
    except ValueError as error:
        raise ValueError(
            f"The column {column.name!r} held numbers when the model was fitted, found text: {error}."
        ) from None


def categories_from(column: Column) -> NDArray[Any]:
    """Return a column as text, writing whole numbers without a decimal point."""
    return column.values if column.kind == "category" else _as_text(column.values)


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
    return Table(columns, named=False, n_rows=len(array))


def _from_frame(frame: nw.DataFrame[Any]) -> Table:
    names = frame.columns
    columns = tuple(_frame_column(str(s.name), s) for s in frame.iter_columns())
    index = getattr(nw.to_native(frame), "index", None)
    return Table(columns, all(isinstance(n, str) for n in names), len(frame), index)


def _frame_column(name: str, series: Any) -> Column:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return Column(name, "number", series.cast(nw.Float64).to_numpy().astype(np.float64, copy=True))
    if series.dtype.is_temporal():
        return Column(name, "number", _moments(series.to_numpy()))
    if series.dtype in (nw.Categorical, nw.Enum):
        series = series.cast(nw.String)
    return _column(name, np.array(series.to_list(), dtype=object))


def _column(name: str, values: NDArray[Any]) -> Column:
    if values.dtype.kind in "biuf":
        return Column(name, "number", values.astype(np.float64))
    if values.dtype.kind in "mM":
        return Column(name, "number", _moments(values))
    missing = np.array([v is None or v != v for v in values], dtype=bool)
    present = values[~missing]
    strange = next((v for v in present if isinstance(v, dict | list | set | tuple)), None)
    if strange is not None:
        raise TypeError(f"Each cell's argument must be a string or a number, found {strange!r} in the column {name!r}.")
    if not any(isinstance(v, str | bytes) for v in present):
        numbers = np.full(len(values), np.nan)
        try:
            numbers[~missing] = present.astype(np.float64)
        except (TypeError, ValueError):
            pass
        else:
            return Column(name, "number", numbers)
    text = np.empty(len(values), dtype=object)
    text[~missing] = [str(v) for v in present]
    return Column(name, "category", text)


def _moments(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return dates, times and durations as days, NaN where missing."""
    if values.dtype.kind == "O":
        values = values.astype("datetime64[us]")
    unit = "timedelta64[us]" if values.dtype.kind == "m" else "datetime64[us]"
    days = values.astype(unit).astype(np.int64) / 86_400e6
    return np.where(np.isnat(values), np.nan, days)


def _as_text(numbers: NDArray[np.float64]) -> NDArray[Any]:
    text = np.empty(len(numbers), dtype=object)
    for i, number in enumerate(numbers):
        if number == number:
            text[i] = str(int(number)) if number == int(number) else str(number)
    return text


def _listed(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
