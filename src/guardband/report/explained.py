"""What a document says of why intervals are wide, exactly: what each entry may be."""

from __future__ import annotations

from typing import Annotated, TypedDict

from msgspec import Meta

LARGEST = 1.7976931348623157e308

Name = Annotated[str, Meta(max_length=1_000)]
Text = Annotated[str, Meta(max_length=20_000)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Finite = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Size = Annotated[float, Meta(ge=0, le=LARGEST)]
Few = Meta(min_length=1, max_length=1_000)


class ColumnPart(TypedDict):
    """How much one column changes the width and the prediction: means of absolute contributions."""

    name: Name
    width: Size
    point: Size


class BarPart(TypedDict):
    """What one column adds to the width of a row, with its standard error; None for the sum of several."""

    label: Name
    value: Finite
    error: Size | None


class WidestPart(TypedDict):
    """One of the widest rows, in words and as bars."""

    row: Count
    words: Text
    width: Size
    bars: Annotated[list[BarPart], Few]


class ExplainedPart(TypedDict):
    """Why intervals are wide; see ``explained_for_page``."""

    n_rows: Count
    n_background: Count
    exact: bool
    base_width: Size
    columns: Annotated[list[ColumnPart], Few]
    columns_left_out: Count
    widest: Annotated[list[WidestPart], Few]
