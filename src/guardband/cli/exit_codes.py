"""Exit codes: what a command tells the shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guardband.audit.verdict import VerdictKind

CANNOT_JUDGE = "These rows cannot judge the promise. The verdict above says why, and what to do."


class VerdictCode(int):
    """The code of a broken promise: a 1 of any other origin must not pass for it."""


DONE, BROKEN, REFUSED, FAULT, STOPPED = 0, VerdictCode(1), 2, 3, 130


def exit_code(verdict: VerdictKind) -> int:
    """Return the code of a verdict: 1 for a broken promise, 2 where nothing could be judged, otherwise 0."""
    return {"consistent": DONE, "broken": BROKEN, "too few rows": DONE, "cannot judge": REFUSED}[verdict]
