"""The plan: which promises are asked which questions, in runs that know nothing of each other."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import choice_cells
import control_cells
import distribution_cells
import door_cells
import fold_cells
import group_cells
import numpy as np
import pav_cells
import risk_cells
import split_cells
import stream_cells
import target_cells
from findings import Cell
from networks import GOOD, NETWORKS
from worlds import NOISES

QUESTIONS: dict[str, Callable[..., list[Cell]]] = {
    "marginal": split_cells.marginal,
    "pac": split_cells.given_data,
    "pac, all levels at once": split_cells.joint,
    "levels asked for later": split_cells.later,
    "one side": split_cells.side,
    "each tail": split_cells.tails,
    "pav": pav_cells.chosen,
    "groups": group_cells.groups,
    "small groups together": group_cells.pooled,
    "weights": group_cells.weighted,
    "entities": group_cells.entities,
    "cross-validation": fold_cells.crossed,
    "several targets": target_cells.several,
    "risk": risk_cells.limited,
    "quantiles": distribution_cells.quantiles,
    "probabilities": distribution_cells.probabilities,
    "selection": distribution_cells.selected,
    "choice among K": choice_cells.chosen,
    "online": stream_cells.in_the_long_run,
    "monitor": stream_cells.alarms,
    "door: torch network": door_cells.network,
    "door: any model": door_cells.model,
    "door: table": door_cells.table,
    "door: table, divided": door_cells.whole_table,
    "door: command line": door_cells.command_line,
    "control: rank less one": control_cells.off_by_one,
    "control: no guarantee": control_cells.without_guarantee,
    "control: delta not shared": control_cells.not_shared,
    "control: training rows calibrate": control_cells.seen,
    "control: pav without K": pav_cells.without_candidates,
    "control: weights left out": group_cells.unweighted,
    "control: choice not allowed for": choice_cells.as_if_not_chosen,
    "control: fold was seen": fold_cells.untouched,
}
"""What asks a promise, by the name that it has in the table."""


@dataclass(frozen=True)
class Run:
    """One question with its settings, all of its calibration sets, and the cells that they answer."""

    promise: str
    settings: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, promise: str, /, **settings: Any) -> Run:
        """Return the run of a promise."""
        return cls(promise, tuple(settings.items()))

    @property
    def name(self) -> str:
        """Its name, which says everything and sets the seed."""
        return ", ".join([self.promise, *(f"{name}={value}" for name, value in self.settings)])

    def cells(self) -> list[Cell]:
        """Draw the calibration sets and return the cells."""
        seed = int.from_bytes(hashlib.blake2b(self.name.encode(), digest_size=16).digest())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of too few rows, which is part of the plan
            return QUESTIONS[self.promise](np.random.default_rng(seed), **dict(self.settings))


SETS = 2000
LONG = frozenset({"choice among K", "monitor", "door: table", "door: table, divided", "door: command line", "risk"})
"""Promises whose runs take longest."""
SIZES, MOST = (1, 9, 30, 100, 1000, 5000), 25_000
CYCLE = ("constant", "over-fitted", "good", "wild", "crossing", "dead")
"""A network for each noise where not every network goes with every noise."""


def turned(by: int) -> Iterator[tuple[str, str]]:
    """Give each noise with one network; another number gives other pairs."""
    for i, noise in enumerate(NOISES):
        yield noise, CYCLE[(i + by) % len(CYCLE)]


def _split() -> Iterator[Run]:
    every = [(noise, network, n) for n, noise, network in product(SIZES, NOISES, NETWORKS)]
    every += [(noise, network, MOST) for i in (0, 2) for noise, network in turned(i)]
    for noise, network, n in every:
        yield Run.of("marginal", noise=noise, network=network, n=n, sets=SETS)
        yield Run.of("pac", noise=noise, network=network, n=n, sets=SETS)
    for i, (method, n) in enumerate(product(("conf-fw", "cqr", "cqr-r"), (19, 300))):
        for noise, network in turned(i):
            yield Run.of("marginal", noise=noise, network=network, n=n, sets=SETS, method=method)
            yield Run.of("pac", noise=noise, network=network, n=n, sets=SETS, method=method, delta=0.02)
    for i, n in enumerate((30, 300, 3000)):
        for noise, network in turned(i):
            if network != "crossing":
                yield Run.of("pac, all levels at once", noise=noise, network=network, n=n, sets=SETS)
    for i, (n, kind) in enumerate(product((19, 100, 2000), ("marginal", "pac", "joint"))):
        for noise, network in turned(i):
            yield Run.of("levels asked for later", noise=noise, network=network, n=n, sets=SETS, kind=kind)
    for i, (which, guarantee, method) in enumerate(
        product(("lower", "upper"), ("marginal", "pac"), ("conf-nn", "cqr"))
    ):
        for noise, network in turned(i):
            if network != "crossing":
                asked = {"which": which, "guarantee": guarantee, "method": method}
                yield Run.of("one side", noise=noise, network=network, n=60 + 40 * i, sets=SETS, **asked)
    for i, (n, guarantee) in enumerate(product((60, 400), ("marginal", "pac"))):
        for noise, network in turned(i):
            if network != "crossing":
                yield Run.of("each tail", noise=noise, network=network, n=n, sets=SETS, guarantee=guarantee)


def _chosen() -> Iterator[Run]:
    for n, rule, aim in product((30, 300, 3000), pav_cells.RULES, pav_cells.AIMS):
        for noise, network in (("gaussian", "worst"), ("heavy", "bad"), ("zero-inflated", GOOD), ("mixture", "bad")):
            yield Run.of("pav", noise=noise, network=network, rule=rule, aim=aim, n=n, sets=SETS)
    for noise, by in zip(NOISES, ("width", "score") * 3, strict=True):
        yield Run.of("choice among K", noise=noise, n=60, sets=400, by=by)


def _parted() -> Iterator[Run]:
    for i, (n, guarantee, overlap) in enumerate(product((60, 600), ("marginal", "pac"), (False, True))):
        for noise, network in turned(i):
            options = {"guarantee": guarantee, "overlap": overlap}
            yield Run.of("groups", noise=noise, network=network, n=n, sets=1000 if overlap else SETS, **options)
    for i, (n, guarantee) in enumerate((*product((20, 40), ("marginal", "pac")), (100, "pac"))):
        for noise, network in turned(i):
            asked = {"noise": noise, "network": network, "n": n, "sets": 1000, "guarantee": guarantee}
            yield Run.of("small groups together", **asked)
    for i, (n, guarantee) in enumerate(product((20, 200, 2000), ("marginal", "pac"))):
        for noise, network in turned(i):
            yield Run.of("weights", noise=noise, network=network, n=n, sets=SETS, guarantee=guarantee)
    for n, guarantee, noise in product((20, 100), ("marginal", "pac"), NOISES):
        yield Run.of("entities", noise=noise, n=n, sets=SETS, guarantee=guarantee)
    for i, (n, promise, guarantee, alike) in enumerate(
        product((30, 300), ("joint", "each"), ("marginal", "pac"), (False, True))
    ):
        for noise, network in turned(i):
            options = {"promise": promise, "guarantee": guarantee, "alike": alike}
            yield Run.of("several targets", noise=noise, network=network, n=n, sets=1000, **options)


def _crossed() -> Iterator[Run]:
    for kind, (n, folds), network in product(("cv+", "cv-minmax"), ((20, 4), (20, 20), (200, 10)), fold_cells.MODELS):
        for noise in NOISES if network == "means" else ("gaussian", "heavy", "discrete"):
            options = {"kind": kind, "n": n, "folds": folds}
            yield Run.of("cross-validation", noise=noise, network=network, sets=1000, **options)


def _others() -> Iterator[Run]:
    for i, (n, share, delta) in enumerate(((9, 0.1, None), (60, 0.05, None), (60, 0.1, 0.1), (300, 0.05, 0.1))):
        for noise, network in turned(i):
            yield Run.of("risk", noise=noise, network=network, n=n, sets=1000, share=share, delta=delta)
    for i, (n, kind) in enumerate(product((5, 50, 1000), distribution_cells.KINDS)):
        for noise, network in turned(i):
            network = GOOD if network == "crossing" else network
            yield Run.of("quantiles", noise=noise, network=network, n=n, sets=SETS, kind=kind)
            for side in ("above", "below"):
                asked = {"n": n, "sets": SETS, "kind": kind, "side": side}
                yield Run.of("probabilities", noise=noise, network=network, **asked)
                yield Run.of("selection", noise=noise, network=network, **asked, fdr=0.2)
    for rule, sequence in product(stream_cells.RULES, stream_cells.SEQUENCES):
        yield Run.of("online", noise="heavy", rule=rule, sequence=sequence, rows=400, streams=20)
    for noise, guarantee in product(("gaussian", "heavy"), ("marginal", "pac")):
        yield Run.of("monitor", noise=noise, network=GOOD, n=100, streams=1000, guarantee=guarantee)
    for guarantee in ("marginal", "pac"):
        tied = {"noise": "zero-inflated", "network": GOOD, "n": 100, "streams": 200}
        yield Run.of("monitor", **tied, guarantee=guarantee, alike=False)


def _doors() -> Iterator[Run]:
    for i, (n, guarantee) in enumerate(product((19, 200), ("marginal", "pac"))):
        for noise, network in turned(i):
            network = "constant" if network == "crossing" else network
            asked = {"noise": noise, "network": network, "n": n, "sets": 1000, "guarantee": guarantee}
            yield Run.of("door: torch network", **asked)
            yield Run.of("door: any model", **asked)
    for noise in ("gaussian", "heavy", "mixture"):
        for guarantee in ("marginal", "pac"):
            yield Run.of("door: table", noise=noise, n=30, fits=10, sets=60, guarantee=guarantee)
        for entities in (False, True):
            yield Run.of("door: table, divided", noise=noise, n=100, fits=200, entities=entities)
    for noise, guarantee in (("gaussian", "marginal"), ("heavy", "pac")):
        yield Run.of("door: command line", noise=noise, network=GOOD, n=30, sets=100, guarantee=guarantee)


def _controls() -> Iterator[Run]:
    for guarantee, n in product(("marginal", "pac"), (9, 30, 100)):  # of more rows, one less does not show
        for noise, network in (("gaussian", GOOD), ("heavy", "wild"), ("mixture", "constant")):
            asked = {"noise": noise, "network": network, "n": n, "sets": SETS, "guarantee": guarantee}
            yield Run.of("control: rank less one", **asked)
    for method, noise, network, n in (
        *(("high-q", noise, "unlike", 100) for noise in ("gaussian", "discrete")),
        *(("neg-ll", noise, "over-fitted", 100) for noise in ("gaussian", "mixture", "zero-inflated")),
        *(("bayes", noise, GOOD, n) for noise in ("gaussian", "skewed") for n in (9, 30)),
        *(("qreg-un", noise, network, 100) for noise in ("gaussian", "heavy") for network in ("constant", "wild")),
    ):
        yield Run.of("control: no guarantee", method=method, noise=noise, network=network, n=n, sets=SETS)
    yield Run.of("control: delta not shared", n=40, sets=SETS)
    yield Run.of("control: training rows calibrate", noise="gaussian", n=30, sets=SETS)
    yield Run.of("control: pav without K", n=1000, sets=SETS)
    yield Run.of("control: weights left out", n=20, sets=SETS, how="own mass")
    yield Run.of("control: weights left out", n=200, sets=SETS, how="all")
    yield Run.of("control: choice not allowed for", n=60, sets=SETS)
    yield Run.of("control: fold was seen", n=16, folds=4, sets=SETS)
    yield Run.of("entities", noise="gaussian", n=60, sets=SETS, guarantee="marginal", labelled=False)
    yield Run.of("entities", noise="gaussian", n=60, sets=SETS, guarantee="pac", labelled=False)
    yield Run.of("monitor", noise="gaussian", network=GOOD, n=200, streams=200, guarantee="marginal", change=True)


def full() -> list[Run]:
    """Return all runs, the longest first, the others in an order that is mixed and always the same.

    What a time limit leaves out is then a little of everything.
    """
    parts = (_doors, _others, _chosen, _parted, _crossed, _controls, _split)
    every = [run for part in parts for run in part()]
    return sorted(every, key=lambda run: (run.promise not in LONG, hashlib.blake2b(run.name.encode()).digest()))


def quick() -> list[Run]:
    """Return a few runs of each promise with small calibration sets, for the tests."""
    few = 120
    one = {"noise": "skewed", "network": GOOD}
    return [
        Run.of("marginal", noise="mixture", network="wild", n=30, sets=few),
        Run.of("marginal", noise="discrete", network="crossing", n=9, sets=few, method="cqr"),
        Run.of("pac", noise="zero-inflated", network="constant", n=60, sets=few),
        Run.of("pac, all levels at once", **one, n=30, sets=few),
        Run.of("levels asked for later", **one, n=30, sets=few, kind="joint"),
        Run.of("one side", **one, n=60, sets=few, which="upper", guarantee="pac", method="cqr"),
        Run.of("each tail", **one, n=60, sets=few, guarantee="marginal"),
        Run.of("pav", noise="gaussian", network="worst", rule="fixed-sequence", aim="selection", n=100, sets=few),
        Run.of("groups", **one, n=60, sets=60, guarantee="pac", overlap=True),
        Run.of("small groups together", **one, n=40, sets=60, guarantee="marginal"),
        Run.of("weights", **one, n=60, sets=few, guarantee="marginal"),
        Run.of("entities", noise="gaussian", n=30, sets=100, guarantee="pac"),
        Run.of("cross-validation", noise="gaussian", network="means", sets=100, kind="cv+", n=20, folds=4),
        Run.of("several targets", **one, n=30, sets=100, promise="joint", guarantee="marginal", alike=False),
        Run.of("risk", **one, n=9, sets=50, share=0.1, delta=None),
        Run.of("quantiles", **one, n=50, sets=few, kind="scales"),
        Run.of("probabilities", **one, n=50, sets=few, kind="points", side="above"),
        Run.of("selection", **one, n=50, sets=few, kind="points", side="below", fdr=0.2),
        Run.of("choice among K", noise="gaussian", n=60, sets=3, by="width"),
        Run.of("online", noise="heavy", rule="aci", sequence="opponent", rows=100, streams=2),
        Run.of("monitor", **one, n=100, streams=10, guarantee="marginal"),
        Run.of("door: torch network", **one, n=30, sets=50, guarantee="marginal"),
        Run.of("door: any model", **one, n=30, sets=50, guarantee="pac"),
        Run.of("control: rank less one", noise="gaussian", network=GOOD, n=9, sets=few, guarantee="marginal"),
        Run.of("control: no guarantee", method="qreg-un", noise="gaussian", network="constant", n=30, sets=few),
        Run.of("control: no guarantee", method="high-q", noise="gaussian", network="unlike", n=30, sets=2 * few),
    ]
