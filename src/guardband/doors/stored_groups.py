"""What a model file may say of groups that have a promise of their own: of columns, or found by a tree."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from guardband.doors.stored_values import Count, Finite, Stored

MOST_GROUPS = 100
"""Branches of a tree."""


class GroupColumnEntries(Stored):
    """A ``GroupColumn``."""

    name: str
    kind: Literal["number", "boolean", "date", "category"]
    values: list[str | Finite]
    is_range: bool
    members: bool
    has_pool: bool
    has_missing: bool

    def __post_init__(self) -> None:
        texts = self.kind == "category"
        if any(isinstance(value, str) != texts for value in self.values) or len(set(self.values)) < len(self.values):
            raise ValueError("The values of groups must differ, and be those of their column")
        if self.values != sorted(self.values, key=str if texts else float) or (self.members and self.values != [1.0]):
            raise ValueError("The values of groups must be in order")


class SideEntries(Stored):
    """Where a branch leads: to a group, or to a branch before it."""

    group: Count | None
    branch: Count | None

    def __post_init__(self) -> None:
        if (self.group is None) == (self.branch is None):
            raise ValueError("A branch leads to a group or to another branch")


class BranchEntries(Stored):
    """A ``Branch``."""

    column: str
    kind: Literal["number", "boolean", "date", "category"]
    cut: Finite | None
    values: list[str]
    known: list[str]
    missing_left: bool
    may_miss: bool
    left: SideEntries
    right: SideEntries

    def __post_init__(self) -> None:
        if (self.cut is None) != (self.kind == "category"):
            raise ValueError("A branch compares numbers or categories")


class TreeEntries(Stored):
    """A ``TreeGroups``."""

    branches: Annotated[list[BranchEntries], Meta(min_length=1, max_length=MOST_GROUPS)]


Groups = TreeEntries | Annotated[list[GroupColumnEntries], Meta(min_length=1)]
