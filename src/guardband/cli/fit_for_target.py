"""``guardband fit --for-target``: the promise is about rows like those of another table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardband.audit.audit import Audit
from guardband.audit.audit import audit as judge
from guardband.cli.console import Speaker
from guardband.cli.exit_codes import DONE, exit_code
from guardband.cli.fit_steps import Parts
from guardband.cli.stream import read_rows
from guardband.data.disk import DiskTable
from guardband.data.row_numbers import rows_known_as
from guardband.doors.table import IntervalRegressor
from guardband.learning.options import FitOptions
from guardband.learning.shift import refuse_other_promises
from guardband.words import listed, visible

UNJUDGED = (
    "Not checked: the promise is about rows like those of {target}. The test rows are like {source}, and cannot judge "
    "it. Look at coverage with guardband audit when you know true values."
)


@dataclass(frozen=True)
class OtherPopulation:
    """A model for rows like those of another table, and what test rows say of the promise that it had before."""

    model: IntervalRegressor
    source: str
    target: str
    before: Audit | None

    def described(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the document of the model's page, which says what the promise is about and why nothing checked it."""
        fitted = [["Rows to predict", f"like those of {self.target}"]]
        if self.before is None:
            return document | {"fitted": fitted + document["fitted"]}
        checked = ["Test rows", f"{self.before.n:,}, which checked the promise before --for-target"]
        fitted += [checked if own[0] == "Test rows" else own for own in document["fitted"]]
        return document | {"fitted": fitted, "sentence": UNJUDGED.format(source=self.source, target=self.target)}

    @property
    def in_words(self) -> str:
        """What the test rows say of the promise before, in words; nothing without test rows."""
        before = self.before
        return "" if before is None else f"Before --for-target, for rows like {self.source}: {before.sentence}"

    @property
    def to_dict(self) -> dict[str, str] | None:
        """The same for JSON."""
        return None if self.before is None else {"verdict": self.before.verdict, "sentence": self.before.sentence}

    @property
    def code(self) -> int:
        """The exit code by the promise before: a model that broke it is no better for other rows."""
        return exit_code(self.before.verdict) if self.before and self.before.verdict == "broken" else DONE


def need_possible(model: IntervalRegressor, disk: DiskTable, features: Sequence[str]) -> None:
    """Raise before training if the method has no such promise, or if the table lacks columns to learn from."""
    options = FitOptions.of(model.get_params(deep=False))
    try:
        refuse_other_promises(options.method.rule(options.request))
    except ValueError:
        raise ValueError(
            f"--for-target does not go with --method {options.method.name}. Use --method conf-nn, conf-fw, cqr or "
            "cqr-r."
        ) from None
    missing = [name for name in features if name not in disk.names]
    if missing:
        them = "it" if len(missing) == 1 else "them"
        raise ValueError(
            f"{disk.label} of --for-target lacks {listed(missing, 10)}. Add {them}, or leave {them} out with --drop."
        )


def for_other_rows(
    model: IntervalRegressor, parts: Parts, disk: DiskTable, source: str, speaker: Speaker
) -> OtherPopulation:
    """Return the model for rows like those of a table, whose true values may be absent."""
    with speaker.doing(f"Reading {disk.label}"):
        X = read_rows(model, disk)
        speaker.step(f"Estimating weights from {len(X):,} rows")
        with rows_known_as(np.arange(1, len(X) + 1)):
            other = model.for_target(X)
        before = None
        if parts.check is not None:
            speaker.step(f"Checking the promise on {parts.check.n:,} test rows")
            before = judge(parts.check.evidence(model))
    return OtherPopulation(other, source, visible(disk.label), before)
