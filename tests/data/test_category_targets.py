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
    encoder, x, as_new = describe(TableEncoder.learn(table, robust=True), table, y, 0, **given)
    return table, encoder, x, as_new


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
    table, encoder, x, as_new = described(frame, y)
    turn = turns_of(N)
    others = by_hand(frame, y, lambda i: turn < turn[i])
    every = by_hand(frame, y, lambda i: np.ones(N, dtype=bool))
    np.testing.assert_allclose(x[:, 1:4], standard(others, others), atol=1e-5)
    np.testing.assert_allclose(encoder.encode(table)[:, 1:4], standard(others, every), atol=1e-5)
    but_for_itself = by_hand(frame, y, lambda i: turn != turn[i])
    np.testing.assert_allclose(as_new[:, 1:4], standard(others, but_for_itself), atol=1e-5)
    np.testing.assert_array_equal(as_new[:, 4:], x[:, 4:])
    assert encoder.sizes == ()


def test_only_the_order_of_targets_matters():
    frame, y = rows(), np.random.default_rng(1).exponential(size=N)
    np.testing.assert_array_equal(described(frame, y)[2], described(frame, np.log(y))[2])


def test_rows_of_one_entity_do_not_describe_each_other():
    frame, y = rows(), np.random.default_rng(1).exponential(size=N)
    entity = np.arange(N) // 2
    turn = turns_of(N // 2)[entity]
    others = by_hand(frame, y, lambda i: turn < turn[i])
    _, _, x, as_new = described(frame, y, entity=entity)
    np.testing.assert_allclose(x[:, 1:4], standard(others, others), atol=1e-5)
    but_for_its_own = by_hand(frame, y, lambda i: entity != entity[i])
    np.testing.assert_allclose(as_new[:, 1:4], standard(others, but_for_its_own), atol=1e-5)


def test_a_row_of_weight_two_tells_as_much_as_two():
    frame, y = rows(), np.random.default_rng(1).integers(30, size=N).astype(float)
    plain, doubled = described(frame, y, weight=np.full(N, 3.0)), described(frame, y)
    np.testing.assert_allclose(plain[2], doubled[2], atol=1e-6)  # only how weights differ matters
    weight = np.where(np.arange(N) < N // 2, 1.0, 1e-9)
    lighter = described(frame, y, weight=weight)[1].encode(read_table(frame.iloc[N // 2 :]))
    only_there = sorted(set(frame["shop"][N // 2 :]) - set(frame["shop"][: N // 2]) - {None})
    unseen = described(frame, y, weight=weight)[1].encode(read_table(rows().assign(shop="never seen")))[0, 1:4]
    which = frame["shop"].iloc[N // 2 :].isin(only_there).to_numpy()
    assert which.sum() > 10
    np.testing.assert_allclose(lighter[which, 1:4], np.tile(unseen, (which.sum(), 1)), atol=1e-4)


def test_numpy_and_torch_describe_alike_and_the_code_is_written_and_read():
    frame, y = rows(), np.random.default_rng(1).exponential(size=N)
    _, encoder, _, _ = described(frame, y)
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
