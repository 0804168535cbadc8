"""Labelled rows with intervals, made without training: the bands are given."""

import numpy as np

from guardband.audit.evidence import Evidence
from guardband.bands.predicted import Context, PredictedInterval
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.summary import Summary
from guardband.data.reference import Reference
from guardband.data.table import read_table
from guardband.data.target import Target
from guardband.methods.method import Request
from guardband.methods.registry import method_named


def evidence_of(n=2000, n2=1000, *, X=None, noise=1.0, levels=0.9, seed=0, group=None, time=None, scale=1.0, **asked):
    """Return evidence of y = point + noise * N(0, 1), for bands that were calibrated with noise 1, all times scale."""
    rng = np.random.default_rng(seed)
    conformal = method_named("conf-nn").rule(Request.of(levels, **asked))
    unit = rng.random(n)
    point, width = scale * 10 * unit, scale * (1 + unit)
    predicted = PredictedInterval(*(side[None, None] for side in (point - width, point, point + width)))
    y = point + width * noise * rng.standard_normal(n)
    held_out = np.abs(rng.standard_normal(n2))
    calibrated = Calibrated.by(conformal, Summary(n2, {}, ({"score": held_out},)))
    table = read_table(np.column_stack([point, rng.random(n)]) if X is None else X)
    ends = calibrated.ends(predicted, Context())
    return Evidence(
        table=table,
        y=y,
        response="y",
        intervals=calibrated.intervals(ends),
        certificate=calibrated.certificate,
        inputs=np.column_stack([point, rng.random(n)]).astype(np.float32),
        scores=conformal.scores(predicted, y, Context()),
        calibration_scores=held_out,
        group=group,
        time=time,
        moments=frozenset(),
        row_numbers=np.arange(1, len(y) + 1),
        reference=Reference.learn(table, y),
        twins=(0, 0),
        drawn_from=None,
        seen_entities=0,
        _predicted=predicted,
        _context=Context(),
        _calibrated=calibrated,
        _target=Target(None, None, None),
    )
