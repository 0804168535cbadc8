"""Models as files: what of a table's model and of a calibrated network is written, and how it comes back.

A file holds no code. What is the user's own (a network, a method, a guarantee, a function of outputs) is marked so,
and to be brought again.
"""

from __future__ import annotations

import copy
import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from guardband.bands.certificate import Certificate
from guardband.bands.predicted import Predicted
from guardband.calibration.cut import Cut
from guardband.data.encoder import TableEncoder, encoder_from_dict
from guardband.data.reference import Reference
from guardband.data.repeats import RepeatRule
from guardband.data.target import Target
from guardband.data.transforms import Functions
from guardband.data.unlike import Seen
from guardband.doors.band_file import described_rule, restored_rule
from guardband.doors.bands import BandCalibrator
from guardband.doors.file_format import AGAIN, plain, read, reason, rich, write
from guardband.doors.fitted import Fitted
from guardband.doors.groups import grouped, restored_groups
from guardband.doors.guarded_model import GuardedModel
from guardband.doors.guarded_model_file import described, restored
from guardband.doors.kept_report import packed_report
from guardband.doors.model_checks import (
    check_calibration,
    check_columns,
    check_finite,
    check_outputs,
    check_size,
    check_target,
    check_tensors,
    check_weights,
)
from guardband.doors.network import GuardedNetwork, read_arguments
from guardband.doors.network_groups import NetworkGroups
from guardband.doors.online_file import restored_online
from guardband.doors.stored_calibration import (
    SUMMARY,
    calibration_entries,
    calibration_tensors,
    restored_calibration,
)
from guardband.doors.table_model import TableModel
from guardband.doors.weighting_file import WEIGHTING, restored_weighting, weighting_entries, weighting_tensors
from guardband.doors.weights import Weighting, weighted
from guardband.exceptions import ModelFileError
from guardband.learning.architecture import Architecture, Builder
from guardband.learning.choice import AUTO, SCORES
from guardband.learning.learned import Learned
from guardband.learning.options import FitOptions, resolve_device
from guardband.methods.method import Method
from guardband.methods.registry import method_named, method_names
from guardband.nn.heads import Head
from guardband.training.members import Members, State, tensors_of
from guardband.training.stack import Stack, stack
from guardband.training.threads import one_thread_each

CUSTOM = "custom"
NETWORK_PRINTS = "calibration_prints"
PRINTS = ("training_prints", "held_out_prints", "calibration_prints")
WEIGHTS, CALIBRATION = "weights.", "calibration."
ENTITIES = ("training_entities", "calibration_entities")
NO_FAULT_OF_THE_FILE = (Warning, torch.OutOfMemoryError, getattr(torch, "AcceleratorError", torch.OutOfMemoryError))
"""A warning that the user's own filter made an error, and a GPU that is full."""


