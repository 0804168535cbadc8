"""What may come of an input: it is used, or refused in one sentence that ends with what to do. All else is a find."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

from guardband.cli.exit_codes import REFUSED
from guardband.cli.faults import explained

LONGEST = 3_000
"""Letters of a refusal: it may quote names of columns and files."""


class Find(Exception):
    """What must not come of any input."""


@dataclass(frozen=True)
class Target:
    """What is fuzzed: ``one`` takes an input and raises a ``Find``; ``seeds`` makes inputs to begin with.
    Both run in an empty folder of their own.

    ``mutate`` changes an input in the terms of its format: ``(data, most_bytes, seed) -> bytes``. It gets the fuzzer's
    own way to change bytes from ``run.py`` as ``raw``.
    """

    one: Callable[[bytes], None]
    seeds: Callable[[], dict[str, bytes]]
    mutate: Callable[[bytes, int, int, Callable[[bytes, int], bytes]], bytes] | None = None
    apart: Callable[[bytes], None] | None = None
    """Tries an input that ended the process, if guardband leaves it to a process of its own what may end it."""
    longest: int = 4096
    words: tuple[str, ...] = field(default=())
    """Parts of inputs that chance would not find."""


def refused(work: Callable[[], object]) -> bool:
    """Return whether work was refused as a command would say it; raise a ``Find`` for any other error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work()
    except Find:
        raise
    except Exception as error:
        code, said = explained(error)
        if code != REFUSED:
            raise Find(f"{type(error).__name__}: {error}") from error
        if not said.endswith(".") or len(said) > LONGEST:
            raise Find(f"it is refused in other words: {said}") from error
        return True
    return False


def need(holds: object, otherwise: str) -> None:
    """Raise a ``Find`` unless something holds."""
    if not holds:
        raise Find(otherwise)
