"""The audit of several targets: all of them at once by the exact law, and each for information; or each by its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from guardband.audit.audit import Audit, audit
from guardband.audit.evidence import Evidence, found_among
from guardband.audit.guarded import Guarded, need_entities
from guardband.audit.target_view import TargetView, of_rows
from guardband.audit.verdict import Counted, Reason, Verdict, VerdictKind, used_before, verdict_on, verdict_on_all
from guardband.bands.boxes import Boxes
from guardband.bands.certificate import Certificate
from guardband.bands.promise import Part, Promise
from guardband.data.entities import Entities
from guardband.data.fingerprint import Twins, fingerprints
from guardband.data.several_targets import key_of, read_targets
from guardband.data.table import Table, take_rows
from guardband.words import level_name, percent, plain

Rows = NDArray[np.intp]

INFORM_EACH = "Each target has a promise of its own. All targets together are shown for information."
INFORM = "The promise is about all targets together. Each target alone is shown for information."


@dataclass(frozen=True, eq=False)
class SeveralEvidence:
    """Labelled rows with their boxes: ``inside`` says which of the rows with all targets lie inside, ``(n, L)``.

    ``targets`` holds the evidence of each target, of the rows in which it is known. The rest is as in ``Evidence``.
    """

    names: tuple[str, ...]
    targets: tuple[Evidence, ...]
    inside: NDArray[np.bool_]
    boxes: Boxes
    certificate: Certificate
    drawn_from: tuple[int, str] | None
    used_before: int
    used_by_chance: int
    doubts: tuple[str, ...]

    @property
    def n(self) -> int:
        """The number of rows in which all targets are known."""
        return len(self.inside)

    @classmethod
    def of(
        cls,
        model: Guarded,
        X: Any,
        y: Any,
        *,
        group: Any = None,
        time: Any = None,
        row_numbers: Rows | None = None,
        entities: Any = None,
    ) -> SeveralEvidence:
        """Return the evidence of labelled rows; of rows that belong together one is drawn for all targets."""
        names, fitted = model.calibration_.rule.target_names, model.fitted_
        table = model.read_rows(X)
        values, _ = read_targets(y, table.n_rows, names)
        key, drawn_from = key_of(values), None
        need_entities(model, entities)
        together = model.belonging.entities(table, X, key, entities)
        rows = np.arange(table.n_rows) if together is None else together.one_row_each(key)
        numbers = np.arange(1, table.n_rows + 1) if row_numbers is None else row_numbers
        seen = 0
        if together is not None:
            drawn_from, seen = (table.n_rows, together.name), _seen(together, fitted)
        known = ~np.isnan(values)
        each = []
        for j, name in enumerate(names):
            own = rows[known[rows, j]]
            if not len(own):
                raise ValueError(f"The target {name!r} is missing in every row. Bring rows with true values.")
            sides = {"group": of_rows(group, own), "time": of_rows(time, own), "row_numbers": numbers[own]}
            each.append(Evidence.of(TargetView(model, j), take_rows(X, own), values[own, j], **sides))
        complete = rows[known[rows].all(axis=1)]
        table = model.read_rows(take_rows(X, complete))
        boxes, prints = boxes_of_rows(model, take_rows(X, complete), table), fingerprints(table, key[complete])
        used, (_, used_before) = fitted.used_prints, found_among(prints, fitted, model.calibration_.summary)
        return cls(
            names,
            tuple(replace(own, response=name) for own, name in zip(each, names, strict=True)),
            boxes.contains(values[complete]).reshape(len(complete), -1),
            boxes,
            model.calibration_.certificate,
            drawn_from,
            max(used_before, seen),
            Twins.among(used, by_chance=together is None and fitted.training_entities is None).most(len(prints)),
            fitted.doubts,
        )


def boxes_of_rows(model: Guarded, X: Any, table: Table) -> Boxes:
    """Return the boxes of rows, as they were given and as the model reads them."""
    calibrated, (predicted, _) = model.calibration_, model.outputs(X, table)
    boxes: Any = calibrated.intervals(model.target_.to_units(*calibrated.ends(predicted, table.context)))
    return cast(Boxes, boxes)


@dataclass(frozen=True)
class JointLevel:
    """One level: in how many rows all targets lie inside, what was to be expected, and the exact test.

    ``low`` to ``high`` is the range to expect of the count. Nothing is expected of it if each target has a promise of
    its own, and ``p_value`` is then 1.
    """

    level: float
    n: int
    covered: int
    low: int
    high: int
    least: int | None
    p_value: float

    @property
    def share(self) -> float:
        """The share of rows in which all targets lie inside."""
        return self.covered / self.n if self.n else float("nan")


@dataclass(frozen=True, eq=False)
class SeveralAudit:
    """What labelled rows say of a promise for several targets.

    ``levels`` counts rows with all targets inside. ``targets`` holds an ordinary ``Audit`` for each target. If the
    promise is for all targets at once these inform, and their own verdicts decide nothing.
    """

    verdict: VerdictKind
    sentence: str
    p_value: float
    significance: float
    names: tuple[str, ...]
    levels: tuple[JointLevel, ...]
    targets: tuple[Audit, ...]
    reason: Reason = "count"
    more_rows: int | None = None
    is_of_each_target: bool = False

    @property
    def n(self) -> int:
        """The number of rows with all targets."""
        return self.levels[0].n

    def __getitem__(self, name: str) -> Audit:
        """Return the audit of one target."""
        return self.targets[self.names.index(name)]

    def __repr__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        from guardband.markup import rendered

        inform = INFORM_EACH if self.is_of_each_target else INFORM
        shown = first_level([own.level for own in self.levels])
        return rendered("several_audit.html", sentence=self.sentence, rows=self.lines(), notes=[shown, inform])

    def lines(self) -> list[tuple[str, int, int, float, float]]:
        """Return for all targets together and for each: name, rows, rows inside, share and mean width, first level."""
        first = self.levels[0]
        own = [(name, one.levels[0]) for name, one in zip(self.names, self.targets, strict=True)]
        return [
            ("all targets", first.n, first.covered, first.share, float("nan")),
            *((name, level.n, level.covered, level.share, level.mean_width) for name, level in own),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the audit for JSON."""
        entries: dict[str, Any] = plain(
            {
                "verdict": self.verdict,
                "sentence": self.sentence,
                "reason": self.reason,
                "more_rows": self.more_rows,
                "p_value": self.p_value,
                "significance": self.significance,
                "n": self.n,
                "levels": [asdict(own) | {"share": own.share} for own in self.levels],
            }
        )
        inform = {"for_information": not self.is_of_each_target}
        pairs = zip(self.names, self.targets, strict=True)
        return entries | {"targets": {name: own.to_dict() | inform for name, own in pairs}}


