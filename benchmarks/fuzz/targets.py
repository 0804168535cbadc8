"""All targets by name: each is imported only when it is asked for."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parents[1] / "tests"
CORPUS = HERE / "corpus"
FILES = {
    "csv": "tables",
    "arrow": "tables",
    "parquet": "tables",
    "excel": "tables",
    "cells": "tables",
    "models": "models",
    "networks": "models",
    "rules": "models",
    "online": "models",
    "monitors": "monitors",
    "checkpoints": "checkpoints",
    "signatures": "signatures",
    "keys": "signatures",
    "reports": "reports",
    "images": "pictures",
    "lines": "lines",
    "footers": "parts",
    "texts": "parts",
    "heads": "parts",
    "entries": "parts",
}


def target(name: str):  # type: ignore[no-untyped-def]
    """Return a target."""
    for folder in (HERE, TESTS):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    return importlib.import_module(FILES[name]).TARGETS[name]


def committed(name: str) -> list[Path]:
    """Return the inputs of a target that are kept: seeds that nothing makes, and what was once a find."""
    return sorted(path for path in (CORPUS / name).glob("*") if path.is_file())
