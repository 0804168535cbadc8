"""Intervals and certificates stay what they were when they were stored: see ``stored/cases.py``."""

import json
from pathlib import Path

import numpy as np
import pytest

from stored.cases import cases

STORED = json.loads((Path(__file__).parent / "stored" / "results.json").read_text())


def test_every_case_is_stored():
    assert [name for name, _ in cases()] == list(STORED)


OWN_SLACK = ("conf-nn", "cqr", "cqr-r")
"""Their slack was the same on both sides, by the width of the whole interval. Now each side has its own: shorter."""
GAUSSIAN = ("neg-ll", "bayes")
"""Their deviation was half a difference of ends, or the root of a variance. Now it is what the network puts out."""
LOG = "table/conf-nn/log"
"""The exponential of numpy differs between processors by a unit in the last place."""
BOUND = "coverage_bound"
"""Quantiles of scipy differ between processors by a unit in the last place."""


@pytest.mark.parametrize(("name", "compute"), list(cases()), ids=[name for name, _ in cases()])
def test_results_are_those_stored(name, compute):
    found, stored = json.loads(json.dumps(compute())), STORED[name]
    method = name.split("/")[1]
    certificate, old_certificate = dict(found["certificate"]), dict(stored["certificate"])
    bound, old_bound = certificate.pop(BOUND, None), old_certificate.pop(BOUND, None)
    assert certificate == old_certificate
    assert (bound is None) == (old_bound is None)
    if bound is not None:
        np.testing.assert_allclose(bound, old_bound, rtol=4 * np.finfo(np.float64).eps)
    assert found["words"] == stored["words"]
    lower, point, upper = (np.array(found[side]) for side in ("lower", "point", "upper"))
    old_lower, old_point, old_upper = (np.array(stored[side]) for side in ("lower", "point", "upper"))
    eps = np.finfo(np.float32 if "float32" in name else np.float64).eps
    if method in GAUSSIAN:
        for new, old in ((lower, old_lower), (point, old_point), (upper, old_upper)):
            np.testing.assert_allclose(new, old, rtol=1e-5 if "table" in name else 8 * eps)
    elif method in OWN_SLACK or name == LOG:
        np.testing.assert_array_equal(np.isinf(lower) | np.isinf(upper), np.isinf(old_lower) | np.isinf(old_upper))
        finite = np.isfinite(lower) & np.isfinite(upper)
        size = 8 * eps * (np.abs(old_lower) + np.abs(old_upper) + np.abs(old_point)[:, None])[finite]
        more = size if name == LOG else 0
        for shorter in (lower[finite] - old_lower[finite], old_upper[finite] - upper[finite]):
            assert ((-more <= shorter) & (shorter <= size)).all()
        np.testing.assert_allclose(point, old_point, rtol=8 * eps if name == LOG else 0)
    else:
        np.testing.assert_array_equal(lower, old_lower)
        np.testing.assert_array_equal(point, old_point)
        np.testing.assert_array_equal(upper, old_upper)
