"""What ``guardband monitor`` says."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    speaker: Speaker,
) -> None:
    """Tell what the rows so far say; ``written`` are the state and the page, ``given`` the model and the tables."""
    state, page = written
    first, *lines = monitor.finding().lines()
    speaker.tell_verdict("broken" if monitor.alarm else "consistent" if monitor.rows else "", first)
    for line in lines:
        speaker.tell(line)
    if monitor.alarm and after is None:
        speaker.tell(f"  {command_to_recalibrate(given[0], given[1], state)}")
    speaker.tell(f"\nRows of this run: {in_words(update)}")
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


def in_words(update: Update) -> str:
    """Return what became of the rows of a run."""
    said = [f"{update.counted:,} counted."]
    if update.waiting:
        said.append(f"{update.waiting:,} wait for their true value.")
    if update.skipped:
        said.append(f"{update.skipped:,} skipped, because they were counted before: each row counts once.")
    if update.left_out:
        said.append(f"{update.left_out:,} left out, because they have no true value. Use --key to let rows wait.")
    return " ".join(said)


def command_to_recalibrate(model: Path, tables: Sequence[str], state: Path) -> str:
    """Return the command that calibrates a model on the rows since a change."""
    rows = [shlex.quote(path) for path in tables] if len(tables) <= 2 else ["TABLE..."]
    anew = f"{str(model).removesuffix('.guardband')}-2.guardband"
    options = ["--state", shlex.quote(str(state)), "--recalibrate", shlex.quote(anew)]
    return " ".join(["guardband monitor", shlex.quote(str(model)), *rows, *options])


def _next_entries(after: NextModel) -> dict[str, object]:
    return {
        "model": str(after.path),
        "state": str(after.state),
        "rows": after.rows,
        "certificate": after.monitor.certificate.to_dict(),
    }
