"""A promise for each group, for another population, and for new entities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from findings import Cell, beta_cell, fails, mean_cell, never_cell, rank_on_average, share_cell
from networks import setting, triples
from worlds import NOISES, STRATA, Array, World

import guardband as gb

LEVEL, DELTA = 0.8, 0.1
APART = np.array([0, 0, 0, 0, 1, 1, 1, 2])
"""The group of each stratum, where groups do not overlap."""
MANY_SMALL = np.array([0, 0, 0, 0, 1, 2, 3, 4])
"""A large group and four small ones."""
OVERLAPPING = np.stack([np.arange(STRATA) % 2, np.arange(STRATA) // 5], axis=1)
"""Two columns of labels, each value of which is a group."""
TARGET = np.array([0.02, 0.02, 0.04, 0.05, 0.07, 0.1, 0.2, 0.5])
"""The chances of the strata in the population to predict. Calibration rows come from all strata alike."""


def _of_group(world: World, lower: Array, upper: Array, members: Any) -> float:
    return float(world.coverage(lower, upper, np.where(members, world.chance, 0) / world.chance[members].sum())[0])


def groups(
    rng: np.random.Generator, noise: str, network: str, n: int, sets: int, guarantee: str, overlap: bool
) -> list[Cell]:
    """Return the cells of a promise for each group."""
    world, bands, is_exact = setting(noise, network)
    labels = OVERLAPPING if overlap else APART
    members = [labels[:, j] == g for j in (0, 1) for g in (0, 1)] if overlap else [labels == g for g in range(3)]
    rule = gb.BandCalibrator(
        "conf-nn", confidence_level=LEVEL, guarantee=guarantee, crossing="sort", delta=_delta(guarantee)
    )
    coverage, counts = np.empty((sets, len(members))), np.empty((sets, len(members)), dtype=int)
    for r in range(sets):
        x, y = world.rows(rng, n)
        # a group without calibration rows would be unknown: its rows then have infinite intervals
        new = rule.fit(*bands[:, x], y, groups=labels[x]).transform(*bands, groups=labels)
        coverage[r] = [_of_group(world, new.lower, new.upper, own) for own in members]
        counts[r] = [own[x].sum() for own in members]
    if guarantee == "pac":
        return [share_cell("all groups at once", fails(coverage, LEVEL).any(axis=1), DELTA)]
    if overlap:
        return [mean_cell(f"group {g}", coverage[:, g], LEVEL, rng) for g in range(len(members))]
    names = [f"group {g}" for g in range(len(members))]
    return _cells_by_count(names, coverage, counts, is_exact and network != "dead")


def pooled(rng: np.random.Generator, noise: str, network: str, n: int, sets: int, guarantee: str) -> list[Cell]:
    """Return the cells of groups of which training rows decide that small ones share a promise.

    Which ones do, the certificate says: it is the same for all calibration sets.
    """
    world, bands, is_exact = setting(noise, network)
    options: dict[str, Any] = {"guarantee": guarantee, "crossing": "sort", "delta": _delta(guarantee)}
    rule = gb.BandCalibrator("conf-nn", confidence_level=LEVEL, small_groups="pool", **options)
    training = np.resize(MANY_SMALL, n)
    coverage, counts = [], []
    for _ in range(sets):
        x, y = world.rows(rng, n)
        rule.fit(*bands[:, x], y, groups=MANY_SMALL[x], training_groups=training)
        new = rule.transform(*bands, groups=MANY_SMALL)
        alone = {line.name.removeprefix("group = ") for line in rule.certificate.groups}
        members = {name: int(name) == MANY_SMALL for name in sorted(alone) if name.isdigit()}
        members["pool"] = ~np.any([*members.values(), np.zeros(STRATA, bool)], axis=0)
        coverage.append([_of_group(world, new.lower, new.upper, own) for own in members.values()])
        counts.append([own[x].sum() for own in members.values()])
    if guarantee == "pac":
        return [share_cell("all groups at once", fails(coverage, LEVEL).any(axis=1), DELTA)]
    return _cells_by_count(list(members), np.array(coverage), np.array(counts), is_exact and network != "dead")


def _cells_by_count(names: Sequence[str], coverage: Array, counts: Any, is_exact: bool) -> list[Cell]:
    """Return the cells of groups, each with as many calibration rows as each set happens to have of it."""
    cells = []
    for g, name in enumerate(names):
        ranks = np.array([rank_on_average(LEVEL, int(own)) for own in counts[:, g]])
        finite = ranks <= counts[:, g]
        if finite.sum() > len(counts) // 4:
            cells.append(beta_cell(name, coverage[finite, g], ranks[finite], counts[finite, g], is_exact))
        cells.append(never_cell(f"{name}, too few rows", fails(coverage[~finite, g], 1.0)))
    return cells


def weighted(rng: np.random.Generator, noise: str, network: str, n: int, sets: int, guarantee: str) -> list[Cell]:
    """Return the cell of a promise for a population with other strata, of known weights."""
    coverage = _shifted(rng, noise, network, n, sets, guarantee, own_mass=True)
    if guarantee == "pac":
        return [share_cell("target", fails(coverage, LEVEL), DELTA)]
    return [mean_cell("target", coverage, LEVEL, rng)]


def _shifted(
    rng: np.random.Generator, noise: str, network: str, n: int, sets: int, guarantee: str, own_mass: bool
) -> Array:
    world, bands, _ = setting(noise, network)
    weight = TARGET / world.chance
    rule = gb.BandCalibrator(
        "conf-nn", confidence_level=LEVEL, guarantee=guarantee, crossing="sort", delta=_delta(guarantee)
    )
    bound: dict[str, Any] = {"max_weight": float(weight.max())} if guarantee == "pac" else {}
    of_new = {} if guarantee == "pac" else {"weights": weight if own_mass else 0 * weight}
    coverage = np.empty(sets)
    for r in range(sets):
        x, y = world.rows(rng, n)
        new = rule.fit(*bands[:, x], y, weights=weight[x], **bound).transform(*bands, **of_new)
        coverage[r] = world.coverage(new.lower, new.upper, TARGET)[0]
    return coverage


def unweighted(rng: np.random.Generator, n: int, sets: int, how: str) -> list[Cell]:
    """Return the controls: without weights, or without the weight of the new row itself."""
    if how == "own mass":
        coverage = _shifted(rng, "gaussian", "constant", n, sets, "marginal", own_mass=False)
        return [mean_cell("without the new row's weight", coverage, LEVEL, rng, holds=False)]
    world, bands, _ = setting("gaussian", "constant")
    rule, coverage = gb.BandCalibrator("conf-nn", confidence_level=LEVEL), np.empty(sets)
    for r in range(sets):
        x, y = world.rows(rng, n)
        new = rule.fit(*bands[:, x], y).transform(*bands)
        coverage[r] = world.coverage(new.lower, new.upper, TARGET)[0]
    return [mean_cell("without weights", coverage, LEVEL, rng, holds=False)]


def entities(
    rng: np.random.Generator, noise: str, n: int, sets: int, guarantee: str, labelled: bool = True
) -> list[Cell]:
    """Return the cell of a promise for a row of a new entity; half of the entities are large and easy to predict.

    Half of the rows of an entity share their noise. ``labelled`` is False for a control that takes them for
    independent.
    """
    world = World(NOISES[noise])
    bands = triples("good", world)
    rule = gb.BandCalibrator("conf-nn", confidence_level=LEVEL, guarantee=guarantee, delta=_delta(guarantee))
    coverage = np.empty(sets)
    for r in range(sets):
        is_large = rng.random(n) < 0.5
        entity = np.repeat(np.arange(n), np.where(is_large, 8, 1))
        scale = np.where(is_large, 1.0, 3.0)[entity]
        noise_of = np.where(
            rng.random(len(entity)) < 0.5, world.noise.draw(rng, n)[entity], world.noise.draw(rng, len(entity))
        )
        x = rng.integers(0, STRATA, len(entity))
        y = world.place[x] + world.size[x] * scale * noise_of
        known = {"entities": entity} if labelled else {}
        new = rule.fit(*bands[:, x], y, **known).transform(*bands)
        coverage[r] = np.mean([world.coverage(new.lower, new.upper, scale=own)[0] for own in (1.0, 3.0)])
    name = "new entities" if labelled else "rows of entities taken for independent"
    if guarantee == "pac":
        return [share_cell(name, fails(coverage, LEVEL), DELTA, holds=labelled)]
    return [mean_cell(name, coverage, LEVEL, rng, holds=labelled)]


def _delta(guarantee: str) -> float | None:
    return DELTA if guarantee == "pac" else None
