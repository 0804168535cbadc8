"""Distributions from predictions of any model."""

import numpy as np
import pytest

import guardband as gb
from guardband.bands.ranks import covered_counts
from guardband.doors.file_format import write
from guardband.doors.places_file import described_distribution
from laws import SIGNIFICANCE

LEVELS = (0.1, 0.5, 0.9)


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    point, scale = rng.normal(size=n), 0.5 + rng.random(n)
    return point, scale, point + scale * rng.gumbel(size=n)


def predictions(point, scale, kind):
    if kind == "point":
        return point
    if kind == "scale":
        return point, scale
    return point[:, None] + scale[:, None] * np.array([-0.8, 0.4, 2.2])


@pytest.mark.parametrize("kind", ["point", "scale", "quantiles"])
def test_predictions_of_every_kind_are_calibrated(kind):
    own = gb.DistributionCalibrator(LEVELS if kind == "quantiles" else None)
    point, scale, y = drawn(199, 0)
    own.fit(predictions(point, scale, kind), y)
    point, scale, y = drawn(3000, 1)
    new = predictions(point, scale, kind)
    found = own.transform(new)
    for p in (0.05, 0.5, 0.95):
        law, count = covered_counts(3000, round(p * 200), 199), int((y <= found.quantile(p)).sum())
        assert SIGNIFICANCE < law[count] < 1 - SIGNIFICANCE
    assert own.certificate.kind == "distribution"
    assert own.probability(new, above=1.0).certificate.kind == "probability"
    assert own.select(new, below=0.0, fdr=0.2).certificate.kind == "fdr"


def test_sharper_predictions_score_better():
    scores = {}
    for kind in ("point", "scale"):
        point, scale, y = drawn(500, 2)
        own = gb.DistributionCalibrator().fit(predictions(point, scale, kind), y)
        point, scale, y = drawn(5000, 3)
        scores[kind] = gb.metrics.crps(y, own.transform(predictions(point, scale, kind)))
    assert scores["scale"] < scores["point"]


def test_quantiles_that_cross_are_put_in_order():
    point, scale, y = drawn(99, 4)
    matrix = predictions(point, scale, "quantiles")
    one, two = (gb.DistributionCalibrator(LEVELS).fit(own, y) for own in (matrix, matrix[:, ::-1]))
    np.testing.assert_array_equal(one.transform(matrix).quantile(0.3), two.transform(matrix).quantile(0.3))


def test_entities_count_once():
    point, _, y = drawn(90, 5)
    own = gb.DistributionCalibrator().fit(point, y, entities=np.arange(90) // 3)
    assert own.certificate.n_calibration == 30


@pytest.mark.parametrize(
    ("levels", "brought", "said"),
    [
        (None, np.zeros((9, 3)), "For quantiles, pass their levels"),
        (LEVELS, np.zeros((9, 2)), r"shape \(n, 3\)"),
        (None, (np.zeros(9), np.zeros(9)), "Scales must be positive"),
        (None, (np.zeros(9), np.ones(8)), "one shape"),
        (None, np.full(9, np.nan), "must be finite"),
    ],
)
def test_other_predictions_are_refused(levels, brought, said):
    with pytest.raises(ValueError, match=said):
        gb.DistributionCalibrator(levels).fit(brought, np.zeros(9))


def test_new_predictions_must_be_of_the_same_kind():
    own = gb.DistributionCalibrator().fit(np.zeros(9), np.arange(9.0))
    with pytest.raises(ValueError, match="one kind"):
        own.transform((np.zeros(2), np.ones(2)))
    with pytest.raises(ValueError, match="not calibrated yet"):
        gb.DistributionCalibrator().transform([1.0])


@pytest.mark.parametrize("levels", [[0.5], [0.9, 0.1], [0.0, 0.5], [0.5, 1.0], []])
def test_levels_must_increase(levels):
    with pytest.raises(ValueError, match="increase strictly"):
        gb.DistributionCalibrator(levels)


@pytest.mark.parametrize("kind", ["point", "scale", "quantiles"])
def test_a_saved_calibrator_says_the_same_bits(kind, tmp_path):
    point, scale, y = drawn(60, 6)
    brought = predictions(point, scale, kind)
    own = gb.DistributionCalibrator(LEVELS if kind == "quantiles" else None)
    with pytest.raises(ValueError, match="not calibrated yet"):
        own.save(tmp_path / "d.guardband")
    own.fit(brought, y, entities=np.arange(60) // 2)
    own.save(tmp_path / "d.guardband")
    again = gb.load(tmp_path / "d.guardband")
    np.testing.assert_array_equal(
        again.transform(brought).quantile([0.2, 0.9]), own.transform(brought).quantile([0.2, 0.9])
    )
    assert again.certificate == own.certificate
    assert again.select(brought, above=1).certificate == own.select(brought, above=1).certificate
    with pytest.raises(gb.ModelFileError, match="pass nothing"):
        gb.load(tmp_path / "d.guardband", model=own)


@pytest.mark.parametrize(
    ("entry", "value", "said"),
    [
        ("placement", "residual", "levels are not those"),
        ("levels", [0.1, 0.9], "do not fit"),
        ("levels", [0.9, 0.5, 0.1], "increase strictly"),
        ("levels", None, "levels are not those"),
        ("unit", {"entity": "x", "n_rows": 3}, "does not fit"),
    ],
)
def test_a_forged_file_is_refused(entry, value, said, tmp_path):
    point, scale, y = drawn(60, 7)
    own = gb.DistributionCalibrator(LEVELS).fit(predictions(point, scale, "quantiles"), y)
    entries, tensors = described_distribution(own)
    write(tmp_path / "d.guardband", entries | {entry: value}, tensors)
    with pytest.raises(gb.ModelFileError, match=said):
        gb.load(tmp_path / "d.guardband")
