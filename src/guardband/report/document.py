"""The document: everything that a page shows, ready for JSON."""

from __future__ import annotations

import json
import platform
from typing import Any

import numpy as np
from numpy.typing import NDArray

import guardband
from guardband.audit.audit import Audit, audit
from guardband.audit.evidence import Evidence
from guardband.audit.guarded import Guarded
from guardband.audit.promised_groups import findings_of_groups, promised_groups
from guardband.audit.several import SeveralEvidence
from guardband.audit.strata import Family
from guardband.audit.verdict import rows_needed, unusable
from guardband.bands.certificate import Certificate
from guardband.bands.promise import Promise
from guardband.explain.for_page import explained_for_page
from guardband.monitor.in_order import InOrder, in_order
from guardband.report.advice import checked_with
from guardband.report.heading import Heading
from guardband.report.history import history_entries
from guardband.report.parts import LONGEST_NAME, LONGEST_TEXT, MOST_GROUPS, SCHEMA
from guardband.report.rows import rows_of
from guardband.words import number, plain

Array = NDArray[np.float64]

MOST_ROWS = 600
MOST_COLUMNS = 200
MOST_BYTES = 1_400_000
HISTOGRAM_BINS = 40
ROWS_A_QUARTER = 5
NAMES = ("title", "author", "unit", "date", "response", "audit", "rows", "explained")
NO_HEADING = Heading()
UNCHECKED = "Not yet checked: no test rows were set aside. Check the promise on new rows with"
UNJUDGED = "Not checked: test rows cannot judge this promise. Look at the coverage of new rows with"


def document(
    model: Guarded,
    evidence: Evidence | SeveralEvidence | None,
    significance: float = 0.01,
    heading: Heading = NO_HEADING,
    response: str = "the target",
) -> dict[str, Any]:
    """Return what the page shows of a model and, where there are labelled rows that it has not seen, of its intervals.

    At most 1.5 MB as JSON, whatever the number of rows and columns: rows are drawn at random, with a fixed seed.
    """
    if isinstance(evidence, SeveralEvidence):
        from guardband.report.several import several_document

        return several_document(model, evidence, significance, heading)
    promise = model.calibration_.certificate.promise
    can_be_judged = promise.is_testable or not promise.is_of_coverage
    unchecked = f"{UNCHECKED if can_be_judged else UNJUDGED} {checked_with(model.python_only)}."
    out: dict[str, Any] = {
        "schema": SCHEMA,
        **heading.entries(),
        "response": response if evidence is None else evidence.response,
        "status": "unchecked",
        "sentence": unusable(promise, 0, 1) if promise.whole_line[0] else unchecked,
        "fitted": made(model, evidence),
        "settings": [[name, words] for name, words in model.settings()],
        "quantiles": _quantiles(model),
        "python_only": model.python_only,
        "audit": None,
        "explained": None,
    }
    if evidence is not None:
        out |= checked_rows(evidence, audit(evidence, significance))
        out["explained"] = explained_for_page(model, evidence)
    names = {key: shortened(out[key], LONGEST_NAME) for key in NAMES if key in out}
    kept = {key: shortened(value, LONGEST_TEXT) for key, value in (out | names).items()}
    return kept | promised(model.calibration_.certificate)


def promised(certificate: Certificate) -> dict[str, Any]:
    """Return what the page says of the promise: it follows from the certificate alone."""
    groups = promised_groups(certificate)
    own = {
        "promise": certificate.promise.headline(certificate.method),
        "level": certificate.promise.expectations()[0].level,
        "risk": certificate.risk,
        "side": certificate.promise.side,
        "method": shortened(certificate.method, LONGEST_NAME),
        "certificate": _certificate(certificate),
        "not_promised": certificate.promise.not_promised(),
        "calibration": _calibration(certificate.promise),
        "promised_groups": shortened(groups[:MOST_GROUPS], LONGEST_NAME),
        "groups_left_out": max(0, len(groups) - MOST_GROUPS),
    }
    return {key: shortened(value, LONGEST_TEXT) for key, value in own.items()}


def _quantiles(model: Guarded) -> str | None:
    """Return what is promised of the quantiles of a model that was fitted for them."""
    own: Certificate | None = getattr(model, "quantile_certificate", None)
    return None if own is None else own.promise.headline(own.method)


