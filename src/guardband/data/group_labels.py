"""Labels that say which groups rows belong to, as columns; of many rows with few different labels each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from guardband.data.group_sets import Sets, labels_of, numbers_of
from guardband.data.table import Column, as_array, is_frame, read_table


def unnamed_columns(count: int) -> list[str]:
    """Return what columns of labels are called that have no names."""
    return [f"group {j + 1}" for j in range(count)]


def columns_of_labels(values: Any, n_rows: int) -> list[Column]:
    """Return labels ``(n,)``, or several for each row ``(n, J)``, as columns."""
    if isinstance(values, Mapping) or values is None:
        raise TypeError(f"groups must be one label for each row, or a table of them, found {type(values).__name__}.")
    framed = is_frame(values)
    array = values if framed else as_array(values)
    shape = array.shape
    if shape[:1] != (n_rows,) or len(shape) > 2 or 0 in shape[1:]:
        raise ValueError(f"groups must have one label for each of {n_rows:,} rows, found shape {tuple(shape)}.")
    if len(shape) == 1:
        (column,) = read_table(array.reshape(-1, 1)).columns
        return [replace(column, name=str(getattr(values, "name", None) or "group"))]
    if not framed and array.dtype == bool and array.shape[1] > 1:
        return [Column(name, array[:, j], "boolean") for j, name in enumerate(unnamed_columns(array.shape[1]))]
    columns = list(read_table(array).columns)
    if not framed:
        names = unnamed_columns(len(columns))
        columns = [replace(column, name=name) for column, name in zip(columns, names, strict=True)]
    return columns


def different_labels(values: Any, n_rows: int) -> list[Column]:
    """Return labels as columns that hold every value that occurs; those of small whole numbers have few rows."""
    found = numbered_labels(values, n_rows)
    if found is None:
        return columns_of_labels(values, n_rows)
    number, columns = found
    occur = np.flatnonzero(np.bincount(number))
    return [column.take(occur) for column in columns]


def numbered_labels(values: Any, n_rows: int) -> tuple[Sets, list[Column]] | None:
    """Return small whole numbers as one number for each row, and what every such number stands for, as columns.

    None for other labels, and unless there are more rows than numbers that they could have.
    """
    framed = is_frame(values) and hasattr(values, "to_numpy")
    labels = values.to_numpy() if framed else values
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iu" or labels.shape[:1] != (n_rows,):
        return None
    if labels.ndim > 2 or not labels.size:
        return None
    found = numbers_of(labels.reshape(n_rows, -1))
    if found is None:
        return None
    names = ["group"] if labels.ndim == 1 else unnamed_columns(labels.shape[1])
    if framed:
        names = list(map(str, values.columns))
    (number, bits), width = found, len(names)
    if n_rows <= 2 ** (bits * width):
        return None
    every = labels_of(np.arange(2 ** (bits * width), dtype=np.uint32), bits, width).astype(np.float64)
    return number, [Column(name, column) for name, column in zip(names, every.T, strict=True)]
