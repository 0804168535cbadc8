"""What comes out of a run: tables, figures, the comparison with the printed numbers, a summary and the page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from guardband.data.files import write_whole
from guardband.experiments.reproduce.claims import Claim, judge
from guardband.experiments.reproduce.compare import compare
from guardband.experiments.reproduce.figures import draw
from guardband.experiments.reproduce.folder import Folder
from guardband.experiments.reproduce.page import page_of
from guardband.experiments.reproduce.summary import summary_of

QUICK = "QUICK RUN: far smaller than the paper's"


def report(folder: Folder) -> tuple[Path, Sequence[Claim]]:
    """Write everything that the finished cells of a run give; return the page and the verdicts."""
    about = folder.about()
    note = QUICK if about["settings"]["quick"] else None
    tables = folder.write_tables()
    comparison = compare(tables)
    if len(comparison):
        write_whole(folder.path / "comparison.csv", partial(comparison.to_csv, index=False))
    claims = judge(tables)
    figures = draw(tables, folder.path / "figures", note)
    summary = summary_of(comparison, claims, note)
    write_whole(folder.path / "summary.md", lambda part: part.write_text(summary, encoding="utf-8"))
    page = folder.path / "index.html"
    text = page_of(folder.path / "figures", about, tables, comparison, claims, figures, note)
    write_whole(page, lambda part: part.write_text(text, encoding="utf-8"))
    return page, claims
