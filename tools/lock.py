"""Writes locked.txt: every package of constraints.txt with the SHA-256 of the file that pip takes here.

    python tools/lock.py

pip says which file it would take, and nothing is installed. A hash is of one file: that for this Python and this kind
of machine. torch is left out, as it comes in many builds: it is installed by a step of its own.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from packages import LOCKED, pinned

OWN_STEP = "torch"


def main() -> None:
    """Ask pip, and write the file."""
    wanted = [f"{name}=={version}" for name, version in pinned().items() if name != OWN_STEP]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        ask = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps", "--ignore-installed"]
        subprocess.run([*ask, "--only-binary=:all:", "--report", report, *wanted], check=True)
        found = json.loads(report.read_text())["install"]
    sums = {own["metadata"]["name"]: own["download_info"]["archive_info"]["hashes"]["sha256"] for own in found}
    lines = [f"{own['metadata']['name']}=={own['metadata']['version']} --hash=sha256:" for own in found]
    made = sorted((line + sums[line.split("==")[0]] for line in lines), key=str.lower)
    python = ".".join(platform.python_version_tuple()[:2])
    where = f"{platform.system()} {platform.machine()}, Python {python}"
    head = f"# Made by tools/lock.py from constraints.txt, without {OWN_STEP}. For {where}. Use: make locked\n"
    LOCKED.write_text(head + "\n".join(made) + "\n")


if __name__ == "__main__":
    main()
