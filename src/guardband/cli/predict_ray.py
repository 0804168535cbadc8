"""``guardband predict --ray``: many files in, a folder of files out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.cli.stated_columns import StatedColumns
from guardband.cli.stream import Inputs, predict_into
from guardband.data.disk import DiskTable
from guardband.data.table_writer import open_writer
from guardband.data.unlike import Unlike, UnlikeCells

if TYPE_CHECKING:
    from guardband.cli.console import Speaker
    from guardband.cli.model_columns import Model
    from guardband.ray.sources import Files

PART = 1 << 40
"""More rows than a file has: a number of a part and a row in it become one number."""


@dataclass(frozen=True)
class PartWriter:
    """Writes the rows of one part with their intervals, on a worker."""

    model: Model
    inputs: Inputs
    level: Any
    marks_unlike: bool
    stated: StatedColumns
    no_formulas: bool
    ending: str

    def __call__(self, disk: DiskTable, path: Path) -> Mapping[str, Any]:
        """Write a file, and return what is known of its rows."""
        separator, comma = ",", False
        if disk.dialect is not None:
            separator, comma = disk.dialect.separator, disk.dialect.writes_commas
        found = Unlike()
        with open_writer(path, self.ending, separator, self.no_formulas, comma) as writer:
            for until, _ in predict_into(
                writer, self.model, disk, self.inputs, self.level, self.marks_unlike, self.stated
            ):
                found = until
            added = [name for name in writer.names if name not in disk.names]
        return {"added": added, "unlike": asdict(found)}


@dataclass(frozen=True)
class Folder:
    """What came of a folder of files: how unlike its rows are, the columns that were added, and what was left out."""

    found: Unlike
    added: list[str]
    skipped: tuple[str, ...]
    parts: int
    again: int


def predict_on_ray(
    files: Files,
    model_bytes: bytes,
    writer: PartWriter,
    folder: str,
    skip_corrupt: bool,
    address: str,
    speaker: Speaker,
) -> Folder:
    """Write a folder of files with intervals; what an earlier run finished is left as it is."""
    from guardband.ray.cluster import connected
    from guardband.ray.scoring import score_files

    plan = {
        "model": sha256(model_bytes).hexdigest(),
        "level": repr(writer.level),
        "stated": repr(writer.stated),
        "unlike": writer.marks_unlike,
        "formulas": writer.no_formulas,
    }
    with speaker.doing("Starting Ray"):
        held = connected(address)
        held.__enter__()
    try:
        with speaker.progress("Predicting", len(files.parts)) as advance:
            done = score_files(files, folder, writer, writer.ending, plan, skip_corrupt, lambda done, of: advance(done))
    finally:
        held.__exit__(None, None, None)
    found = sum((_restored(own["unlike"], i) for i, own in done.said.items()), Unlike())
    added = list(next(iter(done.said.values()))["added"]) if done.said else []
    return Folder(found, added, done.skipped, len(done.said), done.again)


def place_in(files: Files, row: int) -> str:
    """Return where a row lies, by the number that ``predict_on_ray`` gave it."""
    part = files.parts[row // PART]
    return f"row {part.first + row % PART:,} of {part.path}"


def ending_of(disk: DiskTable) -> str:
    """Return the ending of the files that are written: CSV stays CSV."""
    return ".csv" if disk.is_text else ".parquet"


def _restored(entries: Mapping[str, Any], part: int) -> Unlike:
    cells = [
        replace(UnlikeCells(**own), examples=tuple((value, part * PART + row) for value, row in own["examples"]))
        for own in entries["cells"]
    ]
    return Unlike(entries["n"], entries["count"], tuple(cells))
