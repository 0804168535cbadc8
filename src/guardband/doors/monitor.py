"""The monitor with its page."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from guardband.monitor.monitor import Monitor as PromiseMonitor


class Monitor(PromiseMonitor):
    """Watches a promise in use, and raises an alarm if more rows fall outside than it allows.

    Look as often as you like: while the promise holds, the chance that the alarm is ever raised is at most
    ``significance``, for a pac promise plus its delta. Repeated audits have no such limit.

    Parameters
    ----------
    model : model, calibrated network, BandCalibrator or Certificate
        What made the promise. A model of tables also predicts rows (``update(y, X=X)``), and its columns are compared
        with those of the training rows.
    significance : float, default 0.01
        How often a promise that holds may ever raise the alarm. Lower it if a false alarm is expensive.

    Examples
    --------
    >>> import numpy as np, guardband as gb
    >>> rng = np.random.default_rng(0)
    >>> zero, y = np.zeros(1000), rng.standard_normal(1000)
    >>> rule = gb.BandCalibrator().fit(zero - 1, zero, zero + 1, y)
    >>> monitor = gb.Monitor(rule)
    >>> late = 2 * rng.standard_normal(400)  # errors have doubled
    >>> monitor.update(late, rule.transform(zero[:400] - 1, zero[:400], zero[:400] + 1)).counted
    400
    >>> monitor.alarm
    True
    """

    def report(self, path: str | PathLike[str]) -> Path:
        """Write a page with the history and return its path: coverage, evidence, width, and what changed.

        Parameters
        ----------
        path : str or path
            The HTML file to write, such as ``house.monitor.html``.
        """
        from guardband.report.monitor_page import write_monitor_page

        return write_monitor_page(self, Path(path))
