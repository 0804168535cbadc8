"""``guardband monitor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.console import Speaker
from guardband.cli.exit_codes import BROKEN, DONE
from guardband.cli.help import DATA, OUTPUT, PROMISE
from guardband.cli.judging_options import BelongingTogether, TrueValues
from guardband.cli.options import TABLES, Device, Json, ModelPath, Quiet, SheetName, Trusted
from guardband.cli.paths import files_of_model, need_model_first, need_writable, page_of_state
from guardband.cli.ray_options import OnRay, need_ray

STATE = ".monitor"


def monitor(
    model_path: ModelPath,
    table_paths: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE...", help=f"New rows, in the order in which they came. {TABLES}", rich_help_panel=DATA
        ),
    ],
    state: Annotated[
        Path,
        typer.Option(
            "--state",
            metavar="FILE",
            help="File that keeps what was found so far, such as sales.monitor. The first run makes it.",
            rich_help_panel=OUTPUT,
        ),
    ],
    target: TrueValues = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column with a key of its own for each row. A row without a true value then waits for it, and no key "
            "counts twice.",
            rich_help_panel=DATA,
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column of dates or of numbers that grow with time. It orders the rows of this run.",
            show_default="rows are in order",
            rich_help_panel=DATA,
        ),
    ] = None,
    split_by: BelongingTogether = None,
    trusted: Trusted = None,
    sheet: SheetName = None,
    significance: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="How often a promise that holds may ever raise the alarm. It is fixed by the first run.",
            show_default="0.01, or what the state was begun with",
            rich_help_panel=PROMISE,
        ),
    ] = None,
    device: Device = "auto",
    recalibrate: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="After an alarm: write a new model and begin a state for it. guardband calibrates it on those of "
            "these rows that came since the change.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="PAGE",
            help="Page with the history.",
            show_default="the state's name with .html",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    ray: OnRay = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Watch the promise of a model in use, and raise an alarm if it no longer holds.

    Run it as often as you like, each time with the rows that are new. While the promise holds, the chance that the
    alarm is ever raised stays below --significance. Repeated audits have no such limit.

    guardband keeps what it found in one small file. A run that is stopped changes nothing: repeat it. Each table
    counts once, and with --key each row.

    The exit code is 0 if there is no alarm. It is 1 if there is one, also in later runs. It is 2 if the input is bad,
    or if there was nothing to judge.

    Examples:

    `guardband monitor sales.guardband monday.csv --state sales.monitor`

    `guardband monitor sales.guardband new.csv --state sales.monitor --key id --time day`
    """
    speaker = Speaker(quiet, as_json)
    with speaker.doing("Starting"):
        from guardband.data.several import open_tables, paths_in

    need_model_first("monitor", model_path, table_paths)
    paths = paths_in(table_paths)
    if not state.name:
        raise ValueError(f"--state must name a file, found {str(state)!r}. Use a name such as sales.monitor.")
    page = page or page_of_state(state)
    following = None if recalibrate is None else recalibrate.with_suffix(STATE)
    results = (state, page, recalibrate, following, None if following is None else page_of_state(following))
    need_writable(results, (*files_of_model(model_path, trusted), *paths))
    if significance is not None and not 0 < significance < 1:
        raise ValueError(
            f"--significance must lie strictly between 0 and 1, found {significance}. Use a number such as 0.01."
        )
    need_ray(ray, skip_corrupt=False)
    if ray is not None:
        odd = {"--recalibrate": recalibrate, "--split-by": split_by, "--sheet": sheet}
        name = next((name for name, own in odd.items() if own), None)
        if name is not None:
            raise ValueError(f"{name} needs the rows in one process. Remove {name}, or give the command without --ray.")
        from guardband.ray.sources import Files

        files = Files.of(paths)
    disk = files.like if ray is not None else open_tables(paths, sheet)
    with speaker.loading("Loading PyTorch"):
        from guardband.cli.model_columns import load_for_tables
        from guardband.cli.monitor_ray import update_on_ray
        from guardband.cli.monitor_steps import need_something, next_model, open_state, roles_of, write_all
        from guardband.cli.monitor_words import tell_monitor
        from guardband.cli.monitored_rows import read_monitored
        from guardband.doors.signed_file import trusted_file

        speaker.step(f"Loading {model_path}")
        source = trusted_file(model_path, trusted)
        model = load_for_tables(source, device)
    own = open_state(state, model, significance)
    roles = roles_of(model, source, disk, target, key, time, split_by or [])
    if ray is not None:
        update = update_on_ray(own, model, files, roles, ray, speaker)
    else:
        rows = read_monitored(model, disk, roles, speaker)
        with speaker.doing(f"Judging {rows.n:,} rows"):
            update = rows.update(own)
    if recalibrate is None or not own.alarm:
        need_something(update, own, disk.label)
    after = None
    if recalibrate is not None and following is not None:
        with speaker.doing("Calibrating on the rows since the change"):
            after = next_model(own, model, rows, update, (source, state), (recalibrate, following))
    with speaker.doing("Writing"):
        write_all(own, state, page, after)
    options = {"--target": target, "--key": key, "--time": time, "--split-by": split_by, "--sheet": sheet}
    tell_monitor(own, update, after, (state, page), (model_path, table_paths), options, speaker)
    raise typer.Exit(BROKEN if own.alarm else DONE)
