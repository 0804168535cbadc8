"""What follows from calibration rows that were kept by chance, in proportion to their weights."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from guardband.bands.parted_promise import PartedPromise
from guardband.bands.promise import Promise
from guardband.bands.rank_promise import OTHER_SOURCE, PacPromise
from guardband.bands.weighted_promise import SHIFTED


@dataclass(frozen=True, kw_only=True)
class KeptPromise(PacPromise):
    """With probability 1 - delta, the level's share of rows of another population falls inside.

    Each calibration row was kept with a chance in proportion to its weight. Those that are left are independent draws
    from the other population, so that the exact rank of so many rows holds (Park et al. 2022).

    Parameters
    ----------
    n_given : int
        How many calibration rows there were.
    max_weight : float
        The weight of a row that is certainly kept: no weight may be larger.
    """

    kind = "kept"
    assumption = SHIFTED
    n_given: int
    max_weight: float

    @property
    def guarantee(self) -> str:
        """Given the data, as without weights."""
        return PacPromise.kind

    def population(self, kept: int) -> str:
        """Return how many rows were kept, and how."""
        return (
            f" guardband kept {kept:,} of {self.n_given:,} calibration rows, each with a chance of its weight divided "
            f"by {self.max_weight:g}."
        )

    def new_rows(self, every: str = "", source: str = "") -> str:
        """Return which new rows a share is of."""
        return f"{super().new_rows(every)} from the weighted population"

    def not_promised(self) -> list[str]:
        """Return what a reader might take for promised, and is not."""
        wrong = "Coverage if the weights are wrong, or if rows with equal inputs now have other outcomes."
        return [wrong if own == OTHER_SOURCE else own for own in super().not_promised()]


def of_kept_rows(promise: Promise, n_given: int, max_weight: float) -> Promise:
    """Return what was found from the rows that were kept as a promise of the other population; each group has one.

    Parameters
    ----------
    promise : Promise
        The promise given the data, or one for each of several groups.
    n_given : int
        How many calibration rows there were.
    max_weight : float
        The weight of a row that is certainly kept.
    """
    if isinstance(promise, PartedPromise):
        parts = [replace(own, promise=of_kept_rows(own.promise, n_given, max_weight)) for own in promise.parts]
        return replace(promise, parts=tuple(parts))
    own = {each.name: getattr(promise, each.name) for each in fields(promise)}
    return KeptPromise(**own, n_given=n_given, max_weight=float(max_weight))


def given_rows(promise: Promise) -> dict[str, Any]:
    """Return how many rows there were before some were kept, by the name of the field; nothing if all were.

    Parameters
    ----------
    promise : Promise
        Any promise.
    """
    return {"n_given": promise.n_given} if isinstance(promise, KeptPromise) else {}
