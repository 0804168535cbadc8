"""Door 2: your own network, calibrated."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Sequence, Sized
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from guardband.bands.certificate import Certificate
from guardband.bands.levels import Level, Levels
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.conformal import Guarantee
from guardband.calibration.pav import Average, PavRule
from guardband.calibration.rule import Array, OnInsufficient
from guardband.data.target import read_target
from guardband.doors.bands import refuse_crossing
from guardband.doors.outputs import Outputs, Reading, reading
from guardband.methods.method import Method, Wish
from guardband.methods.registry import method_named
from guardband.training.inputs import Inputs, call, map_tensors, split_target


class GuardedNetwork(nn.Module):
    """A calibrated network: it takes what the network takes and puts out ``(n, 3)``, lower, point, upper.

    For several levels ``(n, 3, L)``. The setting is a buffer and the certificate a part of the state, so that
    ``state_dict`` carries both. Arithmetic is in the network's own precision, rounded outward.
    """

    setting: Tensor

    def __init__(self, networks: Sequence[nn.Module], calibrated: Calibrated, read: Reading) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.certificate = calibrated.certificate
        self._rule, self._read = calibrated.rule, read
        self.register_buffer("setting", torch.from_numpy(calibrated.setting).to(_device(networks[0])))
        self.eval()

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the calibrated bands."""
        bands = torch.cat([self._read.bands(network(*args, **kwargs)) for network in self.networks])
        lower, point, upper = self._rule.ends(bands, self.setting, torch)
        out = torch.stack([lower, point[:, None].expand_as(lower), upper], dim=1)
        return out[:, :, 0] if self._rule.levels.scalar else out

    def train(self, mode: bool = True) -> GuardedNetwork:
        """Stay in eval mode: with dropout on, this would not be the network that was calibrated."""
        return super().train(False)

    def get_extra_state(self) -> Tensor:
        """Return the certificate as bytes, which every store of tensors can keep."""
        return torch.frombuffer(bytearray(json.dumps(self.certificate.to_dict()).encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Set the certificate from a state; one of another method, rule, grid size or level is refused."""
        loaded = Certificate.from_dict(json.loads(bytes(state.tolist())))
        for name in ("method", "confidence_level", "rule", "candidates"):
            if getattr(loaded, name) != getattr(self.certificate, name):
                raise ValueError(
                    f"A state must come from a network calibrated in the same way: {name} is "
                    f"{getattr(self.certificate, name)!r} here, found {getattr(loaded, name)!r}."
                )
        self.certificate = loaded


def calibrate(
    network: nn.Module | Sequence[nn.Module],
    data: Any,
    method: str | Method = "conf-nn",
    *,
    confidence_level: Level | Sequence[Level] | None = None,
    alpha: Level | Sequence[Level] | None = None,
    guarantee: Guarantee = "marginal",
    delta: float = 0.1,
    joint: bool = False,
    tau: float | None = None,
    taus: Sequence[float] | None = None,
    rule: PavRule = "fixed-sequence",
    average: Average | None = None,
    on_insufficient: OnInsufficient = "inf",
    outputs: Outputs = "bands",
    target: str = "y",
    batch_size: int = 1024,
    group: Any = None,
) -> GuardedNetwork:
    """Return a calibrated copy of a network, in eval mode; later training of the original cannot void its promise.

    ``data`` holds rows that no training has seen: tensors ``(x, y)``, a ``Dataset`` (read in batches of
    ``batch_size``), or a loader. A batch is a pair ``(x, y)``, where x is a tensor, a tuple for ``network(*x)`` or a
    mapping for ``network(**x)``; or a mapping with the responses under ``target``. Only what the rule needs of each
    row is kept, one number for conf-nn.

    ``outputs`` declares what the network puts out: ``"bands"`` (lower, point, upper), ``"bounds"`` (lower, upper),
    ``"gaussian"`` (mean, variance), the levels of quantiles such as those of ``gb.nn.QuantileHead``, of which conf-nn
    takes the pair at ``tau``, alpha unless given, and pav all pairs or those of ``taus``; or a function that makes
    bands ``(n, 3)`` of it. pav else takes a list of networks, one per entry of ``taus``; high-q and neg-ll one of
    candidates. neg-ll and bayes take a Gaussian.

    ``group``: a process group of ``torch.distributed``, each of whose processes brings rows of its own; all of them
    get the network calibrated on all rows. A sampler that repeats rows to make shares equal would void the promise.
    """
    wish = Wish(
        levels=Levels.of(confidence_level, alpha),
        guarantee=guarantee,
        delta=float(delta),
        joint=joint,
        tau=None if tau is None else float(tau),
        taus=taus,
        rule=rule,
        average=average,
        on_insufficient=on_insufficient,
    )
    chosen = method_named(method)
    chosen.check(wish)
    networks = [network] if isinstance(network, nn.Module) else list(network)
    read, wish = reading(outputs, chosen, wish)
    if read.several and len(networks) > 1:
        raise ValueError(f"Quantiles must come from one network, found {len(networks)} networks.")
    order = [0] if read.several else chosen.order(wish, len(networks))
    copies = [copy.deepcopy(networks[i]).eval().requires_grad_(False) for i in order]
    selected = chosen.rule(wish)
    statistics: list[Array] = []
    first_row = 0
    for inputs, y in _batches(data, target, batch_size):
        bands = _bands(copies, read, inputs, len(y)).double().cpu().numpy()
        refuse_crossing(bands, first_row)
        statistics.append(selected.statistic(bands, read_target(y, len(y), first_row)))
        first_row += len(y)
    if group is not None:
        statistics = _gathered(statistics, group)
    if not any(map(len, statistics)):
        raise ValueError("There must be at least one calibration row, found none.")
    return GuardedNetwork(copies, Calibrated.by(selected, selected.summarise(statistics)), read)


@torch.no_grad()
def _bands(networks: Sequence[nn.Module], read: Reading, inputs: Inputs, n: int) -> Tensor:
    """Return the bands of a batch, ``(K, n, 3)``."""
    bands = torch.cat([read.bands(call(network, _on(_device(network), inputs))) for network in networks])
    if bands.shape[1] != n:
        raise ValueError(f"The network must put out one row for each of y's {n}, found {bands.shape[1]}.")
    return bands


def _batches(data: Any, target: str, batch_size: int) -> Iterator[tuple[Inputs, Tensor]]:
    """Give inputs and responses of each batch."""
    if isinstance(data, tuple):
        inputs, y = split_target(data, target)
        for start in range(0, len(y), batch_size):
            part = slice(start, start + batch_size)
            yield map_tensors(inputs, itemgetter(part)), y[part]
        return
    if isinstance(data, Dataset) and isinstance(data, Sized):
        data = DataLoader(data, batch_size=batch_size)
    if not isinstance(data, Iterable):
        raise TypeError(f"data must be tensors (x, y), a Dataset or a loader, found {type(data).__name__}.")
    for item in data:
        yield split_target(item, target)


def _on(device: torch.device, inputs: Inputs) -> Inputs:
    return map_tensors(inputs, lambda t: t.to(device))


def _gathered(statistics: Sequence[Array], group: Any) -> list[Array]:
    """Return what all processes of a group have found, the same in each of them."""
    import torch.distributed as dist

    parts: list[list[Array]] = [[] for _ in range(dist.get_world_size(group))]
    dist.all_gather_object(parts, list(statistics), group=group)
    return [part for own in parts for part in own]


def _device(network: nn.Module) -> torch.device:
    parameter = next(network.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device
