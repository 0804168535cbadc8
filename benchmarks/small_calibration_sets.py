"""Which rank each library takes from few calibration rows, beside the exact one: ceil(0.9 (n + 1)) of n.

Libraries that are not installed are left out; crepes and MAPIE clash with nothing here. Run:
``pip install crepes mapie && python benchmarks/small_calibration_sets.py``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import math
import warnings
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

ROWS = (5, 8, 9, 19, 29, 99, 999)
LEVEL = 0.9

Errors = NDArray[np.float64]


def guardband(errors: Errors) -> float:
    """Return half the width of guardband's interval around zero."""
    import guardband as gb

    zeros = np.zeros(len(errors))
    rule = gb.BandCalibrator("conf-fw", confidence_level=LEVEL).fit(zeros, zeros, zeros, errors)
    return float(rule.transform([0.0], [0.0], [0.0]).upper[0])


def mapie(errors: Errors) -> float:
    """Return half the width of MAPIE's interval around zero."""
    from mapie.regression import SplitConformalRegressor
    from sklearn.dummy import DummyRegressor

    zero = DummyRegressor(strategy="constant", constant=0.0).fit([[0.0]], [0.0])
    fitted = SplitConformalRegressor(zero, confidence_level=LEVEL, prefit=True)
    fitted.conformalize(np.zeros((len(errors), 1)), errors)
    _, interval = fitted.predict_interval(np.zeros((1, 1)))
    return float(interval[0, 1, 0])


def crepes(errors: Errors) -> float:
    """Return half the width of crepes' interval around zero."""
    from crepes import ConformalRegressor

    fitted = ConformalRegressor()
    fitted.fit(residuals=errors)
    return float(fitted.predict_int(y_hat=np.zeros(1), confidence=LEVEL)[0, 1])


def rank(half_width: Callable[[Errors], float], errors: Errors) -> str:
    """Return which of the sorted errors the interval reaches, infinite, or that there was an error."""
    try:
        reach = half_width(errors)
    except ValueError:
        return "error"
    if math.isinf(reach):
        return "infinite"
    return str(1 + int(np.abs(np.sort(errors) - reach).argmin()))


def main() -> None:
    """Print the table."""
    libraries = [one for one in (guardband, mapie, crepes) if importlib.util.find_spec(one.__name__) is not None]
    names = [f"{one.__name__} {importlib.metadata.version(one.__name__)}" for one in libraries]
    print(" | ".join(["rows", "exact rank", *names]))
    random = np.random.default_rng(0)
    for n in ROWS:
        errors = np.abs(random.standard_normal(n))
        exact = math.ceil(Fraction(str(LEVEL)) * (n + 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [rank(one, errors) for one in libraries]
        print(" | ".join([str(n), str(exact) if exact <= n else "infinite", *found]))


if __name__ == "__main__":
    main()
