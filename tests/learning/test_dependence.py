"""Doubts: clusters and order are seen, and independent rows are left alone."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, nbinom

from guardband.data.table import read_table
from guardband.learning.clusters import exchange_p_value, likeliest_keys, look_for_clusters, possible_keys
from guardband.learning.dependence import FALSE_DOUBTS, Suspects
from guardband.learning.likeness import centred_ranks, p_value
from guardband.learning.order import possible_orders
from laws import SIGNIFICANCE

LEVEL = 0.9


def independent(rng, n=300):
    """Return independent rows of four inputs, the mean of their target, and noise."""
    x = rng.normal(size=(n, 4))
    return pd.DataFrame(x, columns=list("abcd")), x[:, 0] + np.sin(2 * x[:, 1]), rng.normal(size=n)


def found(X, y, seed=0, **given):
    table, y = read_table(X), np.asarray(y, float)
    return Suspects.of(table, y, given.get("time")).doubts(
        table, y, given.get("errors"), LEVEL, seed, given.get("of_coverage", True)
    )


def clustered(rng, entities, size, effect=1.0):
    X, mean, noise = independent(rng, entities * size)
    entity = rng.permutation(np.repeat(np.arange(entities), size))
    return X, mean + effect * rng.normal(size=entities)[entity] + noise, entity


def in_time(rng, n, rho):
    X, mean, noise = independent(rng, n)
    for i in range(1, n):
        noise[i] = rho * noise[i - 1] + np.sqrt(1 - rho**2) * noise[i]
    return X, mean + noise


def add_irrelevant_ids(X, mean, noise, rng):
    n = len(X)
    ids = X.assign(id=rng.integers(n // 5, size=n), name=[f"u{v}" for v in rng.integers(n // 3, size=n)])
    return ids, mean + noise


def add_categories(X, mean, noise, rng):
    kinds = rng.integers(20, size=len(X))
    named = X.assign(kind=[f"k{v}" for v in kinds], other=[f"m{v}" for v in rng.integers(50, size=len(X))])
    return named, mean + rng.normal(size=20)[kinds] + noise


def add_quantities(X, mean, noise, rng):
    """Whole numbers with a strong smooth effect, and one that the noise grows with."""
    age, grade = rng.integers(18, 90, size=len(X)), rng.integers(0, 100, size=len(X))
    y = mean + 0.3 * age + 5 * np.sin(grade / 15) + noise * np.exp(0.03 * (age - 50))
    return X.assign(age=age, grade=grade), y


def take_counts(X, mean, noise, rng):
    return X.assign(rooms=rng.poisson(30, size=len(X))), rng.poisson(np.exp(mean / 2))


def take_heavy_tails(X, mean, noise, rng):
    ids = X.assign(id=rng.integers(len(X) // 4, size=len(X)))
    return ids, mean + rng.standard_t(1.2, size=len(X)) * np.exp(X["a"] / 2)


def add_dates(X, mean, noise, rng):
    days = pd.to_timedelta(rng.integers(900, size=len(X)), unit="D")
    return X.assign(day=pd.Timestamp("2020-01-01") + days), mean + noise


def sort_by_an_input(X, mean, noise, rng):
    order = np.argsort(X["a"].to_numpy())
    return X.iloc[order], (mean + noise)[order]


def sort_by_the_target(X, mean, noise, rng):
    order = np.argsort(mean + noise)
    return X.iloc[order], (mean + noise)[order]


def sort_by_a_wave(X, mean, noise, rng):
    place = np.sort(rng.uniform(size=len(X)))
    return X.assign(place=place), 2 * np.sin(60 * place) + 0.5 * noise


def add_districts(X, mean, noise, rng):
    """A key that tells only in which interval a latitude lies."""
    latitude = rng.uniform(size=len(X))
    districts = [f"z{v}" for v in (40 * latitude).astype(int)]
    return X.assign(district=districts, latitude=latitude), np.sin(12 * latitude) + 0.3 * noise


CLEAN = [
    add_irrelevant_ids,
    add_categories,
    add_quantities,
    take_counts,
    take_heavy_tails,
    add_dates,
    sort_by_an_input,
    sort_by_the_target,
    sort_by_a_wave,
    add_districts,
]


@pytest.mark.parametrize("kind", CLEAN)
def test_independent_rows_raise_no_doubt(kind):
    """Each has a doubt with probability 1/200 at most: two of three are one chance in ten thousand."""
    tables = [kind(*independent(rng), rng) for rng in map(np.random.default_rng, range(3))]
    raised = sum(bool(found(X, y, seed)) for seed, (X, y) in enumerate(tables))
    assert raised <= binom.ppf(1 - SIGNIFICANCE, 3, FALSE_DOUBTS)


@pytest.mark.parametrize(
    ("entities", "size", "as_text"),
    [(300, 2, True), (100, 5, True), (40, 20, True), (40, 60, True), (300, 5, False), (60, 20, False), (40, 60, False)],
)
def test_clusters_are_seen(entities, size, as_text):
    rng = np.random.default_rng(1)
    X, y, entity = clustered(rng, entities, size)
    labels = [f"patient {v}" for v in entity] if as_text else rng.permutation(10**6)[:entities][entity]
    (doubt,) = found(X.assign(patient=labels), y)
    assert (doubt.kind, doubt.columns) == ("cluster", ("patient",))
    assert doubt.p_value <= FALSE_DOUBTS / 2  # two looks: the column and the order of the file
    assert doubt.sentence.startswith("Rows with the same 'patient' have similar errors. ")
    assert " If new rows come with a new 'patient', add --split-by patient (split_by=\"patient\")." in doubt.sentence
    assert doubt.sentence.endswith(" If they come with those of this table, add --independent-rows (split_by=[]).")


@pytest.mark.parametrize("decimals", [6, 15])
def test_places_of_stations_are_a_key(decimals):
    rng = np.random.default_rng(16)
    X, y, station = clustered(rng, 60, 20)
    place = {name: rng.uniform(40, 60, size=60).round(decimals)[station] for name in ("lat", "lon")}
    assert [doubt.columns for doubt in found(X.assign(**place), y)] == [("lat",)]


def test_columns_that_name_the_same_entities_are_one_key():
    entity = np.repeat(np.arange(60), 5)
    place = np.random.default_rng(0).uniform(size=60)[entity]
    table = pd.DataFrame({"place": place, "id": 7 * entity % 60, "name": [f"p{v}" for v in entity], "code": entity})
    for left, name in ((table, "name"), (table.drop(columns="name"), "id"), (table[["place"]], "place")):
        assert [key.name for key in possible_keys(read_table(left))] == [name]


def test_rows_that_a_join_repeated_are_seen():
    rng = np.random.default_rng(17)
    X, mean, noise = independent(rng, 300)
    four = rng.permutation(np.repeat(np.arange(300), 4))
    joined = X.iloc[four].assign(price=rng.normal(size=1200))
    assert [doubt.columns for doubt in found(joined, (mean + noise)[four])] == [("a",)]


def test_a_row_number_or_a_reading_near_a_constant_does_not_hide_a_key():
    """Entities lie one after another by both, as districts do by latitude."""
    rng = np.random.default_rng(18)
    X, y, entity = clustered(rng, 60, 20)
    order = np.argsort(entity)
    readings = rng.uniform(size=60)[entity] + 1e-6 * rng.normal(size=1200)
    table = X.assign(name=[f"p{v}" for v in entity], reading=readings).iloc[order].assign(row=np.arange(1200))
    assert [doubt.columns for doubt in found(table, y[order])] == [("name",)]


def test_inputs_that_tell_the_entity_do_not_hide_it():
    rng = np.random.default_rng(2)
    X, y, entity = clustered(rng, 60, 20)
    told = X.assign(height=rng.normal(size=60)[entity], weight=rng.normal(size=60)[entity], patient=entity)
    (doubt,) = found(told, y)
    assert doubt.columns == ("patient",)
    assert doubt.expected_coverage < LEVEL - 0.05
    share = f"{100 * doubt.expected_coverage:.0f}%"
    assert f" For rows of a new 'patient', expect about {share} coverage or less, not 90%. " in doubt.sentence
    (doubt,) = found(told, y, of_coverage=False)
    assert " For rows of a new 'patient', expect a larger mean loss than promised. " in doubt.sentence


def test_clusters_in_clusters_are_said_once_and_the_file_may_be_sorted_by_them():
    """Pupils of a school: whoever keeps schools together keeps pupils together. The file's order is the schools'."""
    rng = np.random.default_rng(3)
    X, mean, noise = independent(rng, 1200)
    school, pupil = np.arange(1200) // 24, np.arange(1200) // 6
    y = mean + rng.normal(size=50)[school] + rng.normal(size=200)[pupil] + noise
    named = X.assign(pupil=[f"p{v:03d}" for v in rng.permutation(200)[pupil]], school=rng.permutation(50)[school])
    assert [doubt.columns for doubt in found(named, y)] == [("school",)]


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_order_is_seen(rho):
    X, y = in_time(np.random.default_rng(4), 600, rho)
    (doubt,) = found(X, y)
    assert (doubt.kind, doubt.columns) == ("order", ())
    assert doubt.sentence.startswith("Rows near each other in the file have similar errors. ")
    shuffled = np.random.default_rng(5).permutation(600)
    assert not found(X.iloc[shuffled], y[shuffled])
    # The networks' errors serve as well; a row that has none is left out.
    errors = np.where(np.arange(600) % 10 == 0, np.nan, y - X["a"])
    assert [doubt.kind for doubt in found(X, y, errors=errors)] == ["order"]
    assert not found(X, y, errors=np.random.default_rng(6).normal(size=600))
    # A column that counts the rows, of which some did not train, or that is coarse, does not hide the order.
    kept = np.sort(shuffled[:500])
    counted = X.assign(row=np.arange(600), year=2000 + np.arange(600) // 60).iloc[kept]
    assert [doubt.kind for doubt in found(counted, y[kept])] == ["order"]


def test_order_by_a_date_is_seen_in_a_shuffled_file():
    rng = np.random.default_rng(7)
    X, y = in_time(rng, 600, 0.9)
    hours = np.arange(600, dtype=float)
    X["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(hours, unit="h")
    shuffled = rng.permutation(600)
    (doubt,) = found(X.iloc[shuffled], y[shuffled])
    assert (doubt.kind, doubt.columns) == ("order", ("when",))
    assert doubt.sentence.endswith(' Add --time when --split-by-time (split_by_time="when").')
    by_time = found(X.drop(columns="when").iloc[shuffled], y[shuffled], time=hours[shuffled])
    assert [doubt.kind for doubt in by_time] == ["order"]
    assert by_time[0].sentence.startswith("Rows near each other in time have similar errors. ")
    assert by_time[0].sentence.endswith(" Add --split-by-time (split_by_time=True).")


def test_without_keys_no_row_is_ranked(monkeypatch):
    monkeypatch.setattr("guardband.learning.clusters.centred_ranks", None)
    assert likeliest_keys([], np.arange(100.0), None) == []


def test_what_is_no_key_and_no_order_costs_nothing():
    """No column of few values, of a row each, of measurements or of dates; no order of a file sorted by its target."""
    rng = np.random.default_rng(8)
    X, mean, _ = independent(rng, 300)
    table = X.assign(
        few=rng.integers(20, size=300), row=np.arange(300), size=rng.integers(50, size=300) / 4, default=0
    ).assign(day=pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(50, size=300), unit="D"))
    table.loc[:30, "default"] = np.arange(31)
    assert not possible_keys(read_table(table))
    assert [order.by for order in possible_orders(read_table(table), mean, None)] == ["date", "file"]
    assert not possible_orders(read_table(X), np.sort(mean), None)


def test_few_rows_and_a_constant_target_raise_no_doubt():
    X, y = in_time(np.random.default_rng(9), 150, 0.9)
    assert found(X[:99], y[:99]) == ()
    assert found(X, np.ones(150)) == ()


def test_repeated_rows_count_once():
    rng = np.random.default_rng(10)
    X, mean, noise = independent(rng, 300)
    X["code"] = rng.integers(10**6, size=300)
    four = np.repeat(np.arange(300), 4)
    assert found(X.iloc[four], (mean + noise)[four]) == ()


def test_names_are_quoted_for_the_shell_and_for_python():
    rng = np.random.default_rng(11)
    X, y, entity = clustered(rng, 60, 10)
    (doubt,) = found(X.assign(**{'the "id"': entity}), y)
    assert """ add --split-by 'the "id"' (split_by="the \\"id\\"").""" in doubt.sentence


@pytest.mark.filterwarnings("error")
def test_columns_that_are_missing_or_constant_do_no_harm():
    rng = np.random.default_rng(15)
    X, y, entity = clustered(rng, 60, 10)
    text = np.where(rng.random(600) < 0.3, None, [f"c{v}" for v in rng.integers(9, size=600)])
    holes = X.assign(a=X["a"].where(X["a"] > 0), none=np.nan, one=1, rare=np.where(np.arange(600) == 7, 1, np.nan))
    holes = holes.assign(text=text, nothing=None, id=np.where(np.arange(600) % 9 == 0, np.nan, entity))
    assert [doubt.columns for doubt in found(holes, y)] == [("id",)]
    X, y = in_time(rng, 300, 0.8)
    assert [doubt.kind for doubt in found(X.assign(none=np.nan, a=X["a"].where(X["a"] > 0)), y)] == ["order"]


def test_the_same_seed_finds_the_same():
    X, y, entity = clustered(np.random.default_rng(12), 60, 10)
    assert found(X.assign(id=entity), y) == found(X.assign(id=entity), y)


def test_p_values_of_irrelevant_keys_are_uniform():
    """Given the folds, rows of an irrelevant key may be exchanged: a share u of the p-values is at most u."""
    rng, p = np.random.default_rng(13), []
    for _ in range(400):
        entities = np.unique(rng.integers(40, size=160), return_inverse=True)[1]
        folds = (rng.permutation(entities.max() + 1) % 3)[entities]
        ranks = centred_ranks(rng.standard_t(2, size=160) + folds, folds)
        p.append(exchange_p_value(ranks, entities, folds, 0.01, rng))
    for u in (0.05, 0.2, 0.5):  # at which ten of so many exchanges, or so many of all, are a p-value
        low, high = binom.ppf([SIGNIFICANCE / 2, 1 - SIGNIFICANCE / 2], 400, u)
        assert low <= np.sum(np.array(p) <= u) <= high


def test_p_values_are_those_of_all_exchanges():
    """Of the 24 orders of four numbers, 4 begin with the two largest: the wait for ten of those has a known law."""
    values = np.array([1.0, 2.0, 3.0, 4.0])

    def first_two(v):
        return v[:, 0] * v[:, 1]

    p = p_value(first_two, values[::-1], [(0, 1, 4)], 0.0005, np.random.default_rng(0))
    low, high = nbinom.ppf([SIGNIFICANCE / 2, 1 - SIGNIFICANCE / 2], 10, 4 / 24)
    assert low <= 10 / p - 10 <= high
    stretched = p_value(first_two, values, [(0, 2, 2)], 0.0005, np.random.default_rng(0))
    assert stretched == 1  # within blocks of two the product never changes


def test_a_key_is_judged_without_its_own_column():
    """The test of a key does not depend on how its values are written, only on which rows share them."""
    X, y, entity = clustered(np.random.default_rng(14), 60, 10)
    looks = []
    for label in ("k", "patient "):
        table = read_table(X.assign(id=[f"{label}{v:02d}" for v in entity]))
        looks.append(look_for_clusters(table, y, possible_keys(table)[0], LEVEL, 0.0025, 0))
    assert looks[0].likeness == looks[1].likeness
    assert looks[0].p_value == looks[1].p_value
