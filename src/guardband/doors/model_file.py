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
from guardband.bands.risk import Risk
from guardband.calibration.cross import crossed
from guardband.calibration.cut import Cut
from guardband.calibration.rule import Rule
from guardband.data.encoder import Encoder, TableEncoder, encoder_from_dict
from guardband.data.reference import Reference
from guardband.data.repeats import RepeatRule
from guardband.data.target import Target
from guardband.data.transforms import Functions
from guardband.data.unlike import Seen
from guardband.doors.band_file import described_rule, restored_rule
from guardband.doors.bands import BandCalibrator
from guardband.doors.calibration_file import (
    SUMMARY,
    calibration_entries,
    calibration_tensors,
    restored_calibration,
)
from guardband.doors.cross_file import fold_entries, fold_tensors, folds_of
from guardband.doors.distribution_calibrator import DistributionCalibrator
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
from guardband.doors.places_file import (
    PLACES,
    described_distribution,
    places_tensors,
    restored_distribution,
    restored_places,
    tails_of,
    with_tails,
)
from guardband.doors.several_file import restored_several, restored_target, several_entries
from guardband.doors.signed_file import trusted_file
from guardband.doors.table_model import TableModel
from guardband.doors.weighting_file import WEIGHTING, restored_weighting, weighting_entries, weighting_tensors
from guardband.doors.weights import Weighting, weighted
from guardband.exceptions import ModelFileError
from guardband.learning.architecture import Architecture, Builder
from guardband.learning.choice import AUTO, SCORES
from guardband.learning.crossed import Crossed
from guardband.learning.learned import Learned
from guardband.learning.options import FitOptions, resolve_device
from guardband.learning.placed import placement_of
from guardband.methods.method import Method
from guardband.methods.registry import method_named, method_names
from guardband.nn.heads import Head
from guardband.training.members import Members, State, tensors_of
from guardband.training.stack import Stack, stack
from guardband.training.threads import one_thread_each

CUSTOM = "custom"
TAKE_A_MODEL = ("model", "online", "distribution")
"""Kinds of files that hold no model, or whose own refusal says what they take."""
NETWORK_PRINTS = "calibration_prints"
PRINTS = ("training_prints", "held_out_prints", "calibration_prints")
WEIGHTS, CALIBRATION = "weights.", "calibration."
ENTITIES = ("training_entities", "calibration_entities")
NO_FAULT_OF_THE_FILE = (Warning, torch.OutOfMemoryError, getattr(torch, "AcceleratorError", torch.OutOfMemoryError))
"""A warning that the user's own filter made an error, and a GPU that is full."""


