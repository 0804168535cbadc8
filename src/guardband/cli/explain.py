"""``guardband explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardband.cli.console import Speaker
from guardband.cli.help import DATA, PROMISE
from guardband.cli.numbers import digits_for, with_digits
from guardband.cli.options import TABLES, Device, Json, ModelPath, Quiet, SheetName, Trusted, levels_in, names_in
from guardband.cli.paths import need_model_first

if TYPE_CHECKING:
    from guardband.cli.model_columns import Model
    from guardband.explain.explanation import Explanation

SHOWN = 3
N_BACKGROUND, EVALUATIONS = 100, 100_000


def explain(
    model_path: ModelPath,
    table_paths: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help=f"Rows to explain. {TABLES}", rich_help_panel=DATA)
    ],
    rows: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROWS",
            help="Rows to explain, counted from 1: 3,17.",
            show_default=f"the {SHOWN} rows with the widest intervals",
            rich_help_panel=DATA,
        ),
    ] = None,
    background: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Rows to compare with. Name a table with typical rows if there are few rows to explain.",
            show_default="the rows of the table itself",
            rich_help_panel=DATA,
        ),
    ] = None,
    trusted: Trusted = None,
    sheet: SheetName = None,
    level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="Another confidence level: 0.8.",
            show_default="the model's own",
            rich_help_panel=PROMISE,
        ),
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say why intervals are wide: what each column adds to the width, and to the prediction.

    guardband compares each row with other rows. It replaces some of its columns by theirs, and predicts again. What
    the columns add makes up the whole difference between the row and the average. True values are not needed.

    Examples:

    `guardband explain sales.guardband new.csv`

    `guardband explain sales.guardband new.csv --rows 3,17`
    """
    speaker = Speaker(quiet, as_json)
    need_model_first("explain", model_path, table_paths)
    with speaker.loading("Loading PyTorch"):
        from guardband.cli.model_columns import load_for_tables
        from guardband.doors.judged import refuse_several
        from guardband.doors.signed_file import trusted_file
        from guardband.explain.explain import explain_rows
        from guardband.explain.explainable import Mixes

        speaker.step(f"Loading {model_path}")
        model = load_for_tables(trusted_file(model_path, trusted), device)
    with speaker.doing("Reading"):
        if not isinstance(model, Mixes):
            raise ValueError(
                f"{model_path} is a rule, and does not know which columns its predictions come from. Explain them with "
                "the program that made them."
            )
        refuse_several(len(model.calibration_.rule.target_names), "guardband explain")
        X = _read(model, table_paths, sheet)
        others = None if background is None else _read(model, [background], None)
        asked = levels_in([level]) if level else None
        if isinstance(asked, list):
            raise ValueError("Explanations are for one confidence level. Write one, such as --level 0.9.")
        bands = model.predict_interval(X, confidence_level=asked)
        lower, upper = (side[:, 0] for side in bands.per_level())
        chosen = _positions(rows, len(X)) if rows else (lower - upper).argsort(kind="stable")[:SHOWN]
        speaker.step(f"Explaining {len(chosen):,} {'row' if len(chosen) == 1 else 'rows'}")
        found = explain_rows(
            model,
            X,
            rows=chosen,
            background=others,
            confidence_level=asked,
            n_background=N_BACKGROUND,
            evaluations=EVALUATIONS,
            verbose=False,
        )
    digits = digits_for(found.widths.tolist())
    for i, row in enumerate(found.rows.tolist()):
        point, low, high = (with_digits(float(side[row]), digits) for side in (bands.point, lower, upper))
        speaker.tell(f"Row {row + 1}: {point}, between {low} and {high}")
        speaker.tell(f"{found.in_words(i, of='width')}\n{found.in_words(i, of='point')}\n")
    if not as_json:
        speaker.note(f"Compared with {found.n_background:,} rows.{_how(found)}")
    speaker.tell_json(found.to_dict() | {"rows": (found.rows + 1).tolist(), "words": str(found).splitlines()})


def _read(model: Model, paths: list[str], sheet: str | None) -> Any:
    """Return all rows of tables, as the model takes them."""
    from guardband.cli.stream import read_rows
    from guardband.data.several import open_tables, paths_in

    return read_rows(model, open_tables(paths_in(paths), sheet))


def _positions(rows: list[str], n: int) -> list[int]:
    """Return the positions of rows that are counted from 1."""
    numbers = names_in(rows)
    wrong = [text for text in numbers if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= n)]
    if wrong or not numbers:
        raise ValueError(
            f"--rows takes row numbers from 1 to {n:,}, found {wrong[0] if wrong else 'none'!r}. Write --rows 1,2."
        )
    return [int(text) - 1 for text in numbers]


def _how(found: Explanation) -> str:
    return "" if found.exact else " A number after ± is twice the standard error of a contribution."
