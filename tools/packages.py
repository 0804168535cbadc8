"""Every package that constraints.txt names: its licence, what it is for, and the hash of its file."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS, LOCKED = ROOT / "constraints.txt", ROOT / "locked.txt"
DEVELOPMENT = ("dev", "docs")
"""Extras that users do not install."""

SHORT = {
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "New BSD": "BSD-3-Clause",
    "BSD-2-Clause": "BSD-2-Clause",
    "MIT License": "MIT",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
"""Licences as packages write them, and their SPDX names."""

TEXTS = (
    (r"Apache (Software )?License,? (Version )?2\.0", "Apache-2.0"),
    (r"(?i)neither the names? of|the names? of .{0,120}? may (not )?be used", "BSD-3-Clause"),
    (r"Redistributions in binary form", "BSD-2-Clause"),
    (r"Permission is hereby granted, free of charge", "MIT"),
)
"""What the text of a licence says, and its SPDX name; the first that fits holds."""

SETTLED = {
    "docutils": (
        "LicenseRef-PublicDomain AND BSD-2-Clause AND BSD-3-Clause",
        "file. The part under the GPL is not installed",
    ),
    "editables": ("MIT", "metadata, read by pip. It only builds editable installs"),
}
"""Packages for which no program can tell: their licence, and how it was found out by hand."""


@dataclass(frozen=True)
class Package:
    """A package at its version; ``used_for`` names the extras that need it, empty for what every user needs."""

    name: str
    version: str
    licence: str
    found: str
    used_for: tuple[str, ...]
    hashes: tuple[str, ...]

    @property
    def is_for_users(self) -> bool:
        """Whether a user may have to install it."""
        return not self.used_for or any(extra not in DEVELOPMENT for extra in self.used_for)


def pinned(path: Path = CONSTRAINTS) -> dict[str, str]:
    """Return the versions that a file pins, by the names as they are written there."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^\s\\]+)", path.read_text(), re.MULTILINE)
    return dict(found)


def hashes() -> dict[str, tuple[str, ...]]:
    """Return the SHA-256 of the files of each package, by its canonical name."""
    found: dict[str, tuple[str, ...]] = {}
    for line in LOCKED.read_text().splitlines():
        if "==" in line:
            found[canonicalize_name(line.split("==")[0])] = tuple(re.findall(r"sha256:([0-9a-f]{64})", line))
    return found


def packages() -> list[Package]:
    """Return every package that is pinned; those that are not installed here raise ``PackageNotFoundError``."""
    needed, known = _needed(), hashes()
    made = []
    for name, version in pinned().items():
        own = canonicalize_name(name)
        licence, found = licence_of(own)
        made.append(Package(name, version, licence, found, needed.get(own, ("dev",)), known.get(own, ())))
    return made


def licence_of(name: str) -> tuple[str, str]:
    """Return the licence of an installed package as an SPDX expression, and where it is stated."""
    if name in SETTLED:
        return SETTLED[name]
    about = metadata.metadata(name)
    if expression := about.get("License-Expression"):
        return expression, "metadata"
    classifiers = [text.rsplit(" :: ", 1)[-1] for text in about.get_all("Classifier") or [] if "License ::" in text]
    stated = [*(text for text in classifiers if text != "OSI Approved"), (about.get("License") or "").strip()]
    named = {short: None for text in stated if _is_spdx(short := SHORT.get(text, text))}
    if named:
        return " AND ".join(named), "metadata"
    if (read := _licence_in_file(name)) is not None:
        return read, "file"
    return next((text for text in stated if text and "\n" not in text), "UNKNOWN"), "metadata"


def _is_spdx(text: str) -> bool:
    return all(part in SHORT.values() for part in re.split(" AND | OR ", text))


def _licence_in_file(name: str) -> str | None:
    """Return the licence whose text lies beside a package's metadata."""
    for file in metadata.files(name) or []:
        if re.search(r"\.dist-info/(licenses/)?LICEN[CS]E[^/]*$", str(file)):
            text = " ".join(Path(str(file.locate())).read_text(errors="replace").split())
            return next((short for pattern, short in TEXTS if re.search(pattern, text)), None)
    return None


def _needed() -> dict[str, tuple[str, ...]]:
    """Return which extras of guardband need each package, directly or not; none for what guardband itself needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    core = _reached(project["dependencies"], extras)
    found: dict[str, tuple[str, ...]] = {}
    for extra, wanted in extras.items():
        for name in _reached(wanted, extras) - core:
            found[name] = (*found.get(name, ()), extra)
    return found | dict.fromkeys(core, ())


def _reached(wanted: list[str], extras: dict[str, list[str]]) -> set[str]:
    """Return the canonical names of all packages that requirements lead to, as they are installed here."""
    found: set[str] = set()
    open_ends = [Requirement(text) for text in wanted]
    seen: set[tuple[str, str]] = set()
    while open_ends:
        own = open_ends.pop()
        name = canonicalize_name(own.name)
        if name == "guardband":
            open_ends += [Requirement(text) for extra in own.extras for text in extras[extra]]
            continue
        found.add(name)
        for extra in ("", *own.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            further = map(Requirement, metadata.requires(name) or [])
            open_ends += [one for one in further if one.marker is None or one.marker.evaluate({"extra": extra})]
    return found
