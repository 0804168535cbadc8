"""A split by time: what a certificate says of calibration rows that are later than all training rows."""

from __future__ import annotations

from dataclasses import dataclass

DOUBTFUL = "although these rows are in order of time, which makes this doubtful"


@dataclass(frozen=True)
class TimeSplit:
    """Up to when rows trained a model, and from when to when they calibrated it, in words.

    Parameters
    ----------
    by : str
        The column that says when a row came, or "time" if it has no name.
    trained_until : str
        When the last training row came.
    calibrated_from : str
        When the first calibration row came. It is later than all training rows.
    calibrated_until : str
        When the last calibration row came.
    """

    by: str
    trained_until: str
    calibrated_from: str
    calibrated_until: str

    def in_words(self) -> str:
        """Return how rows were split, what the promise still assumes, and what to do about it."""
        return (
            f"Split {self.in_brief()}. The promise assumes that rows to come are like these calibration rows "
            "(exchangeable with them). Order in time makes this doubtful: rows near each other are often alike, and "
            "later rows often differ. Audit new rows as they come."
        )

    def in_brief(self) -> str:
        """Return how rows were split, without a full stop."""
        return (
            f"by time ({self.by}): training rows go up to {self.trained_until}, calibration rows from "
            f"{self.calibrated_from} to {self.calibrated_until}"
        )
