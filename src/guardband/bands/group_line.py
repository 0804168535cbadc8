"""What is promised of one group, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

from guardband.bands.promise import Side


@dataclass(frozen=True)
class GroupLine:
    """One line of ``certificate.groups``. With several levels, what depends on the level is a tuple in their order.

    Parameters
    ----------
    name : str
        The group, in words, such as "district = old town".
    n_calibration : int
        The number of its calibration rows.
    rank : int or tuple of int
        How many of them the intervals had to contain; more than there are where intervals are infinite.
    coverage_bound : float, tuple of float, or None
        What coverage of the group is at least for these calibration rows, with the certificate's confidence, for all
        groups at once. None if no bound is known, as for groups that overlap with a promise on average.
    mean_width : float, tuple of float, or None
        The mean width of the intervals of its calibration rows. None if it is infinite or not known.
    cost : float, tuple of float, or None
        How much wider they are than with one promise for all rows, as a share of that width. Negative if narrower.
    side : {"both", "lower", "upper"}, default "both"
        Whether the line is about intervals, lower bounds or upper bounds.
    """

    name: str
    n_calibration: int
    rank: int | tuple[int, ...]
    coverage_bound: float | tuple[float, ...] | None
    mean_width: float | tuple[float, ...] | None
    cost: float | tuple[float, ...] | None
    side: Side = "both"
