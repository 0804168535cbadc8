"""The files that a command writes: if one cannot be written, the command ends before any work is done."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from guardband.data.files import STANDARD, need_room

ENDING = ".guardband"
"""How the name of a model file ends."""


def need_writable(outputs: Sequence[Path | None], inputs: Sequence[str | Path]) -> None:
    """Raise unless each output can be written, is none of the files that are read, and none is written twice."""
    paths = [path for path in outputs if path is not None]
    for i, path in enumerate(paths):
        if not path.parent.is_dir() or (path.exists() and not path.is_file()):
            raise ValueError(
                f"{path} is not a file in a folder that exists. Make the folder, or write to another file."
            )
        if any(_is_same(path, own) for own in inputs if str(own) != STANDARD):
            raise ValueError(f"{path} is an input of this command and would be overwritten. Write to another file.")
        if any(_is_same(path, own) for own in paths[:i]):
            raise ValueError(f"Two results would be written to {path}. Give each its own file.")
    for path in paths:
        _need_room(path)


def files_of_model(model: Path, trusted: Path | None) -> list[Path]:
    """Return a model's file and, if a key must have signed it, its signature and the key."""
    if trusted is None:
        return [model]
    from guardband.doors.signed_file import signature_beside

    return [model, signature_beside(model), trusted]


def need_no_link(path: Path, otherwise: str) -> None:
    """Raise if a file that nobody named is a link: a folder may come from a stranger, and lead to any file of ours."""
    if path.is_symlink():
        raise ValueError(f"{path} is a link, and guardband could overwrite the file behind it. {otherwise}.")


def need_model_first(command: str, model: Path, tables: Sequence[str]) -> None:
    """Raise if a table stands where the model must, and the model among the tables."""
    if model.suffix != ENDING and any(path.endswith(ENDING) for path in tables):
        raise ValueError(f"The model comes first: guardband {command} MODEL TABLE.")


def page_of_state(state: Path) -> Path:
    """Return the page of a monitor's state: beside it, and apart from the page of the model."""
    return state.with_name(f"{state.name}.html")


def make_folder(path: Path) -> None:
    """Make a folder for results, with those around it, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{path} cannot be a folder for results: {error.strerror}. Choose another folder.") from None


def _is_same(path: Path, other: str | Path) -> bool:
    """Return whether two paths lead to one file, whether or not it is there."""
    if path.exists() and Path(other).exists():
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def _need_room(path: Path) -> None:
    """Raise if no file can be made beside a path; only trying tells, since rights do not say all."""
    try:
        need_room(path)
    except OSError as error:
        words = (
            f"{path} cannot be written: {error.strerror}. Check your rights, or write to another file."
            if error.strerror
            else str(error)
        )
        raise ValueError(words) from None
