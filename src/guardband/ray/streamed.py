"""A fit of rows that no process holds: learnt in passes, trained by all workers together, calibrated in counts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from guardband.data.grouping import group_names
from guardband.data.table import read_table
from guardband.data.tree_groups import AUTO
from guardband.doors.fitted import Fitted
from guardband.doors.groups import GroupOptions, grouped
from guardband.exceptions import DegenerateBandWarning, warn
from guardband.learning.choice import sharpest
from guardband.learning.each_member import loss_of_each, recipe_of_each, seed_of
from guardband.learning.effort import LONGEST_EPOCH
from guardband.learning.learn import MOST_HELD_OUT
from guardband.learning.learned import Learned
from guardband.learning.options import FitOptions
from guardband.learning.placed import placement_of
from guardband.learning.shift import kept_source
from guardband.methods.method import Method
from guardband.nn.heads import Triple
from guardband.ray.calibrating import calibrate_on
from guardband.ray.cluster import workers
from guardband.ray.gathered import noted, said_of_split
from guardband.ray.learning_rows import LearningRows
from guardband.ray.parallel import Plan, shared_out, train_together
from guardband.ray.pieces import Source, pieces_of
from guardband.ray.streams import RowStream
from guardband.ray.survey import Sample, Surveyed, count, sample, survey
from guardband.ray.training_entities import training_entities
from guardband.training.health import DEAD_SHARE, dead_shares
from guardband.training.job import Job
from guardband.training.predict import predict
from guardband.training.stack import stack
from guardband.words import listed

if TYPE_CHECKING:
    from guardband.doors.table import IntervalRegressor

SMALLER = "Raise memory_limit (--memory-limit) if a machine has the memory, or fit on fewer rows."
NOT_LOOKED = (
    "guardband did not look for rows that depend on each other, because no process holds all rows. If some belong "
    "together, coverage may be lower than promised."
)


def fit_streamed(
    source: Source, rows: LearningRows, params: Mapping[str, Any], options: FitOptions, checkpoints: str | None
) -> IntervalRegressor:
    """Return a model that all workers trained together, each on its own pieces.

    Parameters
    ----------
    source : Files or ray.data.Dataset
        The rows.
    rows : LearningRows
        How they are read and split.
    params : dict
        The arguments of ``IntervalRegressor``.
    options : FitOptions
        What they ask for.
    checkpoints : str or None
        A folder for the checkpoint.
    """
    from guardband.doors.table import IntervalRegressor

    model = IntervalRegressor(**dict(params) | {"calibration_size": None})
    every = model.get_params(deep=False)
    _refuse(every, options)
    by, how = every["groups"], GroupOptions.of(every)
    counted, target = count(source, rows, options.target)
    together = training_entities(source, rows)
    named = () if by is None else group_names(by)
    found = survey(source, rows, counted, target, options.architecture.tabular, named, how.bins)
    some = sample(source, found)
    pieces = tuple(pieces_of(source))
    learned, left_out, size = _trained(found, some, options, params, pieces, checkpoints)
    method, learned = _with_score(options, learned, some, left_out)
    rule = method.rule(options.request)
    grouping = how.learn_from(rule, found.groups, by, counted.training) if found.groups else None
    names = tuple(rows.reader.kinds)
    model.fitted_ = Fitted(
        learned=learned,
        rule=grouped(rule, grouping),
        calibrated=None,
        training_prints=some.kept,
        held_out_prints=np.empty(0, dtype=np.uint64),
        calibration_prints=np.empty(0, dtype=np.uint64),
        reference=found.reference if together is None else together.reference,
        training_entities=None if together is None else together.labels,
        params=every,
        doubts=(),
        seen=found.seen,
        grouping=grouping,
        source=kept_source(some.x),
        placement=placement_of(learned.heads),
    )
    model.feature_names_in_, model.n_features_in_ = np.array(names, dtype=object), len(names)
    model.n_iter_ = max(learned.epochs)
    calibrating = replace(rows.reader, only=_Calibrates(rows))
    model = cast("IntervalRegressor", calibrate_on(model, source, calibrating))
    said = "One worker trained alone." if size == 1 else f"{size} workers trained together."
    if together is None:
        said += f" {NOT_LOOKED}"
    elif not together.are_all:
        said += f" guardband recognises only {len(together.labels):,} values of {together.name} again."
    if some.share < 1:
        said += (
            f" guardband kept the fingerprints of {len(some.kept):,} of {found.n:,} training rows, and recognises "
            "only these again."
        )
    model.fitted_ = noted(model.fitted_, f"{said_of_split(counted.training, counted.calibration, rows.split)} {said}")
    return model


@dataclass(frozen=True)
class _Calibrates:
    """Says which rows calibrate."""

    rows: LearningRows

    def __call__(self, X: Any, y: NDArray[np.float64]) -> NDArray[np.bool_]:
        split = self.rows.split
        return split.calibrates(split.prints(read_table(X).read_as(self.rows.kinds), y))


def _refuse(params: Mapping[str, Any], options: FitOptions) -> None:
    """Raise if something is asked for that needs all rows in one process."""
    for name, asked, words in (
        ("calibration", params["calibration"] != "split", "Cross-validation needs"),
        ("targets", params["targets"] is not None, "Several targets need"),
        ("groups", params["groups"] == AUTO, "To look for groups, guardband needs"),
        ("groups", callable(params["groups"]), "Groups by a function need"),
        ("distribution", options.distribution, "A distribution needs"),
        ("distill", options.distills, "Distillation needs"),
        ("network", options.architecture.builder is not None, "A network of your own needs"),
        ("target_transform", isinstance(options.target.transform, tuple), "A transform of your own needs"),
        ("epochs", options.recipe.epochs == "cv", 'epochs="cv" needs'),
        ("preset", options.effort.seconds < math.inf, "A time limit needs"),
    ):
        if asked:
            raise ValueError(
                f"{words} all rows in one process, and they are more than it may hold. Remove {name}. {SMALLER}"
            )


def _trained(
    found: Surveyed,
    some: Sample,
    options: FitOptions,
    params: Mapping[str, Any],
    pieces: Sequence[Any],
    checkpoints: str | None,
) -> tuple[Learned, NDArray[np.intp] | None, int]:
    """Return what processes learnt together, which copy did not see each sampled row, if any, and their number."""
    n = found.n
    base, recipe, effort = options.training_for(n, muon=not found.target.has_long_tail)
    shape = base.for_table(found.encoder)
    seed = int(check_random_state(params.get("random_state")).randint(2**31 - 1))
    members = [(copy, spec) for copy in range(effort.copies) for spec in options.specs]
    copies, specs = tuple(copy for copy, _ in members), [spec for _, spec in members]
    stops = recipe.epochs == "early"
    # One copy is stopped by a part of the rows, several by a fold each, none of which is larger than it need be.
    least = max(effort.copies, effort.folds, round(1 / recipe.validation_share) if effort.copies == 1 else 1)
    folds = max(least, math.ceil(n / MOST_HELD_OUT)) if stops else 1
    fold = found.part.rows.split.folds(some.prints, folds)
    keys = found.part.rows.split.keys
    if stops and keys and not np.bincount(fold, minlength=folds)[: effort.copies].all():
        raise ValueError(
            f"Other rows must stop each copy of the network, and {listed(keys, 10)} has too few values for that. "
            f"{SMALLER}"
        )
    train = n - n // folds if stops else n
    parts = math.ceil(n / (recipe.batch_size * LONGEST_EPOCH))
    width = found.encoder.width
    seeds = [seed_of(seed, copy, spec) for copy, spec in members]
    networks = [shape.build(width, spec.head, own, torch.device("cpu")) for spec, own in zip(specs, seeds, strict=True)]
    device = options.device
    job = Job(
        tuple(network.to(device) for network in networks),
        loss_of_each(specs, device),
        recipe_of_each(recipe, specs),
        device,
        seeds=tuple(seeds),
    )
    stream = RowStream(found.part, found.encoder, found.target, tuple(pieces), folds, seed)
    shares = shared_out(found.in_pieces, workers(), recipe.batch_size)
    about = f"{hashlib.sha256(some.kept.tobytes()).hexdigest()} {sorted(params.items())} {shares} {n}"
    plan = Plan(job, stream, shares, copies, max(1, math.ceil(train / (recipe.batch_size * parts))), stops, about)
    trained = train_together(plan, checkpoints)
    if 0 in trained.epochs:
        raise ValueError("Training diverged: no epoch had a finite loss. Lower the learning rate.")
    stacked = stack(list(job.networks), torch.from_numpy(some.x[:2]).to(device))
    stacked.restore({name: t.to(device) for name, t in trained.state.items()})
    learned = Learned(
        found.encoder,
        found.target,
        shape,
        tuple(spec.head for spec in options.specs),
        effort.copies,
        stacked,
        trained.epochs,
        width,
        device,
        trained.losses,
        _dead(stacked, some, specs[0].head, device),
        choices=f"the epochs of {effort.copies} copies" if stops else "",
    )
    return learned, np.where(fold < effort.copies, fold, -1) if stops else None, len(shares)


def _dead(stacked: Any, some: Sample, head: Any, device: torch.device) -> tuple[bool, ...]:
    """Return which networks have a side of no width; they are told of."""
    outputs = predict(stacked, some.x, device).astype(np.float64)
    if not np.isfinite(outputs).all():
        raise ValueError("Training diverged: predictions are not finite. Lower learning_rate.")
    if not isinstance(head, Triple):
        return (False,) * len(outputs)
    dead = dead_shares(outputs) > DEAD_SHARE
    if dead.any():
        warn(
            f"{dead.sum()} of {len(dead)} networks have a side of no width on more than {DEAD_SHARE:.0%} of the rows. "
            'Use ordering="softplus", which always has two sides.',
            DegenerateBandWarning,
        )
    return tuple(dead.tolist())


def _with_score(
    options: FitOptions, learned: Learned, some: Sample, left_out: NDArray[np.intp] | None
) -> tuple[Method, Learned]:
    """Return the method, whose score the sampled rows may choose, and what was learnt, with that choice in words."""
    if not options.chooses_score or left_out is None or not (left_out >= 0).any():
        return options.method, learned
    predicted, seen = replace(learned, left_out=left_out).predict_left_out(some.x)
    method = sharpest(options.request, predicted, some.work[seen], learned.target.to_units)
    return method, replace(learned, choices=f"{learned.choices}, the score {method.name}")