def _certificate(certificate: Certificate) -> dict[str, Any]:
    """Return the certificate in words and for JSON; what is promised of each group has a place of its own."""
    own: dict[str, Any] = {"text": str(certificate)} | plain(certificate.to_dict())
    own["promise"].pop("parts", None)
    return own


def _calibration(promise: Promise) -> dict[str, Any]:
    """Return the number of calibration rows and how many are needed at the first level that has infinite intervals.

    If no level has, these are the rows needed at the first level. None stands for a number that is not known, 0 for
    intervals that more rows would not make finite.
    """
    infinite, is_first = [i for i, own in enumerate(promise.whole_line) if own], promise.whole_line[0]
    i = infinite[0] if infinite else 0
    if promise.is_parted and infinite:  # the part that lacks the fewest rows
        promise = max((part.promise for part in promise.statements()), key=lambda own: own.n_calibration)
    level, n = promise.confidence_level[i], promise.n_calibration
    needed = rows_needed(promise, level) if promise.binding and promise.is_testable else None
    ranks = [part.promise.rank for part in promise.statements()]
    known = promise.least_rows()
    if known is not None:
        needed = 0 if infinite and known <= n else known
    elif infinite and all(own is None or own[i] <= n for own in ranks):
        needed = 0
    elif infinite and needed is not None and needed <= n:
        needed = None
    return {"rows": n, "level": level, "needed": needed, "infinite": is_first}


def checked_rows(
    evidence: Evidence, findings: Audit, most_bytes: int = MOST_BYTES, with_groups: bool = True
) -> dict[str, Any]:
    """Return what labelled rows say, of so few rows that it has about ``most_bytes`` as JSON."""
    columns = [family for family in findings.families if family.key.startswith("column-")]
    others = [family for family in findings.families if not family.key.startswith("column-")]
    columns_shown = _columns_shown(columns)
    entries = findings.to_dict()
    entries["parts"] = findings_of_groups(evidence.certificate, findings.parts)[:MOST_GROUPS]
    shown = others + columns_shown if with_groups else []
    width = evidence.reach[:, 0]
    entries["families"] = [_with_widths(family, width) for family in shown]
    entries["drift"]["columns"] = (entries["drift"]["columns"] or [])[:MOST_COLUMNS] or None
    out = {
        "status": findings.verdict,
        "sentence": findings.sentence,
        "audit": entries,
        "columns_left_out": len(columns) - len(columns_shown),
        "judges": _judges(evidence),
        "spread": _spread(evidence),
        "widths": _widths(evidence),
        "errors": _errors(evidence),
        "history": _history(in_order(evidence, findings.significance)),
    }
    most = min(MOST_ROWS, evidence.n)
    while True:
        out["rows"] = rows_of(evidence, findings, shown, most)
        if most <= 1 or len(json.dumps(out)) <= most_bytes:
            return out
        most //= 2


def _history(found: InOrder | None) -> dict[str, Any] | None:
    """Return the evidence of rows in the order of their times, as a monitor would have found it."""
    return None if found is None else history_entries(found.blocks, found.log_limit, found.alarm_row, None)


def _judges(evidence: Evidence) -> str:
    twins = sum(evidence.twins)
    if not twins:
        return "with known true values, none of them used for training or calibration"
    equal = "1 equals a training or calibration row" if twins == 1 else f"{twins:,} equal training or calibration rows"
    return f"with known true values; {equal} (see the notes)"


def _spread(evidence: Evidence) -> dict[str, Any]:
    """Return the typical width beside the range of the central 90% of true values."""
    width = evidence.reach[:, 0]
    low, high = (float(q) for q in np.quantile(evidence.y, [0.05, 0.95]))
    median = float(np.median(width))
    own: dict[str, Any] = plain(
        {
            "median_width": median,
            "mean_width": float(width.mean()),
            "low": low,
            "high": high,
            "ratio": median / (high - low) if high > low else None,
        }
    )
    return own


