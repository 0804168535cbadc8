"""A contest: every method on the same repetitions, each network that several of them need trained once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guardband.bands.certificate import Certificate
from guardband.calibration.calibrated import Calibrated
from guardband.data.target import Target
from guardband.doors.learning import Learned, Lesson, learn
from guardband.exceptions import DegenerateBandWarning, InsufficientCalibrationWarning
from guardband.experiments.reproduce.problem import Problem
from guardband.experiments.reproduce.setting import Contestant, Setting
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

    d2: Array
    d3: Array
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
    wanted = list(dict.fromkeys(spec for _, method, wish in asked for spec in method.networks(wish)))
    own = (train or _train)(problems, setting, wanted, device, done)
    rows: list[Row] = []
    curves: list[Row] = []
    for problem in problems:
        for contestant, method, wish in asked:
            used = [own[problem.repetition, spec] for spec in method.networks(wish)]
            started = time.perf_counter()
            with warnings.catch_warnings():
                # A whole line is told by the row: its length is infinite.
                warnings.simplefilter("ignore", InsufficientCalibrationWarning)
                warnings.simplefilter("ignore", DegenerateBandWarning)
                rule = method.rule(wish)
                statistic = rule.statistic(np.stack([network.d2 for network in used]), problem.d2.y)
                calibrated = Calibrated.by(rule, rule.summarise([statistic]))
            lower, point, upper = calibrated.ends(np.stack([network.d3 for network in used]))
            seconds = time.perf_counter() - started + sum(network.seconds for network in used)
            ends = (lower[:, 0], point, upper[:, 0])
            rows.append(_judged(problem, setting, contestant, calibrated, used, ends, seconds))
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
    lessons = [
        Lesson.of(problem.d1.table, problem.d1.y, None, problem.seed, setting.architecture, target)
        for problem in problems
    ]
    encoded = [
        (lesson.encoder.encode(problem.d2.table), lesson.encoder.encode(problem.d3.table))
        for lesson, problem in zip(lessons, problems, strict=True)
    ]
    kinds = list(dict.fromkeys(type(spec.head) for spec in wanted))
    own: dict[tuple[int, NetworkSpec], Own] = {}
    for place, kind in enumerate(kinds):
        ours = [spec for spec in wanted if type(spec.head) is kind]
        started = time.perf_counter()
        fleet = _Trainer(setting, device, _progress(setting, place, len(kinds), done))
        decays = fleet.best_decays(lessons, ours[0])
        learned = fleet.learn_each(lessons, ours, decays)
        seconds = (time.perf_counter() - started) / len(lessons) / len(ours) / setting.copies
        for problem, decay, one, (x2, x3) in zip(problems, decays, learned, encoded, strict=True):
            trained = _all_copies(ours, decay, setting)
            d2, d3 = one.bands_of(x2), one.bands_of(x3)
            for spec in ours:
                copies = [trained.index(copy) for copy in _copies(spec, decay, setting)]
                own[problem.repetition, spec] = Own(
                    d2[copies].mean(0),
                    d3[copies].mean(0),
                    float(np.mean([one.epochs[i] for i in copies])),
                    trained[copies[0]].weight_decay or 0.0,
                    float(np.mean([one.losses[i] for i in copies])),
                    any(one.dead[i] for i in copies),
                    seconds * len(copies),
                )
        done((place + 1) / len(kinds))
    return own


@dataclass(frozen=True)
class _Trainer:
    """Trains networks with one kind of head."""

    setting: Setting
    device: torch.device
    progress: Progress

    def learn(self, lessons: Sequence[Lesson], specs: Sequence[NetworkSpec]) -> list[Learned]:
        """Return what each lesson teaches the networks; dead ones are not restarted, but counted."""
        setting = self.setting
        architecture, recipe = setting.architecture, setting.recipe
        return learn(lessons, specs, architecture, recipe, device=self.device, progress=self.progress, restarts=0)

    def best_decays(self, lessons: Sequence[Lesson], spec: NetworkSpec) -> list[float]:
        """Return for each lesson the weight decay with the least loss of one network in cross-validation.

        Each by its own D1 alone: another repetition's D1 holds rows of this one's D2 and D3.
        """
        decays = self.setting.decays
        if len(decays) == 1:
            return [decays[0]] * len(lessons)
        found = self.learn(lessons, [NetworkSpec(spec.head, decay) for decay in decays])
        return [decays[int(np.argmin(one.losses))] for one in found]

    def learn_each(
        self, lessons: Sequence[Lesson], specs: Sequence[NetworkSpec], decays: Sequence[float]
    ) -> list[Learned]:
        """Return what each lesson teaches the networks at its own weight decay; those of one train together."""
        learned: dict[int, Learned] = {}
        for decay in dict.fromkeys(decays):
            which = [i for i, own in enumerate(decays) if own == decay]
            taught = self.learn([lessons[i] for i in which], _all_copies(specs, decay, self.setting))
            learned |= zip(which, taught, strict=True)
        return [learned[i] for i in range(len(lessons))]


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
    calibrated: Calibrated,
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
        "found": _found(calibrated.certificate, calibrated),
        "rank": calibrated.certificate.rank,
    }
    if problem.oracle is not None:
        oracle = problem.oracle
        row["relative_length"] = row["length"] / float((oracle.upper - oracle.lower).mean())
        row["combined_mae"] = float(_distance(ends, problem).mean())
    return row


def _found(certificate: Certificate, calibrated: Calibrated) -> float | None:
    """Return what D2 set: conf-nn's scale, pav's tau, another score's threshold; nothing for the others."""
    if certificate.kind == "none":
        return None
    return float(calibrated.setting[0]) if certificate.tau is None else float(np.atleast_1d(certificate.tau)[0])


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
