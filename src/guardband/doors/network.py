"""Your own network, calibrated."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from guardband.bands.certificate import Certificate
from guardband.bands.predicted import Context, Predicted
from guardband.calibration.calibrated import Block, Calibrated
from guardband.calibration.conformal import Conformal
from guardband.calibration.rule import Rule
from guardband.calibration.score import Scaled
from guardband.calibration.summary import Summary
from guardband.data.fingerprint import Prints, refuse_overlap, repeats_in_words
from guardband.data.target import read_target
from guardband.doors.bounds_in_order import refuse_faults
from guardband.doors.groups import request_of
from guardband.doors.network_groups import NetworkGroups, labels_of
from guardband.doors.network_weights import weights_of
from guardband.doors.outputs import Declared, declared
from guardband.doors.several_network import known_outcomes, refuse_idle_arguments, target_names
from guardband.doors.tensor_prints import prints_of
from guardband.doors.weights import Weighting, weighted
from guardband.exceptions import RepeatedRowsWarning, warn
from guardband.learning.several import check_targets, several_rule
from guardband.methods.registry import method_named
from guardband.nn.calibration_arrays import CalibrationArrays, stacked_ends
from guardband.training.inputs import Inputs, call, map_tensors, rows_in, split_target, tensors_in

if TYPE_CHECKING:
    from guardband.audit.audit import Audit

ROWS_AT_A_TIME = 1024
MOST_STRETCHED = 10.0
"""Bounds that a network has learnt need a factor near one."""


class GuardedNetwork(nn.Module):
    """A calibrated network: it takes what the network takes and puts out ``(n, 3)``, lower, point, upper.

    For several levels ``(n, 3, L)``. ``state_dict`` carries the calibration, the certificate, and how outputs are
    read. Arithmetic is in the network's own precision, single at least, rounded outward.

    Parameters
    ----------
    networks : sequence of torch.nn.Module
        The network, or the networks that the method chooses from, in eval mode.
    rule : Rule
        The rule that turns predictions into intervals.
    outputs : object
        How outputs are read: the ``outputs`` of ``gb.calibrate``.
    arrays : dict of arrays
        What calibration found, by name.
    certificate : Certificate
        What is promised.
    arguments : dict
        The arguments of ``gb.calibrate``.
    calibration_prints : array of int, default None
        Fingerprints of the calibration rows, by which an audit refuses them. None means that they are not known.
    groups : object, default None
        The groups that have a promise of their own, and the function of the inputs that finds them.
    """

    def __init__(
        self,
        networks: Sequence[nn.Module],
        rule: Rule,
        outputs: Declared,
        arrays: Mapping[str, Any],
        certificate: Certificate,
        arguments: Mapping[str, Any],
        calibration_prints: Prints | None = None,
        groups: NetworkGroups | None = None,
    ) -> None:
        super().__init__()
        self.calibration_prints: Prints = np.empty(0, np.uint64) if calibration_prints is None else calibration_prints
        self.networks = nn.ModuleList(networks)
        self.calibration = CalibrationArrays(arrays).to(_device(networks[0]))
        self.certificate = certificate
        self.arguments = arguments
        self._rule, self._outputs, self.grouping = rule, outputs, groups
        self.register_load_state_dict_pre_hook(_refuse_other_state)  # type: ignore[no-untyped-call]
        self.eval()

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the calibrated intervals."""
        predicted = self._outputs.read([network(*args, **kwargs) for network in self.networks])
        context = Context() if self.grouping is None else Context(group=self.grouping.of_inputs(*args, **kwargs))
        if "weight" in self._rule.uses_of_new:
            context = replace(context, weight=weights_of(self.arguments["weights"], kwargs or args))
        out = stacked_ends(self._rule.ends(predicted, context, self.calibration.arrays(), torch))
        return out[..., 0] if self._rule.levels.scalar else out

    def _repr_html_(self) -> str:
        from guardband.doors.shown import guarded_network_html

        return guarded_network_html(self)

    def train(self, mode: bool = True) -> GuardedNetwork:
        """Stay in eval mode: with dropout on, this would not be the network that was calibrated."""
        return super().train(False)

    def save(self, path: str | PathLike[str]) -> None:
        """Write weights, calibration and certificate to one file; ``gb.load(path, network=...)`` brings them back.

        A file holds no code: the network is to be built anew, and so is a function that reads its outputs.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        from guardband.doors.model_file import save

        save(self, path)

    def audit(
        self,
        x: Any,
        y: Any = None,
        *,
        group: Any = None,
        time: Any = None,
        significance: float = 0.01,
        batch_size: int = 1024,
        target: str = "y",
    ) -> Audit:
        """Return what rows with known true values say of the promise.

        Parameters
        ----------
        x : tensor, tuple or mapping of tensors, Dataset or loader
            Inputs of rows that neither trained nor calibrated the network, as the network takes them. Without ``y``,
            all that ``gb.calibrate`` takes: a pair (X, y), a ``torch.utils.data.Dataset`` or a loader.
        y : tensor or array of shape (n,), default None
            The true values, unless ``x`` holds them.
        group : array of shape (n,), default None
            Coverage is shown for each of these values.
        time : array of shape (n,), default None
            Rows are put in this order to show coverage over time.
        significance : float, default 0.01
            How often rows that keep the promise may be called broken.
        batch_size : int, default 1024
            How many rows the network sees at once.
        target : str, default "y"
            The entry of a batch that holds the true values, if batches are mappings.
        """
        from guardband.audit.several import audit_of
        from guardband.doors.judged_network import evidence_of_network

        x, y = self._labelled(x, y, target, batch_size)
        return audit_of(evidence_of_network(self, x, y, group=group, time=time, batch_size=batch_size), significance)

    def _labelled(self, x: Any, y: Any, target: str, batch_size: int) -> tuple[Inputs, Any]:
        """Return inputs and true values, also of data that holds both."""
        if y is not None:
            return x, y
        batches = list(labelled_batches(x, target, batch_size, bool(self.rule.target_names)))
        if not batches:
            raise ValueError("The data hold no rows. Check what you passed to audit.")
        joined = map(torch.cat, zip(*(tensors_in(inputs) for inputs, _ in batches), strict=True))
        return map_tensors(batches[0][0], lambda _: next(joined)), torch.cat([own for _, own in batches])

    def report(
        self,
        path: str | PathLike[str],
        x: Any = None,
        y: Any = None,
        *,
        group: Any = None,
        time: Any = None,
        significance: float = 0.01,
        batch_size: int = 1024,
        target: str = "y",
        title: str = "",
        author: str = "",
        unit: str = "",
    ) -> Path:
        """Write the page of the network and return its path; with ``x`` and ``y`` it shows their audit.

        Parameters
        ----------
        path : str or path
            The HTML file to write.
        x : tensor, tuple or mapping of tensors, Dataset or loader, default None
            Inputs of test rows, as the network takes them. They neither trained nor calibrated it. Without them the
            page shows the promise alone. Without ``y``, all that ``audit`` takes.
        y : tensor or array of shape (n,), default None
            Their true values, unless ``x`` holds them.
        group : array of shape (n,), default None
            A group for each row. Coverage is shown for each group.
        time : array of shape (n,), default None
            The time of each row, to look for changes over time.
        significance : float, default 0.01
            How often a model that keeps its promise may be called broken. Lower it if a false alarm is expensive.
        batch_size : int, default 1024
            How many rows the network sees at once. Lower it if memory runs out.
        target : str, default "y"
            The entry of a batch that holds the true values, if batches are mappings.
        title : str, default ""
            The heading of the page. Without one, the page names the confidence level and the target.
        author : str, default ""
            Who made the page. It stands beside the date.
        unit : str, default ""
            The unit of the target, such as "EUR". It stands behind predictions, interval ends and widths.
        """
        from guardband.doors.described import described_model
        from guardband.doors.judged_network import evidence_of_network
        from guardband.report.document import document
        from guardband.report.heading import Heading
        from guardband.report.page import write_report

        evidence = None
        if x is not None or y is not None:
            x, y = self._labelled(x, y, target, batch_size)
            evidence = evidence_of_network(self, x, y, group=group, time=time, batch_size=batch_size)
        model = described_model(self.certificate, ("Network", type(self.networks[0]).__name__))
        return write_report(document(model, evidence, significance, Heading(title, author, unit)), Path(path))

    @property
    def rule(self) -> Rule:
        """The rule that turns predictions into intervals."""
        return self._rule

    def predicted(self, x: Inputs) -> Predicted:
        """Return what the network predicts before calibration, in double precision.

        Parameters
        ----------
        x : tensor, tuple or mapping of tensors
            Inputs of rows, as the network takes them.
        """
        networks, n = list(self.networks), rows_in(x)
        starts = range(0, n, ROWS_AT_A_TIME)
        batches = [map_tensors(x, itemgetter(slice(at, at + ROWS_AT_A_TIME))) for at in starts]
        found = [_predicted(networks, self._outputs, own, rows_in(own)) for own in batches]
        return type(found[0])(*(np.concatenate(same, -1) for same in zip(*(own.parts for own in found), strict=True)))

    def on_its_device(self, tensor: Tensor) -> Tensor:
        """Return a tensor where the network is.

        Parameters
        ----------
        tensor : tensor
            Any tensor.
        """
        return tensor.to(_device(self.networks[0]))

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
    names, data = target_names(data, arguments.get("targets"), target, batch_size)
    chosen, read, order = read_arguments(arguments, len(networks), names)
    copies = [copy.deepcopy(networks[i]).eval().requires_grad_(False) for i in order]
    prints: list[Prints] = []
    function, labels = arguments["groups"], []
    weighting = Weighting.of(arguments["weights"], arguments["max_weight"])
    if function is not None and process_group is not None:
        raise ValueError("groups cannot be used with process_group yet. Calibrate in one process.")

    def blocks() -> Iterator[Block]:
        first_row = 0
        for inputs, y in labelled_batches(data, target, batch_size, bool(names)):
            predicted = _predicted(copies, read, inputs, len(y))
            refuse_faults(predicted, first_row)
            if names:
                rows, outcomes = known_outcomes(y, names, arguments["targets"])
                predicted, inputs, y = predicted.rows(rows), map_tensors(inputs, itemgetter(rows)), y[rows]
            else:
                outcomes = read_target(y, len(y), first_row)
            prints.append(prints_of(inputs, y))
            first_row += len(y)
            if function is not None:
                labels.append(labels_of(function, _on(_device(copies[0]), inputs), len(y)))
            weight = None
            if weighting is not None:
                own = weights_of(arguments["weights"], _on(_device(copies[0]), inputs)).cpu()
                weight = weighting.of_calibration(None, len(y), own)
            yield predicted, outcomes, Context(weight=weight)

    trained = (
        [prints_of(*batch) for batch in labelled_batches(training, target, batch_size, bool(names))]
        if training is not None
        else []
    )
    weights = [float(p.double().sum()) for network in copies if process_group is not None for p in network.parameters()]
    same = f"{chosen} of {read} with {weights}"
    gather = None
    if process_group is not None:
        gather = partial(_gathered, prints=prints, trained=trained, same=same, group=process_group)
    every_block: Iterable[Block] = blocks()
    groups = None
    if function is not None:  # all rows say which groups there are, so what was predicted of them is kept
        every_block = list(every_block)
        groups = NetworkGroups.learn(function, labels)
        chosen = chosen.for_groups(groups.names, "a function of the inputs", len(groups.values))
        codes = [groups.of(own).cpu().numpy() for own in labels]
        pairs = zip(every_block, codes, strict=True)
        every_block = [(predicted, y, replace(context, group=own)) for (predicted, y, context), own in pairs]
    chosen = weighted(chosen, weighting)
    calibrated = Calibrated.from_blocks(
        chosen, every_block, on_insufficient=arguments["on_insufficient"], gather=gather
    )
    every = np.concatenate(prints)
    if trained:
        refuse_overlap(every, np.concatenate(trained))
    certificate, repeats = calibrated.certificate, repeats_in_words(every)
    if repeats is not None:
        warn(repeats, RepeatedRowsWarning)
        certificate = certificate.with_notes(repeats)
    stretched = stretched_in_words(chosen, calibrated.found.arrays)
    if stretched is not None:
        certificate = certificate.with_notes(stretched)
    return GuardedNetwork(copies, chosen, read, calibrated.found.arrays, certificate, arguments, every, groups)


def read_arguments(
    arguments: Mapping[str, Any], networks: int, names: Sequence[str] = ()
) -> tuple[Rule, Declared, list[int]]:
    """Return the rule, how outputs are read, and the order of the networks that arguments of ``calibrate`` ask for.

    ``names`` are those of the targets if there are several.
    """
    method = method_named(arguments["method"])
    request = request_of(arguments)
    method.check(request)
    method.check_networks(request)
    read, request = declared(arguments["outputs"], method, request)
    if request.tau is not None and not read.holds_candidates:
        raise ValueError(f"tau chooses a pair of quantiles, and outputs declares none. Remove tau={request.tau}.")
    if read.holds_candidates and networks > 1:
        raise ValueError(f"Quantiles must come from one network, found {networks} networks.")
    if names:
        check_targets(arguments["targets"], request, method)
        refuse_idle_arguments(arguments, networks)
        rule = several_rule(method, request, arguments["targets"], names, arguments.get("scales") or ())
        return rule, read.of_each(len(names)), [0]
    return method.rule(request), read, [0] if read.holds_candidates else method.order(request, networks)


def stretched_in_words(rule: Rule, arrays: Mapping[str, Any]) -> str | None:
    """Return what to say if the bounds of a network lie so near its point that scaling them made intervals of them."""
    if not isinstance(rule, Conformal) or not isinstance(rule.score, Scaled) or "threshold" not in arrays:
        return None
    factors = np.asarray(arrays["threshold"])
    factors = factors[np.isfinite(factors)]
    if not len(factors) or factors.max() <= MOST_STRETCHED:
        return None
    return (
        f"{rule.method} made the network's intervals {factors.max():,.0f} times as wide, so they may be far "
        'wider than needed. Train the network on a standardised target or for longer, or use method="cqr".'
    )


@torch.no_grad()
def _predicted(networks: Sequence[nn.Module], read: Declared, inputs: Inputs, n: int) -> Predicted:
    """Return what the networks predict for a batch, in double precision."""
    predicted = read.read([call(network, _on(_device(network), inputs)) for network in networks])
    if len(predicted) != n:
        raise ValueError(f"The network must put out one row for each of y's {n}, found {len(predicted)}.")
    return predicted.map(lambda part: part.double().cpu().numpy())


def labelled_batches(data: Any, target: str, batch_size: int, several: bool = False) -> Iterator[tuple[Inputs, Tensor]]:
    """Give inputs and responses of each batch, to one target or to several."""
    if isinstance(data, Tensor):
        raise TypeError("data is one tensor alone. Pass inputs and true values, as (x, y).")
    if isinstance(data, tuple):
        inputs, y = split_target(data, target, several)
        for start in range(0, len(y), batch_size):
            part = slice(start, start + batch_size)
            yield map_tensors(inputs, itemgetter(part)), y[part]
        return
    if isinstance(data, Dataset):
        data = DataLoader(data, batch_size=batch_size)
    if not isinstance(data, Iterable):
        raise TypeError(f"data must be tensors (x, y), a Dataset or a loader, found {type(data).__name__}.")
    for item in data:
        yield split_target(item, target, several)


def _on(device: torch.device, inputs: Inputs) -> Inputs:
    return map_tensors(inputs, lambda t: t.to(device))


def _gathered(
    own: Summary | None, prints: list[Prints], trained: list[Prints], same: str, group: Any
) -> list[Summary | None]:
    """Return what all processes of a group have found, the same in each of them, and take over their prints."""
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
