"""What passes over blocks learn is what a table in memory says, however rows are divided.

It is the same to the last bit, but for means and deviations, which numpy rounds at every step of a sum.
"""

import warnings
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from guardband.data.absurd import asks_absurd
from guardband.data.asking import added, answered, in_passes, parts_of
from guardband.data.encoder import TableEncoder, asks_code
from guardband.data.few_values import asks_remarks
from guardband.data.learning_scale import LearningScale
from guardband.data.questions import AskDistinct, AskRanks, AskSpread
from guardband.data.reference import OFF_BY, Reference, asks_summary
from guardband.data.table import Column, read_table
from guardband.data.unlike import Seen, asks_seen

N = 6000
BOUND = 64 * np.finfo(float).eps


class Blocks:
    """Answers rounds of questions from blocks of a table, in any order, and counts the passes."""

    def __init__(self, columns, blocks, seed):
        random = np.random.default_rng(seed)
        n = len(columns[0].values)
        rows = np.array_split(random.permutation(n), blocks)
        self._blocks = [[column.take(own) for column in columns] for own in rows]
        self.passes = self.most = 0

    def __call__(self, questions):
        self.passes += 1
        parts = [parts_of(questions, own) for own in self._blocks]
        return added(questions, parts)


def table(n=N):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "normal": random.standard_normal(n),
            "few": random.integers(0, 7, n).astype(float),
            "tail": random.standard_cauchy(n),
            "single": random.standard_normal(n).astype(np.float32),
            "same": np.full(n, 3.0),
            "empty": np.full(n, np.nan),
            "zeros": np.where(random.random(n) < 0.5, 0.0, -0.0),
            "tiny": 5e-324 * random.integers(-4, 5, n),
            "huge": 1e299 * random.standard_normal(n),
            "true": random.random(n) < 0.3,
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900 * 24, n), "h"),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 9, n), "D"),
            "color": random.choice(["red", "green", "blue"], n),
            "shop": random.integers(0, 400, n).astype(str),
        }
    )
    for name in ("normal", "tail", "when", "color"):
        frame.loc[random.random(n) < 0.05, name] = None
    return read_table(frame).settled()


def close(one, other):
    """Return whether two are equal but for numbers that differ as sums of N values do.

    Pairwise sums of n values are off by at most log2(n) + 8 halves of a unit of the last place, of the sum of their
    sizes, and all of them are divided by the largest.
    """
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float):
        return one == pytest.approx(other, rel=BOUND, abs=BOUND)
    return one == other


@pytest.mark.parametrize("robust", [True, False])
@pytest.mark.parametrize(("n", "blocks"), [(1, 1), (3, 3), (300, 4), (N, 1), (N, 7)])
def test_passes_learn_the_encoder_of_one_machine(robust, n, blocks):
    whole = table().take(np.arange(n))
    askings = [(i, asks_code(column.kind, robust)) for i, column in enumerate(whole.columns)]
    passes = Blocks(whole.columns, blocks, n)
    found, one = TableEncoder(tuple(in_passes(askings, passes))), TableEncoder.learn(whole, robust)
    if robust:
        assert found == one
    assert close(found.to_dict(), one.to_dict())
    assert passes.passes <= 12


@pytest.mark.parametrize("blocks", [1, 7])
def test_passes_see_what_one_machine_sees(blocks):
    whole = table()
    askings = [(i, asks_seen(column.kind)) for i, column in enumerate(whole.columns)]
    assert Seen(tuple(in_passes(askings, Blocks(whole.columns, blocks, 0)))) == Seen.learn(whole)


def test_knots_in_passes_lie_near_their_quantiles_and_rows_are_counted_at_them():
    whole, y = table(), np.zeros(N)
    askings = [(i, asks_summary(column.name, column.kind)) for i, column in enumerate(whole.columns)]
    found = in_passes(askings, Blocks(whole.columns, 5, 0))
    for own, one, column in zip(found, Reference.learn(whole, y).columns, whole.columns, strict=True):
        if column.kind == "category" or len(one.knots) < 100:
            assert own == one
            continue
        values = np.sort(column.values[~np.isnan(column.values)])
        assert own.at_most == tuple(np.searchsorted(values, own.knots, side="right").tolist())
        assert (own.count, own.missing) == (one.count, one.missing)
        evenly = np.linspace(0, len(values) - 1, 101).round()
        places = np.searchsorted(values, own.knots)
        nearest = np.abs(evenly[:, None] - places[None]).min(axis=1)
        assert nearest.max() <= OFF_BY * len(values) + 1


@pytest.mark.parametrize("kind", ["normal", "tail", "halves", "two", "code", "constant", "absurd"])
def test_passes_learn_the_target_of_one_machine(kind):
    random = np.random.default_rng(1)
    y = {
        "normal": random.standard_normal(N),
        "tail": np.exp(3 * random.standard_normal(N)),
        "halves": np.where(random.random(N) < 0.6, 0.0, random.standard_normal(N)),
        "two": random.integers(0, 2, N).astype(float),
        "code": np.append(random.standard_normal(N - 3), [9999.0] * 3),
        "constant": np.full(N, 2.5),
        "absurd": np.append(random.standard_normal(N - 1), 1e9),
    }[kind]
    column = Column("y", y)

    def askings():
        return LearningScale.asks(several=True), asks_remarks(), asks_absurd()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = [answered(own, column) for own in askings()]
        for blocks in (1, 4):
            found = in_passes([(0, own) for own in askings()], Blocks([column], blocks, blocks))
            assert close([asdict(own) for own in found[0]], [asdict(own) for own in one[0]])
            assert found[1:] == one[1:]


@pytest.mark.parametrize("n", [1, 2, 513, N])
@pytest.mark.parametrize("draw", ["normal", "ties"])
def test_ranks_are_those_of_a_sorted_list(n, draw):
    random = np.random.default_rng(n)
    values = random.standard_normal(n) if draw == "normal" else np.round(random.standard_normal(n), 1)
    ranks = tuple(sorted({0, n // 3, n // 2, n - 1}))

    def asks():
        spread = yield AskSpread()
        return (yield AskRanks(ranks, spread))

    (found,) = in_passes([(0, asks())], Blocks([Column("x", values)], min(n, 3), 0))
    np.testing.assert_array_equal(found, np.sort(values)[list(ranks)])


def test_values_at_the_ends_are_counted_whatever_parts_left_out():
    random = np.random.default_rng(3)
    values = random.integers(0, 50, 900).astype(float)
    question = AskDistinct(8)
    parts = [question.of(Column("x", own)) for own in np.array_split(values, 11)]
    total = parts[0]
    for own in parts[1:]:
        total = question.added(total, own)
    (found, counts), is_all = total
    known, often = np.unique(values, return_counts=True)
    assert not is_all
    assert found.tolist() == [*known[:4], *known[-4:]]
    assert counts.tolist() == [*often[:4], *often[-4:]]
