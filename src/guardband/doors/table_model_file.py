"""The model of a table as a file: its networks, the scales of its columns, and its calibration."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from guardband.bands.predicted import Predicted
from guardband.calibration.cross import crossed
from guardband.calibration.rule import Rule
from guardband.data.encoder import Encoder, TableEncoder, encoder_from_dict
from guardband.data.reference import Reference
from guardband.data.repeats import RepeatRule
from guardband.data.target import Target
from guardband.data.unlike import Seen
from guardband.doors.calibration_file import SUMMARY, calibration_entries, calibration_tensors, restored_calibration
from guardband.doors.cross_file import fold_entries, fold_tensors, folds_of
from guardband.doors.file_arguments import plain_arguments
from guardband.doors.fitted import Fitted
from guardband.doors.groups import grouped, restored_groups
from guardband.doors.model_checks import (
    check_columns,
    check_finite,
    check_outputs,
    check_size,
    check_target,
    check_tensors,
    check_weights,
)
from guardband.doors.places_file import PLACES, places_tensors, restored_places, tails_of, with_tails
from guardband.doors.several_file import restored_several, restored_target, several_entries
from guardband.doors.table_model import TableModel
from guardband.doors.weighting_file import WEIGHTING, restored_weighting, weighting_entries, weighting_tensors
from guardband.doors.weights import weighted
from guardband.learning.architecture import Architecture
from guardband.learning.choice import AUTO, SCORES
from guardband.learning.crossed import Crossed
from guardband.learning.learned import Learned
from guardband.learning.options import FitOptions
from guardband.learning.placed import placement_of
from guardband.methods.method import Method
from guardband.methods.registry import method_named
from guardband.nn.heads import Head
from guardband.training.members import Members, State, tensors_of
from guardband.training.stack import Stack, stack

WEIGHTS = "weights."
PRINTS = ("training_prints", "held_out_prints", "calibration_prints")
ENTITIES = ("training_entities", "calibration_entities")


def described_table(model: TableModel) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return entries and tensors of a table's model."""
    fitted = model.fitted_
    learned, calibrated = fitted.learned, fitted.calibrated
    params = {name: value for name, value in fitted.params.items() if name != "device"}
    seed = params["random_state"]
    first = learned.each[0]
    entries = {
        "kind": "table",
        "params": plain_arguments(params | {"random_state": seed if isinstance(seed, numbers.Integral) else None}),
        "features": {
            "names": [str(name) for name in getattr(model, "feature_names_in_", [])],
            "count": model.n_features_in_,
        },
        "encoder": learned.encoder.to_dict(),
        "target": learned.target.to_dict(),
        "in_features": first.in_features,
        "hidden": list(learned.architecture.hidden),
        "dropout": learned.architecture.dropout,
        "epochs": list(learned.epochs),
        "choices": first.choices,
        "crossed": fold_entries(learned),
        "score": fitted.rule.method if fitted.params["method"] == AUTO else None,
        **calibration_entries(calibrated),
        "reference": fitted.reference.to_dict(),
        "doubts": list(fitted.doubts),
        "repeat_rule": None if fitted.repeat_rule is None else fitted.repeat_rule.to_dict(),
        "seen": None if fitted.seen is None else fitted.seen.to_dict(),
        "grouping": None if fitted.grouping is None else fitted.grouping.to_dict(),
        "weighting": weighting_entries(fitted.weighting),
        "trained_until": fitted.trained_until,
        "tails": tails_of(fitted.placement),
        "several": several_entries(fitted.rule, learned.target),
    }
    tensors = {WEIGHTS + name: t for name, t in fold_tensors(learned).items()}
    for name in PRINTS:
        tensors[name] = torch.from_numpy(getattr(fitted, name).view(np.int64))
    for name in ENTITIES:
        if (labels := getattr(fitted, name)) is not None:
            tensors[name] = torch.from_numpy(labels)
    if calibrated is not None:
        tensors |= calibration_tensors(calibrated) | weighting_tensors(fitted.weighting)
        tensors |= places_tensors(fitted.places)
    return entries, tensors


def restored_table(
    params: Mapping[str, Any], entries: Mapping[str, Any], tensors: Mapping[str, Tensor], function: Any = None
) -> TableModel:
    """Return a table's model; ``params`` are its arguments, and ``function`` says the weights of rows if one does."""
    options, several = FitOptions.of(params), entries.get("several")
    if (several is not None) != (options.targets is not None):
        raise ValueError("its targets are not what its arguments ask for")
    options = options if several is None else options.for_targets(tuple(several["names"]))
    heads: tuple[Head, ...] = tuple(spec.head for spec in options.specs)
    encoder, epochs = encoder_from_dict(entries["encoder"]), tuple(entries["epochs"])
    target = restored_target(entries, options.target)
    check_target(target, options.target)
    check_tensors(tensors, (*PRINTS, *ENTITIES), (WEIGHTS, SUMMARY, WEIGHTING, PLACES))
    weights = {name.removeprefix(WEIGHTS): t for name, t in tensors.items() if name.startswith(WEIGHTS)}
    learned = _all_learned(options, heads, entries, encoder, target, epochs, weights, params)
    score = entries["score"]
    if (score is not None) != (params["method"] == AUTO) or score not in (None, *SCORES):
        raise ValueError(f"its score, {score!r}, is not what its arguments ask for")
    method = options.method if score is None else method_named(score)
    grouping = restored_groups(entries, params["groups"])
    names, scales = (None, None) if several is None else (several["names"], several["scales"])
    of_several = restored_several(method, options.request, options.targets, names, scales)
    prints: dict[str, Any] = {name: tensors[name].numpy().view(np.uint64) for name in PRINTS}
    left_over = len(prints["training_prints"]) - len(prints["calibration_prints"])
    rule = of_several or grouped(_rule(method, options, params, left_over), grouping)
    fitted = Fitted(
        learned=learned,
        rule=rule,
        calibrated=None,
        **prints,
        reference=Reference.from_dict(entries["reference"]),
        params=params,
        training_entities=_numpy(tensors.get("training_entities")),
        calibration_entities=_numpy(tensors.get("calibration_entities")),
        doubts=tuple(entries["doubts"]),
        repeat_rule=None if entries["repeat_rule"] is None else RepeatRule.from_dict(entries["repeat_rule"]),
        seen=None if entries.get("seen") is None else Seen.from_dict(entries["seen"]),
        grouping=grouping,
        trained_until=entries["trained_until"],
        placement=with_tails(placement_of(heads), entries.get("tails")) if isinstance(learned, Learned) else None,
    )
    fitted = _calibrated(fitted, options, heads, entries, tensors, function)
    return TableModel(fitted, entries["features"]["names"], entries["features"]["count"])


