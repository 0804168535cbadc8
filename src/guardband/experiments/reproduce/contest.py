"""A contest: every method on the same repetitions, each network that several of them need trained once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guardband.bands.predicted import Context, Predicted
from guardband.calibration.rule import Calibration
from guardband.data.target import Target
from guardband.experiments.reproduce.problem import Problem
from guardband.experiments.reproduce.setting import Contestant, Setting
from guardband.learning.effort import Effort
from guardband.learning.learn import learn
from guardband.learning.learned import Learned
from guardband.learning.training_rows import TrainingRows
from guardband.methods.method import NetworkSpec
from guardband.training.epochs import Progress

Array = NDArray[np.float64]
Row = dict[str, Any]
Share = Callable[[float], None]
"""Called with the share of the work that is done."""

CENTRES = np.round(np.arange(1.0, 4.01, 0.2), 1)
"""Where the paper's curves over beta'x are read; each point is the mean over a bin of width 0.2."""


@dataclass(frozen=True)
class Outcome:
    """A row for each method and repetition, and for artificial data the curves over beta'x."""

    rows: list[Row]
    curves: list[Row]


@dataclass(frozen=True)
class Own:
    """What one network, or the average of its copies, gives for one problem."""

    d2: Predicted
    d3: Predicted
    epochs: float
    decay: float
    loss: float
    dead: bool
    seconds: float


class _Unscaled(Target):
    """A response that networks learn as it is."""

    def learn(self, y: Array) -> Target:
        return self


Trainer = Callable[
    [Sequence[Problem], Setting, Sequence[NetworkSpec], torch.device, Share], dict[tuple[int, NetworkSpec], Own]
]
"""Trains the networks that are wanted on each problem."""


def contest(
    problems: Sequence[Problem], setting: Setting, device: torch.device, done: Share, train: Trainer | None = None
) -> Outcome:
    """Train what all methods of a setting need on all problems, and judge each method on D3.

    ``train`` does that in another way than by fleets on tables.
    """
    asked = [(contestant, *contestant.asked(setting)) for contestant in setting.contestants]
    wanted = list(dict.fromkeys(spec for _, method, request in asked for spec in method.networks(request)))
    own = (train or _train)(problems, setting, wanted, device, done)
    rows: list[Row] = []
    curves: list[Row] = []
    for problem in problems:
        for contestant, method, request in asked:
            used = [own[problem.repetition, spec] for spec in method.networks(request)]
            started = time.perf_counter()
            rule, context = method.rule(request), Context()
            d2, d3 = (Predicted.side_by_side(part) for part in zip(*((one.d2, one.d3) for one in used), strict=True))
            rule.check(d2, context)
            found = rule.calibrate(
                rule.summarise(d2, problem.d2.y, context)
            )  # an infinite length says what it warns of
            lower, point, upper = rule.ends(d3, context, found.arrays)
            seconds = time.perf_counter() - started + sum(network.seconds for network in used)
            ends = (lower[:, 0], point, upper[:, 0])
            rows.append(_judged(problem, setting, contestant, found, used, ends, seconds))
            curves += _curves(problem, setting, contestant, ends)
    return Outcome(rows, curves)


def _train(
    problems: Sequence[Problem],
    setting: Setting,
    wanted: Sequence[NetworkSpec],
    device: torch.device,
    done: Share,
) -> dict[tuple[int, NetworkSpec], Own]:
    """Return what each network wanted gives for each problem; those with one kind of head train as one fleet."""
    target = (Target if setting.standardise else _Unscaled)(None, None, None)
    sets = [
        TrainingRows.of(problem.d1.table, problem.d1.y, None, problem.seed, setting.architecture, target)
        for problem in problems
    ]
    encoded = [
        (rows.encoder.encode(problem.d2.table), rows.encoder.encode(problem.d3.table))
        for rows, problem in zip(sets, problems, strict=True)
    ]
    kinds = list(dict.fromkeys(type(spec.head) for spec in wanted))
    own: dict[tuple[int, NetworkSpec], Own] = {}
    for place, kind in enumerate(kinds):
        ours = [spec for spec in wanted if type(spec.head) is kind]
        started = time.perf_counter()
        fleet = _Trainer(setting, device, _progress(setting, place, len(kinds), done))
        decays = fleet.best_decays(sets, ours[0])
        learned = fleet.learn_each(sets, ours, decays)
        seconds = (time.perf_counter() - started) / len(sets) / len(ours) / setting.copies
        for problem, decay, one, (x2, x3) in zip(problems, decays, learned, encoded, strict=True):
            trained = _all_copies(ours, decay, setting)
            d2, d3 = one.predict_encoded(x2), one.predict_encoded(x3)
            for spec in ours:
                copies = [trained.index(copy) for copy in _copies(spec, decay, setting)]
                own[problem.repetition, spec] = Own(
                    _averaged(d2, copies),
                    _averaged(d3, copies),
                    float(np.mean([one.epochs[i] for i in copies])),
                    trained[copies[0]].weight_decay or 0.0,
                    float(np.mean([one.losses[i] for i in copies])),
                    any(one.dead[i] for i in copies),
                    seconds * len(copies),
                )
        done((place + 1) / len(kinds))
    return own


def _averaged(predicted: Predicted, copies: list[int]) -> Predicted:
    """Return the average of some candidates as one."""
    return predicted.map(lambda part: part[:, copies].mean(1, keepdims=True))


