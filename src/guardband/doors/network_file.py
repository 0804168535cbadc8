"""A calibrated network as a file; the network itself is built anew and brought again."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from guardband.bands.certificate import Certificate
from guardband.doors.file_arguments import plain_arguments, restored_arguments
from guardband.doors.file_format import reason
from guardband.doors.model_checks import check_calibration, check_finite, check_tensors
from guardband.doors.network import GuardedNetwork, read_arguments
from guardband.doors.network_groups import NetworkGroups
from guardband.doors.weights import Weighting, weighted
from guardband.exceptions import ModelFileError

CALIBRATION, PRINTS = "calibration.", "calibration_prints"


def described_network(guarded: GuardedNetwork) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return entries and tensors of a calibrated network."""
    entries = {
        "kind": "network",
        "arguments": plain_arguments(guarded.arguments),
        "networks": len(guarded.networks),
        "certificate": guarded.certificate.to_dict(),
        "meaning": guarded.meaning,
        "groups": None if guarded.grouping is None else [list(own) for own in guarded.grouping.values],
        "members": guarded.grouping is not None and guarded.grouping.members,
        "several": list(guarded.rule.target_names) or None,
    }
    tensors = {name: t for name, t in guarded.state_dict().items() if name != "_extra_state"}
    return entries, tensors | {PRINTS: torch.from_numpy(guarded.calibration_prints.view(np.int64))}


def restored_network(
    entries: Mapping[str, Any], tensors: Mapping[str, Tensor], brought: Mapping[str, Any]
) -> GuardedNetwork:
    """Return the networks that were brought with the weights and the calibration of a file."""
    expected = entries["networks"]
    given: Any = brought.get("network")
    networks = list(given) if isinstance(given, Sequence) else [given]
    if len(networks) != expected or not all(isinstance(one, nn.Module) for one in networks):
        raise ModelFileError(f"it holds {expected} calibrated network(s): build the network anew and pass network=...")
    arguments = restored_arguments(entries["arguments"], brought)
    names = tuple(entries.get("several") or ())
    if bool(names) != (arguments.get("targets") is not None):
        raise ValueError("its targets are not what its arguments ask for")
    rule, declared, order = read_arguments(arguments, expected, names)
    arrays = {name.removeprefix(CALIBRATION): t.numpy() for name, t in tensors.items() if name.startswith(CALIBRATION)}
    certificate = Certificate.from_dict(entries["certificate"])
    networks = [copy.deepcopy(networks[i]).eval().requires_grad_(False) for i in order]
    kept = tensors.get(PRINTS, torch.empty(0, dtype=torch.int64))
    check_tensors({PRINTS: kept}, (PRINTS,), ())
    prints = kept.numpy().view(np.uint64)
    tensors = {name: t for name, t in tensors.items() if name != PRINTS}
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