def save(
    model: TableModel | GuardedNetwork | GuardedModel | BandCalibrator,
    path: str | os.PathLike[str],
    report: dict[str, Any] | None = None,
) -> None:
    """Write a model or a rule; the file appears whole or not at all.

    ``report`` is the document of its page, kept with a table's model and with a rule.
    """
    if isinstance(model, GuardedNetwork):
        entries = {
            "kind": "network",
            "arguments": _plain_arguments(model.arguments),
            "networks": len(model.networks),
            "certificate": model.certificate.to_dict(),
            "meaning": model.meaning,
            "groups": None if model.grouping is None else [list(own) for own in model.grouping.values],
            "members": model.grouping is not None and model.grouping.members,
        }
        tensors = {name: t for name, t in model.state_dict().items() if name != "_extra_state"}
        write(path, entries, tensors | {NETWORK_PRINTS: torch.from_numpy(model.calibration_prints.view(np.int64))})
        return
    if isinstance(model, GuardedModel):
        write(path, *described(model, _plain_arguments(model.arguments)))
        return
    if isinstance(model, BandCalibrator):
        entries, tensors = described_rule(model, _plain_arguments(model.arguments))
        write(path, entries, tensors | packed_report(report))
        return
    fitted = model.fitted_
    learned, calibrated = fitted.learned, fitted.calibrated
    params = {name: value for name, value in fitted.params.items() if name != "device"}
    seed = params["random_state"]
    entries = {
        "kind": "table",
        "params": _plain_arguments(params | {"random_state": seed if isinstance(seed, numbers.Integral) else None}),
        "features": {
            "names": [str(name) for name in getattr(model, "feature_names_in_", [])],
            "count": model.n_features_in_,
        },
        "encoder": learned.encoder.to_dict(),
        "target": learned.target.to_dict(),
        "in_features": learned.in_features,
        "hidden": list(learned.architecture.hidden),
        "dropout": learned.architecture.dropout,
        "epochs": list(learned.epochs),
        "choices": learned.choices,
        "score": fitted.rule.method if fitted.params["method"] == AUTO else None,
        **calibration_entries(calibrated),
        "reference": fitted.reference.to_dict(),
        "doubts": list(fitted.doubts),
        "repeat_rule": None if fitted.repeat_rule is None else fitted.repeat_rule.to_dict(),
        "seen": None if fitted.seen is None else fitted.seen.to_dict(),
        "grouping": None if fitted.grouping is None else fitted.grouping.to_dict(),
        "weighting": weighting_entries(fitted.weighting),
        "trained_until": fitted.trained_until,
    }
    tensors = {WEIGHTS + name: t for name, t in learned.members.snapshot().items()}
    for name in PRINTS:
        tensors[name] = torch.from_numpy(getattr(fitted, name).view(np.int64))
    for name in ENTITIES:
        if (labels := getattr(fitted, name)) is not None:
            tensors[name] = torch.from_numpy(labels)
    if calibrated is not None:
        tensors |= calibration_tensors(calibrated) | weighting_tensors(fitted.weighting)
    write(path, entries, tensors | packed_report(report))


def load(
    path: str | os.PathLike[str],
    *,
    model: Any = None,
    residuals: Any = None,
    network: Builder | nn.Module | Sequence[nn.Module] | None = None,
    method: Method | None = None,
    guarantee: Cut | None = None,
    outputs: Any = None,
    split_by: Callable[[Any], Any] | None = None,
    groups: Callable[[Any], Any] | None = None,
    weights: Callable[[Any], Any] | None = None,
    target_transform: Functions | None = None,
    device: str = "auto",
) -> Any:
    """Return what was saved: an ``IntervalRegressor``, a calibrator, or what ``calibrate`` returned.

    A file holds no code. Whatever was your own when you saved the model, pass it again.

    Parameters
    ----------
    path : str or path
        The file to read.
    model : object, default None
        The model of another library, if the file holds its calibration. If all its columns are numbers, guardband
        compares its predictions for a few made-up rows, and refuses another model than the calibrated one. Also the
        model of an ``OnlineCalibrator``.
    residuals : (X, y), default None
        The rows given as ``residuals`` to ``calibrate``, if there were any.
    network : torch.nn.Module, sequence of these, or function, default None
        A calibrated network, built anew; its weights come from the file. For a table's model the function that builds
        its network.
    method : Method, default None
        The method, if it is your own.
    guarantee : Cut, default None
        The guarantee, if it is your own.
    outputs : function, default None
        The function that reads a network's outputs, if it is your own.
    split_by : function, default None
        The function that says what rows belong to, if it is your own.
    groups : function, default None
        The function that says which groups rows belong to, if it is your own.
    weights : function, default None
        The function that returns the weights of rows, if the model was calibrated with one.
    target_transform : pair of functions, default None
        The functions ``(forward, inverse)``, if they are your own.
    device : str, default "auto"
        Where a table's model computes. A network of your own stays where it is.

    Returns
    -------
    IntervalRegressor, GuardedNetwork, GuardedModel, BandCalibrator or OnlineCalibrator
        The model, with its certificate.

    Raises
    ------
    ModelFileError
        If the file cannot be loaded, with the reason.
    """
    brought = {"network": network, "method": method, "guarantee": guarantee, "outputs": outputs}
    brought |= {"split_by": split_by, "groups": groups, "weights": weights, "target_transform": target_transform}
    found = _load(path, brought, model, residuals, device)
    if not isinstance(found, TableModel):
        return found
    from guardband.doors.table import IntervalRegressor

    return IntervalRegressor.restored(found)