def first_level(levels: Sequence[float]) -> str:
    """Return which of several levels a table of targets shows, in words; nothing if there is one.

    Parameters
    ----------
    levels : sequence of float
        The levels.
    """
    if len(levels) == 1:
        return ""
    return f"Counts and widths are those of the {level_name(levels[0])} intervals, the first of {len(levels)} levels."


def audit_of(evidence: Evidence | SeveralEvidence, significance: float = 0.01) -> Audit:
    """Return what the rows say of a promise for one target, or for several: then it is a ``SeveralAudit``."""
    several: Any = audit_several(evidence, significance) if isinstance(evidence, SeveralEvidence) else None
    return several or audit(cast(Evidence, evidence), significance)


def audit_several(evidence: SeveralEvidence, significance: float = 0.01) -> SeveralAudit:
    """Return what the rows say: of all targets at once, or of each if each has a promise of its own.

    With q targets and L levels each target of its own is tested at ``significance / (q L)``.
    """
    if not 0 < significance < 1:
        raise ValueError(f"significance must lie strictly between 0 and 1, found {significance}.")
    promise = evidence.certificate.promise
    share = share_of_each(promise, evidence.names, significance)
    targets = tuple(audit(own, share) for own in evidence.targets)
    used = used_before(evidence)  # type: ignore[arg-type]  # which asks for what both kinds have
    return judged_several(
        promise, evidence.names, targets, evidence.n, evidence.inside.sum(axis=0), used, evidence.doubts, significance
    )


def share_of_each(promise: Promise, names: Sequence[str], significance: float) -> float:
    """Return the significance at which each target is tested: they share it if each has a promise of its own."""
    return significance / len(names) if promise.is_of_each_target else significance


def judged_several(
    promise: Promise,
    names: tuple[str, ...],
    targets: tuple[Audit, ...],
    n: int,
    inside: NDArray[np.int64],
    used: Verdict | None,
    doubts: tuple[str, ...],
    significance: float,
) -> SeveralAudit:
    """Return what counts say: ``inside`` of the ``n`` rows with all targets, ``(L,)``, and the audit of each target."""
    is_each = promise.is_of_each_target
    expectations = promise.expectations()
    among = len(expectations)
    counted = [
        Counted(Part(promise), i, own, int(inside[i]), n, significance / among, among)
        for i, own in enumerate(expectations)
    ]
    if used is not None:
        verdict = used
    elif is_each:
        verdict = _of_each(names, targets)
    elif not n:
        verdict = Verdict("cannot judge", "Cannot judge: no row has all targets. Bring rows that do.", "few test rows")
    else:
        verdict = verdict_on_all(verdict_on(own, doubts) for own in counted)
    p_values = [1.0 if is_each else own.p_value for own in counted]
    p_value = min(1.0, min(p_values) * among)
    if is_each:
        p_value = min(1.0, min(own.p_value for own in targets) * len(targets))
    return SeveralAudit(
        verdict.kind,
        verdict.sentence,
        p_value,
        significance,
        names,
        tuple(_level(own, p, is_each) for own, p in zip(counted, p_values, strict=True)),
        targets,
        verdict.reason,
        verdict.more_rows,
        is_each,
    )


def _level(own: Counted, p_value: float, is_each: bool) -> JointLevel:
    low, high = (0, own.n) if is_each else own.expected
    least = None if is_each or not own.n else own.expectation.least(own.n, own.significance)
    return JointLevel(own.expectation.level, own.n, own.covered, low, high, least, p_value)


def _of_each(names: tuple[str, ...], targets: tuple[Audit, ...]) -> Verdict:
    """Return the verdict on promises for each target: that of the target that weighs most."""
    verdicts = [Verdict(own.verdict, own.sentence, own.reason, own.more_rows) for own in targets]
    first = verdict_on_all(verdicts)
    if first.kind == "consistent":
        counts = [
            f"{own.levels[0].covered:,} of {own.levels[0].n:,} rows ({percent(own.levels[0].share)}) for {name!r}"
            for name, own in zip(names, targets, strict=True)
        ]
        words = f"{', '.join(counts[:-1])} and {counts[-1]}"
        return replace(first, sentence=f"Consistent with the promise: inside were {words}.")
    words, _, rest = first.sentence.partition(": ")
    return replace(first, sentence=f"{words}: for {names[verdicts.index(first)]!r}, {rest}")


def _seen(together: Entities, fitted: Any) -> int:
    known = [own for own in (fitted.training_entities, fitted.calibration_entities) if own is not None]
    return int(np.isin(together.every, np.concatenate(known)).sum()) if known else 0
