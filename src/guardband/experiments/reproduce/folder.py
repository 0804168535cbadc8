"""The folder of a run: cells that are written whole and then marked done, and the tables made of them."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from guardband.data.files import is_part_of, locked_folder, write_whole
from guardband.experiments.reproduce.cells import Cell
from guardband.experiments.reproduce.contest import Outcome, Row

if TYPE_CHECKING:
    import pandas as pd

DONE = "DONE"
RESULTS = (
    *("experiment", "setting", "method", "repetition", "n_train", "n_calibration", "n_test"),
    *("covered", "coverage", "length", "mae", "seconds"),
)
"""The columns of ``results.csv``; ``details.csv`` has the first four of them and all others."""


class Settings(TypedDict):
    """What a run was asked for; one with other settings cannot go on with it."""

    seed: int
    quick: bool
    repetitions: int | str


class About(TypedDict):
    """What ``run.json`` says: the settings, and each command, machine and version that worked on the run."""

    settings: Settings
    runs: list[dict[str, str]]


@dataclass(frozen=True)
class Folder:
    """Where a run lies. A run that was stopped goes on here if it is the same run: seed, size and repetitions."""

    path: Path

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes out of the folder: two that wrote cells there would remove each other's."""
        if self.path.exists() and not self.path.is_dir():  # which open refuses
            yield
            return
        self.path.mkdir(parents=True, exist_ok=True)
        with locked_folder(self.path, waits=False) as is_held:
            if not is_held:
                raise ValueError(
                    f"Another process works on the run in {self.path}. Wait until it ends, or choose another folder "
                    "by -o."
                )
            yield

    def open(self, settings: dict[str, Any], run: dict[str, Any]) -> None:
        """Make the folder, or check that it holds a run with the same settings; note who runs it, and where."""
        runs = []
        if self._about.exists():
            found = self.about()
            if found["settings"] != settings:
                raise ValueError(
                    f"{self.path} holds a run with {_listed(found['settings'])}, which cannot go on with "
                    f"{_listed(settings)}: choose another folder by -o."
                )
            runs = [known for known in found["runs"] if known != run]
        elif self.path.exists() and (not self.path.is_dir() or self._holds_other_files()):
            raise ValueError(f"{self.path} must be a new or empty folder, or one of such a run, found something else.")
        self.path.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"settings": settings, "runs": [*runs, run]}, indent=2) + "\n"
        write_whole(self._about, lambda part: part.write_text(text))

    def _holds_other_files(self) -> bool:
        """Whether there is anything but what a run leaves that is killed while it makes the folder."""
        return not all(is_part_of(self._about.name, path.name) for path in self.path.iterdir())

    def about(self) -> dict[str, Any]:
        """Return what is known of the run: its settings, and each command, machine and version that worked on it."""
        try:
            entries = json.loads(self._about.read_bytes())
            known = msgspec.convert(entries, About, strict=True)
            json.dumps(known, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self._about} is damaged ({error!r:.200}): choose another folder by -o.") from None
        return {"settings": dict(known["settings"]), "runs": known["runs"]}

    @property
    def _about(self) -> Path:
        return self.path / "run.json"

    def is_done(self, cell: Cell) -> bool:
        """Whether a cell has been written whole and has not changed since."""
        return _whole(self._cell(cell))

    def write(self, cell: Cell, outcome: Outcome) -> None:
        """Write a cell, then mark it done; what an earlier run left half-written is replaced."""
        folder = self._cell(cell)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, rows in (("rows", outcome.rows), ("curves", outcome.curves)):
            own = [{"experiment": cell.experiment, **row} for row in rows]
            if own:
                _write_rows(folder / f"{name}.csv", own)
        sums = _checksums(folder)
        write_whole(folder / DONE, lambda part: part.write_text(sums))

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return ``results``, ``details`` and ``curves`` of all cells that are done."""
        import pandas as pd

        frames = {}
        for done in sorted(self.path.glob(f"cells/*/{DONE}")):
            if not _whole(done.parent):
                raise ValueError(
                    f"{done.parent} has changed since it was written. Remove it and run the command again."
                )
        for name in ("rows", "curves"):
            parts = [pd.read_csv(file) for file in sorted(self.path.glob(f"cells/*/{name}.csv")) if _finished(file)]
            frames[name] = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        rows = frames["rows"]
        others = [column for column in rows.columns if column not in RESULTS]
        return {
            "results": rows[list(RESULTS)] if len(rows) else rows,
            "details": rows[[*RESULTS[:4], *others]] if len(rows) else rows,
            "curves": frames["curves"],
        }

    def write_tables(self) -> dict[str, pd.DataFrame]:
        """Write the tables as CSV and Parquet, and return them."""
        tables = self.tables()
        for name, frame in tables.items():
            if len(frame):
                write_whole(self.path / f"{name}.csv", partial(frame.to_csv, index=False))
                write_whole(self.path / f"{name}.parquet", partial(frame.to_parquet, index=False))
        return tables

    def _cell(self, cell: Cell) -> Path:
        return self.path / "cells" / cell.name


def _finished(file: Path) -> bool:
    return (file.parent / DONE).exists()


def _whole(folder: Path) -> bool:
    """Whether a cell is marked done with the checksums of its files; marks of earlier versions had none."""
    done = folder / DONE
    return done.exists() and done.read_bytes() in (b"", _checksums(folder).encode())


def _checksums(folder: Path) -> str:
    """Return a line for each file, as the program sha256sum writes and checks them."""
    files = sorted(folder.glob("*.csv"))
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)


def _write_rows(path: Path, rows: Sequence[Row]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def _listed(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())
