"""A BandCalibrator for several targets."""

import numpy as np
import pandas as pd
import pytest

import guardband as gb

NAMES = ["a", "b", "c"]


def bands(n, seed=0):
    random = np.random.default_rng(seed)
    common = random.standard_normal((n, 1))
    point = random.standard_normal((n, 3))
    Y = point + 0.9 * common + 0.44 * random.standard_normal((n, 3))
    return point - 1, point, point + 1.5, pd.DataFrame(Y, columns=NAMES)


@pytest.mark.parametrize("targets", ["joint", "each"])
@pytest.mark.parametrize("form", ["interval", "bounds", "point"])
def test_a_saved_rule_gives_the_same_bits(targets, form, tmp_path):
    lower, point, upper, Y = bands(500)
    parts = {"interval": (lower, point, upper), "bounds": (lower, None, upper), "point": (None, point, None)}[form]
    rule = gb.BandCalibrator("conf-fw" if form == "point" else "cqr", targets=targets).fit(*parts, Y)
    rule.save(tmp_path / "r.guardband")
    again = gb.load(tmp_path / "r.guardband")
    a, b = rule.transform(*parts), again.transform(*parts)
    np.testing.assert_array_equal(a.lower, b.lower)
    np.testing.assert_array_equal(a.upper, b.upper)
    assert a.certificate == b.certificate
    assert a.targets == tuple(NAMES)


def test_the_exact_number_of_calibration_rows_lies_inside():
    *parts, Y = bands(999)
    rule = gb.BandCalibrator(targets="joint", scales=[1, 2, 0.5]).fit(*parts, Y)
    assert rule.transform(*parts).contains(Y).sum() == rule.certificate.rank == 900


def test_audits_and_pages_know_several_targets(tmp_path):
    *parts, Y = bands(500)
    *new, truth = bands(800, 1)
    for targets in ("joint", "each"):
        rule = gb.BandCalibrator(targets=targets).fit(*parts, Y)
        found = rule.audit(*new, truth)
        assert found.verdict == "consistent"
        assert found.n == 800
        assert rule.audit(*parts, Y).verdict == "cannot judge"
        assert '<h2 id="target-2">c</h2>' in rule.report(tmp_path / "p.html", *new, truth).read_text()


def test_rows_that_lack_a_target_are_left_out_or_count_for_the_others():
    *parts, Y = bands(200)
    Y.iloc[:20, 1] = np.nan
    joint = gb.BandCalibrator(targets="joint").fit(*parts, Y)
    assert joint.certificate.n_calibration == 180
    assert "20 of 200 calibration rows lack a target" in str(joint.certificate)
    each = gb.BandCalibrator(targets="each").fit(*parts, Y)
    assert [own.n_calibration for own in each.certificate.promise.of_each] == [200, 180, 200]


def test_entities_calibrate_as_those_of_one_target_whose_score_is_the_largest():
    random = np.random.default_rng(0)
    point, entities = random.standard_normal((400, 3)), random.integers(0, 120, 400)
    Y = point + random.standard_normal((400, 3))
    joint = gb.BandCalibrator("conf-fw", targets="joint").fit(None, point, None, Y, entities=entities)
    one = gb.BandCalibrator("conf-fw").fit(None, np.zeros(400), None, np.abs(Y - point).max(1), entities=entities)
    zero = np.zeros((1, 3))
    reach = one.transform(None, zero[:, 0], None).upper
    np.testing.assert_array_equal(joint.transform(None, zero, None).upper, np.tile(reach, (1, 3)))
    assert joint.certificate.coverage_bound() == one.certificate.coverage_bound()


def test_rows_of_entities_count_once():
    *parts, Y = bands(400)
    rule = gb.BandCalibrator(targets="joint", guarantee="pac").fit(*parts, Y, entities=np.arange(400) // 4)
    assert rule.certificate.n_calibration == 100


def test_crossing_bounds_are_refused_or_sorted():
    lower, point, upper, Y = bands(100)
    with pytest.raises(ValueError, match="lower <= point <= upper must hold"):
        gb.BandCalibrator(targets="joint").fit(upper, point, lower, Y)
    sort = gb.BandCalibrator(targets="joint", crossing="sort").fit(upper, point, lower, Y)
    right = gb.BandCalibrator(targets="joint").fit(lower, point, upper, Y)
    np.testing.assert_array_equal(sort.transform(upper, point, lower).upper, right.transform(lower, point, upper).upper)


@pytest.mark.parametrize(
    ("asked", "given", "says"),
    [
        ({"targets": "all"}, {}, 'targets must be "joint", "each" or None'),
        ({"method": "pav", "targets": "joint"}, {}, "Several targets need method="),
        ({"side": "upper", "targets": "joint"}, {}, "no promise for one side"),
        ({"scales": [1, 1, 1]}, {}, 'scales are for targets="joint"'),
        ({"targets": "joint", "scales": [1, 1]}, {}, "one positive number for each of 3 targets"),
        ({"targets": "joint"}, {"groups": np.arange(100) % 2}, "no promise for each group"),
        ({"targets": "joint"}, {"weights": np.ones(100)}, "cannot use weights"),
    ],
)
def test_what_cannot_be_is_refused(asked, given, says):
    with pytest.raises(ValueError, match=says):
        gb.BandCalibrator(**asked).fit(*bands(100), **given)


def test_arrays_of_other_shapes_are_refused():
    lower, point, upper, Y = bands(100)
    rule = gb.BandCalibrator(targets="joint")
    with pytest.raises(ValueError, match=r"one shape \(n, q\) with a column for each target"):
        rule.fit(lower[:, 0], point[:, 0], upper[:, 0], Y)
    with pytest.raises(ValueError, match="Expected predictions of 2 targets, found 3"):
        rule.fit(lower, point, upper, Y[["a", "b"]])
    with pytest.raises(ValueError, match="Expected predictions of 3 targets, found 2"):
        rule.fit(lower, point, upper, Y).transform(lower[:, :2], point[:, :2], upper[:, :2])
