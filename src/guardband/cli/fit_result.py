"""What ``guardband fit`` writes and says at its end: the verdict first, then rows, the promise, files, what is next."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.audit.promised_groups import group_lines
from guardband.bands.certificate import Certificate
from guardband.cli.columns import worth_showing
from guardband.cli.console import Speaker, complain, table
from guardband.cli.exit_codes import CANNOT_JUDGE, DONE, REFUSED, exit_code
from guardband.cli.fit_for_target import OtherPopulation
from guardband.cli.fit_steps import Parts
from guardband.cli.group_table import tell_groups
from guardband.cli.help import WIDTH
from guardband.cli.labelled import Labelled
from guardband.cli.provenance import with_origin
from guardband.cli.sample import SampleRow, sample_of, sample_table
from guardband.cli.several_words import tell_targets
from guardband.doors.model_file import save
from guardband.doors.table import IntervalRegressor
from guardband.report.document import document
from guardband.report.heading import Heading
from guardband.report.page import write_report
from guardband.words import level_name

if TYPE_CHECKING:
    from guardband.audit.evidence import Evidence
    from guardband.audit.verdict import Reason

SHOWN_COLUMNS = 3
ROWS_TO_LOOK_AT = 10_000
NO_LAW: Reason = "no law"
BELOW_ZERO = (
    "No target is negative, but {} of {} intervals {} below 0. If the target cannot be negative, add --y-min 0."
)


@dataclass(frozen=True)
class Result:
    """A fitted model with what its test rows say, and the document of its page.

    Test rows do not judge a promise for an ``other`` population, and ``checked`` is then None.
    """

    model: IntervalRegressor
    rows: Labelled
    checked: Labelled | None
    counts: dict[str, int]
    document: dict[str, Any]
    sample: list[SampleRow]
    proposal: str | None
    other: OtherPopulation | None = None

    @classmethod
    def of(
        cls,
        model: IntervalRegressor,
        rows: Labelled,
        parts: Parts,
        about: dict[str, Any],
        heading: Heading,
        speaker: Speaker,
        other: OtherPopulation | None = None,
    ) -> Result:
        """Check the promise on the test rows, if there are any, and gather what is to be said."""
        checked = parts.check if other is None else None
        model = model if other is None else other.model
        what = "Describing the model" if checked is None else f"Checking the promise on {checked.n:,} test rows"
        with speaker.doing(what):
            evidence = None if checked is None else checked.evidence(model)
            counts = {
                "read": rows.n,
                "trained": len(model.fitted_.training_prints),
                "calibrated": len(model.fitted_.calibration_prints),
                "checked": 0 if parts.check is None else parts.check.n,
            }
            made = document(model, evidence, heading=heading, response=rows.target)
            made = made if other is None else other.described(made)
            made = with_origin(made, rows, counts, bool(model.split_by_time), about)
            names = worth_showing(rows, SHOWN_COLUMNS)
            sample = [] if rows.others else sample_of(model, checked or parts.fit, names)
            below = None if rows.others else _below_zero(model, parts.fit, evidence)
            return cls(model, rows, checked, counts, made, sample, below, other)

    @property
    def certificate(self) -> Certificate:
        """What is promised."""
        return self.model.certificate_

    @property
    def groups(self) -> list[dict[str, Any]]:
        """What is promised of each group and what test rows say of it, the worst first; none without groups."""
        judged = self.document["audit"]
        return group_lines(self.document["promised_groups"], [] if judged is None else judged.get("parts", []))

    def write(self, output: Path, page: Path | None, speaker: Speaker) -> None:
        """Write the model and its page."""
        with speaker.doing(f"Writing {output}"):
            save(self.model, output, report=self.document)
            if page is not None:
                write_report(self.document, page)

    def tell(self, output: Path, page: Path | None, speaker: Speaker) -> None:
        """Say what was found, where it was written, and what to do next."""
        certificate = str(self.certificate)
        speaker.tell_verdict(self.document["status"], self.document["sentence"])
        before = "" if self.other is None else self.other.in_words
        if before:
            speaker.tell(before)
        for doubt in self.model.fitted_.doubts if self.counts["checked"] else ():  # without test rows, fit said so
            if doubt not in self.document["sentence"] + before:
                speaker.note(doubt)
        if self.rows.others:
            speaker.tell()
            tell_targets(self.model, self.document, speaker)
        else:
            speaker.tell(f"\n{self._sample_title()}")
            speaker.tell(sample_table(self.sample, speaker.out.width if speaker.out.is_terminal else WIDTH))
        if speaker.verbose:
            speaker.tell(f"{certificate}\n")
            speaker.tell(self._details())
        else:
            in_time = self.certificate.in_time if self.certificate.promise.binding else None
            split = "" if in_time is None else f"{in_time.in_words()}\n"
            speaker.tell(f"{certificate.splitlines()[0]}\n{split}")
        quantiles = self.model.quantile_certificate
        if quantiles is not None:
            speaker.tell(f"Quantiles: {quantiles.promise.headline(quantiles.method)}\n")
        tell_groups(self.groups, speaker, None if speaker.verbose else "The page shows them, or add --verbose.")
        if self.proposal is not None:
            speaker.note(f"{self.proposal}\n")
        speaker.tell(f"Model: {output}")
        if page is not None:
            speaker.tell(f"Page:  {page}")
        speaker.tell(f"Next:  {self._next(output, page)}")
        speaker.tell_json(
            {
                "model": str(output),
                "report": None if page is None else str(page),
                "target": list(self.rows.targets) if self.rows.others else self.rows.target,
                "features": list(self.rows.features),
                "rows": self.counts,
                "certificate": self.certificate.to_dict(),
                "certificate_in_words": certificate,
                "quantiles": None if quantiles is None else str(quantiles),
                "groups": self.groups,
                "verdict": None if self.checked is None else self.document["status"],
                "sentence": self.document["sentence"],
                "before_for_target": None if self.other is None else self.other.to_dict,
                "doubts": list(self.model.fitted_.doubts),
                "sample": [row.to_dict() for row in self.sample],
            }
        )

    def end(self, speaker: Speaker) -> int:
        """Return the exit code; say why it is 2, if it is."""
        promise = self.certificate.promise
        if self.checked is None:
            if not any(promise.whole_line):
                return DONE if self.other is None else self.other.code
            what = "level" if promise.is_of_coverage else "risk"
            complain(f"No usable intervals: {promise.counted} are too few for this {what}. Fit on more rows.")
            return REFUSED
        code = exit_code(self.document["status"]) if self._is_judged else DONE
        if code == REFUSED:
            complain(self.document["sentence"] if speaker.quiet or speaker.as_json else CANNOT_JUDGE)
        return code

    @property
    def _is_judged(self) -> bool:
        """Whether test rows could judge the promise, or its intervals are infinite; by its nature they may not."""
        promise = self.certificate.promise
        if self.checked is None or not promise.binding:
            return False
        return any(promise.whole_line) or self.document["audit"]["reason"] != NO_LAW

    def _next(self, output: Path, page: Path | None) -> str:
        status = self.document["status"]
        if status == "broken":
            where = "use guardband audit" if page is None else f"open {page}"
            look = f"{where} to see which rows fall outside their intervals."
            if self.model.split_by_time:
                return look
            chance = "guardband split the rows at random, and chance alone breaks up to 1 of 100 such checks."
            return f"{look} {chance} Repeat the check on new rows: guardband audit {shlex.quote(str(output))} NEW.csv"
        if (status == "cannot judge" and self._is_judged) or any(self.certificate.promise.whole_line):
            return "follow the advice in the verdict, and run guardband fit again."
        return f"guardband predict {shlex.quote(str(output))} NEW.csv -o PREDICTIONS.csv"

    def _sample_title(self) -> str:
        n, levels = len(self.sample), list(self.sample[0].intervals)
        of = f"the {self.checked.n:,} test rows" if self.checked is not None else "the rows given to fit"
        has_level = len(levels) == 1 and self.certificate.promise.is_of_coverage
        intervals = f"their {level_name(levels[0])} intervals" if has_level else "their intervals"
        return f"{n} of {of}, with {intervals}:" if n > 1 else f"1 of {of}, with {intervals}:"

    def _details(self) -> Any:
        shown = table("how the model was made", "")
        for name, words in self.document["fitted"]:
            shown.add_row(name, words)
        return shown


def _below_zero(model: IntervalRegressor, rows: Labelled, evidence: Evidence | None) -> str | None:
    """Return a proposal if no target is negative and some intervals nevertheless begin below zero."""
    if model.y_min is not None or rows.y.min() < 0:
        return None
    some = rows.X.slice(0, ROWS_TO_LOOK_AT)
    lower, _ = (model.intervals_of(model.read_rows(some)) if evidence is None else evidence.intervals).per_level()
    below = int(((lower < 0) & (lower > -math.inf)).any(axis=1).sum())
    return BELOW_ZERO.format(f"{below:,}", f"{len(lower):,}", "begins" if below == 1 else "begin") if below else None
