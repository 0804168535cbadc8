"""Which Ray the work runs on: one that is started here for as long as it is needed, or one that runs already."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

from guardband.data.damage import UnreadableError, reason_of
from guardband.data.packages import need_packages

SECONDS_TO_ANSWER = 10
MEMORY_OPTION, MEMORY_RETRIES = "RAY_task_oom_retries", 2
"""So often a task is begun anew if Ray ends it for its memory: others may have taken it."""
NO_MEMORY = (
    "A part of the work does not fit into the memory that a worker has. Use machines with more memory, or start Ray "
    "with fewer workers (ray start --num-cpus)."
)
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
    # Ray would begin a task that needs too much memory anew for ever, and say nothing.
    os.environ.setdefault(MEMORY_OPTION, str(MEMORY_RETRIES))
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

    return max(1, int(ray.cluster_resources().get("CPU", 1)))  # type: ignore[no-untyped-call]


def _join(address: str, quiet: dict[str, Any]) -> None:
    from ray.exceptions import RayError

    import ray

    what_to_do = "start Ray there with `ray start --head`, or use --ray local for this machine."
    try:
        is_there = _answers(address)
    except OSError as error:
        raise ConnectionError(
            f"There is no Ray at {address}: {reason_of(error)}. Check the address, {what_to_do}"
        ) from None
    try:
        ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError, RayError) as error:
        if not is_there:
            raise ConnectionError(
                f"There is no Ray at {address}: {reason_of(error)}. Check the address, {what_to_do}"
            ) from None
        raise ConnectionError(
            f"{address} answers, but this machine cannot join: {reason_of(error)}. Use the same versions of Python and "
            "Ray. If the first machine of the cluster has a file ~/.ray/auth_token, copy it to the same place here."
        ) from None


def _answers(address: str) -> bool:
    """Return whether somebody listens at a host and a port; raise if nobody does, for which Ray would try for minutes.

    Of other addresses, such as "auto", nothing is known before.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in address:
        return False
    socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_ANSWER).close()
    return True


def _quieten_data() -> None:
    """Switch off what Ray Data writes to the terminal: guardband has a progress bar of its own."""
    from ray.data import DataContext

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of options that it sets itself
        context = DataContext.get_current()
    context.enable_progress_bars = False
    # Blocks come back in the order of the files. Ray would otherwise pass them on as they get ready.
    context.execution_options.preserve_order = True


RETRIES = 20
"""So often a task is begun anew if its worker dies. A task that kills every worker must end some time."""


def task(function: Callable[..., Any], returns: int = 1) -> Any:
    """Return a function whose calls run on workers, and run again if a worker dies; each returns references.

    What a worker cannot do for its input, its disk or its memory comes back as ``Failed`` in place of the first result.
    It would fail every time.

    Parameters
    ----------
    function : function
        What workers run. It must return the same whenever it is called again.
    returns : int, default 1
        How many references a call returns.
    """
    import ray

    @wraps(function)
    def run(*given: Any) -> Any:
        try:
            return function(*given)
        except (ValueError, OSError, MemoryError) as error:
            failed = Failed.of(error)
            return failed if returns == 1 else (failed, *[None] * (returns - 1))

    return ray.remote(num_cpus=1, num_returns=returns, max_retries=RETRIES)(run)


class Shared:
    """An object that is sent to every worker once, not with every task.

    Parameters
    ----------
    value : object
        What workers need.
    """

    def __init__(self, value: Any) -> None:
        import ray

        with said_in_one_sentence():
            # In a list a reference stays one. Ray would otherwise unpack the object for every task.
            self._reference = [ray.put(value)]

    def get(self) -> Any:
        """Return the object, on a worker."""
        import ray

        (reference,) = self._reference
        name = reference.hex()
        if name not in _known:
            _known.clear()
            _known[name] = ray.get(reference)
        return _known[name]


_known: dict[str, Any] = {}


