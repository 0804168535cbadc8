"""Models as files: what of a table's model and of a calibrated network is written, and how it comes back.

A file holds no code. What is the user's own (a network, a method, a guarantee, a function of outputs) is marked so,
and to be brought again.
"""

from __future__ import annotations

import copy
import json
import numbers
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from guardband.bands.certificate import Certificate
from guardband.calibration.calibrated import Calibrated, Unit
from guardband.calibration.cut import Cut
from guardband.calibration.summary import Summary
from guardband.data.encoder import encoder_from_dict
from guardband.data.reference import Reference
from guardband.data.repeats import RepeatRule
from guardband.data.target import Target
from guardband.data.transforms import Functions
from guardband.data.unlike import Seen
from guardband.doors.file_format import plain, read, rich, write
from guardband.doors.fitted import Fitted
from guardband.doors.network import GuardedNetwork, read_arguments
from guardband.doors.table import IntervalRegressor
from guardband.exceptions import ModelFileError
from guardband.learning.architecture import Architecture, Builder
from guardband.learning.choice import AUTO
from guardband.learning.learned import Learned
from guardband.learning.options import FitOptions, resolve_device
from guardband.methods.method import Method
from guardband.methods.registry import method_named, method_names
from guardband.nn.heads import Head
from guardband.training.members import Members
from guardband.training.stack import stack

CUSTOM = "custom"
PRINTS = ("training_prints", "held_out_prints", "calibration_prints")
WEIGHTS, SUMMARY, CALIBRATION = "weights.", "summary.", "calibration."
ENTITIES = ("training_entities", "calibration_entities")


def save(
    model: IntervalRegressor | GuardedNetwork, path: str | os.PathLike[str], report: dict[str, Any] | None = None
) -> None:
    """Write a model, a table's with the document of its page if there is one; the file appears whole or not at all."""
    if isinstance(model, GuardedNetwork):
        entries = {
            "kind": "network",
            "arguments": _plain_arguments(model.arguments),
            "networks": len(model.networks),
            "certificate": model.certificate.to_dict(),
            "meaning": model.meaning,
        }
        write(path, entries, {name: t for name, t in model.state_dict().items() if name != "_extra_state"})
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
        "notes": None if calibrated is None else list(calibrated.notes),
        "certificate": None if calibrated is None else calibrated.certificate.to_dict(),
        "unit": None if calibrated is None or calibrated.unit is None else asdict(calibrated.unit),
        "reference": fitted.reference.to_dict(),
        "doubts": list(fitted.doubts),
        "repeat_rule": None if fitted.repeat_rule is None else fitted.repeat_rule.to_dict(),
        "seen": None if fitted.seen is None else fitted.seen.to_dict(),
    }
    tensors = {WEIGHTS + name: t for name, t in learned.members.snapshot().items()}
    for name in PRINTS:
        tensors[name] = torch.from_numpy(getattr(fitted, name).view(np.int64))
    for name in ENTITIES:
        if (labels := getattr(fitted, name)) is not None:
            tensors[name] = torch.from_numpy(labels)
    if calibrated is not None:
        tensors |= {SUMMARY + name: torch.from_numpy(a) for name, a in calibrated.summary.to_arrays().items()}
    if report is not None:
        # As a tensor, and not among the entries: who loads the model need not read a page's worth of numbers.
        packed = zlib.compress(json.dumps(report, allow_nan=False).encode(), level=6)
        tensors["report"] = torch.from_numpy(np.frombuffer(packed, dtype=np.uint8).copy())
    write(path, entries, tensors)


def load(
    path: str | os.PathLike[str],
    *,
    network: Builder | nn.Module | Sequence[nn.Module] | None = None,
    method: Method | None = None,
    guarantee: Cut | None = None,
    outputs: Any = None,
    split_by: Callable[[Any], Any] | None = None,
    target_transform: Functions | None = None,
    device: str = "auto",
) -> Any:
    """Return a saved model: an ``IntervalRegressor``, or what ``calibrate`` returned for a network.

    What cannot be loaded raises ``ModelFileError`` with the reason. A file holds no code: a calibrated network needs
    the network again, built anew, and so does a model with a network, a method, a guarantee, a function of outputs, a
    function as ``split_by`` or a pair of functions as ``target_transform`` of your own. ``device`` is where a table's
    model computes; a network stays where it is.
    """
    resolve_device(device)  # a device that is not here is no fault of the file
    entries, tensors = read(path)
    brought = {"network": network, "method": method, "guarantee": guarantee, "outputs": outputs}
    brought |= {"split_by": split_by, "target_transform": target_transform}
    try:
        if entries["kind"] == "network":
            return _network(entries, tensors, brought)
        model = IntervalRegressor(**_arguments(entries["params"], brought) | {"device": device})
        _restore(model, entries, tensors)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except (KeyError, TypeError, IndexError, RuntimeError, ValueError) as error:
        raise ModelFileError(f"{path} does not hold what this version of guardband can use: {error}") from error
    return model


