"""Workbooks of Excel or OpenOffice, each read in a process of its own (the extra ``tables``).

What reads them is native code that ends its process if a file asks for more memory than there is, and one kilobyte is
enough for that: a single cell in the last row and column. So it is another process that ends.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from guardband.data.damage import UnreadableError
from guardband.data.excel_sheet import ABOUT, REFUSED, Sheet
from guardband.data.memory import LARGEST_SHARE, memory
from guardband.data.packages import need_packages

OLD_EXCEL = b"\xd0\xcf\x11\xe0"
PROGRAM = """
import json, sys
path, own = json.loads(sys.stdin.buffer.read())
sys.path[:] = path
from guardband.data.excel_sheet import main
main(*own)
"""


def read_sheet(path: Path, sheet: str | None) -> Sheet:
    """Return a sheet by its name, or the first one that is not empty."""
    need_packages("tables", "fastexcel")
    import pyarrow as pa

    there = memory()
    asked = (str(path), sheet, None if there is None else int(LARGEST_SHARE * there))
    folders = [folder for folder in sys.path if folder]  # not the one we are in, where files of a stranger may lie
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM], input=json.dumps((folders, asked)).encode(), capture_output=True
    )
    if done.returncode == REFUSED:
        raise ValueError(done.stdout.decode())
    if done.returncode != 0:
        raise UnreadableError(
            f"{path} cannot be read as a workbook of Excel: it is damaged, or needs more memory than there is. Save it "
            "again as .xlsx, or as CSV."
        )
    rows = pa.ipc.open_stream(done.stdout).read_all()
    about = json.loads(rows.schema.metadata[ABOUT])
    names, remarks = tuple(about["names"]), tuple(about["remarks"])
    return Sheet(about["label"], names, rows.replace_schema_metadata(), remarks)
