import json
import math

import numpy as np
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from guardband.words import at_least, confidence_name, level_name, percent, plain

SHARES = st.floats(0, 1)


@given(SHARES)
def test_at_least_never_says_more_than_is_reached(share):
    assert float(at_least(share).removesuffix("%")) <= 100 * share * (1 + 4 * np.finfo(float).eps)


@given(SHARES)
@example(math.nextafter(1, 0))
@example(1 - 1e-11)
@example(5e-324)
def test_all_and_none_are_only_said_of_all_and_none(share):
    assert (percent(share) == "100%") == (share == 1)
    assert (percent(share) == "0%") == (share == 0)
    assert (at_least(share) == "100%") == (share == 1)
    assert (level_name(share) == "100%") == (share == 1)
    assert confidence_name(share / 2 + 1e-300) != "100%"


def test_results_become_json():
    nested = {1: (np.float32(0.5), np.nan), "a": np.array([[1, 2]]), "t": torch.tensor(3), "b": np.True_, "n": None}
    expected = {"1": [0.5, None], "a": [[1, 2]], "t": 3, "b": True, "n": None}
    assert json.loads(json.dumps(plain(nested), allow_nan=False)) == expected