def _widths(evidence: Evidence) -> dict[str, Any] | None:
    """Return a histogram of the widths, and how many rows of each bin are missed; None if they do not vary."""
    width = evidence.reach[:, 0]
    finite = np.isfinite(width)
    values = width[finite]
    if not len(values) or np.ptp(values) <= 1e-9 * abs(float(values.max())):
        return None
    top = float(np.quantile(values, 0.995))  # few very wide intervals would leave the others in one bin
    edges = np.linspace(float(values.min()), max(top, float(np.nextafter(values.min(), np.inf))), HISTOGRAM_BINS + 1)
    missed = ~evidence.covered[:, 0][finite]
    counts, _ = np.histogram(np.minimum(values, edges[-1]), edges)
    lost, _ = np.histogram(np.minimum(values[missed], edges[-1]), edges)
    own: dict[str, Any] = plain({"edges": edges, "counts": counts, "missed": lost, "infinite": int((~finite).sum())})
    return own


def _with_widths(family: Family, width: Array) -> dict[str, Any]:
    """Return a family with the median width of each of its groups."""
    entries = family.to_dict()
    for i, own in enumerate(entries["strata"]):
        mine = width[family.stratum_of == i]
        own["median_width"] = plain(float(np.median(mine))) if len(mine) else None
    return entries


def _errors(evidence: Evidence) -> list[dict[str, Any]] | None:
    """Return the median width and error of the narrowest quarter of rows, of the next, and so on; None if too few."""
    width, error = evidence.reach[:, 0], np.abs(evidence.y - evidence.headline.point)
    finite = np.flatnonzero(np.isfinite(width))
    if len(finite) < 4 * ROWS_A_QUARTER or np.ptp(width[finite]) <= 1e-9 * float(width[finite].max()):
        return None
    quarters = np.array_split(finite[np.argsort(width[finite], kind="stable")], 4)
    own: list[dict[str, Any]] = plain(
        [{"width": float(np.median(width[rows])), "error": float(np.median(error[rows]))} for rows in quarters]
    )
    return own


def _columns_shown(columns: list[Family]) -> list[Family]:
    """Return at most as many columns as a page has room for, in their order; flagged ones are never left out first."""
    if len(columns) <= MOST_COLUMNS:
        return columns
    order = sorted(range(len(columns)), key=lambda j: (not columns[j].flagged, j))
    return [columns[j] for j in sorted(order[:MOST_COLUMNS])]


def made(model: Guarded, evidence: Evidence | None) -> list[list[str]]:
    """Return how the model was made and what judges it, a line each."""
    certificate = model.calibration_.certificate
    entries = [
        ["Method", certificate.method],
        ["Calibration rows", _calibration_rows(certificate.promise)],
        ["Test rows", "none" if evidence is None else _rows_of_entities(evidence.n_given, evidence.n)],
        *([name, words] for name, words in model.made_by()),
        ["Page made with", f"guardband {guardband.__version__}, Python {platform.python_version()}"],
    ]
    if evidence is not None and evidence.reference is not None:
        response = evidence.reference.response
        entries.insert(3, ["Known true values", f"{number(response.knots[0])} to {number(response.knots[-1])}"])
    return entries


def _calibration_rows(promise: Promise) -> str:
    """Return how many calibration rows there are; for each target, if each has its own."""
    parts = promise.statements() if promise.is_of_each_target else ()
    if len({part.promise.n_calibration for part in parts}) > 1:
        return ", ".join(f"{part.promise.n_calibration:,} for {part.name!r}" for part in parts)
    return _rows_of_entities(promise.n_rows, promise.n_calibration)


def _rows_of_entities(rows: int | None, counted: int) -> str:
    """Return how many rows there are, and how many of them count if they belong together."""
    return f"{counted:,}" if rows is None else f"{rows:,}, of {counted:,} entities"


def shortened(value: Any, longest: int) -> Any:
    """Return nested values in which no text is longer than a page has room for, and each can be written."""
    if isinstance(value, dict):
        return {key: shortened(entry, longest) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [shortened(entry, longest) for entry in value]
    if not isinstance(value, str):
        return value
    text = value if len(value) <= longest else f"{value[: longest - 1]}…"
    return text.encode(errors="replace").decode()


def _first(entry: Any) -> Any:
    return entry[0] if isinstance(entry, tuple) else entry
