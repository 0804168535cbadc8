"""Your own network, calibrated."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from guardband.bands.certificate import Certificate
from guardband.bands.predicted import Context, Predicted
from guardband.calibration.calibrated import Block, Calibrated
from guardband.calibration.rule import Rule
from guardband.calibration.summary import Summary
from guardband.data.fingerprint import Prints, refuse_overlap, repeats_in_words
from guardband.data.target import read_target
from guardband.doors.bands import refuse_faults
from guardband.doors.outputs import Declared, declared
from guardband.doors.tensor_prints import prints_of
from guardband.exceptions import RepeatedRowsWarning, warn
from guardband.methods.method import Request
from guardband.methods.registry import method_named
from guardband.nn.calibration_arrays import CalibrationArrays, stacked_ends
from guardband.training.inputs import Inputs, call, map_tensors, split_target


class GuardedNetwork(nn.Module):
    """A calibrated network: it takes what the network takes and puts out ``(n, 3)``, lower, point, upper.

    For several levels ``(n, 3, L)``. ``state_dict`` carries the calibration, the certificate, and how outputs are
    read. Arithmetic is in the network's own precision, single at least, rounded outward.
    """

    def __init__(
        self,
        networks: Sequence[nn.Module],
        rule: Rule,
        outputs: Declared,
        arrays: Mapping[str, Any],
        certificate: Certificate,
        arguments: Mapping[str, Any],
    ) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.calibration = CalibrationArrays(arrays).to(_device(networks[0]))
        self.certificate = certificate
        self.arguments = arguments
        self._rule, self._outputs = rule, outputs
        self.register_load_state_dict_pre_hook(_refuse_other_state)  # type: ignore[no-untyped-call]
        self.eval()

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the calibrated intervals."""
        predicted = self._outputs.read([network(*args, **kwargs) for network in self.networks])
        out = stacked_ends(self._rule.ends(predicted, Context(), self.calibration.arrays(), torch))
        return out[:, :, 0] if self._rule.levels.scalar else out

    def train(self, mode: bool = True) -> GuardedNetwork:
        """Stay in eval mode: with dropout on, this would not be the network that was calibrated."""
        return super().train(False)

    def save(self, path: str | PathLike[str]) -> None:
        """Write weights, calibration and certificate to one file; ``gb.load(path, network=...)`` brings them back.

        A file holds no code: the network is to be built anew, and so is a function that reads its outputs.
        """
        from guardband.doors.model_file import save

        save(self, path)

    @property
    def meaning(self) -> str:
        """How outputs become intervals, in words that two networks share if their states can be exchanged."""
        return re.sub(r" at 0x[0-9a-f]+", "", f"{self._rule} of {self._outputs}")

    def get_extra_state(self) -> Tensor:
        """Return certificate and meaning as bytes, which every store of tensors can keep."""
        text = json.dumps({"certificate": self.certificate.to_dict(), "meaning": self.meaning})
        return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Set the certificate from a state."""
        self.certificate = Certificate.from_dict(_extra(state)["certificate"])


def _extra(state: Tensor) -> dict[str, Any]:
    entries: dict[str, Any] = json.loads(bytes(state.tolist()))
    return entries


def _refuse_other_state(guarded: GuardedNetwork, state: Mapping[str, Any], prefix: str, *others: Any) -> None:
    """Raise, before anything is changed, unless a state is whole and of a network calibrated in the same way."""
    own = guarded.state_dict()
    given = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    if own.keys() != given.keys():
        different = sorted(own.keys() ^ given.keys())
        raise ValueError(f"A state must hold all of a calibrated network and nothing else. See {different[0]!r}.")
    for name, value in own.items():
        if name != "_extra_state" and value.shape != given[name].shape:
            raise ValueError(
                f"A state must come from such a network: {name!r} has the shape {tuple(value.shape)} here, found "
                f"{tuple(given[name].shape)}."
            )
        if name.startswith("calibration.") and value.dtype != given[name].dtype:
            raise ValueError(f"{name!r} must keep its precision, {value.dtype}, found {given[name].dtype}.")
    found = _extra(given["_extra_state"])
    if found["meaning"] != guarded.meaning:
        raise ValueError(
            "A state must come from a network that was calibrated in the same way.\n"
            f"Here: {guarded.meaning}\nFound: {found['meaning']}"
        )


def calibrate_network(
    network: nn.Module | Sequence[nn.Module],
    data: Any,
    arguments: Mapping[str, Any],
    *,
    target: str,
    batch_size: int,
    training: Any,
    process_group: Any,
) -> GuardedNetwork:
    """Return a calibrated copy of a network, as ``calibrate`` says; ``arguments`` are those for the rule."""
    networks = [network] if isinstance(network, nn.Module) else list(network)
    if isinstance(data, Tensor):
        raise TypeError("data must hold inputs and outcomes, (x, y), found one tensor alone.")
    chosen, read, order = read_arguments(arguments, len(networks))
    copies = [copy.deepcopy(networks[i]).eval().requires_grad_(False) for i in order]
    prints: list[Prints] = []

    def blocks() -> Iterator[Block]:
        first_row = 0
        for inputs, y in _batches(data, target, batch_size):
            outcomes = read_target(y, len(y), first_row)
            predicted = _predicted(copies, read, inputs, len(y))
            refuse_faults(predicted, first_row)
            prints.append(prints_of(inputs, y))
            first_row += len(y)
            yield predicted, outcomes, Context()

    trained = [prints_of(*batch) for batch in _batches(training, target, batch_size)] if training is not None else []
    weights = [float(p.double().sum()) for network in copies if process_group is not None for p in network.parameters()]
    same = f"{chosen} of {read} with {weights}"
    gather = partial(_gathered, prints=prints, trained=trained, same=same, group=process_group)
    calibrated = Calibrated.from_blocks(chosen, blocks(), on_insufficient=arguments["on_insufficient"], gather=gather)
    every = np.concatenate(prints)
    if trained:
        refuse_overlap(every, np.concatenate(trained))
    certificate, repeats = calibrated.certificate, repeats_in_words(every)
    if repeats is not None:
        warn(repeats, RepeatedRowsWarning)
        certificate = certificate.with_notes(repeats)
    return GuardedNetwork(copies, chosen, read, calibrated.found.arrays, certificate, arguments)


def read_arguments(arguments: Mapping[str, Any], networks: int) -> tuple[Rule, Declared, list[int]]:
    """Return the rule, how outputs are read, and the order of the networks that arguments of ``calibrate`` ask for."""
    method = method_named(arguments["method"])
    request = Request.of(**{name: value for name, value in arguments.items() if name not in ("method", "outputs")})
    method.check(request)
    method.check_networks(request)
    read, request = declared(arguments["outputs"], method, request)
    if request.tau is not None and not read.holds_candidates:
        raise ValueError(f"tau chooses a pair of quantiles, and outputs declares none. Remove tau={request.tau}.")
    if read.holds_candidates and networks > 1:
        raise ValueError(f"Quantiles must come from one network, found {networks} networks.")
    return method.rule(request), read, [0] if read.holds_candidates else method.order(request, networks)


@torch.no_grad()
def _predicted(networks: Sequence[nn.Module], read: Declared, inputs: Inputs, n: int) -> Predicted:
    """Return what the networks predict for a batch, in double precision."""
    predicted = read.read([call(network, _on(_device(network), inputs)) for network in networks])
    if len(predicted) != n:
        raise ValueError(f"The network must put out one row for each of y's {n}, found {len(predicted)}.")
    return predicted.map(lambda part: part.double().cpu().numpy())


def _batches(data: Any, target: str, batch_size: int) -> Iterator[tuple[Inputs, Tensor]]:
    """Give inputs and responses of each batch."""
    if isinstance(data, tuple):
        inputs, y = split_target(data, target)
        for start in range(0, len(y), batch_size):
            part = slice(start, start + batch_size)
            yield map_tensors(inputs, itemgetter(part)), y[part]
        return
    if isinstance(data, Dataset):
        data = DataLoader(data, batch_size=batch_size)
    if not isinstance(data, Iterable):
        raise TypeError(f"data must be tensors (x, y), a Dataset or a loader, found {type(data).__name__}.")
    for item in data:
        yield split_target(item, target)


def _on(device: torch.device, inputs: Inputs) -> Inputs:
    return map_tensors(inputs, lambda t: t.to(device))


def _gathered(
    own: Summary | None, prints: list[Prints], trained: list[Prints], same: str, group: Any
) -> list[Summary | None]:
    """Return what all processes of a group have found, the same in each of them, and take over their prints."""
    if group is None:
        return [own]
    import torch.distributed as dist

    found: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, (own, prints, trained, same), group=group)
    if len({others for *_, others in found}) > 1:
        raise ValueError("All processes must calibrate the same network in the same way, found some that differ.")
    prints[:] = [part for _, parts, *_ in found for part in parts]
    trained[:] = [part for _, _, parts, _ in found for part in parts]
    return [summary for summary, *_ in found]


def _device(network: nn.Module) -> torch.device:
    parameter = next(network.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device
