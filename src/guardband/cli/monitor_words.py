"""What ``guardband monitor`` says."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.bands.promise import DISTINCT_ROW
from guardband.cli.console import Speaker

if TYPE_CHECKING:
    from guardband.cli.monitor_steps import NextModel
    from guardband.doors.monitor import Monitor
    from guardband.monitor.intake import Update

NOT_AGAIN = "The new monitor refuses these rows, because they calibrated the model. Bring later ones."


def tell_monitor(
    monitor: Monitor,
    update: Update,
    after: NextModel | None,
    written: tuple[Path, Path],
    given: tuple[Path, Sequence[str]],
    options: Mapping[str, Any],
    speaker: Speaker,
) -> None:
    """Tell what the rows so far say; ``written`` are the state and the page, ``given`` the model and the tables.

    ``options`` are those that say how the tables are read.
    """
    state, page = written
    first, *lines = monitor.finding().lines()
    speaker.tell_verdict("broken" if monitor.alarm else "consistent" if monitor.rows else "", first)
    for line in lines:
        speaker.tell(line)
    if monitor.alarm and after is None:
        speaker.tell(f"  {command_to_recalibrate(given[0], given[1], state, options)}")
    entity = monitor.certificate.promise.entity
    has_keys = options.get("--key") is not None
    speaker.tell(f"\nRows of this run: {in_words(update, has_keys, None if entity == DISTINCT_ROW else entity)}")
    speaker.tell(f"State: {state}")
    speaker.tell(f"Page:  {page}")
    if after is not None:
        certificate = str(after.monitor.certificate).splitlines()[0]
        speaker.tell(f"\nModel: {after.path}, calibrated on the {after.rows:,} rows of this run since the change.")
        speaker.tell(f"{certificate}\nState: {after.state}, with no rows yet. {NOT_AGAIN}")
    speaker.tell_json(
        monitor.to_dict()
        | {"update": {name: getattr(update, name) for name in ("counted", "waiting", "skipped", "left_out")}}
        | {"state": str(state), "page": str(page)}
        | {"recalibrated": None if after is None else _next_entries(after)}
    )


def in_words(update: Update, has_keys: bool, entity: str | None = None) -> str:
    """Return what became of the rows of a run."""
    why = "no row waits for them" if has_keys else "they have no true value. Use --key to let rows wait"
    said = [f"{update.counted:,} counted."]
    if update.waiting:
        said.append(f"{update.waiting:,} wait for their true value.")
    if update.skipped:
        once = "each row counts once" if entity is None else f"each row counts once, and of each {entity} one row"
        said.append(f"{update.skipped:,} skipped, because {once}.")
    if update.left_out:
        said.append(f"{update.left_out:,} left out, because {why}.")
    return " ".join(said)


def command_to_recalibrate(model: Path, tables: Sequence[str], state: Path, options: Mapping[str, Any]) -> str:
    """Return the command that calibrates a model on the rows since a change, which reads tables in the same way."""
    rows = [shlex.quote(path) for path in tables] if len(tables) <= 2 else ["TABLE..."]
    anew = f"{str(model).removesuffix('.guardband')}-2.guardband"
    pairs = [(name, own) for name, given in options.items() for own in _each(given)]
    pairs = [("--state", str(state)), *pairs, ("--recalibrate", anew)]
    said = [f"{name} {shlex.quote(own)}" for name, own in pairs]
    return " ".join(["guardband monitor", shlex.quote(str(model)), *rows, *said])


def _each(given: Any) -> list[str]:
    return [] if given is None else list(given) if isinstance(given, list) else [str(given)]


def _next_entries(after: NextModel) -> dict[str, object]:
    return {
        "model": str(after.path),
        "state": str(after.state),
        "rows": after.rows,
        "certificate": after.monitor.certificate.to_dict(),
    }
