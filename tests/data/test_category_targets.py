"""Columns of many categories, described by the target: a row's own target does not give itself away."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import ndtri
from scipy.stats import rankdata

from guardband.data.asking import answered
from guardband.data.category_targets import OF_ALL, describe
from guardband.data.codes import RobustCode
from guardband.data.encoder import TableEncoder
from guardband.data.table import Column, read_table

N = 700


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    shop = [None if i % 17 == 3 else f"shop {rng.integers(300)}" for i in range(n)]
    return pd.DataFrame({"x": rng.standard_normal(n), "shop": shop, "kind": ["u", "v"] * (n // 2)})


def described(frame, y, **given):
    table = read_table(frame)
    return table, describe(TableEncoder.learn(table, robust=True), table, y, 0, **given)


def by_hand(frame, y, may_tell):
    """Return average, spread and count of each row's category over the rows that ``may_tell`` allows it to use."""
    z, cells = ndtri((rankdata(y) - 0.5) / len(y)), frame["shop"].fillna("none").to_numpy()
    made = []
    for i in range(len(y)):
        own = z[(cells == cells[i]) & may_tell(i)]
        n, within = len(own), ((own - own.mean()) ** 2).sum() if len(own) else 0.0
        made.append([own.sum() / (n + OF_ALL), np.log((within + OF_ALL) / (n + OF_ALL)) / 2, np.log1p(n)])
    return np.array(made)


def standard(others, numbers):
    codes = [answered(RobustCode.asks("number"), Column("", own)) for own in others.T]
    return np.concatenate([code.encode(own) for code, own in zip(codes, numbers.T, strict=True)], 1)


def turns_of(n):
    return np.random.default_rng(0).permutation(n)


def test_training_rows_are_described_by_those_before_and_new_ones_by_all():
    frame, y = rows(), np.random.default_rng(1).exponential(size=N)
    table, own = described(frame, y)
    turn = turns_of(N)
    before = by_hand(frame, y, lambda i: turn < turn[i])
    every = by_hand(frame, y, lambda i: np.ones(N, dtype=bool))
    np.testing.assert_allclose(own.x[:, 1:4], standard(before, before), atol=1e-5)
    np.testing.assert_allclose(own.encoder.encode(table)[:, 1:4], standard(before, every), atol=1e-5)
    assert own.encoder.sizes == ()


def test_rows_of_a_fold_that_networks_did_not_see_are_described_by_all_other_folds():
    frame, y = rows(), np.random.default_rng(1).exponential(size=N)
    _, own = described(frame, y)
    turn, fold = turns_of(N), np.random.default_rng(2).integers(-1, 8, size=N)
    before = by_hand(frame, y, lambda i: turn < turn[i])
    others = by_hand(frame, y, lambda i: (fold != fold[i]) | ((fold < 0) & (np.arange(N) != i)))
    np.testing.assert_allclose(own.unseen(fold)[:, 1:4], standard(before, others), atol=1e-5)
    np.testing.assert_array_equal(own.unseen(fold)[:, 4:], own.x[:, 4:])


def test_only_the_order_of_targets_matters():
    frame, y = rows(), np.random.default_rng(1).exponential(size=N)
    np.testing.assert_array_equal(described(frame, y)[1].x, described(frame, np.log(y))[1].x)


def test_rows_of_one_entity_do_not_describe_each_other():
    frame, y = rows(), np.random.default_rng(1).exponential(size=N)
    entity = np.arange(N) // 2
    turn = turns_of(N // 2)[entity]
    before = by_hand(frame, y, lambda i: turn < turn[i])
    np.testing.assert_allclose(described(frame, y, entity=entity)[1].x[:, 1:4], standard(before, before), atol=1e-5)


def test_only_how_weights_differ_matters_and_rows_of_no_weight_tell_nothing():
    frame, y = rows(), np.random.default_rng(1).integers(30, size=N).astype(float)
    (_, alike), (_, plain) = described(frame, y, weight=np.full(N, 3.0)), described(frame, y)
    np.testing.assert_allclose(alike.x, plain.x, atol=1e-6)
    encoder = described(frame, y, weight=np.where(np.arange(N) < N // 2, 1.0, 1e-9))[1].encoder
    lighter = encoder.encode(read_table(frame.iloc[N // 2 :]))
    only_there = sorted(set(frame["shop"][N // 2 :]) - set(frame["shop"][: N // 2]) - {None})
    unseen = encoder.encode(read_table(rows().assign(shop="never seen")))[0, 1:4]
    which = frame["shop"].iloc[N // 2 :].isin(only_there).to_numpy()
    assert which.sum() > 10
    np.testing.assert_allclose(lighter[which, 1:4], np.tile(unseen, (which.sum(), 1)), atol=1e-4)


def test_numpy_and_torch_describe_alike_and_the_code_is_written_and_read():
    frame, y = rows(), np.random.default_rng(1).exponential(size=N)
    encoder = described(frame, y)[1].encoder
    again = TableEncoder.from_dict(encoder.to_dict())
    assert again == encoder
    new = read_table(frame.assign(shop=["never seen", None, *frame["shop"][2:]]))
    matrix = again.encode(new)
    rows_of_new = torch.from_numpy(encoder.rows(new))
    np.testing.assert_array_max_ulp(encoder.encode_rows(rows_of_new, torch).numpy(), matrix, maxulp=4)
    assert matrix.dtype == np.float32
    assert not (matrix[0, 1:4] == matrix[1, 1:4]).all()  # missing is a category, unknown is none


@pytest.mark.parametrize("shops", [[f"s{i}" for i in range(N)], ["u", "v"] * (N // 2)])
def test_nothing_is_described_without_many_categories_that_repeat(shops):
    table = read_table(rows().assign(shop=shops))
    assert describe(TableEncoder.learn(table, robust=True), table, np.arange(N, dtype=float), 0) is None
