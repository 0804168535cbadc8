"""Intervals and certificates stay what they were when they were stored: see ``stored/cases.py``."""

import json
from pathlib import Path

import numpy as np
import pytest

from stored.cases import cases

STORED = json.loads((Path(__file__).parent / "stored" / "results.json").read_text())


def test_every_case_is_stored():
    assert [name for name, _ in cases()] == list(STORED)


@pytest.mark.parametrize(("name", "compute"), list(cases()), ids=[name for name, _ in cases()])
def test_results_are_those_stored(name, compute):
    found, stored = json.loads(json.dumps(compute())), STORED[name]
    assert found["certificate"] == stored["certificate"]
    assert found["words"] == stored["words"]
    for side in ("lower", "point", "upper"):
        np.testing.assert_array_equal(found[side], stored[side])
