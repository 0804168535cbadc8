"""Packages of an extra, asked for where they are used."""

from __future__ import annotations

from importlib.util import find_spec


def need_packages(extra: str, *names: str) -> None:
    """Raise with the install command if a package of an extra is missing."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(f'This needs {" and ".join(missing)}: pip install "guardband[{extra}]".')
