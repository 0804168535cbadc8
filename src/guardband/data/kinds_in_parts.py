"""What columns of text are, if no process sees all cells: what each part says, added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from guardband.data.kinds import ALL_TEXT, LOOKED_AT, Kind
from guardband.data.number_marks import NumberMarks
from guardband.data.text_cells import CellError

if TYPE_CHECKING:
    import pyarrow as pa

KINDS: tuple[Kind, ...] = ("boolean", "number", "date")
UNMARKED = NumberMarks()


@dataclass(frozen=True)
class KindOfPart:
    """What trimmed cells may be, and what their numbers show if a comma may mark decimals.

    The kind that the parts of a column add up to is that which ``kind_of_text`` finds for all cells at once.
    """

    present: bool = False
    kinds: frozenset[Kind] = frozenset(KINDS)
    marks: NumberMarks = UNMARKED

    @classmethod
    def of(cls, cells: pa.Array, decimal_comma: bool) -> KindOfPart:
        """Return what some cells say."""
        present = cells.drop_null()
        if not len(present):
            return cls()
        kinds = KINDS
        for some in (present[:LOOKED_AT], present):
            kinds = tuple(kind for kind in kinds if _say(some, kind, decimal_comma))
        return cls(True, frozenset(kinds), NumberMarks.of(present) if decimal_comma else UNMARKED)

    def __add__(self, other: KindOfPart) -> KindOfPart:
        return KindOfPart(self.present or other.present, self.kinds & other.kinds, self.marks + other.marks)

    @property
    def kind(self) -> Kind:
        """What the cells are."""
        in_doubt = "number" in self.kinds and self.marks.doubtful is not None
        if not self.present or in_doubt:
            return "category"
        return next((kind for kind in KINDS if kind in self.kinds), "category")


def _say(cells: pa.Array, kind: Kind, decimal_comma: bool) -> bool:
    import pyarrow as pa

    try:
        made = ALL_TEXT[kind](cells, decimal_comma)
    except CellError:
        return False
    return kind != "boolean" or bool(pa.types.is_boolean(made.type))
