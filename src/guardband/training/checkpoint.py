"""Checkpoints: a killed run goes on from its last one to the same result."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch

SECONDS_BETWEEN = 30.0


class Checkpoint:
    """A file with the state of a run, written whole or not at all.

    ``job`` describes the run; a file of another run is refused. It holds tensors and numbers alone, and is
    read without running any code in it.
    """

    def __init__(self, path: Path | None = None, job: str = "") -> None:
        self._path = path
        self._job = job
        self._written = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """Return the state that was saved last, None if there is none; the folder must be one to write to."""
        if self._path is None:
            return None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(self._path.parent, os.W_OK):
            raise PermissionError(f"A checkpoint needs a folder that can be written to, found {self._path.parent}.")
        if not self._path.exists():
            return None
        try:
            saved = torch.load(self._path, map_location="cpu", weights_only=True)
            job: str = saved["job"]
            state: dict[str, Any] = saved["state"]
        except Exception as error:
            raise ValueError(
                f"A checkpoint must be one that guardband wrote, and {self._path} is not: {error}"
            ) from error
        if job != self._job:
            raise ValueError(
                f"A checkpoint must be of the same run, and {self._path} is of another: it was written with other "
                "networks, data, losses or settings. Remove it, or name another folder."
            )
        return state

    @property
    def wanted(self) -> bool:
        """Whether there is a file to write."""
        return self._path is not None

    def due(self) -> bool:
        """Whether it is time to save again."""
        return self.wanted and time.monotonic() - self._written >= SECONDS_BETWEEN

    def save(self, state: dict[str, Any]) -> None:
        """Save a state in place of the last one."""
        if self._path is None:
            return
        unfinished = self._path.with_name(f"{self._path.name}.unfinished")
        with unfinished.open("wb") as file:
            torch.save({"job": self._job, "state": state}, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self._path)
        self._written = time.monotonic()
