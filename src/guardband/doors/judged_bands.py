"""What calibrated predictions can be asked: their promise, an audit of it, and its page."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from guardband.bands.certificate import Certificate
from guardband.calibration.calibrated import Calibrated
from guardband.data.entities import entities_of_labels
from guardband.doors.band_columns import PARTS, brought, by_target, with_axes
from guardband.doors.band_rows import BandRows

if TYPE_CHECKING:
    from guardband.audit.audit import Audit
    from guardband.audit.evidence import Evidence


class JudgedBands(BandRows):
    """Adds the certificate, ``audit`` and ``report`` to calibrated predictions."""

    @property
    def certificate(self) -> Certificate:
        """What is promised."""
        return self.calibration_.certificate

    @property
    def calibration_(self) -> Calibrated:
        """The calibrated rule."""
        return self._found.calibrated

    def audit(
        self,
        lower: ArrayLike | None,
        point: ArrayLike | None,
        upper: ArrayLike | None,
        y: ArrayLike,
        *,
        group: Any = None,
        time: Any = None,
        entities: Any = None,
        groups: Any = None,
        weights: ArrayLike | None = None,
        significance: float = 0.01,
    ) -> Audit:
        """Return what new predictions with known true values say of the promise.

        Parameters
        ----------
        lower : array of shape (n,) or (K, n), or None
            The lower bounds of test rows, as ``fit`` takes them. Test rows did not calibrate the rule.
        point : array of shape (n,) or (K, n), or None
            Their predictions.
        upper : array of shape (n,) or (K, n), or None
            Their upper bounds.
        y : array of shape (n,)
            Their true values.
        group : array of shape (n,), default None
            Coverage is shown for each of these values.
        time : array of shape (n,), default None
            Rows are put in this order to show coverage over time.
        entities : array of shape (n,), default None
            What each row belongs to, if ``fit`` was told so.
        groups : array of shape (n,) or (n, J), default None
            The group of each row that has a promise of its own, if ``fit`` was given groups.
        weights : array of shape (n,), default None
            The weight of each row, if ``fit`` was given weights and the guarantee is "marginal".
        significance : float, default 0.01
            How often rows that keep the promise may be called broken.
        """
        from guardband.audit.several import audit_of

        sides = {"group": group, "time": time, "entities": entities, "groups": groups, "weights": weights}
        return audit_of(self._evidence(lower, point, upper, y, **sides), significance)

    def report(
        self,
        path: str | PathLike[str],
        lower: ArrayLike | None = None,
        point: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        group: Any = None,
        time: Any = None,
        entities: Any = None,
        groups: Any = None,
        weights: ArrayLike | None = None,
        significance: float = 0.01,
        title: str = "",
        author: str = "",
        unit: str = "",
    ) -> Path:
        """Write the page of the rule and return its path; with predictions and true values it shows their audit.

        Parameters
        ----------
        path : str or path
            The HTML file to write.
        lower : array of shape (n,) or (K, n), default None
            The lower bounds of test rows, as ``fit`` takes them. Without test rows the page shows the promise
            alone.
        point : array of shape (n,) or (K, n), default None
            Their predictions.
        upper : array of shape (n,) or (K, n), default None
            Their upper bounds.
        y : array of shape (n,), default None
            Their true values.
        group : array of shape (n,), default None
            A group for each row. Coverage is shown for each group.
        time : array of shape (n,), default None
            The time of each row, to look for changes over time.
        entities : array of shape (n,), default None
            What each row belongs to, if you gave ``entities`` to ``fit``.
        groups : array of shape (n,) or (n, J), default None
            The group of each row that has a promise of its own, if you gave ``groups`` to ``fit``.
        weights : array of shape (n,), default None
            The weight of each row, if you gave ``weights`` to ``fit`` and the guarantee is "marginal".
        significance : float, default 0.01
            How often a model that keeps its promise may be called broken. Lower it if a false alarm is expensive.
        title : str, default ""
            The heading of the page. Without one, the page names the confidence level and the target.
        author : str, default ""
            Who made the page. It stands beside the date.
        unit : str, default ""
            The unit of the target, such as "EUR". It stands behind predictions, interval ends and widths.
        """
        from guardband.report.document import document
        from guardband.report.heading import Heading
        from guardband.report.page import write_report

        evidence = None
        if y is not None or not lower is point is upper is None:
            sides = {"group": group, "time": time, "entities": entities, "groups": groups, "weights": weights}
            evidence = self._evidence(lower, point, upper, y, **sides)
        return write_report(document(self, evidence, significance, Heading(title, author, unit)), Path(path))

    def _evidence(
        self,
        lower: Any,
        point: Any,
        upper: Any,
        y: Any,
        *,
        entities: Any,
        groups: Any = None,
        weights: Any = None,
        **sides: Any,
    ) -> Evidence:
        """Return predictions as rows for an audit."""
        from guardband.audit.evidence import Evidence

        form, predicted = brought(lower, point, upper, self.arguments["side"])
        predicted = by_target(predicted) if self.columns.targets else predicted
        if form != self.columns.form:
            needed = ", ".join(PARTS[self.columns.form])
            raise ValueError(f"Bring {needed}, as fit was given, found {', '.join(PARTS[form])}.")
        matrix = self.columns.matrix(self._as_fitted(with_axes(predicted)))
        if entities is not None:
            entities = entities_of_labels(entities, len(matrix))
        elif self.fitted_.calibration_entities is not None and self.fitted_.repeat_rule is None:
            raise ValueError(
                "The promise of this rule is for new entities, and these rows do not say what they belong to. Pass "
                "entities=, as you did to fit."
            )
        context = self._known_of(groups, len(matrix), weights=weights, are_counted=True)
        if self.columns.targets:
            from guardband.audit.several import SeveralEvidence

            several: Any = SeveralEvidence.of(self, matrix, y, entities=entities, **sides)
            return several  # type: ignore[no-any-return]
        return Evidence.of(self, matrix, y, entities=entities, context=context, **sides)
