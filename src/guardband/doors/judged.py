"""What every calibrated model of tables can be asked: an audit of its promise, and a page."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.audit.guarded import Guarded

if TYPE_CHECKING:
    from guardband.audit.audit import Audit


class Judged:
    """Adds ``audit`` and ``report`` to a calibrated model of tables."""

    def audit(
        self: Guarded,
        X: Any,
        y: Any,
        *,
        group: Any = None,
        time: Any = None,
        entities: Any = None,
        significance: float = 0.01,
    ) -> Audit:
        """Return what rows with known true values say of the promise.

        Parameters
        ----------
        X, y : table and array of shape (n,)
            Rows that neither trained nor calibrated the model, and their true values.
        group, time : array of shape (n,), default None
            A column by whose values coverage is shown, and one by which rows are put in order of time.
        entities : array of shape (n,), default None
            What each row belongs to, if the model was told so in the same way.
        significance : float, default 0.01
            How often rows that keep the promise may be called broken.
        """
        from guardband.audit.audit import audit
        from guardband.audit.evidence import Evidence

        return audit(Evidence.of(self, X, y, group=group, time=time, entities=entities), significance)

    def report(
        self: Guarded,
        path: str | PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        group: Any = None,
        time: Any = None,
        entities: Any = None,
        significance: float = 0.01,
    ) -> Path:
        """Write the page of the model and return its path; with ``X`` and ``y`` it shows their audit.

        The arguments are those of ``audit``. Without rows the page shows the promise alone.
        """
        from guardband.audit.evidence import Evidence
        from guardband.report.document import document
        from guardband.report.page import write_report

        evidence = None
        if X is not None or y is not None:
            evidence = Evidence.of(self, X, y, group=group, time=time, entities=entities)
        return write_report(document(self, evidence, significance), Path(path))
