"""Which parts of files can be read: a fit reads them many times, and must leave out the same ones each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from guardband.ray.cluster import Failed, Shared, in_order, task, workers
from guardband.ray.pieces import name_of
from guardband.ray.sources import Files, Part

AHEAD = 4
MOST_NAMED = 5


def without_corrupt(files: Files, names: Sequence[str]) -> Files:
    """Return files without the parts that cannot be read, which are named in ``skipped``.

    Parameters
    ----------
    files : Files
        The files.
    names : sequence of str
        The columns to read.
    """
    shared, run = Shared((files.like, tuple(names))), task(_read)
    calls = (partial(_begun, run, shared, part) for part in files.parts)
    parts, skipped = [], list(files.skipped)
    for failed, part in in_order(calls, AHEAD * workers()):
        if not isinstance(failed, Failed):
            parts.append(part)
        elif failed.is_corrupt:
            skipped.append((name_of(part), failed.why))
        else:
            raise failed.error()
    if not parts and skipped:
        raise ValueError(f"None of the {len(files.paths):,} files can be read: {skipped[0][1]}")
    return replace(files, parts=tuple(parts), skipped=tuple(skipped))


def left_out_in_words(names: Sequence[str]) -> str:
    """Return what a certificate says of what could not be read.

    Parameters
    ----------
    names : sequence of str
        What it is.
    """
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return (
        f"guardband left out what it could not read: {'; '.join(names[:MOST_NAMED])}{more}. The promise is about rows "
        "like those that it could read."
    )


def _begun(run: Any, shared: Shared, part: Part) -> list[Any]:
    return [run.remote(shared, part), part]


def _read(shared: Shared, part: Part) -> None:
    """Read a part."""
    like, names = shared.get()
    for _ in part.open(like).sound_batches(names):
        pass