def save(
    model: TableModel | GuardedNetwork | GuardedModel | BandCalibrator | DistributionCalibrator,
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
            "several": list(model.rule.target_names) or None,
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
    if isinstance(model, DistributionCalibrator):
        write(path, *described_distribution(model))
        return
    fitted = model.fitted_
    learned, calibrated = fitted.learned, fitted.calibrated
    params = {name: value for name, value in fitted.params.items() if name != "device"}
    seed = params["random_state"]
    first = learned.each[0]
    entries = {
        "kind": "table",
        "params": _plain_arguments(params | {"random_state": seed if isinstance(seed, numbers.Integral) else None}),
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
    write(path, entries, tensors | packed_report(report))


def load(
    path: str | os.PathLike[str],
    *,
    model: Any = None,
    residuals: Any = None,
    network: Builder | nn.Module | Sequence[nn.Module] | None = None,
    method: Method | None = None,
    guarantee: Cut | None = None,
    risk: Risk | None = None,
    outputs: Any = None,
    split_by: Callable[[Any], Any] | None = None,
    groups: Callable[[Any], Any] | None = None,
    weights: Callable[[Any], Any] | None = None,
    target_transform: Functions | None = None,
    device: str = "auto",
    trusted: Any = None,
    signature: str | os.PathLike[str] | None = None,
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
    risk : Risk, default None
        The risk, if its loss is your own. It must be the one that the model was calibrated with.
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
    trusted : path, str, bytes or public key, default None
        The public key of whoever must have signed the file: a PEM file, its text, or a key of the package
        cryptography. guardband checks the signature before it reads anything else, and refuses every other file.
        None checks no signature.
    signature : str or path, default None
        The signature of the file. None means the file beside it whose name has ``.sig`` added.

    Returns
    -------
    IntervalRegressor, GuardedNetwork, GuardedModel, BandCalibrator, DistributionCalibrator or OnlineCalibrator
        The model, with its certificate.

    Raises
    ------
    ModelFileError
        If the file cannot be loaded, with the reason. If it is not signed with the key that you trust, this is a
        ``SignatureError``.
    """
    path = trusted_file(path, trusted, signature)
    brought = {"network": network, "method": method, "guarantee": guarantee, "risk": risk, "outputs": outputs}
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
        if entries["kind"] not in TAKE_A_MODEL and (model is not None or residuals is not None):
            what = {"rule": "no model", "network": "a network"}.get(entries["kind"], "its own model")
            raise ModelFileError(f"it holds {what}: remove model=... and residuals=...")
        if entries["kind"] == "network":
            return _network(entries, tensors, brought)
        if entries["kind"] == "online":
            others = [own for name, own in brought.items() if name != "method"]
            if any(own is not None for own in (residuals, *others)):
                raise ModelFileError(
                    "it holds an OnlineCalibrator, which takes model=... and method=...: pass no more."
                )
            return restored_online(entries, tensors, model, method=brought.get("method"))
        if entries["kind"] == "model":
            return restored(entries, tensors, _arguments(entries["arguments"], brought), model, residuals, weights)
        if entries["kind"] == "distribution":
            if any(own is not None for own in (model, residuals, *brought.values())):
                raise ModelFileError(
                    "it holds a DistributionCalibrator, which needs nothing of your own: pass nothing."
                )
            return restored_distribution(entries, tensors)
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
    names = tuple(entries.get("several") or ())
    if bool(names) != (arguments.get("targets") is not None):
        raise ValueError("its targets are not what its arguments ask for")
    rule, declared, order = read_arguments(arguments, expected, names)
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
        groups = NetworkGroups.restored(arguments["groups"], entries["groups"], entries["members"])
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
    learned: Learned | Crossed
    if params["calibration"] == "split":
        if entries["crossed"] is not None:
            raise ValueError("it holds folds that its arguments do not ask for")
        learned = _learned(options, heads, entries, encoder, target, epochs, weights)
    else:
        folds = []
        for own, kept, each in folds_of(entries, params["folds"], epochs, weights):
            scale = Target.from_dict(own["target"], options.target.transform)
            check_target(scale, options.target)
            folds.append(_learned(options, heads, own, encoder_from_dict(own["encoder"]), scale, kept, each))
        learned = Crossed(tuple(folds), target)
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
    if entries["certificate"] is None and any(name.startswith((SUMMARY, WEIGHTING, PLACES)) for name in tensors):
        raise ValueError("it holds a calibration without its certificate")
    if entries["certificate"] is not None:
        copies = learned.each[0].copies if fitted.rule.each_copy else 1
        columns = np.zeros((copies, len(heads), 1, heads[0].columns))
        n_rows, on_insufficient = len(fitted.calibration_prints), options.request.on_insufficient
        like: Predicted = heads[0].read(columns)
        weighting = restored_weighting(entries["weighting"], tensors, function, entries["features"]["count"])
        rule = weighted(fitted.rule, weighting).in_units(target.to_units)
        calibrated = restored_calibration(rule, entries, tensors, like, n_rows, on_insufficient)
        entities = fitted.calibration_entities
        places = restored_places(fitted.placement, tensors, calibrated, n_rows if entities is None else len(entities))
        fitted = replace(fitted, calibrated=calibrated, weighting=weighting, places=places)
    return TableModel(fitted, entries["features"]["names"], entries["features"]["count"])


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


def _plain_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for JSON; objects that a file cannot hold are marked as the user's own."""
    return {name: _plain_argument(name, value) for name, value in arguments.items()}


def _plain_argument(name: str, value: Any) -> Any:
    if name == "method" and isinstance(value, Method):
        return value.name if value.name in method_names() and method_named(value.name) is value else CUSTOM
    if name == "target_transform" and isinstance(value, tuple | list):
        return CUSTOM if any(callable(own) or isinstance(own, tuple | list) for own in value) else plain(value)
    if isinstance(value, Risk):
        return CUSTOM if callable(value.loss) else {"limit": value.limit, "cap": value.cap}
    return CUSTOM if callable(value) or isinstance(value, Cut) else plain(value)


def _arguments(saved: Mapping[str, Any], brought: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {name: rich(value) for name, value in saved.items() if name != "risk"}
    if "risk" in saved:
        own = saved["risk"]
        arguments["risk"] = Risk(**own) if isinstance(own, dict) else own
    idle = [name for name, value in brought.items() if value is not None and saved.get(name, CUSTOM) != CUSTOM]
    if idle:
        raise ModelFileError(f"it holds its own {idle[0]}: remove {idle[0]}=...")
    for name in [name for name, value in arguments.items() if value == CUSTOM]:
        if brought.get(name) is None:
            raise ModelFileError(f"it was made with a {name} of your own: pass it as load(..., {name}=...).")
        arguments[name] = brought[name]
    return arguments