@dataclass(frozen=True)
class _Trainer:
    """Trains networks with one kind of head."""

    setting: Setting
    device: torch.device
    progress: Progress

    def learn(self, sets: Sequence[TrainingRows], specs: Sequence[NetworkSpec]) -> list[Learned]:
        """Return what each set of rows teaches the networks; dead ones are not restarted, but counted."""
        setting = self.setting
        architecture, recipe = setting.architecture, setting.recipe
        effort = Effort(restarts=0)
        return learn(sets, specs, architecture, recipe, effort, device=self.device, progress=self.progress)

    def best_decays(self, sets: Sequence[TrainingRows], spec: NetworkSpec) -> list[float]:
        """Return for each set of rows the weight decay with the least loss of one network in cross-validation.

        Each by its own training rows alone: those of another repetition hold rows that calibrate or test this one.
        """
        decays = self.setting.decays
        if len(decays) == 1:
            return [decays[0]] * len(sets)
        found = self.learn(sets, [NetworkSpec(spec.head, decay) for decay in decays])
        return [decays[int(np.argmin(one.losses))] for one in found]

    def learn_each(
        self, sets: Sequence[TrainingRows], specs: Sequence[NetworkSpec], decays: Sequence[float]
    ) -> list[Learned]:
        """Return what each set of rows teaches the networks at its own weight decay; those of one train together."""
        learned: dict[int, Learned] = {}
        for decay in dict.fromkeys(decays):
            which = [i for i, own in enumerate(decays) if own == decay]
            taught = self.learn([sets[i] for i in which], _all_copies(specs, decay, self.setting))
            learned |= zip(which, taught, strict=True)
        return [learned[i] for i in range(len(sets))]


def _all_copies(specs: Sequence[NetworkSpec], decay: float, setting: Setting) -> list[NetworkSpec]:
    """Return the networks to train for all that are wanted, each once."""
    return list(dict.fromkeys(one for spec in specs for one in _copies(spec, decay, setting)))


def _copies(spec: NetworkSpec, decay: float, setting: Setting) -> list[NetworkSpec]:
    """Return the networks to train for one that is wanted, which may have a weight decay of its own."""
    own = decay if spec.weight_decay is None else spec.weight_decay
    return [NetworkSpec(spec.head, own, copy) for copy in range(setting.copies)]


def _judged(
    problem: Problem,
    setting: Setting,
    contestant: Contestant,
    calibration: Calibration,
    used: Sequence[Own],
    ends: tuple[Array, Array, Array],
    seconds: float,
) -> Row:
    (lower, point, upper), y = ends, problem.d3.y
    covered = int(((lower <= y) & (y <= upper)).sum())
    row: Row = {
        "setting": setting.name,
        "method": contestant.label,
        "repetition": problem.repetition,
        "n_train": len(problem.d1.y),
        "n_calibration": len(problem.d2.y),
        "n_test": len(y),
        "covered": covered,
        "coverage": covered / len(y),
        "length": float((upper - lower).mean()),
        "mae": float(np.abs(y - point).mean()),
        "seconds": round(seconds, 3),
        "epochs": float(np.median([network.epochs for network in used])),
        "weight_decay": float(np.median([network.decay for network in used])),
        "held_out_loss": used[0].loss,
        "dead": float(np.mean([network.dead for network in used])),
        "found": _found(calibration),
        "rank": None if calibration.promise.rank is None else calibration.promise.rank[0],
    }
    if problem.oracle is not None:
        oracle = problem.oracle
        row["relative_length"] = row["length"] / float((oracle.upper - oracle.lower).mean())
        row["combined_mae"] = float(_distance(ends, problem).mean())
    return row


def _found(calibration: Calibration) -> float | None:
    """Return what the calibration rows set: conf-nn's scale, pav's tau, another score's threshold; None for others."""
    found = getattr(calibration.promise, "tau", None) or calibration.arrays.get("threshold")
    return None if found is None else float(found[0])


def _distance(ends: tuple[Array, Array, Array], problem: Problem) -> Array:
    """Return each row's mean distance of the three outputs from the oracle's, ``(n,)``."""
    oracle = problem.oracle
    assert oracle is not None
    truth = (oracle.lower, oracle.point, oracle.upper)
    mean: Array = np.mean([np.abs(ours - theirs) for ours, theirs in zip(ends, truth, strict=True)], axis=0)
    return mean


def _curves(problem: Problem, setting: Setting, contestant: Contestant, ends: tuple[Array, Array, Array]) -> list[Row]:
    """Return coverage, relative length and combined error in bins of beta'x."""
    if problem.oracle is None or problem.signal is None:
        return []
    lower, _, upper = ends
    oracle, y = problem.oracle, problem.d3.y
    inside = (lower <= y) & (y <= upper)
    relative = (upper - lower) / (oracle.upper - oracle.lower)
    distance = _distance(ends, problem)
    bins = np.digitize(problem.signal, np.append(CENTRES - 0.1, CENTRES[-1] + 0.1)) - 1
    key = {"setting": setting.name, "method": contestant.label, "repetition": problem.repetition}
    return [
        key
        | {
            "x": float(centre),
            "rows": int(here.sum()),
            "coverage": float(inside[here].mean()),
            "relative_length": float(relative[here].mean()),
            "combined_mae": float(distance[here].mean()),
        }
        for centre, here in ((centre, bins == j) for j, centre in enumerate(CENTRES))
        if here.any()
    ]


def _progress(setting: Setting, place: int, of: int, done: Share) -> Progress:
    """Return what turns the epochs of one of several fleets into a share; cross-validation is three quarters of it."""
    before = 0.75 if setting.epochs == "cv" else 0.0

    def show(what: str, epoch: int, epochs: int) -> None:
        share = epoch / epochs
        done((place + (before * share if what == "cross-validation" else before + (1 - before) * share)) / of)

    return show
