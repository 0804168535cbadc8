"""What every calibrated model of tables can be asked: an audit of its promise, a page, and why intervals are wide."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.audit.guarded import Guarded
from guardband.bands.levels import Level

if TYPE_CHECKING:
    from guardband.audit.audit import Audit
    from guardband.audit.evidence import Evidence
    from guardband.audit.several import SeveralEvidence
    from guardband.explain.explainable import Explainable
    from guardband.explain.explanation import Explanation


class Judged:
    """Adds ``audit``, ``report`` and ``explain`` to a calibrated model of tables."""

    python_only = False

    def explain(
        self: Explainable,
        X: Any,
        *,
        background: Any = None,
        rows: Any = None,
        confidence_level: Level | None = None,
        n_background: int = 100,
        evaluations: int = 100_000,
        random_state: int | None = 0,
    ) -> Explanation:
        """Return why intervals are wide: what each column adds to the width, and to the prediction.

        Each row is compared with background rows. guardband replaces some of its columns by those of a background row,
        predicts again, and gives each column its fair share of the difference. The shares are interventional Shapley
        values: they add up to the difference between the row and the average of the background rows.

        Parameters
        ----------
        X : table
            The rows to explain. True values are not needed.
        background : table, default None
            The rows to compare with, of the same kind as ``X``. By default these are the rows of ``X``. Pass rows that
            are typical of your data if ``X`` is a single row or a special selection.
        rows : int, slice or sequence of int, default None
            Which rows of ``X`` to explain, by position. By default all of them.
        confidence_level : float, default None
            The confidence level of the intervals to explain. By default the model's own, the first of several.
        n_background : int, default 100
            How many background rows to use at most. Of more rows guardband draws some at random. More rows give a
            steadier average and take longer.
        evaluations : int, default 100000
            How many rows the model may be asked to predict, in all. If that is enough to try all combinations of
            columns, the contributions are exact. Otherwise guardband tries random orders of the columns, and each
            contribution has a standard error. Every background row needs four orders at least, even if that asks for
            more rows. Lower it if your model is slow, raise it for smaller errors.
        random_state : int or None, default 0
            The seed of all random draws. The same seed gives the same result, and None a new one each time.

        Returns
        -------
        Explanation
            The contributions and their errors. ``in_words``, ``plot``, ``by_column`` and ``to_pandas`` show them.

        Raises
        ------
        ValueError
            If an interval is infinite, or if ``X`` is one row and there is no ``background``.
        """
        from guardband.explain.explain import explain_rows

        refuse_several(len(self.calibration_.rule.target_names), "explain")
        return explain_rows(
            self,
            X,
            background=background,
            rows=rows,
            confidence_level=confidence_level,
            n_background=n_background,
            evaluations=evaluations,
            random_state=random_state,
            verbose=getattr(self, "verbose", None),
        )

    def audit(
        self: Guarded,
        X: Any,
        y: Any,
        *,
        group: Any = None,
        time: Any = None,
        entities: Any = None,
        weights: Any = None,
        significance: float = 0.01,
    ) -> Audit:
        """Return what rows with known true values say of the promise.

        Of several targets it returns a ``SeveralAudit``: all of them at once, and an ``Audit`` of each by its name.

        Each further audit has its own chance of a false alarm, and these chances add up. To look again and again, use
        ``gb.Monitor``.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Test rows: they neither trained nor calibrated the model.
        y : array of shape (n,)
            Their true values.
        group : array of shape (n,) or str, default None
            A group for each row, or the name of a column of ``X``. Coverage is shown for each group.
        time : array of shape (n,) or str, default None
            The time of each row, or the name of a column of ``X``, to look for changes over time.
        entities : array of shape (n,), default None
            What each row belongs to, if you also gave ``entities`` when you fitted or calibrated the model.
        weights : array of shape (n,), default None
            The weight of each row, if you calibrated with weights as numbers and the guarantee is "marginal".
        significance : float, default 0.01
            How often a model that keeps its promise may be called broken. Lower it if a false alarm is expensive.
        """
        from guardband.audit.several import audit_of

        return audit_of(_evidence(self, X, y, group, time, entities, weights), significance)

    def report(
        self: Guarded,
        path: str | PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        group: Any = None,
        time: Any = None,
        entities: Any = None,
        weights: Any = None,
        significance: float = 0.01,
        title: str = "",
        author: str = "",
        unit: str = "",
    ) -> Path:
        """Write the page of the model and return its path; with ``X`` and ``y`` it shows their audit.

        Parameters
        ----------
        path : str or path
            The HTML file to write.
        X : table or array of shape (n, d), default None
            Test rows: they neither trained nor calibrated the model. Without them the page shows the promise alone.
        y : array of shape (n,), default None
            Their true values.
        group : array of shape (n,) or str, default None
            A group for each row, or the name of a column of ``X``. Coverage is shown for each group.
        time : array of shape (n,) or str, default None
            The time of each row, or the name of a column of ``X``, to look for changes over time.
        entities : array of shape (n,), default None
            What each row belongs to, if you also gave ``entities`` when you fitted or calibrated the model.
        weights : array of shape (n,), default None
            The weight of each row, if you calibrated with weights as numbers and the guarantee is "marginal".
        significance : float, default 0.01
            How often a model that keeps its promise may be called broken. Lower it if a false alarm is expensive.
        title : str, default ""
            The heading of the page. Without one, the page names the confidence level and the target.
        author : str, default ""
            Who made the page. It stands beside the date.
        unit : str, default ""
            The unit of the target, such as "EUR". It stands behind predictions, interval ends and widths.
            With several targets, a unit for each in order, such as "EUR,days".
        """
        from guardband.report.document import document
        from guardband.report.heading import Heading
        from guardband.report.page import write_report

        evidence = None
        if X is not None or y is not None:
            evidence = _evidence(self, X, y, group, time, entities, weights)
        heading = Heading(title, author, unit)
        return write_report(document(self, evidence, significance, heading), Path(path))


def _evidence(
    model: Guarded, X: Any, y: Any, group: Any, time: Any, entities: Any, weights: Any
) -> Evidence | SeveralEvidence:
    """Return the evidence of rows, for one target or for several, which have no weights."""
    from guardband.audit.evidence import Evidence
    from guardband.audit.several import SeveralEvidence

    sides = {"group": group, "time": time, "entities": entities}
    if not model.calibration_.rule.target_names:
        return Evidence.of(model, X, y, **sides, weights=weights)
    if weights is not None:
        raise ValueError("Several targets cannot use weights. Remove weights.")
    return SeveralEvidence.of(model, X, y, **sides)


def refuse_several(n_targets: int, what: str) -> None:
    """Raise for several targets: ``what`` takes a model of one."""
    if n_targets > 1:
        raise ValueError(f"{what} takes a model of one target. Fit one target at a time.")
