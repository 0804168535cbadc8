import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from guardband.data.fingerprint import (
    Twins,
    are_among,
    count_overlap,
    fingerprints,
    overlap_with_sample,
    refuse_overlap,
    smallest_prints,
)
from guardband.data.table import read_table
from guardband.exceptions import OverlapError

RNG = np.random.default_rng(0)


def prints(frame, y):
    return fingerprints(read_table(frame), np.asarray(y, dtype=float))


def table(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.random(n), "c": rng.choice(["a", "b"], n)}), rng.random(n)


def test_equal_rows_have_equal_prints_whatever_holds_them():
    X = RNG.random((50, 3))
    y = RNG.random(50)
    assert (prints(X, y) == prints(pd.DataFrame(X), y)).all()
    assert (prints(X, y)[10:20] == prints(X[10:20], y[10:20])).all()


def test_prints_survive_single_precision_and_numbers_written_as_text():
    X, y = RNG.random((50, 2)), RNG.random(50)
    assert (prints(X.astype(np.float32), y.astype(np.float32)) == prints(X, y)).all()
    whole = pd.DataFrame({"c": [1, 2, 3]})
    for other in (whole.astype("category"), whole.astype(str), whole.astype(object)):
        assert (prints(other, y[:3]) == prints(whole, y[:3])).all()


def test_prints_survive_moments_and_truth_written_as_text():
    frame = pd.DataFrame({"when": pd.date_range("1969-12-30 05:00", periods=3), "sold": [True, False, True]})
    text = pd.DataFrame({"when": frame["when"].astype(str), "sold": ["yes", "False", "true"]})
    assert (prints(text, [1, 2, 3]) == prints(frame, [1, 2, 3])).all()
    assert len(set(prints(pd.DataFrame({"c": ["2020-13-01", "2020-12-01", "maybe"]}), [0, 0, 0]))) == 3


def test_zero_signs_and_nans_are_alike():
    assert (prints(np.array([[0.0, np.nan]]), [0.0]) == prints(np.array([[-0.0, -np.nan]]), [-0.0])).all()


def test_a_change_anywhere_changes_the_print():
    X, y = np.zeros((1, 2)), [1.0]
    others = [(np.array([[1e-30, 0.0]]), y), (np.array([[0.0, 1e-30]]), y), (X, [1.000001])]
    assert len({int(prints(a, b)[0]) for a, b in [(X, y), *others]}) == 4


def test_random_rows_do_not_collide():
    frame, y = table(100_000, 1)
    assert len(np.unique(prints(frame, y))) == 100_000


def test_training_rows_are_refused_and_new_rows_pass():
    d1, d2 = prints(*table(500, 1)), prints(*table(200, 2))
    refuse_overlap(d2, d1)
    assert count_overlap(d2, d1) == 0
    with pytest.raises(OverlapError, match="200 of 200 calibration rows also occur in the training rows"):
        refuse_overlap(d1[:200], d1)
    with pytest.raises(OverlapError):
        refuse_overlap(np.concatenate([d2[:180], d1[:20]]), d1)


def test_a_few_twins_pass():
    d1, d2 = prints(*table(500, 1)), prints(*table(200, 2))
    refuse_overlap(np.concatenate([d2[:195], d1[:5]]), d1)


def test_a_table_full_of_twins_passes():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (900, 2)).astype(float), rng.integers(0, 3, 900).astype(float)
    every = prints(X, y)
    refuse_overlap(every[600:], every[:600])


@pytest.mark.parametrize(("kinds", "known", "new"), [(30, 60, 30), (100, 100, 150), (1000, 600, 200)])
def test_independent_rows_of_few_kinds_are_hardly_ever_refused(kinds, known, new):
    rng, refused, sets = np.random.default_rng(0), 0, 500
    for _ in range(sets):
        rows = rng.integers(0, kinds, known + new).astype(np.uint64)
        refused += count_overlap(rows[known:], rows[:known]) > Twins.among(rows[:known]).most(new)
    assert refused <= binom.isf(1e-6, sets, 0.01)


def test_training_rows_are_refused_where_others_have_twins_too():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 1000, 600).astype(np.uint64)
    with pytest.raises(OverlapError):
        refuse_overlap(rows[:200], rows)


def test_splits_of_real_tables_pass(data_dir):
    for path in ("concrete/Concrete_Data.csv", "bike/hour.csv", "traffic/Metro_Interstate_Traffic_Volume.csv"):
        frame = pd.read_csv(data_dir / path).drop(columns=["instant", "dteday", "date_time"], errors="ignore")
        every = prints(frame, np.zeros(len(frame)))
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(len(frame))
            refuse_overlap(every[order[: len(frame) // 4]], every[order[len(frame) // 4 :]])


def test_the_smallest_fingerprints_know_used_rows_again_in_any_order():
    rng = np.random.default_rng(0)
    used, new = rng.integers(0, 2**64, 100_000, dtype=np.uint64), rng.integers(0, 2**64, 5000, dtype=np.uint64)
    parts = [smallest_prints(own, 4096) for own in np.array_split(used, 7)]
    sample = smallest_prints(np.concatenate(parts), 4096)
    np.testing.assert_array_equal(sample, np.sort(used)[:4096])
    assert overlap_with_sample(used[:2000], sample) == 2000
    assert overlap_with_sample(new, sample) == 0
    half = np.concatenate([used[:2500], new[:2500]])
    assert 2000 < overlap_with_sample(half, sample) < 3000
    assert overlap_with_sample(new, sample[:0]) == 0


@pytest.mark.parametrize("known", [0, 1, 50, 5000])
@pytest.mark.parametrize("new", [0, 1, 200])
def test_known_rows_are_found_whether_they_are_in_order_or_not(known, new):
    rng = np.random.default_rng(0)
    rows, own = (rng.integers(0, 4000, size, dtype=np.uint64) for size in (known, new))
    own[: new // 4] = np.uint64(2**64 - 1)
    for held in (rows, np.sort(rows)):
        np.testing.assert_array_equal(are_among(own, held), [value in set(held.tolist()) for value in own.tolist()])
