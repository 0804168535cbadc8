"""Which Ray the work runs on: one that is started here for as long as it is needed, or one that runs already."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from guardband.data.packages import need_packages

LOCAL = "local"
"""The address of a Ray that is started on this machine."""


def connect(address: str = LOCAL) -> None:
    """Connect this process to Ray; if it is connected already, it stays so.

    Parameters
    ----------
    address : str, default "local"
        "local" starts a Ray of this machine with all its cores, which ends with this process. Anything else is the
        address of a Ray that runs already, such as "auto" or "10.0.0.1:6379".
    """
    need_packages("ray", "ray")
    # Read when ray is imported: nothing is reported to anybody.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    logging.getLogger("ray").setLevel(logging.ERROR)
    import ray

    if not ray.is_initialized():
        quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if address == LOCAL:
            ray.init(address=LOCAL, include_dashboard=False, **quiet)
        else:
            _join(address, quiet)
    _quieten_data()


@contextmanager
def connected(address: str = LOCAL) -> Iterator[None]:
    """Connect to Ray, and end the connection unless there was one before; a Ray that was started here ends with it.

    Parameters
    ----------
    address : str, default "local"
        The same as of ``connect``.
    """
    need_packages("ray", "ray")
    import ray

    was_connected = ray.is_initialized()
    try:
        connect(address)
        yield
    finally:
        if not was_connected:
            ray.shutdown()


def workers() -> int:
    """Return how many processes can work at once: as many as the cluster has cores."""
    import ray

    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _join(address: str, quiet: dict[str, Any]) -> None:
    import ray

    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise ConnectionError(
            f"There is no Ray at {address}: {reason}. Check the address, start Ray there with `ray start --head`, or "
            "use --ray local for this machine."
        ) from None


def _quieten_data() -> None:
    """Switch off what Ray Data writes to the terminal: guardband has a progress bar of its own."""
    from ray.data import DataContext

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = DataContext.get_current()
    context.enable_progress_bars = False
    # Blocks come back in the order of the files. Ray would otherwise pass them on as they get ready.
    context.execution_options.preserve_order = True
