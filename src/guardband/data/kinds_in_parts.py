"""What columns of text are, if no process sees all cells: what each part says, added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from guardband.data.kinds import ALL_TEXT, LOOKED_AT, THOUSANDS, Kind
from guardband.data.text_cells import CellError

if TYPE_CHECKING:
    import pyarrow as pa

KINDS: tuple[Kind, ...] = ("boolean", "number", "date")


@dataclass(frozen=True)
class KindOfPart:
    """What trimmed cells may be. Numbers are in doubt if all that ``have_commas`` ``may_be_thousands``.

    The kind that the parts of a column add up to is that which ``kind_of_text`` finds for all cells at once.
    """

    present: bool = False
    kinds: frozenset[Kind] = frozenset(KINDS)
    have_commas: bool = False
    may_be_thousands: bool = True

    @classmethod
    def of(cls, cells: pa.Array, decimal_comma: bool) -> KindOfPart:
        """Return what some cells say."""
        import pyarrow as pa
        import pyarrow.compute as pc

        present = cells.drop_null()
        if not len(present):
            return cls()
        kinds = KINDS
        for some in (present[:LOOKED_AT], present):
            kinds = tuple(kind for kind in kinds if _say(some, kind, decimal_comma))
        commas = present.filter(pc.match_substring(present, ",")) if decimal_comma else pa.array([], pa.string())
        thousands = all(pc.match_substring_regex(commas, THOUSANDS).to_pylist())
        return cls(True, frozenset(kinds), len(commas) > 0, thousands)

    def __add__(self, other: KindOfPart) -> KindOfPart:
        return KindOfPart(
            self.present or other.present,
            self.kinds & other.kinds,
            self.have_commas or other.have_commas,
            self.may_be_thousands and other.may_be_thousands,
        )

    @property
    def kind(self) -> Kind:
        """What the cells are."""
        in_doubt = "number" in self.kinds and self.have_commas and self.may_be_thousands
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
