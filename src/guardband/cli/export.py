"""``guardband export``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardband.cli.console import Speaker
from guardband.cli.help import OUTPUT
from guardband.cli.numbers import plain_number
from guardband.cli.options import Json, ModelPath, Quiet, Trusted
from guardband.cli.paths import files_of_model, need_writable

if TYPE_CHECKING:
    import pyarrow as pa

    from guardband.doors.table_model import TableModel

ROWS = 257
"""Rows to compare on: no power of two, which shows that the graph's batch size is free."""
AGREEMENT = 1e-3
"""Graph and model agree if no end differs by more than this share of the median width: single precision, twice."""


def export(
    model_path: ModelPath,
    onnx: Annotated[Path, typer.Option("--onnx", metavar="OUT", help="ONNX file to write.", rich_help_panel=OUTPUT)],
    trusted: Trusted = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a model as an ONNX file, for use without Python.

    The ONNX graph takes a matrix with the model's columns. It returns the lower bound, the prediction and the upper
    bound. Write dates as days since 1970, booleans as 0 and 1, and missing values as NaN. Write a category as
    its index in the list that the file's metadata holds.

    If onnxruntime is installed, guardband compares the graph with the model, and writes it only if both agree.

    Example:

    `guardband export sales.guardband --onnx sales.onnx`
    """
    from guardband.data.files import write_whole
    from guardband.data.packages import need_packages

    need_packages("onnx", "onnx", "onnxscript")
    need_packages("tables", "pyarrow")
    speaker = Speaker(quiet, as_json)
    need_writable((onnx,), files_of_model(model_path, trusted))
    with speaker.loading("Loading PyTorch"):
        from guardband.cli.model_columns import load_for_tables
        from guardband.doors.bands import BandCalibrator
        from guardband.doors.export import export_onnx
        from guardband.doors.signed_file import trusted_file

        speaker.step(f"Loading {model_path}")
        model = load_for_tables(trusted_file(model_path, trusted), "cpu")
        if isinstance(model, BandCalibrator):
            raise ValueError(f"{model_path} is a rule, and holds no model to export. Export a model that fit wrote.")
        rows = rows_like(model)
    found: dict[str, float] | None = None

    def write(part: Path) -> None:
        nonlocal found
        export_onnx(model, rows, part)
        if find_spec("onnxruntime") is not None:
            found = _compare(model, rows, part)

    with speaker.doing(f"Writing {onnx}"):
        write_whole(onnx, write)
    described = model.as_network()
    columns = "1 column" if len(described.names) == 1 else f"{len(described.names)} columns"
    speaker.tell(f"Graph: {onnx}. It takes a matrix with {columns} and returns lower, point and upper.")
    if described.categories:
        count = len(described.categories)
        are = "1 column is a category" if count == 1 else f"{count} columns are categories"
        speaker.tell(f"{are}. Write each value as its index in the list guardband.table in the file's metadata.")
    if found is None:
        speaker.tell("guardband did not compare the graph with the model. To do so, run: pip install onnxruntime")
    else:
        speaker.tell(
            f"Graph and model agree on {ROWS} random rows. The largest difference is "
            f"{found['largest_difference']:.2g}, and intervals are about {plain_number(found['median_width'])} wide."
        )
    speaker.tell_json({"graph": str(onnx), "columns": list(described.names), "compared": found})


def _compare(model: TableModel, rows: pa.Table, path: Path) -> dict[str, float]:
    import numpy as np
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    matrix = model.as_network().rows(rows).numpy()
    out = dict(zip(("lower", "point", "upper"), session.run(None, {"x": matrix}), strict=True))
    bands = model.intervals_of(model.read_rows(_as_given(model, rows)))
    width = float(np.median(bands.reach))
    with np.errstate(invalid="ignore"):  # an infinite interval is as wide as itself
        gaps = [np.nan_to_num(np.abs(out[name] - getattr(bands, name)), nan=0.0) for name in out]
    largest = max(float(gap.max()) for gap in gaps)
    if largest > AGREEMENT * width:
        raise ValueError(
            f"The graph differs from the model by {largest:.3g}, and intervals are about {width:.3g} wide. It was "
            "not written. Please report this."
        )
    return {"largest_difference": largest, "median_width": width, "rows": ROWS}


def _as_given(model: TableModel, rows: pa.Table) -> Any:
    import numpy as np

    if hasattr(model, "feature_names_in_"):
        return rows
    return np.column_stack([column.to_numpy() for column in rows.columns])


def rows_like(model: TableModel) -> pa.Table:
    """Return rows within the ranges that a model's encoder learnt, with missing and unknown cells among them."""
    import numpy as np
    import pyarrow as pa

    from guardband.data.codes import Categories, DateCode, IndexCode, LongTailCode, NumberCode
    from guardband.data.encoder import TableEncoder
    from guardband.data.text_cells import DAY_US

    random = np.random.default_rng(0)
    encoder = model.fitted_.learned.encoder
    names = list(getattr(model, "feature_names_in_", map(str, range(model.n_features_in_))))
    codes = encoder.codes if isinstance(encoder, TableEncoder) else [NumberCode(0.0, 1.0, 0.0, False)] * len(names)
    columns = []
    for code in codes:
        marks_missing = isinstance(code, IndexCode | DateCode) or code.marks_missing
        missing = random.random(ROWS) < (0.1 if marks_missing else 0)
        if isinstance(code, Categories):
            words = np.array([*code.categories, "never seen"], dtype=object)
            columns.append(pa.array(random.choice(words, ROWS), pa.string(), mask=missing))
        else:
            own = code.parts[0][1] if isinstance(code, DateCode) else code
            number = own.plain if isinstance(own, LongTailCode) else own
            values = number.center + number.scale * random.standard_normal(ROWS)
            if isinstance(code, DateCode):
                values = (values * DAY_US).astype("datetime64[us]")
            columns.append(pa.array(values, mask=missing))
    return pa.table(columns, names=names)
