"""Parts of a column of text say together what it is, as all its cells would at once."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from guardband.data.kinds import kind_of_text
from guardband.data.kinds_in_parts import KindOfPart

CELLS = {
    "numbers": ["1", "2.5", None, "-3e4"] * 5,
    "one is none": ["1", "2.5", None, "-3e4"] * 5 + ["x"],
    "truth": ["yes", "no", "true", None] * 5,
    "truth and numbers": ["yes", "no", "1"] * 5,
    "dates": ["2024-01-02", "2023-12-31", None] * 5,
    "dates and numbers": ["2024-01-02", "7"] * 5,
    "nothing": [None] * 6,
    "in doubt": ["1,234", "2,345", "12"] * 4,
    "commas": ["1,234", "2,3", "12"] * 4,
    "dots in doubt": ["1.234", "2.345", "12"] * 4,
    "dots and commas": ["1.234", "2.345", "12,5"] * 4,
    "dots": ["1.234", "2.3", "12"] * 4,
    "dots beside long numbers": ["1.234", "12", "1234"] * 4,
}


@pytest.mark.parametrize("decimal_comma", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_parts_add_up_to_the_kind_of_all_cells(name, decimal_comma):
    every = pa.array(CELLS[name], pa.string())
    for blocks in (1, 2, 5):
        ends = np.linspace(0, len(every), blocks + 1).astype(int).tolist()
        parts = [KindOfPart.of(every[a:b], decimal_comma) for a, b in pairwise(ends)]
        assert reduce(lambda a, b: a + b, parts).kind == kind_of_text(every, decimal_comma)