def load_to_predict(path: str | os.PathLike[str], device: str = "auto") -> TableModel | BandCalibrator:
    """Return a saved model that needs no code of the user's own; a table's comes without scikit-learn.

    scikit-learn takes as long to load as torch. ``IntervalRegressor.restored`` makes of it what ``load`` returns.
    """
    found: Any = _load(path, {}, None, None, device)
    if not isinstance(found, TableModel | BandCalibrator):
        raise ModelFileError(f"{path} holds no model of tables: use it in Python, by gb.load.")
    return found


def _load(path: str | os.PathLike[str], brought: Mapping[str, Any], model: Any, residuals: Any, device: str) -> Any:
    """Return a saved model; a table's as one that only predicts."""
    resolve_device(device)  # a device that is not here is no fault of the file
    entries, tensors = read(path)
    weights = brought.get("weights")
    try:
        if entries["kind"] == "network":
            return _network(entries, tensors, brought)
        if entries["kind"] == "online":
            return restored_online(entries, tensors, model, method=brought.get("method"))
        if entries["kind"] == "model":
            return restored(entries, tensors, _arguments(entries["arguments"], brought), model, residuals, weights)
        if model is not None or residuals is not None:
            what = "no model" if entries["kind"] == "rule" else "its own model"
            raise ModelFileError(f"it holds {what}: remove model=... and residuals=...")
        if entries["kind"] == "rule":
            return restored_rule(entries, tensors, _arguments(entries["arguments"], brought))
        params = _arguments(entries["params"], brought) | {"device": device}
        with one_thread_each():  # many short checks, at each of which threads would wait for each other
            return _restore(dict(sorted(params.items())), entries, tensors, weights)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except NO_FAULT_OF_THE_FILE:
        raise
    except Exception as error:  # whatever follows from other entries, or from code that was brought
        check = AGAIN if all(value is None for value in brought.values()) else f"Check what you pass to load. {AGAIN}"
        why = f"{path} does not hold what this version of guardband can use: {reason(error)}."
        raise ModelFileError(f"{why} {check}") from error


def _network(entries: Mapping[str, Any], tensors: Mapping[str, Tensor], brought: Mapping[str, Any]) -> GuardedNetwork:
    expected = entries["networks"]
    given: Any = brought.get("network")
    networks = list(given) if isinstance(given, Sequence) else [given]
    if len(networks) != expected or not all(isinstance(one, nn.Module) for one in networks):
        raise ModelFileError(f"it holds {expected} calibrated network(s): build the network anew and pass network=...")
    arguments = _arguments(entries["arguments"], brought)
    rule, declared, order = read_arguments(arguments, expected)
    arrays = {name.removeprefix(CALIBRATION): t.numpy() for name, t in tensors.items() if name.startswith(CALIBRATION)}
    certificate = Certificate.from_dict(entries["certificate"])
    networks = [copy.deepcopy(networks[i]).eval().requires_grad_(False) for i in order]
    kept = tensors.get(NETWORK_PRINTS, torch.empty(0, dtype=torch.int64))
    check_tensors({NETWORK_PRINTS: kept}, (NETWORK_PRINTS,), ())
    prints = kept.numpy().view(np.uint64)
    tensors = {name: t for name, t in tensors.items() if name != NETWORK_PRINTS}
    groups = None
    if (entries["groups"] is None) != (arguments["groups"] is None):
        raise ValueError("its groups are not what its arguments ask for")
    if entries["groups"] is not None:
        groups = NetworkGroups(arguments["groups"], tuple(map(tuple, entries["groups"])), entries["members"])
        rule = rule.for_groups(groups.names, "a function of the inputs", len(groups.values))
    rule = weighted(rule, Weighting.of(arguments["weights"], arguments["max_weight"]))
    guarded = GuardedNetwork(networks, rule, declared, arrays, certificate, arguments, prints, groups)
    if guarded.meaning != entries["meaning"]:
        was, would_be = (reason(ValueError(own)) for own in (entries["meaning"], guarded.meaning))
        raise ModelFileError(
            f"it was calibrated as {was}, and with what you brought it would be {would_be}. Bring what it was "
            "calibrated with."
        )
    outputs = [torch.zeros(1, declared.reading.columns)] * len(order)
    predicted = replace(declared, function=None).read(outputs).map(lambda part: part.double().numpy())
    check_calibration(rule, arrays, certificate, predicted)
    own = guarded.state_dict()
    check_finite({name: t for name, t in tensors.items() if not name.startswith(CALIBRATION)}, own)
    guarded.load_state_dict({**tensors, "_extra_state": guarded.get_extra_state()})
    return guarded


