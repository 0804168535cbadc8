"""``guardband monitor --ray``: workers predict the rows of many files, and the monitor judges them in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardband.cli.console import Speaker
from guardband.cli.monitored_rows import Roles, brings_values_alone, need_columns

if TYPE_CHECKING:
    from guardband.cli.model_columns import Model
    from guardband.doors.monitor import Monitor
    from guardband.monitor.intake import Update
    from guardband.ray.sources import Files


def update_on_ray(monitor: Monitor, model: Model, files: Files, roles: Roles, address: str, speaker: Speaker) -> Update:
    """Let a monitor judge the rows of files, and return what became of them."""
    from guardband.ray.cluster import connected
    from guardband.ray.watching import update

    if brings_values_alone(model, files.like, roles):
        raise ValueError("These files bring true values alone, and nothing is to be predicted. Remove --ray.")
    need_columns(model, files.like, roles)
    with speaker.doing(f"Judging {files.like.label}"), connected(address):
        return update(monitor, files, target=roles.target, key=roles.key, time=roles.time)