@dataclass(frozen=True)
class Failed:
    """What a worker says in place of a result: its input was bad, and trying again does not help.

    Parameters
    ----------
    why : str
        What is wrong, and what to do.
    is_corrupt : bool
        Whether a file cannot be read.
    """

    why: str
    is_corrupt: bool

    @classmethod
    def of(cls, error: ValueError | OSError | MemoryError) -> Failed:
        """Return what is said of an error."""
        said = str(error)
        if isinstance(error, MemoryError):
            said = NO_MEMORY
        elif isinstance(error, OSError) and error.strerror:  # of the system
            where = "" if error.filename is None else f"{error.filename}: "
            said = f"A worker cannot go on: {where}{error.strerror}. Check the disks of the machines, and run again."
        return cls(said, isinstance(error, UnreadableError))

    def error(self) -> ValueError:
        """Return the error again."""
        return UnreadableError(self.why) if self.is_corrupt else ValueError(self.why)


def in_order(calls: Iterable[Callable[[], Any]], ahead: int) -> Iterator[Any]:
    """Yield the results of calls, in their order; what a worker failed at comes as ``Failed``.

    Parameters
    ----------
    calls : iterable of functions
        Each begins a task and returns the reference of its result, or several of which the first is fetched.
    ahead : int
        How many tasks are under way at most, so that the memory of this process does not grow with their number.
    """
    yield from _in_order(calls, ahead, _fetched)


def all_in_order(calls: Iterable[Callable[[], Any]], ahead: int) -> Iterator[Any]:
    """Yield the results of calls, in their order; what a worker failed at is raised.

    Parameters
    ----------
    calls : iterable of functions
        The same as of ``in_order``.
    ahead : int
        The same as of ``in_order``.
    """
    yield from _in_order(calls, ahead, fetched)


def _in_order(calls: Iterable[Callable[[], Any]], ahead: int, fetch: Callable[[Any], Any]) -> Iterator[Any]:
    import ray

    waiting: deque[Any] = deque()
    try:
        for call in calls:
            waiting.append(call())
            if len(waiting) >= ahead:
                yield _with_first(waiting.popleft(), fetch)
        while waiting:
            yield _with_first(waiting.popleft(), fetch)
    finally:
        # If nobody asks any more, what is under way ends, and its workers with it. A worker that is interrupted while
        # it imports a package could not import it again, and all that runs there later would fail.
        for left in waiting:
            ray.cancel(left[0] if isinstance(left, list) else left, force=True)


def _with_first(references: Any, fetch: Callable[[Any], Any]) -> Any:
    return (fetch(references[0]), *references[1:]) if isinstance(references, list) else fetch(references)


def fetched(reference: Any) -> Any:
    """Return the result of a task; why there is none is said in one sentence.

    Parameters
    ----------
    reference : reference
        What a call of a task returned.
    """
    found = _fetched(reference)
    if isinstance(found, Failed):
        raise found.error()
    return found


def _fetched(reference: Any) -> Any:
    import ray

    with said_in_one_sentence():
        return ray.get(reference)


@contextmanager
def said_in_one_sentence() -> Iterator[None]:
    """Raise what went wrong on a worker as it was raised there, and what went wrong with Ray in one sentence."""
    from ray.exceptions import RayError, RayTaskError

    try:
        yield
    except RayError as error:
        cause: Any = error
        while isinstance(cause, RayTaskError) and isinstance(cause.cause, Exception):
            cause = cause.cause  # of a task that waited for another
        if isinstance(cause, RayError) and not isinstance(cause, RayTaskError):
            cause = ValueError(_in_words(cause))
        raise cause from None


def _in_words(error: Any) -> str:
    """Return what to say of an error of Ray's own."""
    from ray.exceptions import ObjectStoreFullError, OutOfDiskError, OutOfMemoryError, WorkerCrashedError

    if isinstance(error, OutOfMemoryError):
        return NO_MEMORY
    if isinstance(error, WorkerCrashedError):
        return (
            f"The worker of one part of the work was killed {RETRIES + 1} times. Check the memory of the machines, and "
            "run again."
        )
    if isinstance(error, OutOfDiskError | ObjectStoreFullError):
        return (
            "Ray has no room for what workers keep, neither in memory nor on its disk. Free some space where Ray keeps "
            "its files, often /tmp/ray, and run again."
        )
    return f"Ray cannot go on: {reason_of(error)}. Check the machines, and run again."
