"""The values of a game: the axioms that define them, and how far estimates are from them."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

from guardband.explain import shapley as own
from guardband.explain.shapley import FEWEST_PAIRS, Game, shapley

RNG = np.random.default_rng(0)
ROWS, BACKGROUND = RNG.normal(size=(12, 5)), RNG.normal(size=(7, 5))


def functions(x):
    """Two functions with interactions; the second ignores the last column."""
    return np.stack(
        [
            x[..., 0] * x[..., 1] + np.sin(x[..., 2]) * x[..., 3] + np.exp(x[..., 4] / 2),
            np.maximum(x[..., 0], x[..., 2]) * x[..., 1] + x[..., 3] ** 2,
        ]
    )


def game(rows=ROWS, background=BACKGROUND, f=functions, asked=None):
    def ask(row, is_own, other):
        if asked is not None:
            asked.append(len(row))
        return f(np.where(is_own, rows[row], background[other]))

    return Game(ask, f(rows), f(background), rows.shape[1])


def values(game, evaluations, seed=0):
    def orders(row, count):
        rng = np.random.default_rng([seed, row])
        return rng.permuted(np.tile(np.arange(game.columns), (count, 1)), axis=1)

    return shapley(game, evaluations, orders, lambda done: None)


EXACT, SAMPLED = 10**6, 1


def by_the_definition(rows, background, f):
    """Return what each column adds, on average over all orders in which columns join and over the background."""
    d, total = rows.shape[1], 0
    orders = list(permutations(range(d)))
    for order in orders:
        mixed = np.repeat(background[None], len(rows), axis=0)
        added, before = np.zeros((len(f(rows)), *rows.shape)), f(mixed).mean(-1)
        for j in order:
            mixed[:, :, j] = rows[:, None, j]
            now = f(mixed).mean(-1)
            added[:, :, j], before = now - before, now
        total = total + added
    return total / len(orders)


def test_exact_values_are_those_of_the_definition():
    found = values(game(), EXACT)
    assert found.exact
    assert not found.errors.any()
    np.testing.assert_allclose(found.values, by_the_definition(ROWS, BACKGROUND, functions), atol=1e-12)


@pytest.mark.parametrize("evaluations", [EXACT, SAMPLED])
def test_values_add_up_to_the_difference_from_the_average_of_the_background(evaluations):
    found = values(game(), evaluations)
    assert found.exact == (evaluations == EXACT)
    difference = functions(ROWS) - functions(BACKGROUND).mean(1, keepdims=True)
    np.testing.assert_allclose(found.values.sum(-1), difference, atol=1e-12)


@pytest.mark.parametrize("evaluations", [EXACT, SAMPLED])
def test_a_column_that_a_function_ignores_adds_exactly_nothing(evaluations):
    found = values(game(), evaluations)
    assert (found.values[1, :, 4] == 0).all()
    assert (found.errors[1, :, 4] == 0).all()
    assert found.values[0, :, 4].all()


def test_equal_columns_with_equal_roles_add_the_same():
    rows, background = (side[:, [0, 0, 1, 2, 3]] for side in (ROWS, BACKGROUND))
    found = values(game(rows, background, lambda x: (x[..., 0] * x[..., 1] * x[..., 2] + x[..., 3])[None]), EXACT)
    np.testing.assert_allclose(found.values[0, :, 0], found.values[0, :, 1], atol=1e-12)


def test_a_sum_of_functions_has_the_sum_of_their_values():
    one, other = values(game(), EXACT), values(game(f=lambda x: functions(x).sum(0, keepdims=True)), EXACT)
    np.testing.assert_allclose(one.values.sum(0), other.values[0], atol=1e-12)


def test_estimates_are_as_far_off_as_their_standard_errors_say():
    """Rows are drawn independently, so the squared z-scores of a column add up to a chi-square variable."""
    rng = np.random.default_rng(1)
    rows, background, pairs = rng.normal(size=(60, 5)), rng.normal(size=(20, 5)), 50
    own_game = game(rows, background, lambda x: np.stack([x.prod(-1), np.exp(x.sum(-1) / 2)]))
    exact = values(own_game, EXACT).values

    def orders(row, count):
        return np.random.default_rng([2, row]).permuted(np.tile(np.arange(5), (count, 1)), axis=1)

    found, errors = own.by_orders(own_game, np.arange(60), orders, pairs)
    squares = (((found - exact) / errors) ** 2).sum(1).ravel()
    each = 1e-4 / (2 * len(squares))
    assert (squares > chi2.ppf(each, 60)).all()
    assert (squares < chi2.isf(each, 60)).all()


def test_an_order_and_its_reverse_are_exact_if_columns_act_alone_or_in_pairs():
    def pairs(x):
        return (x[..., 0] * x[..., 1] + x[..., 2] * x[..., 3] * 2 + np.exp(x[..., 4]))[None]

    exact, found = (values(game(f=pairs), evaluations) for evaluations in (EXACT, SAMPLED))
    np.testing.assert_allclose(found.values, exact.values, atol=1e-12)
    np.testing.assert_allclose(found.errors, 0, atol=1e-12)


def test_more_pairs_have_smaller_errors():
    few, many = (
        values(game(f=lambda x: x.prod(-1)[None]), 12 * 7 * 8 * pairs).errors[0].mean() for pairs in (FEWEST_PAIRS, 3)
    )
    assert many < few


@pytest.mark.parametrize("evaluations", [EXACT, SAMPLED])
def test_small_blocks_change_nothing_and_bound_what_is_asked_at_once(evaluations, monkeypatch):
    whole, asked = values(game(), evaluations), []
    monkeypatch.setattr(own, "LARGEST_BLOCK", 50)
    found = values(game(asked=asked), evaluations)
    np.testing.assert_allclose(found.values, whole.values, atol=1e-12)
    np.testing.assert_allclose(found.errors, whole.errors, atol=1e-12)
    assert max(asked) <= 50


def test_few_columns_of_many_rows_are_asked_in_one_block():
    rows = np.random.default_rng(2).normal(size=(100, 2))
    values(game(rows, rows[:10], lambda x: x[..., 0][None], asked := []), EXACT)
    assert asked == [100 * 10 * 2]


@pytest.mark.parametrize("evaluations", [1, 5_000, 12 * 7 * 30 - 1, 12 * 7 * 30, EXACT])
def test_no_more_rows_are_asked_for_than_allowed_or_needed(evaluations):
    found = values(game(asked=(asked := [])), evaluations)
    assert found.exact == (evaluations >= 12 * 7 * 30)
    assert sum(asked) <= max(evaluations, 12 * 7 * 2 * FEWEST_PAIRS * 4)


def test_three_columns_are_always_exact_because_sampling_would_cost_more():
    assert values(game(ROWS[:, :3], BACKGROUND[:, :3], lambda x: x.prod(-1)[None]), SAMPLED).exact


def test_one_column_adds_the_whole_difference():
    found = values(game(ROWS[:, :1], BACKGROUND[:, :1], lambda x: np.exp(x[..., 0])[None]), SAMPLED)
    np.testing.assert_allclose(found.values[0, :, 0], np.exp(ROWS[:, 0]) - np.exp(BACKGROUND[:, 0]).mean())