def _all_learned(
    options: FitOptions,
    heads: tuple[Head, ...],
    entries: Mapping[str, Any],
    encoder: Encoder,
    target: Target,
    epochs: tuple[int, ...],
    weights: State,
    params: Mapping[str, Any],
) -> Learned | Crossed:
    """Return the networks of all training rows, or those of each fold."""
    if params["calibration"] == "split":
        if entries["crossed"] is not None:
            raise ValueError("it holds folds that its arguments do not ask for")
        return _learned(options, heads, entries, encoder, target, epochs, weights)
    folds = []
    for own, kept, each in folds_of(entries, params["folds"], epochs, weights):
        scale = Target.from_dict(own["target"], options.target.transform)
        check_target(scale, options.target)
        folds.append(_learned(options, heads, own, encoder_from_dict(own["encoder"]), scale, kept, each))
    return Crossed(tuple(folds), target)


def _calibrated(
    fitted: Fitted,
    options: FitOptions,
    heads: tuple[Head, ...],
    entries: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    function: Any,
) -> Fitted:
    """Return what was fitted with the calibration of the file, if it holds one."""
    if entries["certificate"] is None:
        if any(name.startswith((SUMMARY, WEIGHTING, PLACES)) for name in tensors):
            raise ValueError("it holds a calibration without its certificate")
        return fitted
    copies = fitted.learned.each[0].copies if fitted.rule.each_copy else 1
    columns = np.zeros((copies, len(heads), 1, heads[0].columns))
    n_rows, on_insufficient = len(fitted.calibration_prints), options.request.on_insufficient
    like: Predicted = heads[0].read(columns)
    weighting = restored_weighting(entries["weighting"], tensors, function, entries["features"]["count"])
    rule = weighted(fitted.rule, weighting).in_units(fitted.learned.target.to_units)
    calibrated = restored_calibration(rule, entries, tensors, like, n_rows, on_insufficient)
    entities = fitted.calibration_entities
    places = restored_places(fitted.placement, tensors, calibrated, n_rows if entities is None else len(entities))
    return replace(fitted, calibrated=calibrated, weighting=weighting, places=places)


def _rule(method: Method, options: FitOptions, params: Mapping[str, Any], left_over: int) -> Rule:
    """Return the rule; by cross-validation, so many rows calibrated nothing."""
    rule, kind = method.rule(options.request), params["calibration"]
    return rule if kind == "split" else crossed(rule, kind, params["folds"], left_over)


def _learned(
    options: FitOptions,
    heads: tuple[Head, ...],
    entries: Mapping[str, Any],
    encoder: Encoder,
    target: Target,
    epochs: tuple[int, ...],
    weights: State,
) -> Learned:
    """Return the networks that one set of training rows taught, with the entries of the table or of a fold."""
    check_columns(entries, encoder)
    shape = {"hidden": tuple(entries["hidden"]), "dropout": entries["dropout"]}
    architecture = replace(options.architecture, **shape).for_table(encoder)
    copies, in_features = len(epochs) // len(heads), entries["in_features"]
    if len(epochs) % len(heads) or copies not in options.possible_copies():
        raise ValueError("it holds other networks than its arguments ask for")
    if architecture.builder is None:
        check_size([in_features, *architecture.hidden, heads[0].columns], weights, len(epochs))
    members = _rebuilt(architecture, heads * copies, in_features, options.device, weights)
    if architecture.builder is None and isinstance(encoder, TableEncoder):
        check_outputs(members, weights, encoder, target, options.device)
    members.restore(weights)
    return Learned(
        encoder,
        target,
        architecture,
        heads,
        copies,
        members,
        epochs,
        in_features,
        options.device,
        choices=entries["choices"],
    )


def _rebuilt(
    architecture: Architecture, heads: Sequence[Head], in_features: int, device: torch.device, weights: State
) -> Members:
    """Return untrained members of the right shape, to load weights into; one network is built, then it is compared."""
    one = architecture.build(in_features, heads[0], 0, device)
    like = tensors_of(one)
    check_weights(weights, like, len(heads))
    check_finite(weights, {name: t.expand(len(heads), *t.shape) for name, t in like.items()})
    if architecture.builder is None:
        return Stack([one] * len(heads))  # guardband's own networks can always be stacked
    others = [architecture.build(in_features, head, 0, device) for head in heads[1:]]
    return stack([one, *others], torch.zeros(2, in_features, device=device))


def _numpy(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.numpy()
