"""Whether commas and dots in a column of numbers mark decimals or thousands: 1,234 and 1.234 may be either.

It is asked of tables whose columns are not separated by commas, because numbers there may be written either way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

COMMA, DOT = r",", r"[.]"
THOUSANDS = {COMMA: r"^[+-]?[1-9]\d{0,2},\d{3}$", DOT: r"^[+-]?[1-9]\d{0,2}[.]\d{3}$"}
SHORT, LONG = r"^[+-]?\d{1,3}$", r"^[+-]?\d{4,}$"


@dataclass(frozen=True)
class NumberMarks:
    """What some cells of a column show. What the parts of a column show adds up.

    ``commas`` and ``dots`` say whether a cell has one as a mark of thousands would stand, ``other_commas`` and
    ``other_dots`` whether one stands otherwise. ``short`` and ``long`` are whole numbers without a mark, up to 999 and
    beyond.
    """

    commas: bool = False
    other_commas: bool = False
    dots: bool = False
    other_dots: bool = False
    short: bool = False
    long: bool = False

    def __add__(self, other: NumberMarks) -> NumberMarks:
        return NumberMarks(*(getattr(self, own.name) or getattr(other, own.name) for own in fields(self)))

    @classmethod
    def of(cls, cells: pa.Array) -> NumberMarks:
        """Return what an array of text shows."""
        import pyarrow.compute as pc

        def has(pattern: str, but: str | None) -> bool:
            found = pc.match_substring_regex(cells, pattern)
            if but is not None:
                found = pc.and_(found, pc.invert(pc.match_substring_regex(cells, but)))
            return bool(pc.any(found).as_py())

        return cls._of(has)

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> NumberMarks:
        """Return what texts of Python show."""
        every = list(texts)
        return cls._of(
            lambda pattern, but: any(re.search(pattern, own) and not (but and re.search(but, own)) for own in every)
        )

    @classmethod
    def _of(cls, has: Callable[[str, str | None], bool]) -> NumberMarks:
        return cls(
            commas=has(THOUSANDS[COMMA], None),
            other_commas=has(COMMA, THOUSANDS[COMMA]),
            dots=has(THOUSANDS[DOT], None),
            other_dots=has(DOT, THOUSANDS[DOT]),
            short=has(SHORT, None),
            long=has(LONG, None),
        )

    @property
    def doubtful(self) -> str | None:
        """The mark that may stand for decimals or for thousands, None if it is clear.

        Decimals with a dot are the rule. So dots are in doubt only if whole numbers end where a mark of thousands would
        begin, or if commas mark something else.
        """
        if self.commas and not self.other_commas:
            return COMMA
        thousands = self.dots and not self.other_dots and not self.long
        return DOT if thousands and (self.short or self.other_commas) else None


def in_doubt(cell: str) -> str:
    """Return what a cell may mean whose mark is in doubt, and how to write it so that it is clear."""
    whole, decimal = re.sub("[,.]", "", cell), cell.replace(",", ".")
    return f"{cell!r} may mean {whole} or {decimal}: write {whole} or {decimal}0"
