"""Groups that have a promise of their own, for every way in: learnt before calibration, and found again in new rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guardband.calibration.rule import Rule
from guardband.data.grouping import (
    BINS,
    Grouping,
    GroupsBy,
    GroupValues,
    SmallGroups,
    group_names,
    group_values,
    grouping_of,
)
from guardband.data.table import Column, Table
from guardband.data.tree_groups import AUTO, TreeGroups
from guardband.learning.found_groups import MOST_GROUPS, found_groups
from guardband.methods.method import Request

NOT_OF_A_METHOD = (
    "method",
    "outputs",
    "calibration",
    "crossing",
    "groups",
    "small_groups",
    "missing_groups",
    "group_bins",
    "targets",
    "scales",
    "weights",
    "max_weight",
)
"""Arguments of ``calibrate`` and of ``BandCalibrator`` that are not for the method."""
AnyGroups = Grouping | TreeGroups
NO_GROUPS = "No groups were found on the training rows that need a promise of their own."
FEW_TRAINING_ROWS = 3
"""Of rows that are calibrated later, so many times fewer than training rows are taken for granted."""


@dataclass(frozen=True)
class GroupOptions:
    """How groups are made of columns: what becomes of small ones, of missing values, and of numbers."""

    small: SmallGroups = "inf"
    missing: bool = False
    bins: int = BINS

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> GroupOptions:
        """Return the options that arguments of the user's ask for."""
        own = cls(arguments["small_groups"], arguments["missing_groups"], arguments["group_bins"])
        if own.small not in ("inf", "pool"):
            raise ValueError(f"small_groups must be 'inf' or 'pool', found {own.small!r}.")
        if isinstance(own.bins, bool) or not isinstance(own.bins, int) or own.bins < 2:
            raise ValueError(f"group_bins must be a whole number of at least 2, found {own.bins!r}.")
        return own

    def learn(
        self,
        rule: Rule,
        columns: Sequence[Column],
        by: GroupsBy | None,
        n_calibration: int | None = None,
        *,
        are_training_rows: bool = True,
    ) -> Grouping:
        """Return the groups that columns name; of calibration rows alone they may not be pooled or put into ranges."""
        values = group_values(columns, by, bins=self.bins, may_bin=are_training_rows)
        if self.pools(values) and not are_training_rows:
            raise ValueError(
                'small_groups="pool" needs the counts of training rows: those of calibration rows would break the '
                "promise. Pass training rows too, or pool small groups yourself."
            )
        return self.learn_from(rule, values, by, len(columns[0].values), n_calibration)

    def pools(self, values: Sequence[GroupValues]) -> bool:
        """Return whether small groups are pooled, if there are any."""
        return self.small == "pool" and not all(own.members or own.starts is not None for own in values)

    def learn_from(
        self, rule: Rule, values: Sequence[GroupValues], by: GroupsBy | None, n: int, n_calibration: int | None = None
    ) -> Grouping:
        """Return the groups that the values of n training rows name."""
        learnt = grouping_of(values, by, missing=self.missing)
        if not self.pools(values):
            return learnt
        share = (n_calibration or max(1, n // FEW_TRAINING_ROWS)) / n
        least = math.ceil(rows_to_expect(rule.rows_for_a_group(len(learnt.names))) / share)
        return grouping_of(values, by, missing=self.missing, least=least)


def request_of(arguments: Mapping[str, Any]) -> Request:
    """Return what arguments of ``calibrate`` or of ``BandCalibrator`` ask of a method."""
    return Request.of(**{name: value for name, value in arguments.items() if name not in NOT_OF_A_METHOD})


def search_groups(
    rule: Rule, table: Table, scores: Any, n_calibration: int | None, unused: Sequence[str] = ()
) -> TreeGroups | None:
    """Return groups of training rows whose scores differ, if there are any."""
    if scores is None:
        rule.for_groups(("",))  # which says that there is no promise for groups
    n = table.n_rows
    share = (n_calibration or max(1, n // FEW_TRAINING_ROWS)) / n
    needed = math.ceil(rows_to_expect(rule.rows_for_a_group(MOST_GROUPS)))
    return found_groups(table, scores, float(max(rule.levels.values)), share, needed, unused)


def rows_to_expect(needed: int) -> float:
    """Return how many rows a group must be expected to have, to have those that it needs but for two deviations."""
    return (1 + math.sqrt(1 + needed)) ** 2


def restored_groups(entries: Mapping[str, Any], by: GroupsBy | None) -> AnyGroups | None:
    """Return the groups of a file, found in rows ``by`` what the arguments say; contradictions are refused."""
    own = entries["grouping"]
    if by == AUTO and (own is None or isinstance(own, Mapping)):
        return None if own is None else TreeGroups.from_dict(own)
    if (own is None) != (by is None):
        raise ValueError("its groups are not what its arguments ask for")
    if own is None or by is None:
        return None
    if isinstance(own, Mapping):
        raise ValueError("its groups are not what its arguments ask for")
    grouping = Grouping.from_dict(own, by)
    if not callable(by) and [column.name for column in grouping.columns] != group_names(by):
        raise ValueError("its groups are of other columns")
    return grouping


def grouped(rule: Rule, grouping: AnyGroups | None) -> Rule:
    """Return the rule with a promise for each group, if there are any."""
    return rule if grouping is None else rule.for_groups(grouping.names, grouping.in_words, grouping.width)
