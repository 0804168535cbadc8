"""The options of groups that each have a promise, and how their text is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from guardband.cli.help import PROMISE
from guardband.cli.options import columns_in

AUTO = "auto"
SMALL = ("inf", "pool")

Group = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLS",
        help="Make a promise for each value of this column, such as a region. Several columns make groups that "
        "overlap. auto looks on the training rows for groups that need a promise of their own.",
        rich_help_panel=PROMISE,
    ),
]
GroupColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="COLS",
        help="Make a promise for each value of this column, such as a region. Several columns make groups that "
        "overlap.",
        rich_help_panel=PROMISE,
    ),
]
SmallGroups = Annotated[
    str | None,
    typer.Option(
        metavar="inf|pool",
        help="Groups with too few rows get infinite intervals (inf), or one promise for all of them together (pool).",
        show_default="inf",
        rich_help_panel=PROMISE,
    ),
]
MissingGroup = Annotated[
    bool,
    typer.Option(
        "--missing-group",
        help="Rows without a value in the column of --group are a group too. Otherwise their intervals are infinite.",
        rich_help_panel=PROMISE,
    ),
]
GroupBins = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=2,
        help="How many ranges a column of more than 30 different numbers is divided into.",
        show_default="5",
        rich_help_panel=PROMISE,
    ),
]


@dataclass(frozen=True)
class Groups:
    """What ``--group`` asks for: columns of the table, or that guardband looks for groups."""

    columns: tuple[str, ...]
    searched: bool = False

    @property
    def by(self) -> str | list[str] | None:
        """The same for Python."""
        return AUTO if self.searched else list(self.columns) or None

    def need_among(self, features: Sequence[str]) -> None:
        """Raise if the model is not given a column that makes groups."""
        for name in self.columns:
            if name not in features:
                raise ValueError(
                    f"{name!r} makes groups, and the model must get this column. Remove it from --drop or --weight."
                )


def groups_in(given: Sequence[str], names: Sequence[str]) -> Groups:
    """Return what ``--group`` asks for; a column that is called auto is a column."""
    columns = tuple(dict.fromkeys(columns_in(given, names)))
    return Groups((), searched=True) if columns == (AUTO,) and AUTO not in names else Groups(columns)


def check_group_options(
    group: Sequence[str] | None, small_groups: str | None, missing_group: bool, group_bins: int | None
) -> dict[str, Any]:
    """Return the arguments for Python that were given; raise if there are no groups that they could be about."""
    idle = {"--small-groups": small_groups, "--missing-group": missing_group or None, "--group-bins": group_bins}
    given = [option for option, value in idle.items() if value is not None]
    if given and not group:
        raise ValueError(f"{given[0]} is about groups. Name a column with --group, or remove the option.")
    if small_groups is not None and small_groups not in SMALL:
        raise ValueError(f"--small-groups must be inf or pool, found {small_groups!r}. Choose one of them.")
    out: dict[str, Any] = {"small_groups": small_groups, "missing_groups": missing_group or None}
    out["group_bins"] = group_bins
    return {name: value for name, value in out.items() if value is not None}
