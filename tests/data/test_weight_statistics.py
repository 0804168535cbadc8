"""Where weights reach a sum, of values that lie apart: as sorting all of them in fractions says."""

from fractions import Fraction

import numpy as np
import pytest

from guardband.data.order_statistics import MOST_BYTES, replied
from guardband.data.weight_statistics import BinaryParts, Inverses, reached

VALUES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "few values": lambda rng, n: rng.integers(-3, 3, n) * 1.0,
    "some infinite": lambda rng, n: np.where(rng.random(n) < 0.3, np.inf, rng.exponential(size=n)),
    "close": lambda rng, n: 1 + rng.random(n) * 1e-12,
}
WEIGHTS = {
    "equal": lambda rng, n: np.full(n, 0.1),
    "some zero": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.exponential(size=n)),
    "all sizes": lambda rng, n: rng.random(n) * 10.0 ** rng.integers(-300, 300, n),
    "from least to most": lambda rng, n: rng.choice([5e-324, 1.7976931348623157e308], n),
}


def by_sorting(values, weights, sums):
    """Return the least value up to which weights reach each sum, these weights and how many they are, in fractions."""
    order = np.argsort(values, kind="stable")
    upto, total, rows = {}, Fraction(0), 0
    for i in order.tolist():
        total, rows = total + weights[i], rows + (weights[i] > 0)
        upto[float(values[i])] = total, rows
    out = []
    for own in sums:
        found = next((value for value, (known, _) in upto.items() if known >= own), None)
        out.append((np.inf, total, rows) if found is None else (found, *upto[found]))
    return out


def asked_in_parts(values, weights, parts):
    rows, sizes = np.array_split(np.random.default_rng(1).permutation(len(values)), parts), []

    def ask(question):
        answers = [question.answer(values[own], weights[own]) for own in rows]
        sizes.extend(answer.nbytes for answer in answers)
        return question.together(answers)

    return ask, sizes


def found(search, ask):
    return [(own.value, own.upto, own.rows) for own in replied(search, ask)]


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("most_bytes", [1 << 12, 1 << 16])
def test_where_weights_reach_a_sum_is_what_sorting_says(values, weights, most_bytes):
    rng = np.random.default_rng(0)
    n = 800
    own, mass = VALUES[values](rng, n), WEIGHTS[weights](rng, n)
    exact = [Fraction(float(w)) for w in mass]
    total = sum(exact)
    sums = [total / 10**9, total / 2, total * 9 / 10, total, total * 11 / 10]
    sums += [sum(exact[i] for i in np.argsort(own, kind="stable")[:300]) or total / 3]  # reached without a rest
    units = BinaryParts.between(mass[mass > 0].min(), mass.max())
    ask, sizes = asked_in_parts(own, mass, 3)
    assert found(reached(sums, units, most_bytes), ask) == by_sorting(own, exact, sums)
    least = 16 * units.columns  # one bit of one sum
    assert max(sizes) <= max(most_bytes, least)


@pytest.mark.parametrize("values", VALUES)
def test_rows_of_entities_count_by_one_over_their_number(values):
    rng, n = np.random.default_rng(2), 120_000
    sizes, own = rng.integers(1, 9, n), VALUES[values](rng, n)
    exact = [Fraction(840 // int(size)) for size in sizes]  # in units of 1 / 840
    total = sum(exact)
    sums = [total / 3, Fraction(int(total * 9 / 10)), total, total + 1]
    ask, sent = asked_in_parts(own, sizes.astype(np.float64), 4)
    out = [
        (value, upto * 840, rows)
        for value, upto, rows in found(reached([s / 840 for s in sums], Inverses(np.unique(sizes))), ask)
    ]
    assert out == by_sorting(own, exact, sums)
    assert max(sent) <= MOST_BYTES


def test_weights_are_added_without_an_error():
    rng = np.random.default_rng(3)
    weights = rng.random(5000) * 10.0 ** rng.integers(-320, 308, 5000)
    weights = weights[weights > 0]
    units = BinaryParts.between(weights.min(), weights.max())
    assert units.sum(weights) == sum(Fraction(float(w)) for w in weights)
    cells = rng.integers(0, 7, len(weights))
    counts = units.counted(weights, cells, 7)
    for cell in range(7):
        assert units.total(counts[cell]) == sum(Fraction(float(w)) for w in weights[cells == cell])
        assert units.rows(counts[cell]) == (cells == cell).sum()
