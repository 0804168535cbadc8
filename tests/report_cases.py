"""Documents of every kind of page that people meet, small and without training."""

import warnings
from functools import cache

import numpy as np
import pandas as pd

from guardband.bands.intervals import Intervals
from guardband.data.table import Column
from guardband.report.document import document
from guardband.report.heading import Heading
from judged import evidence_of
from reported import fitted, grouped_evidence

HOUSES = Heading("House prices in Freiburg", "A. Analyst", "€", "2026-03-31")
DISTRICTS = np.array(["old town", "riverside", "hillside", "station"], dtype=object)


def houses(n, seed=1):
    """Return columns of houses; the first decides the prediction of ``evidence_of``."""
    rng = np.random.default_rng(0)
    size = rng.random(n)
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "area": (40 + 160 * size).round(),
            "built": rng.integers(1900, 2024, n),
            "district": rng.choice(DISTRICTS, n),
            "id": 100_000 + np.arange(n),
        }
    )


def _house_evidence(n=300, **asked):
    X = houses(n)
    group = Column("district", X["district"].to_numpy(dtype=object))
    return evidence_of(n, X=X, scale=60_000.0, **{"group": group} | asked)


def _low_group():
    """One district with larger errors than the others."""
    evidence = _house_evidence(1200)
    old = np.array([own == "old town" for own in evidence.group.values])
    error = evidence.y - evidence.intervals.point
    evidence.y[:] = evidence.intervals.point + np.where(old, 1.5, 0.8) * error
    return evidence


def _one_width():
    evidence = _house_evidence()
    point = evidence.intervals.point
    bands = Intervals(point - 160_000, point, point + 160_000, 0.9)
    object.__setattr__(evidence, "intervals", bands)
    return evidence


def _over_time(n=300):
    """Ten months, of which one has larger errors than the others."""
    days = 20_000.0 + np.arange(n)
    evidence = _house_evidence(n, group=None, time=Column("sold", days, "date"))
    point, worse = evidence.intervals.point, (days >= 20_148) & (days < 20_179)
    evidence.y[:] = point + np.where(worse, 2, 0.8) * (evidence.y - point)
    return evidence


CASES = {
    "consistent": (_house_evidence, HOUSES),
    "broken": (lambda: _house_evidence(noise=1.6), HOUSES),
    "low group": (_low_group, HOUSES),
    "too few": (lambda: _house_evidence(30), HOUSES),
    "infinite": (lambda: _house_evidence(200, n2=8), HOUSES),
    "no rows": (lambda: None, HOUSES),
    "no rows, infinite": (lambda: None, HOUSES),
    "time": (_over_time, HOUSES),
    "several levels": (lambda: _house_evidence(levels=[0.9, 0.5, 0.99]), HOUSES),
    "one infinite level": (lambda: _house_evidence(n2=60, levels=[0.9, 0.99]), HOUSES),
    "one width": (_one_width, HOUSES),
    "groups": (lambda: grouped_evidence(few=("station",)), HOUSES),
    "many groups": (lambda: grouped_evidence([f"zip code {98000 + i}" for i in range(70)], 4200), HOUSES),
    "groups, no rows": (lambda: (grouped_evidence()[0], None), HOUSES),
    "tiny": (lambda: evidence_of(300, scale=1e-7), Heading(date="2026-03-31")),
    "huge": (lambda: evidence_of(300, scale=1e8), Heading(date="2026-03-31", unit="kWh")),
}


@cache
def case(name):
    """Return the document of a case."""
    make, heading = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evidence = make()
        if isinstance(evidence, tuple):  # with the rule that made the intervals
            return document(*evidence, heading=heading) | {"response": "price"}
        own = document(_few() if name == "no rows, infinite" else fitted(), evidence, heading=heading)
        if evidence is not None:  # the page's promise is that of the model, which did not make these intervals
            from guardband.report.document import promised

            own |= promised(evidence.certificate) | {"response": "price"}
        return own


@cache
def _few():
    import guardband as gb
    from reported import SMALL, rows_and_targets

    X, y = rows_and_targets()
    model = gb.IntervalRegressor(calibration_size=None, **SMALL).fit(X[:300], y[:300])
    return model.calibrate(X[300:308], y[300:308])