def read_report(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the document of the page that was saved with a model, or None if there is none."""
    _, tensors = read(path)
    if "report" not in tensors:
        return None
    try:
        document: dict[str, Any] = json.loads(zlib.decompress(tensors["report"].numpy().tobytes()))
    except (ValueError, zlib.error) as error:
        raise ModelFileError(f"{path} holds a report that this version of guardband cannot read: {error}.") from error
    return document


def _network(entries: Mapping[str, Any], tensors: Mapping[str, Tensor], brought: Mapping[str, Any]) -> GuardedNetwork:
    given, expected = brought["network"], entries["networks"]
    networks = list(given) if isinstance(given, Sequence) else [given]
    if len(networks) != expected or not all(isinstance(one, nn.Module) for one in networks):
        raise ModelFileError(f"it holds {expected} calibrated network(s): build the network anew and pass network=...")
    arguments = _arguments(entries["arguments"], brought)
    rule, declared, order = read_arguments(arguments, expected)
    networks = [copy.deepcopy(networks[i]).eval().requires_grad_(False) for i in order]
    arrays = {name.removeprefix(CALIBRATION): t.numpy() for name, t in tensors.items() if name.startswith(CALIBRATION)}
    certificate = Certificate.from_dict(entries["certificate"])
    guarded = GuardedNetwork(networks, rule, declared, arrays, certificate, arguments)
    if guarded.meaning != entries["meaning"]:
        was = entries["meaning"]
        raise ModelFileError(f"it was calibrated as {was}, and with what you brought it would be {guarded.meaning}.")
    guarded.load_state_dict({**tensors, "_extra_state": guarded.get_extra_state()})
    return guarded


def _restore(model: IntervalRegressor, entries: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    options = FitOptions.of(model.get_params(deep=False))
    heads: tuple[Head, ...] = tuple(spec.head for spec in options.specs)
    encoder, epochs = encoder_from_dict(entries["encoder"]), tuple(entries["epochs"])
    shape = {"hidden": tuple(entries["hidden"]), "dropout": entries["dropout"]}
    architecture = replace(options.architecture, **shape).for_table(encoder)
    copies = len(epochs) // len(heads)
    members = _rebuilt(architecture, heads * copies, entries["in_features"], options.device)
    members.restore({name.removeprefix(WEIGHTS): t for name, t in tensors.items() if name.startswith(WEIGHTS)})
    learned = Learned(
        encoder,
        Target.from_dict(entries["target"], options.target.transform),
        architecture,
        heads,
        copies,
        members,
        epochs,
        entries["in_features"],
        options.device,
        choices=entries["choices"],
    )
    method = options.method if entries["score"] is None else method_named(entries["score"])
    fitted = Fitted(
        learned=learned,
        rule=method.rule(options.request),
        calibrated=None,
        **{name: tensors[name].numpy().view(np.uint64) for name in PRINTS},
        reference=Reference.from_dict(entries["reference"]),
        params=model.get_params(deep=False),
        training_entities=_numpy(tensors.get("training_entities")),
        calibration_entities=_numpy(tensors.get("calibration_entities")),
        doubts=tuple(entries["doubts"]),
        repeat_rule=None if entries["repeat_rule"] is None else RepeatRule.from_dict(entries["repeat_rule"]),
        seen=None if entries.get("seen") is None else Seen.from_dict(entries["seen"]),
    )
    if entries["certificate"] is not None:
        arrays = {name.removeprefix(SUMMARY): t.numpy() for name, t in tensors.items() if name.startswith(SUMMARY)}
        summary, notes = Summary.from_arrays(arrays), tuple(entries["notes"])
        unit = None if entries["unit"] is None else Unit(**entries["unit"])
        rule = fitted.rule if unit is None else fitted.rule.for_entities() or fitted.rule
        calibrated = Calibrated.by(rule, summary, notes, options.request.on_insufficient, unit)
        if calibrated.certificate != Certificate.from_dict(entries["certificate"]):
            raise ModelFileError("what is calibrated here is not what the saved certificate promises.")
        fitted = replace(fitted, calibrated=calibrated)
    model.n_features_in_ = entries["features"]["count"]
    if entries["features"]["names"]:
        model.feature_names_in_ = np.array(entries["features"]["names"], dtype=object)
    model.n_iter_ = max(epochs)
    model.fitted_ = fitted


def _rebuilt(architecture: Architecture, heads: Sequence[Head], in_features: int, device: torch.device) -> Members:
    """Return untrained members of the right shape, to load a state into."""
    networks = [architecture.build(in_features, head, 0, device) for head in heads]
    return stack(networks, torch.zeros(2, in_features, device=device))


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
