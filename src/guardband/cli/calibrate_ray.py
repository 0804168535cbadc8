"""``guardband calibrate --ray``: a rule from many files, whose rows never meet."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from guardband.cli.calibrate_steps import calibrate_rule, read_bands
from guardband.cli.console import Speaker

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
    rows = read_bands(_first_rows(files), columns, target, [], groups, known, weights, quiet)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these rows only say what the columns are
        calibrate_rule(rule, rows, columns, False, groups, known, {})
    with speaker.doing(f"Calibrating on {files.like.label}"), connected(address):
        own = calibrate(rule, files, target=target, **options)
    return own, replace(rows, disk=files.like, split_by=tuple(options["split_by"] or ()))


def _first_rows(files: Files) -> DiskTable:
    """Return the first rows of the first file as a table."""
    disk = files.parts[0].open(files.like)

    def read(names: Sequence[str] | None) -> Iterator[tuple[Any, int]]:
        for batch, done in disk.sound_batches(names):
            if len(batch):
                yield batch, done
                return

    return replace(disk, total=None, _read=read)