def _restore(
    params: Mapping[str, Any], entries: Mapping[str, Any], tensors: Mapping[str, Tensor], function: Any = None
) -> TableModel:
    options = FitOptions.of(params)
    heads: tuple[Head, ...] = tuple(spec.head for spec in options.specs)
    encoder, epochs = encoder_from_dict(entries["encoder"]), tuple(entries["epochs"])
    target = Target.from_dict(entries["target"], options.target.transform)
    check_columns(entries, encoder)
    check_target(target, options.target)
    check_tensors(tensors, (*PRINTS, *ENTITIES), (WEIGHTS, SUMMARY, WEIGHTING))
    weights = {name.removeprefix(WEIGHTS): t for name, t in tensors.items() if name.startswith(WEIGHTS)}
    shape = {"hidden": tuple(entries["hidden"]), "dropout": entries["dropout"]}
    architecture = replace(options.architecture, **shape).for_table(encoder)
    copies = options.effort.copies
    if len(epochs) != copies * len(heads):
        raise ValueError("it holds other networks than its arguments ask for")
    if architecture.builder is None:
        check_size([entries["in_features"], *architecture.hidden, heads[0].columns], weights, len(epochs))
    members = _rebuilt(architecture, heads * copies, entries["in_features"], options.device, weights)
    if architecture.builder is None and isinstance(encoder, TableEncoder):
        check_outputs(members, weights, encoder, target, options.device)
    members.restore(weights)
    learned = Learned(
        encoder,
        target,
        architecture,
        heads,
        copies,
        members,
        epochs,
        entries["in_features"],
        options.device,
        choices=entries["choices"],
    )
    score = entries["score"]
    if (score is not None) != (params["method"] == AUTO) or score not in (None, *SCORES):
        raise ValueError(f"its score, {score!r}, is not what its arguments ask for")
    method = options.method if score is None else method_named(score)
    grouping = restored_groups(entries, params["groups"])
    prints: dict[str, Any] = {name: tensors[name].numpy().view(np.uint64) for name in PRINTS}
    fitted = Fitted(
        learned=learned,
        rule=grouped(method.rule(options.request), grouping),
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
    )
    if entries["certificate"] is None and any(name.startswith((SUMMARY, WEIGHTING)) for name in tensors):
        raise ValueError("it holds a calibration without its certificate")
    if entries["certificate"] is not None:
        columns = np.zeros((copies if fitted.rule.each_copy else 1, len(heads), 1, heads[0].columns))
        n_rows, on_insufficient = len(fitted.calibration_prints), options.request.on_insufficient
        like: Predicted = heads[0].read(columns)
        weighting = restored_weighting(entries["weighting"], tensors, function, entries["features"]["count"])
        rule = weighted(fitted.rule, weighting)
        calibrated = restored_calibration(rule, entries, tensors, like, n_rows, on_insufficient)
        fitted = replace(fitted, calibrated=calibrated, weighting=weighting)
    return TableModel(fitted, entries["features"]["names"], entries["features"]["count"])


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


def _plain_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for JSON; objects that a file cannot hold are marked as the user's own."""
    return {name: _plain_argument(name, value) for name, value in arguments.items()}


def _plain_argument(name: str, value: Any) -> Any:
    if name == "method" and isinstance(value, Method):
        return value.name if value.name in method_names() and method_named(value.name) is value else CUSTOM
    if name == "target_transform" and isinstance(value, tuple | list):
        return CUSTOM
    return CUSTOM if callable(value) or isinstance(value, Cut) else plain(value)


def _arguments(saved: Mapping[str, Any], brought: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {name: rich(value) for name, value in saved.items()}
    idle = [name for name, value in brought.items() if value is not None and saved.get(name, CUSTOM) != CUSTOM]
    if idle:
        raise ModelFileError(f"it holds its own {idle[0]}: remove {idle[0]}=...")
    for name in [name for name, value in arguments.items() if value == CUSTOM]:
        if brought.get(name) is None:
            raise ModelFileError(f"it was made with a {name} of your own: pass it as load(..., {name}=...).")
        arguments[name] = brought[name]
    return arguments
