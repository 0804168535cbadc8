"""A promise for each of several groups: a rank for each, and rules for rows that belong to more than one.

The context of a row holds its groups by their numbers, one for each of J columns that make groups: ``NONE`` where it
belongs to none of a column's, ``UNKNOWN`` where it has a value that no group is known for. Of many new rows it may hold
``NumberedGroups``: one number for each row, and the groups of every number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from guardband.bands.levels import Levels
from guardband.bands.numbered_groups import NumberedGroups
from guardband.bands.parted_promise import PartedPromise
from guardband.bands.predicted import Context
from guardband.bands.promise import Part
from guardband.bands.rank_promise import OverlapPromise
from guardband.calibration.counted import Counted
from guardband.calibration.cut import Cut, PacCut, RankCut
from guardband.calibration.group_patterns import FIRST, Codes, Patterns
from guardband.calibration.group_ranks import GroupScores
from guardband.calibration.rule import Calibration, Remark
from guardband.calibration.summary import Array
from guardband.data.group_sets import ROWS_AT_A_TIME
from guardband.data.grouping import UNKNOWN
from guardband.exceptions import DegenerateBandWarning
from guardband.words import listed


@dataclass(frozen=True)
class GroupedCut(Cut):
    """A threshold for each group, found as ``base`` finds that of all rows; a row of several groups keeps them all.

    Given the data, the G groups share ``delta``, and a row takes the largest threshold of its groups. On average, the
    thresholds of groups that overlap are solved for together, by the pattern of groups that a row belongs to.

    Parameters
    ----------
    base : RankCut
        The guarantee of each group.
    names : tuple of str
        The groups, in words.
    by : str, default ""
        What makes the groups, in words, such as the name of a column.
    columns : int, default 1
        How many columns make groups: a row belongs to at most one group of each.
    """

    uses = frozenset({"group"})
    base: RankCut
    names: tuple[str, ...]
    by: str = ""
    columns: int = 1

    @property
    def word(self) -> str:  # type: ignore[override]
        """What ``guarantee=`` calls the guarantee of each group."""
        return self.base.word

    @property
    def solves_patterns(self) -> bool:
        """Whether a row's threshold depends on all of its groups together."""
        return self.columns > 1 and not isinstance(self.base, PacCut)

    @property
    def of_each(self) -> RankCut:
        """The cut of one group: given the data, all share delta."""
        if not isinstance(self.base, PacCut):
            return self.base
        return replace(self.base, delta=self.base.delta / len(self.names))

    def calibrate(self, scores: Array, context: Context, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the thresholds of the groups, and a promise for each; those of patterns wait until rows have them."""
        return self._calibrated(self._scores(scores, context), levels, chosen_after)

    def calibrate_counted(self, counted: Counted, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the same as ``calibrate`` unless patterns must be solved for, which takes all scores at once."""
        if self.solves_patterns:
            raise ValueError(
                f"{self.columns} columns make groups that overlap, and a promise on average for each of them needs the "
                f'scores of all {counted.n:,} calibration rows at once. Use guarantee="pac", one column, or fewer rows.'
            )
        return self._calibrated(counted, levels, chosen_after)

    def calibrate_complete(self, scores: Array, context: Context, levels: Levels, chosen_after: bool) -> Calibration:
        """Return the same with the thresholds of the patterns that calibration rows have, which are numbered once."""
        own = self._scores(scores, context)
        found = self._calibrated(own, levels, chosen_after)
        if self.solves_patterns and own.patterns is not None:
            rows = own.rows or own.patterns.occurring(own.patterns.keys(own.codes))
            own.patterns.add_solved(found.arrays, scores, rows, rows.keys[rows.keys >= 0], levels)
        return found

    def _scores(self, scores: Array, context: Context) -> GroupScores:
        codes = _columns(context.group)
        if codes.shape[1] != self.columns or codes.min(initial=0) < UNKNOWN or codes.max(initial=0) >= len(self.names):
            raise ValueError(f"group must hold {self.columns} number(s) of {len(self.names)} groups for each row.")
        return GroupScores.of(scores, codes, len(self.names))

    def _calibrated(self, own: Counted, levels: Levels, chosen_after: bool) -> Calibration:
        found = self._found(own, levels, chosen_after)
        parts = tuple(
            Part(self._promise(each), group, name)
            for group, (each, name) in enumerate(zip(found, self.names, strict=True))
        )
        promise = PartedPromise(
            confidence_level=levels.floats,
            n_calibration=own.n,
            whole_line=tuple(all(each) for each in zip(*(part.promise.whole_line for part in parts), strict=True)),
            delta=getattr(self.base, "delta", None),
            parts=parts,
            by=self.by,
        )
        if self.solves_patterns:
            assert isinstance(own, GroupScores)
            if own.patterns is None:
                raise ValueError(
                    f"{self.columns} columns make more patterns of groups than can be told apart. Use fewer columns, "
                    'or guarantee="pac".'
                )
            arrays = own.patterns.arrays(len(levels))
        else:
            edges = [np.full(len(levels), np.inf), np.full(len(levels), -np.inf)]
            arrays = {"group_threshold": np.stack([*edges, *(each.arrays["threshold"] for each in found)])}
        return Calibration(arrays, promise, self._remarks(found, levels))

    def thresholds(self, arrays: dict[str, Any], context: Context, xp: Any = np) -> Any:
        """Return the threshold of each row, ``(n, L)``; a row of no group, or of an unknown one, has none."""
        if isinstance(context.group, NumberedGroups):
            return arrays["set_threshold"].take(context.group.number, axis=0)
        codes = _columns(context.group)
        if self.solves_patterns:
            return Patterns.from_arrays(arrays).thresholds(arrays["threshold"], codes, xp)
        table = arrays["group_threshold"]
        if xp is np:
            return np.stack([_largest(level, codes) for level in table.T], axis=-1)
        out = table[codes[:, 0] + FIRST]
        for j in range(1, codes.shape[1]):
            out = xp.maximum(out, table[codes[:, j] + FIRST])
        return xp.where(out == -xp.inf, xp.inf, out)

    def completed(self, arrays: dict[str, Any], scores: Array, known: Context, new: Context, levels: Levels) -> None:
        """Add thresholds for patterns of rows that are not known yet."""
        if self.solves_patterns:
            patterns = Patterns.from_arrays(arrays)
            group = new.group
            if isinstance(group, NumberedGroups):
                group = _unknown(patterns, group)
            patterns.add(arrays, scores, _columns(known.group), _columns(group), levels)

    def prepared(self, arrays: dict[str, Any], context: Context) -> dict[str, Any]:
        """Return the thresholds of every number that rows may have, if they are numbered."""
        if not isinstance(context.group, NumberedGroups):
            return arrays
        return {"set_threshold": self.thresholds(arrays, Context(group=context.group.codes))}

    def _found(self, own: Counted, levels: Levels, chosen_after: bool) -> list[Calibration]:
        """Return what each group finds by itself.

        Where patterns are solved for, only which groups have infinite intervals: their thresholds are of no use.
        """
        each = self.of_each
        ranks = [tuple(each.rank(level, int(n)) for level in levels.values) for n in own.number]
        wanted = np.array(ranks, dtype=np.int64).reshape(len(ranks), len(levels))
        if self.solves_patterns:
            table = np.where(wanted > (own.number - own.infinite())[:, None], np.inf, 0.0)
        else:
            table = own.smallest(wanted)
        rows = zip(ranks, table, own.number, strict=True)
        return [each.concluded(levels, k, found, int(n), own, chosen_after) for k, found, n in rows]

    def _promise(self, found: Calibration) -> Any:
        promise = found.promise
        if not self.solves_patterns:
            return promise
        return OverlapPromise(**{own.name: getattr(promise, own.name) for own in fields(promise)})

    def _remarks(self, found: Sequence[Calibration], levels: Levels) -> tuple[Remark, ...]:
        """Return which groups have too few rows, and which have too many scores that are infinite."""
        pairs = list(zip(self.names, found, strict=True))
        counts = {name: own.promise.n_calibration for name, own in pairs}
        few = [name for name, own in pairs if any(k > own.promise.n_calibration for k in own.promise.rank or ())]
        odd = [name for name, own in pairs if any(own.promise.whole_line) and name not in few]
        out = []
        if few:
            out.append(Remark(partial(self._too_few, few, counts, levels), is_of_all=False))
        if odd:
            why = (
                f"The intervals are infinite in {listed(odd)}, because too many calibration rows there have a "
                "prediction that is not finite, or lie on a side of the interval that has no width. Check the model's "
                "predictions."
            )
            out.append(Remark(why, DegenerateBandWarning, is_of_all=False))
        return tuple(out)

    def _too_few(self, few: Sequence[str], counts: dict[str, int], levels: Levels) -> str:
        needed = self.of_each.rows_needed(max(levels.values))
        named = listed([f"{name} ({counts[name]:,})" for name in few])
        return (
            f"The intervals are infinite in {len(few):,} of {len(self.names):,} groups, because each needs at least "
            f"{needed:,} calibration rows: {named}. Add calibration rows, pool small groups "
            '(small_groups="pool", on the command line --small-groups pool), or choose a lower confidence level.'
        )


def _largest(table: Array, codes: Codes) -> Array:
    """Return the largest threshold of each row's groups."""
    out = table.take(codes[:, 0] + FIRST)
    for column in codes.T[1:]:
        np.maximum(out, table.take(column + FIRST), out=out)
    out[out == -np.inf] = np.inf
    return out


def _unknown(patterns: Patterns, groups: NumberedGroups) -> Codes:
    """Return the groups of new rows, each once, if not all are known; to ask that first takes half the time."""
    number, every = groups.number, groups.codes
    keys = patterns.keys(every)
    is_known = np.isin(keys, patterns.known) | (keys < 0)  # which no row needs to be solved for
    blocks = (number[first : first + ROWS_AT_A_TIME] for first in range(0, len(number), ROWS_AT_A_TIME))
    if is_known.all() or all(is_known.take(own).all() for own in blocks):
        return every[:0]
    return every[np.unique(number)]


def _columns(group: Any) -> Any:
    return group[:, None] if group.ndim == 1 else group
