"""Builds the site: every warning is an error.

python docs/build.py FOLDER              tutorials as they are written
python docs/build.py FOLDER --execute    tutorials run, and show what they print and draw; a failing one fails the build
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from gather import DOCS, gather
from sphinx.cmd.build import main


def build(folder: Path, work: Path, execute: bool) -> int:
    """Gather the pages below ``work`` and build them into ``folder``; return 0 if nothing is amiss."""
    gather(work / "pages")
    strict = ["--nitpicky", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
    mode = ["-D", f"nb_execution_mode={'cache' if execute else 'off'}"]
    mode += ["-D", f"nb_execution_cache_path={work / 'executed'}"]
    return main([*strict, *mode, "-c", str(DOCS), "-d", str(work / "doctrees"), str(work / "pages"), str(folder)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build the site.")
    parser.add_argument("folder", type=Path, help="where the site goes")
    parser.add_argument(
        "--work", type=Path, default=DOCS.parent / "build" / "docs", help="where to keep what is reused"
    )
    parser.add_argument("--execute", action="store_true", help="run the tutorials")
    given = parser.parse_args()
    # The site shows this guardband. A tutorial runs in an empty folder, and imports it and the tutorials' own programs.
    own = [str(DOCS.parent / "src"), str(DOCS / "tutorials")]
    os.environ["PYTHONPATH"] = os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.path.insert(0, own[0])
    sys.exit(build(given.folder.resolve(), given.work.resolve(), given.execute))
