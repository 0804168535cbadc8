"""``guardband calibrate --ray``: a rule from many files, whose rows never meet."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from guardband.cli.calibrate_steps import calibrate_rule, read_bands
from guardband.cli.console import Speaker
from guardband.data.damage import UnreadableError
from guardband.data.typed_columns import typed

if TYPE_CHECKING:
    import pyarrow as pa

    from guardband.cli.labelled import Labelled
    from guardband.data.disk import DiskTable
    from guardband.doors.band_columns import BandColumns
    from guardband.doors.bands import BandCalibrator
    from guardband.ray.sources import Files


def calibrate_on_ray(
    rule: BandCalibrator,
    files: Files,
    columns: BandColumns,
    target: str,
    groups: list[str],
    known: pa.Table | None,
    options: dict[str, Any],
    address: str,
    speaker: Speaker,
) -> tuple[BandCalibrator, Labelled]:
    """Return the rule calibrated on all files, and their first rows, for which it shows intervals.

    ``options`` are further arguments of ``gb.ray.calibrate``.
    """
    from guardband.ray.calibrating import calibrate
    from guardband.ray.cluster import connected

    if groups and known is None:
        raise ValueError("With --ray, --training must say which groups there are. Name a table of training rows.")
    weights, quiet = options["weights"], replace(speaker, quiet=True)
    first = _first_rows(files, target, options["skip_corrupt"])
    rows = read_bands(first, columns, target, [], groups, known, weights, quiet)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these rows only say what the columns are
        calibrate_rule(rule, rows, columns, False, groups, known, {})
    with speaker.doing(f"Calibrating on {files.like.label}"), connected(address):
        own = calibrate(rule, files, target=target, **options)
    return own, replace(rows, disk=files.like, split_by=tuple(options["split_by"] or ()))


def _first_rows(files: Files, target: str, skip_corrupt: bool) -> DiskTable:
    """Return the rows of a file up to the first ones with a true value, as a table."""
    for part in files.parts:
        disk = part.open(files.like)
        try:
            if (batches := _until_known(disk, target)) is not None:
                return replace(disk, total=None, _read=partial(_first_of, disk, batches))
        except UnreadableError:
            if not skip_corrupt:
                raise
    raise ValueError(f"The target {target!r} is missing in every row. Fill it in.")


def _until_known(disk: DiskTable, target: str) -> int | None:
    """Return how many batches are to be read until one has a true value, None if none has."""
    first = 0
    for i, (batch, _) in enumerate(disk.sound_batches([target]), 1):
        known = typed(batch.select([target]), {target: "number"}, disk, first)[target]
        if known.null_count < len(batch):
            return i
        first += len(batch)
    return None


def _first_of(disk: DiskTable, batches: int, names: Sequence[str] | None) -> Iterator[tuple[Any, int]]:
    yield from islice(disk.sound_batches(names), batches)
